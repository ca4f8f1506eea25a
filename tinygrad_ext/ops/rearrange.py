"""Copies with the elements in other places: flipped, rolled, repeated, padded, cut to a triangle, on a diagonal."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import wrapped

_ALL = "bool int float half complex"

# ---- flip, roll, rotate --------------------------------------------------------------------------------------------

op(
    "aten::flip(Tensor self, int[] dims) -> Tensor",
    batch="dims",
    kernel="flip",
    types=_ALL,
    grad={"self": lambda grad, dims: grad.flip(dims)},
    jvp="linear",
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
    tags="moves",
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
    "aten::roll(Tensor self, int[1] shifts, int[1]? dims=[]) -> Tensor",
    batch=batching.roll,
    kernel="roll",
    types=_ALL,
    grad={"self": lambda grad, shifts, dims: grad.roll(_negated(shifts), dims)},
    jvp="linear",
    samples=lambda make: [
        Sample(make(5), 2),
        Sample(make(2, 3), 1),
        Sample(make(2, 3), (1, -2), (0, 1)),
        Sample(make(2, 3), 4, -1),
        Sample(make(4, 2), (1, 2), (0, 0)),
        Sample(make(0, 2), 1, 1),
        Sample(make(), 1),
        Sample(make(2, 3), 2, None),
    ],
    reference=lambda x, shifts, dims=None: _numpy("roll", x, shifts, dims),
    errors=[
        (lambda: zeros(2, 3).roll((1, 2), 0), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
        (lambda: zeros(2, 3).roll((), ()), RuntimeError, "`shifts` required"),
        (lambda: zeros().roll(1, 0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    ],
    tags="moves",
    doc="A copy moved on by `shifts` places in each of dims; what leaves at the end comes in at the front. Without "
    "dims, or with None, over the elements in row-major order.",
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

# ---- diagonals and triangles ---------------------------------------------------------------------------------------

op(
    "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    batch=batching.diag_embed,
    kernel="diag_embed",
    types=_ALL,
    grad={"self": lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2)},
    jvp="linear",
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
    variants="function method out",
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
    "aten::diagflat(Tensor self, int offset=0) -> Tensor",
    compose=lambda self, offset: self.flatten().diag_embed(offset),
    types=_ALL,
    samples=lambda make: [Sample(make(3)), Sample(make(2, 2), 1), Sample(make(), -2), Sample(make(0, 2))],
    reference="numpy.diagflat",
    doc="All elements on the diagonal of a matrix of zeros.",
)

op(
    "aten::tril(Tensor self, int diagonal=0) -> Tensor",
    batch="leading",
    kernel="tril",
    variants="function method inplace out",
    types=_ALL,
    grad={"self": lambda grad, diagonal: grad.tril(diagonal)},
    jvp="linear",
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
    batch="leading",
    kernel="triu",
    variants="function method inplace out",
    types=_ALL,
    grad={"self": lambda grad, diagonal: grad.triu(diagonal)},
    jvp="linear",
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


def _diag(self, diagonal):
    if self.dim() == 1:
        return self.diag_embed(diagonal)
    if self.dim() == 2:
        return self.diagonal(diagonal).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.dim()}D. Use diagonal() for batches of matrices.")
