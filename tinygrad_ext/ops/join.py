"""Putting tensors together."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_ALL = "bool int float half complex"


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


op(
    "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
    batch=batching.cat,
    kernel="cat",
    variants="function out",
    types=_ALL,
    aliases="concat concatenate",
    grad={"tensors": _uncat},
    jvp="linear",
    samples=_lists,
    reference=lambda tensors, dim=0: _numpy("concatenate", tensors, dim),
    errors=[
        (lambda: _cat([zeros(2, 3), zeros(3)]), RuntimeError, "must have same number of dimensions: got 2 and 1"),
        (lambda: _cat([zeros(2, 3), zeros(2, 4)]), RuntimeError, "Expected size 3 but got size 4 for tensor number 1"),
        (
            lambda: _cat([zeros(2), zeros()]),
            RuntimeError,
            "zero-dimensional tensor (at position 1) cannot be concatenated",
        ),
        (lambda: _cat([]), ValueError, "expected a non-empty list of Tensors"),
    ],
    tags="moves casts",
    doc="The tensors one after the other along a dimension. All other sizes must agree; dtypes promote.",
)

op(
    "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
    batch=batching.stack,
    kernel="stack",
    variants="function out",
    types=_ALL,
    grad={"tensors": lambda grad, dim: grad.unbind(dim)},
    jvp="linear",
    samples=_equal_lists,
    reference=lambda tensors, dim=0: _numpy("stack", tensors, dim),
    errors=[
        (
            lambda: _stack([zeros(2), zeros(3)]),
            RuntimeError,
            "to be equal size, but got [2] at entry 0 and [3] at entry 1",
        ),
        (lambda: _stack([]), RuntimeError, "stack expects a non-empty TensorList"),
    ],
    tags="moves casts",
    doc="Tensors of one shape along a new dimension.",
)

op(
    "aten::hstack(Tensor[] tensors) -> Tensor",
    compose=lambda tensors: _hstack(tensors),
    variants="function out",
    types=_ALL,
    samples=lambda make: [Sample([make(2), make(3)]), Sample([make(2, 1), make(2, 3)]), Sample([make(), make()])],
    reference="numpy.hstack",
    errors=[(lambda: _hstack([]), RuntimeError, "hstack expects a non-empty TensorList")],
    tags="casts",
    doc="Tensors side by side: along the second dimension, vectors along their only one.",
)

op(
    "aten::vstack(Tensor[] tensors) -> Tensor",
    compose=lambda tensors: _vstack(tensors),
    aliases="row_stack",
    variants="function out",
    types=_ALL,
    samples=lambda make: [
        Sample([make(2), make(2)]),
        Sample([make(2, 3), make(1, 3)]),
        Sample([make(), make()]),
        Sample([make(3), make(2, 3)]),
    ],
    reference="numpy.vstack",
    errors=[(lambda: _vstack([]), RuntimeError, "vstack expects a non-empty TensorList")],
    tags="casts",
    doc="Tensors on top of each other: along the first dimension; a vector is a row.",
)

op(
    "aten::meshgrid(Tensor(a)[] tensors, *, str? indexing=None) -> Tensor(a)[]",
    compose=lambda tensors, indexing: _meshgrid(tensors, indexing),
    variants="function",
    types=_ALL,
    tags="varargs",
    samples=lambda make: [
        Sample([make(2), make(3)], indexing="ij"),
        Sample([make(2), make(3)], indexing="xy"),
        Sample([make(2), make(), make(1)], indexing="xy"),
        Sample([make(0), make(2)], indexing="ij"),
    ],
    reference=lambda tensors, indexing: _numpy("meshgrid", *tensors, indexing=indexing),
    errors=[
        (lambda: _meshgrid([], "ij"), RuntimeError, "meshgrid expects a non-empty TensorList"),
        (lambda: _meshgrid([zeros(2)], "a"), RuntimeError, 'indexing must be one of "xy" or "ij", but received: a'),
        (lambda: _meshgrid([zeros(2, 2)], "ij"), RuntimeError, "Expected 0D or 1D tensor"),
        (
            lambda: _meshgrid([zeros(2), zeros(2).long()], "ij"),
            RuntimeError,
            "meshgrid expects all tensors to have the same dtype",
        ),
    ],
    doc="Coordinates of a grid from those of its axes: as many tensors as axes, each a view in the grid's shape. "
    'indexing="xy" '
    "exchanges the first two axes.",
)


def _cat(tensors, dim=0):
    return tg.cat(tensors, dim)


def _stack(tensors):
    return tg.stack(tensors)


def _hstack(tensors):
    if len(tensors) == 0:
        raise RuntimeError("hstack expects a non-empty TensorList")
    tensors = [t.reshape(1) if t.dim() == 0 else t for t in tensors]
    return _cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def _vstack(tensors):
    if len(tensors) == 0:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return _cat([t.reshape(1, -1) if t.dim() < 2 else t for t in tensors])


def _meshgrid(tensors, indexing):
    if len(tensors) == 0:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        import warnings

        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument: "
            'indexing="ij" is what happens now',
            UserWarning,
            stacklevel=3,
        )
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got shape {list(t.shape)}"
            )
        if t.dtype != tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError(
                f"meshgrid expects all tensors to have the same device: got {tensors[0].device} and {t.device}"
            )
    swap = indexing == "xy" and len(tensors) > 1
    axes = [tensors[1], tensors[0], *tensors[2:]] if swap else tensors
    shape = [t.numel() for t in axes]
    grids = [
        t.reshape([t.numel() if k == i else 1 for k in range(len(axes))]).expand(shape) for i, t in enumerate(axes)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _numpy(name, *args, **options):
    import numpy

    return getattr(numpy, name)(*args, **options)
