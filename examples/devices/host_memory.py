"""A device whose memory is some of this process's, and whose kernels NumPy computes.

What a device needs is a class with three methods, and a function for each op. Views, copies, factories, printing and
the backward pass come by themselves.

>>> import tinygrad_ext as tg
>>> x = tg.tensor([[1.0, -2.0], [3.0, 4.0]]).to("example")
>>> x
tensor([[ 1., -2.],
        [ 3.,  4.]], device='example:0')
>>> (x * 2 + x.t()).relu().cpu()
tensor([[ 3.,  0.],
        [ 4., 12.]])
>>> weight = tg.ones(2, 2, device="example", requires_grad=True)
>>> (x @ weight).relu().backward(tg.ones(2, 2, device="example"))
>>> weight.grad.tolist()
[[3.0, 3.0], [4.0, 4.0]]
>>> x.exp()  # doctest: +ELLIPSIS
Traceback (most recent call last):
NotImplementedError: Could not run 'aten::exp' with arguments from the 'example' backend: ...
"""

import ctypes

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext import library

NAME = "example"


class HostMemory:
    """Blocks of this process's memory. A card's would be the card's, and `read` and `write` its transfers."""

    def allocate(self, nbytes):
        """(address, owner) of a new block, which goes when its owner does."""
        block = ctypes.create_string_buffer(nbytes)
        return ctypes.addressof(block), block

    def read(self, address, into):
        """Copy bytes from the device."""
        into[:] = ctypes.string_at(address, len(into))

    def write(self, address, data):
        """Copy bytes to the device."""
        ctypes.memmove(address, bytes(data), len(data))


def array(t):
    """The elements of a tensor on the device, as NumPy sees them where they lie."""
    dtype = np.dtype(t.dtype.name)
    steps = [dtype.itemsize * s for s in t.stride()]
    span = dtype.itemsize + sum(step * (n - 1) for n, step in zip(t.shape, steps))
    memory = (ctypes.c_char * (span if t.numel() else 0)).from_address(t.data_ptr())
    return np.ndarray(t.shape, dtype, memory, strides=steps)


def tensor(values):
    """A tensor on the device with the elements of an array."""
    made = tg.empty(values.shape, dtype=getattr(tg, values.dtype.name), device=NAME)
    array(made)[...] = values
    return made


def operand(x):
    """A tensor's elements; a Python number as it is, whose dtype NumPy adapts."""
    return array(x) if isinstance(x, tg.Tensor) else x


def add(self, other, *, alpha=1):
    """aten::add.Tensor"""
    return tensor(operand(self) + operand(other) * alpha)


def mul(self, other):
    """aten::mul.Tensor"""
    return tensor(np.multiply(operand(self), operand(other)))


def matmul(self, other):
    """aten::mm and aten::matmul"""
    return tensor(array(self) @ array(other))


def total(self, *, dtype=None):
    """aten::sum"""
    return tensor(np.asarray(array(self).sum(dtype=dtype and dtype.name)))


def relu(self):
    """aten::relu"""
    return tensor(np.maximum(array(self), 0))


def threshold_backward(grad_output, self, threshold):
    """aten::threshold_backward: the derivative of relu."""
    return tensor(np.where(array(self) > threshold, array(grad_output), array(grad_output).dtype.type(0)))


KERNELS = {
    "aten::add.Tensor": add,
    "aten::mul.Tensor": mul,
    "aten::mul_conj": mul,  # the derivative of a product: the same for real numbers
    "aten::sum": total,
    "aten::mm": matmul,
    "aten::matmul": matmul,
    "aten::relu": relu,
    "aten::threshold_backward": threshold_backward,
}


def register(bring):
    """Bring the device and its kernels; `bring` is the hook's registrar, or `library.register_device`."""
    bring(NAME, HostMemory())
    for op, kernel in KERNELS.items():
        library.impl(op, NAME, kernel)
