"""Copies with the elements in other places: flipped, rolled, repeated, padded, cut to a triangle, on a diagonal."""

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import meta, same, wrapped

_ALL = "bool int float half complex"

# ---- flip, roll, rotate --------------------------------------------------------------------------------------------

op(
    "aten::flip(Tensor self, int[] dims) -> Tensor",
    kernel="flip",
    shape=same,
    types=_ALL,
    grad={"self": lambda grad, dims: grad.flip(dims)},
    samples=lambda make: [
        Sample(make(2, 3), (0,)),
        Sample(make(2, 3), (0, -1)),
        Sample(make(2, 3), ()),
        Sample(make(0, 2), (1,)),
        Sample(make(), (0,)),
    ],
    errors=[
        (lambda: zeros(2, 3).flip(0, 0), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda: zeros(2, 3).flip(2), IndexError, "expected to be in range of [-2, 1], but got 2"),
    ],
    doc="A copy with the order of elements reversed in the given dimensions.",
)

op(
    "aten::fliplr(Tensor self) -> Tensor",
    compose=lambda self: _flipped(self, 1, "fliplr"),
    types=_ALL,
    samples=lambda make: [Sample(make(2, 3))],
    reference="numpy.fliplr",
    errors=[(lambda: _call("fliplr", zeros(2)), RuntimeError, "Input must be >= 2-d")],
    doc="A copy with the columns in reverse order.",
)

op(
    "aten::flipud(Tensor self) -> Tensor",
    compose=lambda self: _flipped(self, 0, "flipud"),
    types=_ALL,
    samples=lambda make: [Sample(make(2, 3)), Sample(make(3))],
    reference="numpy.flipud",
    errors=[(lambda: _call("flipud", zeros()), RuntimeError, "Input must be >= 1-d")],
    doc="A copy with the rows in reverse order.",
)

