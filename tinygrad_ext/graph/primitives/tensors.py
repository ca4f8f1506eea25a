"""What a graph asks of a tensor that is no op, and does to it."""

from tinygrad_ext.core.call.interop import storage_of
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.tensor import Tensor

from .table import primitive

_BOOL = dtypes.by_name["bool"]


def _size(t, dim):
    if not t.shape:
        raise IndexError(f"size {dim} of a 0-d tensor, which has no dimensions")
    return int(t.shape[dim])


primitive("size", "Tensor int", "int", _size)
primitive("shape", "Tensor", "List[int]", lambda t: [int(n) for n in t.shape])
primitive("rank", "Tensor", "int", lambda t: t.dim())
primitive("numel", "Tensor", "int", lambda t: t.numel())
primitive("dtype", "Tensor", "ScalarType", lambda t: t.dtype)
primitive("device", "Tensor", "Device", lambda t: t.device)
primitive("item", "Tensor", None, lambda t: t.item())
primitive("layout", "Tensor", "Layout", lambda t: t.layout)
FLAGS = (
    *(
        "requires_grad",
        "is_leaf",
        "retains_grad",
        "is_sparse",
        "is_sparse_csr",
        "is_nested",
        "is_quantized",
        "is_mkldnn",
    ),
    *("is_meta", "is_cpu", "is_cuda", "is_xpu", "is_mps", "is_xla", "is_ipu", "is_mtia", "is_maia", "is_vulkan"),
)  # attributes that are true or false
for _name in FLAGS:
    primitive(f"tensor.{_name}", "Tensor", "bool", lambda t, name=_name: getattr(t, name))
ASKED = (
    *("is_floating_point", "is_complex", "is_signed", "is_contiguous", "is_nonzero"),
    *("is_conj", "is_neg", "is_inference", "is_shared", "is_coalesced"),
)  # questions that are methods without arguments
for _name in ASKED:
    primitive(f"tensor.{_name}", "Tensor", "bool", lambda t, name=_name: getattr(t, name)())
PARTS = ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices", "coalesce")
for _name in PARTS:  # of sparse tensors
    primitive(f"tensor.{_name}", "Tensor", "Tensor", lambda t, name=_name: getattr(t, name)())
COUNTS = ("element_size", "storage_offset", "get_device", "sparse_dim", "dense_dim", "_nnz")
for _name in COUNTS:
    primitive(f"tensor.{_name}", "Tensor", "int", lambda t, name=_name: getattr(t, name)())
for _name in ("itemsize", "nbytes", "output_nr"):
    primitive(f"tensor.{_name}", "Tensor", "int", lambda t, name=_name: getattr(t, name))
for _name in ("T", "H", "mH"):
    primitive(f"tensor.{_name}", "Tensor", "Tensor", lambda t, name=_name: getattr(t, name))
primitive("tensor.grad", "Tensor", "Optional[Tensor]", lambda t: t.grad)
primitive("tensor.stride", "Tensor", "List[int]", lambda t: [int(n) for n in t.stride()])
primitive("tensor.stride_of", "Tensor int", "int", lambda t, dim: int(t.stride(dim)))
primitive("tensor.type", "Tensor", "str", lambda t: t.type())
primitive("tensor.tolist", "Tensor", None, lambda t: t.tolist())
primitive("tensor.backward", "Tensor ...", "", lambda t, *args: t.backward(*args), effect=True)
primitive("tensor.requires_grad_", "Tensor bool", "Tensor", lambda t, mode: t.requires_grad_(mode), effect=True)
primitive(
    "tensor.set_item", "Tensor Any Any", "", lambda t, index, value: t.__setitem__(_index(index), value), effect=True
)
primitive("tensor.item_set", "Tensor Any Any", "Tensor", lambda *row: _item_set(*row))
primitive("tensor.as_written", "Tensor Tensor", "Tensor", lambda *row: _as_written(*row))
primitive(
    "autograd.grad", "Any Any Any Any bool bool", "List[Optional[Tensor]]", lambda *row: _gradients(*row), effect=True
)
primitive("autograd.backward", "Any Any Any bool", "", lambda *row: _backward(*row), effect=True)
primitive("tensor.write_out", "Tensor Tensor str", "", lambda *row: _write_out(*row), effect=True)
primitive("tensor.apart", "Tensor str ...", "", lambda *row: _apart(*row), effect="order")
primitive("tensor.set_", "Tensor Tensor", "Tensor", lambda t, source: t.set_(source), effect=True)
primitive("tensor.set_grad", "Tensor Any", "", lambda t, grad: setattr(t, "grad", grad), effect=True)
for _name in ("is_floating_point", "is_complex", "is_signed"):
    primitive(f"dtype.{_name}", "ScalarType", "bool", lambda d, name=_name: getattr(d, name))
