"""Putting tensors together."""

from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import meta, wrapped


def _dtype(tensors):
    from tinygrad_ext import promote_types

    dtype = tensors[0].dtype
    for t in tensors:
        dtype = promote_types(dtype, t.dtype)
    return dtype


def _cat_shape(tensors, dim):
    kept = [t for t in tensors if t.shape != (0,)] or tensors[:1]
    shape = list(kept[0].shape)
    dim = wrapped(dim, len(shape))
    for i, t in enumerate(kept):
        if t.dim() != len(shape) or any(a != b for k, (a, b) in enumerate(zip(t.shape, shape)) if k != dim):
            raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected {shape} but got "
                               f"{list(t.shape)} for tensor number {i} in the list.")
    shape[dim] = sum(t.shape[dim] for t in kept)
    return meta(shape, _dtype(tensors))


def _stack_shape(tensors, dim):
    shape = list(tensors[0].shape)
    for i, t in enumerate(tensors):
        if list(t.shape) != shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {shape} at entry 0 and {list(t.shape)} at "
                               f"entry {i}")
    shape.insert(wrapped(dim, len(shape) + 1), len(tensors))
    return meta(shape, _dtype(tensors))


def _uncat(grad, tensors_shape, dim):
    """The part of grad that belongs to each tensor; one of shape (0,) was passed over."""
    out, start = [], 0
    for shape in tensors_shape:
        if len(shape) == 1 and shape[0] == 0:
            out.append(None)
            continue
        out.append(grad.narrow(dim, start, shape[dim]))
        start += shape[dim]
    return out


def _lists(make):
    yield Sample([make(2, 3), make(4, 3)])
    yield Sample([make(2, 3), make(2, 1), make(2, 0)], dim=-1)
    yield Sample([make(0, 2), make(3, 2)], 0)
    yield Sample([make(3)])


def _equal_lists(make):
    yield Sample([make(2, 3), make(2, 3)])
    yield Sample([make(2, 3), make(2, 3), make(2, 3)], dim=-1)
    yield Sample([make(), make()])
    yield Sample([make(0, 2)], 1)


op("aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
   kernel="cat", takes_out=True, variants="function out", aliases="concat concatenate", shape=_cat_shape,
   grad={"tensors": _uncat},
   samples=_lists, reference="numpy.concatenate",
   errors=[(lambda: _cat([zeros(2, 3), zeros(3)]), RuntimeError, "must have same number of dimensions: got 2 and 1"),
           (lambda: _cat([zeros(2, 3), zeros(2, 4)]), RuntimeError, "Expected size 3 but got size 4 for tensor number 1"),
           (lambda: _cat([zeros(2), zeros()]), RuntimeError, "zero-dimensional tensor (at position 1) cannot be concatenated"),
           (lambda: _cat([]), ValueError, "expected a non-empty list of Tensors")],
   doc="The tensors one after the other along a dimension. All other sizes must agree; dtypes promote.")

op("aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
   kernel="stack", takes_out=True, variants="function out", shape=_stack_shape,
   grad={"tensors": lambda grad, dim: grad.unbind(dim)},
   samples=_equal_lists, reference="numpy.stack",
   errors=[(lambda: _stack([zeros(2), zeros(3)]), RuntimeError, "to be equal size, but got [2] at entry 0 and [3] at entry 1"),
           (lambda: _stack([]), RuntimeError, "stack expects a non-empty TensorList")],
   doc="Tensors of one shape along a new dimension.")


def _cat(tensors):
    from tinygrad_ext import cat

    return cat(tensors)


def _stack(tensors):
    from tinygrad_ext import stack

    return stack(tensors)
