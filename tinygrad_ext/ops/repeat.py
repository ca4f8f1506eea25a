"""Copies that hold elements several times: a tensor repeated as a whole, or each element by itself."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching, batching_masks
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import wrapped

_ALL = "bool int float half complex"


def _np_repeat(*args):
    import numpy

    return numpy.repeat(*args)


op(
    "aten::repeat(Tensor self, int[] repeats) -> Tensor",
    batch=batching.repeat,
    kernel="repeat",
    variants="method",
    types=_ALL,
    grad={"self": lambda grad, self_shape, repeats: _unrepeat(grad, self_shape, repeats)},
    jvp="linear",
    samples=lambda make: [
        Sample(make(3), (2,)),
        Sample(make(2, 3), (2, 1)),
        Sample(make(2, 3), (3, 1, 2)),
        Sample(make(2, 3), (0, 1)),
        Sample(make(), (2, 2)),
        Sample(make(0, 2), (2, 2)),
    ],
    reference="numpy.tile",
    errors=[
        (lambda: zeros(2, 3).repeat(2), RuntimeError, "can not be smaller than number of dimensions of tensor"),
        (lambda: zeros(2, 3).repeat(-1, 1), RuntimeError, "Trying to create tensor with negative dimension -2"),
        (lambda: zeros(2, 3).repeat(2**62, 1), RuntimeError, "overflow"),
    ],
    doc="Copies of the tensor side by side, repeats[i] of them in dimension i; more repeats than dimensions add "
    "leading ones.",
)

op(
    "aten::tile(Tensor self, int[] dims) -> Tensor",
    compose=lambda self, dims: self.repeat((*(1,) * (self.dim() - len(dims)), *dims)),
    types=_ALL,
    samples=lambda make: [
        Sample(make(3), (2,)),
        Sample(make(2, 3), (2,)),
        Sample(make(2, 3), (3, 1, 2)),
        Sample(make(2, 3), ()),
    ],
    reference="numpy.tile",
    doc="Copies of the tensor side by side; the numbers count from the last dimension.",
)

op(
    "aten::repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
    batch=batching_masks.repeat_counts,
    kernel="repeat_counts",
    variants="function",
    types="int",
    gaps={
        "dtypes": "repeats are int64 or int32, whatever else is asked for",
        "layout": "other layouts repeat a number, and the sum of the numbers no longer fits output_size",
    },
    samples=lambda make: [Sample(make.of([2, 0, 3]), output_size=5), Sample(make.ints(0, 1, (0,)), output_size=0)],
    reference=lambda repeats, output_size=None: _np_repeat(range(len(repeats)), repeats),
    errors=[
        (
            lambda: tg.repeat_interleave(zeros(2)),
            NotImplementedError,
            "\"repeat_interleave_cpu\" not implemented for 'Float'",
        ),
        (lambda: tg.repeat_interleave(zeros(2).long() - 1), RuntimeError, "repeats can not be negative"),
        (lambda: tg.repeat_interleave(zeros(2, 2).long()), RuntimeError, "only accept 1D vector as repeat"),
    ],
    doc="The number i repeats[i] times, for each i: the indices that repeat_interleave of a tensor takes.",
)

op(
    "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> "
    "Tensor",
    compose=lambda self, repeats, dim, output_size: _repeat_by_counts(self, repeats, dim, output_size),
    types=_ALL,
    samples=lambda make: [
        Sample(make(3), make.of([2, 0, 1])),
        Sample(make(2, 3), make.of([1, 2]), 0),
        Sample(make(2, 2), make.of([2]), 1),
        Sample(make(2, 2), make.of([1, 2, 0, 1])),
        Sample(make(2, 2), make.of([1, 2]), dim=-1),
    ],
    reference=lambda x, repeats, dim=None, output_size=None: _np_repeat(x, repeats, dim),
    gaps={"shape": "the size follows from the values of repeats"},
    errors=[
        (lambda: zeros(2).repeat_interleave(zeros(1)), NotImplementedError, "repeats must be int32 or int64"),
        (
            lambda: zeros(2, 3).repeat_interleave(zeros(2).long(), 1),
            RuntimeError,
            "repeats must have the same size as input along dim, but got repeats.size(0) = 2 and input.size(1) = 3",
        ),
        (
            lambda: zeros(2).repeat_interleave(zeros(1, 2).long(), 0),
            RuntimeError,
            "repeats must be 0-dim or 1-dim tensor",
        ),
    ],
    doc="Each element of a dimension (of the flattened tensor, without dim) repeats[i] times in a row.",
)

op(
    "aten::repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
    compose=lambda self, repeats, dim, output_size: _repeat_each(self, repeats, dim, output_size),
    types=_ALL,
    samples=lambda make: [
        Sample(make(3), 2),
        Sample(make(2, 3), 2),
        Sample(make(2, 3), 2, 0),
        Sample(make(2, 3), 3, -1),
        Sample(make(), 3),
        Sample(make(2), 0, 0),
    ],
    reference=lambda x, repeats, dim=None, output_size=None: _np_repeat(x, repeats, dim),
    errors=[
        (lambda: zeros(2).repeat_interleave(-1), RuntimeError, "Repeats must be non-negative"),
        (
            lambda: zeros(2, 3).repeat_interleave(2, 1, output_size=7),
            RuntimeError,
            "Invalid output_size, expected 6 but got 7",
        ),
    ],
    doc="Each element of a dimension (of the flattened tensor, without dim) the same number of times in a row.",
)

op(
    "aten::_repeat_each(Tensor self, int repeats, int dim) -> Tensor",
    batch="dims",
    kernel="repeat_each",
    variants="method",
    types=_ALL,
    grad={"self": lambda grad, self_shape, repeats, dim: _unrepeat_each(grad, self_shape, repeats, dim)},
    jvp="linear",
    samples=lambda make: [Sample(make(3), 2, 0), Sample(make(2, 3), 2, -2)],
    doc="Each element of one dimension a number of times in a row: what repeat_interleave of an int comes to.",
)


def _unrepeat(grad, self_shape, repeats):
    """Sum over the copies: each dimension is taken apart into (copies, size)."""
    extra = len(repeats) - len(self_shape)
    shape, dims = [], []
    for i, times in enumerate(repeats):
        dims.append(len(shape))
        shape.append(times)
        if i >= extra:
            shape.append(self_shape[i - extra])
    return (grad.reshape(shape).sum(dims) if dims else grad).reshape(self_shape)


def _repeat_by_counts(self, repeats, dim, output_size):
    if repeats.dim() > 1:
        raise RuntimeError(f"repeats must be 0-dim or 1-dim tensor, got shape {list(repeats.shape)}")
    if dim is None:
        self, dim = self.reshape(-1), 0
    if repeats.numel() == 1:
        if repeats.is_floating_point() or repeats.is_complex() or repeats.element_size() < 4:
            raise NotImplementedError(
                f'"repeat_interleave_cpu" not implemented for {repeats.dtype}: repeats must be int32 or int64'
            )
        if repeats.item() < 0:
            raise RuntimeError("repeats can not be negative: repeat_interleave() got " + str(repeats.item()))
        return _repeat_each(self, int(repeats), dim, output_size)
    if repeats.numel() != self.size(dim):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.numel()} and input.size({dim}) = {self.size(dim)}"
        )
    return self.index_select(dim, tg.repeat_interleave(repeats, output_size=output_size))


def _repeat_each(self, repeats, dim, output_size):
    if dim is None or self.dim() == 0:
        if dim is not None:
            wrapped(dim, 0)
        self, dim = self.reshape(-1), 0
    result = self._repeat_each(repeats, dim)
    if output_size is not None and output_size != result.shape[dim]:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {result.shape[dim]} but got {output_size}"
        )
    return result


def _unrepeat_each(grad, self_shape, repeats, dim):
    dim = dim % len(self_shape)
    return grad.reshape((*self_shape[: dim + 1], int(repeats), *self_shape[dim + 1 :])).sum(dim + 1)