primitive("dtype.itemsize", "ScalarType", "int", lambda d: d.itemsize)
primitive("device.type", "Device", "str", lambda d: d.type)
primitive("device.index", "Device", "Optional[int]", lambda d: d.index)
primitive("device_of", "str", "Device", dtypes.device)


def _number_in(tensor, argument, whole):
    """The number in a tensor that stands where an op takes one, for eager ops take such too."""
    odd = whole and (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is _BOOL)
    if tensor.dim() or odd or tensor.requires_grad:
        told = f"{tensor.dtype}, shape {tuple(tensor.shape)}{', requires grad' if tensor.requires_grad else ''}"
        raise TypeError(
            f"{argument} must be {'int' if whole else 'a number'}, not a Tensor ({told}); a tensor of no "
            f"dimensions{' and a whole dtype' if whole else ''} that requires no grad is taken. Write x.item()"
        )
    number = tensor.item()
    return int(number) if number is True or number is False else number


# whether it requires grad shows in eager autograd alone, so the latter two keep their place there
primitive("tensor.int", "Tensor str", "int", lambda t, argument: int(_number_in(t, argument, True)))
primitive("tensor.float", "Tensor str", "float", lambda t, argument: float(_number_in(t, argument, False)), effect=True)
primitive("tensor.scalar", "Tensor str", "Scalar", lambda t, argument: _number_in(t, argument, False), effect=True)


def _write_out(out, value, name):
    if is_grad_enabled() and (out.requires_grad or value.requires_grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad. Leave out= away, or work in no_grad()."
        )
    if not dtypes.can_cast(value.dtype, out.dtype):
        raise RuntimeError(f"{name}(): its result is {value.dtype}, which cannot be cast to out's dtype {out.dtype}")
    if out.shape != value.shape:
        out.resize_(value.shape)
    out.copy_(value)


def _apart(written, name, *others):
    """Raise where what a traced function writes to lies in the same memory as something else that it is given."""
    room = id(storage_of(written))
    if any(isinstance(t, Tensor) and id(storage_of(t)) == room for t in others):
        raise RuntimeError(
            f"the traced function writes to its argument {name}, and another one lies in the same memory; its graph "
            "holds for arguments that share none. Pass a clone()"
        )


def _item_set(t, index, value):
    made = t.clone()
    made[_index(index)] = value
    return made


def _as_written(old, new):
    """What an in-place op leaves where `old` was."""
    if new.shape != old.shape:
        raise RuntimeError(
            f"output with shape {list(old.shape)} doesn't match the broadcast shape {list(new.shape)}. Write to a "
            "tensor of that shape, or use the form without '_'"
        )
    if new.dtype == old.dtype:
        return new
    if not dtypes.can_cast(new.dtype, old.dtype):
        raise RuntimeError(f"result type {new.dtype} can't be cast to the desired output type {old.dtype}")
    return new.to(old.dtype)


def _gradients(outputs, inputs, grads, retain, create, unused):
    from tinygrad_ext.autograd import grad  # lazy: few graphs ask the engine themselves

    return list(grad(outputs, inputs, grads, retain_graph=retain, create_graph=create, allow_unused=unused))


def _backward(outputs, grads, retain, create):
    from tinygrad_ext.autograd import backward  # lazy: few graphs ask the engine themselves

    backward(outputs, grads, retain_graph=retain, create_graph=create)


def _index(index):
    """A graph has one kind of sequence; the outermost of an index is a tuple."""
    return tuple(index) if type(index) is list else index
