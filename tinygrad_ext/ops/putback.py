"""Derivatives of the views of parts, as ops: a gradient put back where its elements were read, among zeros.

And what writing to such a view does, without writing: a copy of the whole with the part replaced."""

from tinygrad_ext.ops import batching_putback
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

_ALL = "bool int float half complex"
_SUMMED = "float half complex"


op(
    "aten::_select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    batch=batching_putback.select_backward,
    kernel="select_backward",
    variants="method",
    types=_ALL,
    grad={"grad_output": lambda grad, dim, index: grad.select(dim, index)},
    jvp="linear",
    samples=lambda make: [Sample(make(4), (3, 4), 0, 1), Sample(make(3), (3, 4), -1, -2)],
    doc="Zeros of the given shape with grad_output at one index: the derivative of select.",
)

op(
    "aten::_slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int step) -> Tensor",
    batch=batching_putback.slice_backward,
    kernel="slice_backward",
    variants="method",
    types=_ALL,
    grad={
        "grad_output": lambda grad, grad_output_shape, dim, start, step: _slice_again(
            grad, grad_output_shape, dim, start, step
        )
    },
    jvp="linear",
    samples=lambda make: [
        Sample(make(2, 3), (5, 3), 0, 1, 2),
        Sample(make(2), (4,), 0, -2, 1),
        Sample(make(0), (4,), 0, None, 1),
    ],
    doc="Zeros of the given shape with grad_output in one slice: the derivative of slice and narrow.",
)

op(
    "aten::_diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    batch=batching_putback.diagonal_backward,
    kernel="diagonal_backward",
    variants="method",
    types=_ALL,
    grad={"grad_output": lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2)},
    jvp="linear",
    samples=lambda make: [Sample(make(3), (3, 4), 1, 0, 1), Sample(make(2, 3), (3, 2, 4), 0, -1, 0)],
    doc="Zeros of the given shape with grad_output on a diagonal: the derivative of diagonal.",
)

op(
    "aten::_unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
    batch=batching_putback.unfold_backward,
    kernel="unfold_backward",
    variants="method",
    types=_SUMMED,
    grad={"grad_in": lambda grad, dim, size, step: grad.unfold(dim, size, step)},
    jvp="linear",
    samples=lambda make: [
        Sample(make(4, 2), (5,), 0, 2, 1),
        Sample(make(2, 2), (5,), 0, 2, 3),
        Sample(make(1), (), 0, 1, 1),
    ],
    doc="Zeros of the given shape to which every window is added where it was read: the derivative of unfold.",
)

op(
    "aten::_rewindow(Tensor self, int[] stride, int offset, int[] into_size, int[] into_stride, int into_offset, bool "
    "by_source) -> Tensor",
    batch=batching_putback.rewindow,
    kernel="rewindow",
    variants="method",
    types=_SUMMED,
    grad={
        "self": lambda grad, self_shape, stride, offset, into_stride, into_offset, by_source: grad._rewindow(
            into_stride, into_offset, self_shape, stride, offset, not by_source
        )
    },
    jvp="linear",
    samples=lambda make: [
        Sample(make(3, 3), (1, 1), 0, (5,), (1,), 0, False),
        Sample(make(2, 2), (1, 1), 0, (2, 3), (0, 1), 0, False),
        Sample(make(2, 3), (0, 1), 1, (2, 2), (1, 1), 0, True),
    ],
    doc="Elements of self added up where a window (its shape, stride, offset) puts them in zeroed memory, then read "
    "through another "
    "window. Where the second window (by_source: the first) reads an element several times, each time gives an "
    "equal share. "
    "The derivative of as_strided, and its own.",
)


op(
    "aten::select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
    batch="dims",
    kernel="select_scatter",
    types=_ALL,
    grad={
        "self": lambda grad, src_shape, dim, index: grad.select_scatter(_zeros(grad, src_shape), dim, index),
        "src": lambda grad, dim, index: grad.select(dim, index),
    },
    jvp="linear",
    samples=lambda make: [Sample(make(3, 4), make(4), 0, 1), Sample(make(3, 4), make(3), -1, -2)],
    errors=[(lambda: _ones(2, 3).select_scatter(_ones(2), 0, 1), RuntimeError, "a size equal to the slice of self")],
    doc="A copy of self in which src stands at one index of a dimension.",
)

op(
    "aten::slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    batch="dims",
    kernel="slice_scatter",
    variants="function method out",
    types=_ALL,
    grad={
        "self": lambda grad, src_shape, dim, start, end, step: grad.slice_scatter(
            _zeros(grad, src_shape), dim, start, end, step
        ),
        "src": lambda grad, dim, start, end, step: grad.slice(dim, start, end, step),
    },
    jvp="linear",
    samples=lambda make: [
        Sample(make(5, 3), make(2, 3), 0, 1, 4, 2),
        Sample(make(3, 4), make(3, 2), -1, -2),
        Sample(make(3), make(0), 0, 2, 1),
    ],
    errors=[(lambda: _ones(5).slice_scatter(_ones(2), 0, 1), RuntimeError, "a size equal to the slice of self")],
    doc="A copy of self in which src stands in one slice of a dimension.",
)