op(
    "aten::roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    kernel="roll",
    shape=same,
    types=_ALL,
    grad={"self": lambda grad, shifts, dims: grad.roll(_negated(shifts), dims)},
    samples=lambda make: [
        Sample(make(5), 2),
        Sample(make(2, 3), 1),
        Sample(make(2, 3), (1, -2), (0, 1)),
        Sample(make(2, 3), 4, -1),
        Sample(make(4, 2), (1, 2), (0, 0)),
        Sample(make(0, 2), 1, 1),
        Sample(make(), 1),
    ],
    reference=lambda x, shifts, dims=None: _numpy("roll", x, shifts, dims),
    errors=[
        (lambda: zeros(2, 3).roll((1, 2), 0), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
        (lambda: zeros(2, 3).roll((), ()), RuntimeError, "`shifts` required"),
        (lambda: zeros().roll(1, 0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    ],
    doc="A copy moved on by `shifts` places in each of dims; what leaves at the end comes in at the front. Without "
    "dims, over "
    "the elements in row-major order.",
)

op(
    "aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    compose=lambda self, k, dims: _rot90(self, k, dims),
    types=_ALL,
    samples=lambda make: [
        Sample(make(2, 3)),
        Sample(make(2, 3), 2),
        Sample(make(2, 3), -1, (1, 0)),
        Sample(make(2, 3, 4), 3, (0, -1)),
        Sample(make(2, 3), 4),
    ],
    reference=lambda x, k=1, dims=(0, 1): _numpy("rot90", x, k, dims),
    errors=[
        (
            lambda: zeros(2, 3).rot90(1, (0, -2)),
            RuntimeError,
            "expected rotation dims to be different, but got dim0 = 0",
        ),
        (lambda: zeros(2, 3).rot90(1, (0, 1, 2)), RuntimeError, "expected total rotation dims == 2, but got dims = 3"),
        (lambda: zeros(3).rot90(), RuntimeError, "expected total dims >= 2, but got total dims = 1"),
    ],
    doc="A copy turned by k times 90 degrees in the plane of two dimensions, from the first towards the second.",
)

# ---- repeat --------------------------------------------------------------------------------------------------------

op(
    "aten::repeat(Tensor self, int[] repeats) -> Tensor",
    kernel="repeat",
    variants="method",
    types=_ALL,
    shape=lambda self, repeats: _repeat_shape(self, repeats),
    grad={"self": lambda grad, self_shape, repeats: _unrepeat(grad, self_shape, repeats)},
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
    kernel="repeat_counts",
    variants="function",
    types="int",
    gaps={
        "dtypes": "repeats are int64 or int32, whatever else is asked for",
        "layout": "other layouts repeat a number, and the sum of the numbers no longer fits output_size",
    },
    shape=lambda repeats, output_size: meta((_known(output_size),), repeats.dtype),
    samples=lambda make: [Sample(make.of([2, 0, 3]), output_size=5), Sample(make.ints(0, 1, (0,)), output_size=0)],
    reference=lambda repeats, output_size=None: _numpy("repeat", range(len(repeats)), repeats),
    errors=[
        (
            lambda: _call("repeat_interleave", zeros(2)),
            NotImplementedError,
            "\"repeat_interleave_cpu\" not implemented for 'Float'",
        ),
        (lambda: _call("repeat_interleave", zeros(2).long() - 1), RuntimeError, "repeats can not be negative"),
        (lambda: _call("repeat_interleave", zeros(2, 2).long()), RuntimeError, "only accept 1D vector as repeat"),
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
    reference=lambda x, repeats, dim=None, output_size=None: _numpy("repeat", x, repeats, dim),
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
    reference=lambda x, repeats, dim=None, output_size=None: _numpy("repeat", x, repeats, dim),
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
    kernel="repeat_each",
    variants="method",
    types=_ALL,
    shape=lambda self, repeats, dim: meta(
        [s * (repeats if i == wrapped(dim, self.dim()) else 1) for i, s in enumerate(self.shape)], self.dtype
    ),
    grad={"self": lambda grad, self_shape, repeats, dim: _unrepeat_each(grad, self_shape, repeats, dim)},
    samples=lambda make: [Sample(make(3), 2, 0), Sample(make(2, 3), 2, -2)],
    doc="Each element of one dimension a number of times in a row: what repeat_interleave of an int comes to.",
)

# ---- diagonals and triangles ---------------------------------------------------------------------------------------

op(
    "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    kernel="diag_embed",
    types=_ALL,
    shape=lambda self, offset, dim1, dim2: _embedded_shape(self, offset, dim1, dim2),
    grad={"self": lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2)},
    samples=lambda make: [
        Sample(make(3)),
        Sample(make(2, 3), 1),
        Sample(make(2, 3), -1, 0, 2),
        Sample(make(0)),
        Sample(make(3), 2, 1, 0),
    ],
    errors=[
        (lambda: zeros(3).diag_embed(0, 1, 1), RuntimeError, "diagonal dimensions cannot be identical 1, 1"),
        (lambda: zeros(3).diag_embed(2**62), RuntimeError, "overflow"),
        (lambda: zeros().diag_embed(0, 0, -1), IndexError, "self must have at least one dimension"),
    ],
    doc="Square matrices in two new dimensions, zero but for a diagonal that is the last dimension of self.",
)

op(
    "aten::diag(Tensor self, int diagonal=0) -> Tensor",
    compose=lambda self, diagonal: _diag(self, diagonal),
    types=_ALL,
    samples=lambda make: [
        Sample(make(3)),
        Sample(make(3), -1),
        Sample(make(2, 3)),
        Sample(make(3, 2), 1),
        Sample(make(2, 2), 5),
    ],
    reference="numpy.diag",
    errors=[(lambda: zeros(1, 2, 3).diag(), RuntimeError, "diag(): Supports 1D or 2D tensors. Got 3D")],
    doc="A vector on the diagonal of a matrix of zeros, or a copy of a matrix' diagonal.",
)

op(
    "aten::tril(Tensor self, int diagonal=0) -> Tensor",
    kernel="tril",
    takes_out=True,
    shape=same,
    variants="function method inplace out",
    types=_ALL,
    grad={"self": lambda grad, diagonal: grad.tril(diagonal)},
    samples=lambda make: [
        Sample(make(3, 4)),
        Sample(make(3, 4), 1),
        Sample(make(2, 3, 2), -1),
        Sample(make(0, 2)),
        Sample(make(2, 2), -9),
    ],
    reference="numpy.tril",
    errors=[(lambda: zeros(2).tril(), RuntimeError, "tril: input tensor must have at least 2 dimensions")],
    doc="The lower triangle of the matrices in the last two dimensions, up to `diagonal` above the main one; the rest "
    "is zero.",
)

op(
    "aten::triu(Tensor self, int diagonal=0) -> Tensor",
    kernel="triu",
    takes_out=True,
    shape=same,
    variants="function method inplace out",
    types=_ALL,
    grad={"self": lambda grad, diagonal: grad.triu(diagonal)},
    samples=lambda make: [
        Sample(make(3, 4)),
        Sample(make(3, 4), 1),
        Sample(make(2, 3, 2), -1),
        Sample(make(0, 2)),
        Sample(make(2, 2), 9),
    ],
    reference="numpy.triu",
    errors=[(lambda: zeros(2).triu(), RuntimeError, "triu: input tensor must have at least 2 dimensions")],
    doc="The upper triangle of the matrices in the last two dimensions, from `diagonal` above the main one on; the "
    "rest is zero.",
)


def _negated(shifts):
    return [-s for s in shifts] if isinstance(shifts, (tuple, list)) else -shifts


def _call(name, *args, **options):
    return getattr(tg, name)(*args, **options)


def _numpy(name, *args):
    import numpy

    return getattr(numpy, name)(*args)


def _flipped(self, dim, name):
    if self.dim() <= dim:
        raise RuntimeError(f"{name}(): Input must be >= {dim + 1}-d, got a tensor of {self.dim()} dimensions.")
    return self.flip((dim,))


def _rot90(self, k, dims):
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.dim()}: rot90() turns in a plane")
    first, second = (wrapped(d, self.dim()) for d in dims)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = k % 4
    if turns == 0:
        return self.clone()
    if turns == 2:
        return self.flip(dims)
    return self.flip((second if turns == 1 else first,)).transpose(first, second)


def _repeat_shape(self, repeats):
    extra = len(repeats) - self.dim()
    if extra < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return meta([r * (self.shape[i - extra] if i >= extra else 1) for i, r in enumerate(repeats)], self.dtype)


def _unrepeat(grad, self_shape, repeats):
    """Sum over the copies: each dimension is taken apart into (copies, size)."""
    extra = len(repeats) - len(self_shape)
    shape, dims = [], []
    for i, times in enumerate(repeats):
        if times != 1:
            dims.append(len(shape))
            shape.append(times)
        if i >= extra:
            shape.append(self_shape[i - extra])
    return (grad.reshape(shape).sum(dims) if dims else grad).reshape(self_shape)


def _known(output_size):
    if output_size is None:
        raise NotImplementedError("repeat_interleave on meta tensors needs output_size=: the size follows from values")
    return output_size


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
    return self.index_select(dim, _call("repeat_interleave", repeats, output_size=output_size))


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


def _embedded_shape(self, offset, dim1, dim2):
    rank = self.dim() + 1
    first, second = wrapped(dim1, rank), wrapped(dim2, rank)
    if rank == 1:
        raise IndexError("diag_embed(): self must have at least one dimension, which becomes the diagonal; it is 0-dim")
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rest = iter(self.shape[:-1])
    return meta([self.shape[-1] + abs(offset) if i in (first, second) else next(rest) for i in range(rank)], self.dtype)


def _diag(self, diagonal):
    if self.dim() == 1:
        return self.diag_embed(diagonal)
    if self.dim() == 2:
        return self.diagonal(diagonal).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.dim()}D. Use diagonal() for batches of matrices.")
