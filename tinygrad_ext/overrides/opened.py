"""What one operation here is in the operations that handlers of `__torch_dispatch__` know.

PyTorch opens these before a handler is asked. Each function takes the arguments of the schema, and calls public ops.
"""

import math
import sys

from tinygrad_ext import ops
from tinygrad_ext.core.data.dtype import contiguous_format
from tinygrad_ext.core.data.tensor import Tensor

_END = sys.maxsize


def steps(tensor, index):
    """tensor[index] for ints, slices, None and Ellipsis, one view of one dimension after the other."""
    aten = ops.aten
    parts = index if isinstance(index, tuple) else (index,)
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    dim, result = 0, tensor
    for part in parts:
        if part is Ellipsis:
            dim += tensor.dim() - taken
        elif part is None:
            result, dim = aten.unsqueeze.default(result, dim), dim + 1
        elif isinstance(part, slice):
            start, stop, step = part.start or 0, _END if part.stop is None else part.stop, part.step or 1
            if (start, stop, step) != (0, _END, 1) or not isinstance(index, tuple):
                result = aten.slice.Tensor(result, dim, start, stop, step)
            dim += 1
        else:
            result = aten.select.int(result, dim, part)
    return aten.alias.default(result) if result is tensor else result


def _mul_conj(tensor, other):
    turned = other.conj() if isinstance(other, Tensor) and other.dtype.is_complex else other
    return ops.aten.mul.Tensor(tensor, turned)


def _contiguous(tensor, memory_format):
    wanted = memory_format or contiguous_format
    return tensor if tensor.is_contiguous(memory_format=wanted) else tensor.clone(memory_format=wanted)


def _reshape(tensor, size):
    size = _whole(size, tensor.numel())
    shown = Tensor._make_wrapper_subclass(Tensor, tensor.shape, strides=tensor.stride(), dtype=tensor.dtype)
    try:
        shown.view(size)
    except RuntimeError:
        tensor = tensor.clone(memory_format=contiguous_format)
    return tensor.view(size)


def _whole(size, count):
    """size with what stands for its -1."""
    known = math.prod(n for n in size if n != -1)
    return [count // known if n == -1 and known else n for n in size]


def _flatten(tensor, start, end):
    shape, start, end = list(tensor.shape) or [1], start % max(tensor.dim(), 1), end % max(tensor.dim(), 1)
    return (
        tensor
        if start == end and tensor.dim()
        else _reshape(tensor, shape[:start] + [math.prod(shape[start : end + 1])] + shape[end + 1 :])
    )


def _unflatten(tensor, dim, sizes):
    shape = list(tensor.shape)
    dim %= tensor.dim()
    return tensor.view(shape[:dim] + _whole(sizes, shape[dim]) + shape[dim + 1 :])


def _movedim(tensor, source, destination):
    rank = tensor.dim()
    source, destination = ([s % rank for s in ([d] if isinstance(d, int) else d)] for d in (source, destination))
    order = [d for d in range(rank) if d not in source]
    for to, dim in sorted(zip(destination, source, strict=True)):
        order.insert(to, dim)
    return tensor.permute(order)


def _chunk(tensor, chunks, dim):
    size = tensor.size(dim)
    each = -(-size // chunks) if size else 0
    return ops.aten.split.Tensor(tensor, each, dim) if each else ops.aten.split_with_sizes(tensor, [0] * chunks, dim)


def matmul(a, b):
    """The product as products of two matrices or of two batches of them."""
    aten, ranks = ops.aten, (a.dim(), b.dim())
    if ranks == (1, 1):
        return aten.dot.default(a, b)
    if ranks == (2, 1):
        return aten.mv.default(a, b)
    if ranks == (1, 2):
        return aten.mm.default(a.unsqueeze(0), b).squeeze(0)
    if ranks == (2, 2):
        return aten.mm.default(a, b)
    if ranks[1] <= 2:  # rows of all matrices at once
        rows = a.reshape(-1, a.size(-1))
        return matmul(rows, b).view(*a.shape[:-1], *b.shape[1:])
    first, second = a.unsqueeze(0) if ranks[0] == 1 else a, b.unsqueeze(1) if ranks[1] == 1 else b
    batch = _broadcast(first.shape[:-2], second.shape[:-2])
    rows = [t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (first, second)]
    result = aten.bmm.default(*rows).view(*batch, first.size(-2), second.size(-1))
    return result.squeeze(-2) if ranks[0] == 1 else result


def _broadcast(a, b):
    """The sizes of batches that go together."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    return [m if n == 1 else n for m, n in zip(a, b, strict=True)]


def _linear(tensor, weight, bias):
    if tensor.dim() == 2 and bias is not None and weight.dim() == 2:
        return ops.aten.addmm.default(bias, tensor, weight.t())
    result = matmul(tensor, weight.t())
    return result if bias is None else result + bias


FUNCTIONS = {
    **dict.fromkeys(("aten::_select", "aten::_slice", "aten::_unsqueeze", "aten::_alias"), steps),
    "aten::mul_conj": _mul_conj,
    "aten::square": lambda tensor: tensor.pow(2),
    "aten::broadcast_to": lambda tensor, size: tensor.expand(size),
    "aten::expand_as": lambda tensor, other: tensor.expand(other.shape),
    "aten::contiguous": _contiguous,
    "aten::reshape": _reshape,
    "aten::reshape_as": lambda tensor, other: _reshape(tensor, other.shape),
    "aten::view_as": lambda tensor, other: tensor.view(other.shape),
    "aten::flatten.using_ints": _flatten,
    "aten::ravel": lambda tensor: _reshape(tensor, [-1]),
    "aten::unflatten.int": _unflatten,
    "aten::movedim.int": _movedim,
    "aten::movedim.intlist": _movedim,
    "aten::narrow": lambda tensor, dim, start, length: ops.aten.slice.Tensor(tensor, dim, start, start + length),
    "aten::split.sizes": lambda tensor, sizes, dim: ops.aten.split_with_sizes(tensor, sizes, dim),
    "aten::chunk": _chunk,
    "aten::matmul": matmul,
    "aten::linear": _linear,
}