def _window_of(grad, size, stride, offset):
    """What the window shows of memory, an element as often as it is read."""
    if any(n == 0 for n in size):
        return grad.new_zeros(size)
    return grad.contiguous().narrow(0, offset, grad.shape[0] - offset).as_strided(size, stride)


op(
    "aten::_window_scatter(Tensor self, Tensor src, int[] size, int[] stride, int offset) -> Tensor",
    batch=batching_putback.window_scatter,
    kernel="window_scatter",
    variants="method",
    types=_ALL,
    grad={
        "self": lambda grad, src_shape, size, stride, offset: grad._window_scatter(
            _zeros(grad, src_shape), size, stride, offset
        ),
        "src": lambda grad, size, stride, offset: _window_of(grad, size, stride, offset),
    },
    jvp="linear",
    samples=lambda make: [
        Sample(make(9), make(3), (3,), (2,), 2),
        Sample(make(9), make(2, 2), (2, 2), (1, 2), 1),
        Sample(make(8), make(3, 2), (3, 2), (2, 1), 2),
        Sample(make(2), make(0), (0,), (9,), 1),
        Sample(make(2), make(), (), (), 1),
    ],
    errors=[
        (lambda: _ones(3)._window_scatter(_ones(1), (1,), (1,), 3), RuntimeError, "out of bounds for storage of size"),
        (lambda: _ones(3)._window_scatter(_ones(1), (1,), (), 0), RuntimeError, "as many sizes as strides"),
        (lambda: _ones(3)._window_scatter(_ones(), (1,) * 130, (1,) * 130, 0), RuntimeError, "at most"),
        (lambda: _ones(3)._window_scatter(_ones(2), (1,), (1,), 0), RuntimeError, "a size equal to the slice of self"),
    ],
    doc="A copy of self, which has one dimension and stands for memory, in which src stands in a window.",
)


def _as_strided_scatter(self, src, size, stride, storage_offset):
    """src is put into a window of what lies in the memory of self, up to its last element."""
    if src.shape != tuple(size):
        raise RuntimeError(
            f"as_strided_scatter(): expected src to have a size equal to the slice of self. src size = "
            f"{tuple(src.shape)}, slice size = {tuple(size)}"
        )
    if any(step == 0 and n > 1 for n, step in zip(self.shape, self.stride())):
        self = self.contiguous()
    first, shape = self.storage_offset(), self.shape
    offset = first if storage_offset is None else storage_offset
    if first == 0 and self.is_contiguous():
        memory = self if len(shape) == 1 else self.reshape(-1)
        found = memory._window_scatter(src, size, stride, offset)
        return found if memory is self else found.reshape(shape)
    length = first + sum((n - 1) * step for n, step in zip(shape, self.stride())) + 1 if self.numel() else first
    memory = self.as_strided((length,), (1,), 0)._window_scatter(src, size, stride, offset)
    return memory.as_strided(shape, self.stride(), first)


op(
    "aten::as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    compose=_as_strided_scatter,
    variants="function method out",
    types=_ALL,
    samples=lambda make: [
        Sample(make(3, 3), make(2, 2), (2, 2), (1, 2), 1),
        Sample(make(16), make(2, 1, 2), (2, 1, 2), (8, 2, 1)),
    ],
    gaps={
        "layout": "reads the storage, whose layout is what the check varies",
        "torch": "its gradient of self is that of what was replaced",
    },
    errors=[
        (lambda: _ones(3).as_strided_scatter(_ones(2), (2,), (9,)), RuntimeError, "out of bounds for storage of size"),
        (lambda: _ones(3).as_strided_scatter(_ones(1), (2,), (1,)), RuntimeError, "a size equal to the slice of self"),
    ],
    doc="A copy of self in which src stands in a window of its memory, as as_strided cuts it.",
)

op(
    "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    batch="dims",
    kernel="diagonal_scatter",
    types=_ALL,
    grad={
        "self": lambda grad, src_shape, offset, dim1, dim2: grad.diagonal_scatter(
            _zeros(grad, src_shape), offset, dim1, dim2
        ),
        "src": lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
    },
    jvp="linear",
    samples=lambda make: [Sample(make(3, 4), make(3), 1), Sample(make(3, 2, 4), make(2, 3), 0, -1, 0)],
    errors=[(lambda: _ones(3, 3).diagonal_scatter(_ones(2)), RuntimeError, "a size equal to the slice of self")],
    doc="A copy of self in which src stands on a diagonal of two dimensions.",
)


def _zeros(grad, shape):
    return fused.zeros(shape, dtype=grad.dtype, device=grad.device)


def _ones(*sizes):
    return fused.ones(sizes)


def _slice_again(grad, shape, dim, start, step):
    """The part of grad where `shape` had been put."""
    size = grad.shape[dim]
    start = 0 if start is None else max(int(start) + size, 0) if int(start) < 0 else min(int(start), size)
    return grad.slice(dim, start, start + shape[dim] * step, step)
