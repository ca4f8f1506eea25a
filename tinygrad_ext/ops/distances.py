"""Distances between tensors and between their rows; rows that are not longer than wanted."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.norms import norm_back
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import wrapped


def _numpy(name, *args, **options):
    import numpy

    return getattr(numpy, name)(*args, **options)


def _norm_reference(x, p):
    import numpy

    return numpy.linalg.norm(x.ravel(), p).astype(x.dtype)


@rounded_once
def _dist(self, other, p):
    return (self - other).norm(p)


op(
    "aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    compose=_dist,
    variants="function method",
    types="float",
    samples=lambda make: [
        Sample(make(3, 4), make(3, 4)),
        Sample(make(3, 4), make(4), 1),
        Sample(make(3), make(3), 3.5),
        Sample(make(2, 2), make(2, 2), float("inf")),
    ],
    reference=lambda x, y, p=2: _norm_reference(x - y, p),
    doc="The p-norm of self - other, which broadcast.",
)


_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def _cdist(x1, x2, p, compute_mode):
    # Read once, and changed only where they differ: each of it takes as long as the distances of a few rows.
    (size1, kind1), (size2, kind2) = sides = (x1.shape, x1.dtype), (x2.shape, x2.dtype)
    for name, (size, kind) in zip(("X1", "X2"), sides, strict=True):
        if len(size) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {len(size)}D")
        if not kind.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {kind}")
    if size1[-1] != size2[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {size1[-1]} X2: {size2[-1]}")
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode: cdist() takes {', '.join(_MODES)}")
    if p < 0:
        raise RuntimeError(f"cdist only supports non-negative p values: got {p}")
    if p == 0:
        return _differing(_apart(x1, x2))
    if kind1 != kind2:
        kind = tg.promote_types(kind1, kind2)
        x1, x2 = x1.to(kind), x2.to(kind)
    if size1[:-2] != size2[:-2]:
        batch = tg.broadcast_shapes(size1[:-2], size2[:-2])
        x1, x2 = x1.expand(*batch, *size1[-2:]), x2.expand(*batch, *size2[-2:])
    return _between(x1, x2, p)


def _apart(x1, x2):
    return x1.unsqueeze(-2) - x2.unsqueeze(-3)


def _differing(apart):
    """How many coordinates differ: nan where that is not known of one."""
    return apart.abs().ceil().clamp(max=1).sum(-1)


def _between(x1, x2, p):
    """Distances for p greater than 0."""
    return fused._euclid(x1, x2) if p == 2 else fused._row_distances(x1, x2, p)


def _row_back(grad, x1, x2, p, result, needs):
    return (
        fused._row_slopes(grad, x1, x2, result, p) if needs[0] else None,
        fused._row_slopes(grad.mT, x2, x1, result.mT, p) if needs[1] else None,
    )


def _slopes(x1, x2, distances, p):
    """Slope of each distance by each coordinate of its row of x1: (..., rows of x1, rows of x2, coordinates). Each of
    several coordinates that are the farthest has the whole slope, as in PyTorch, where norms share it out."""
    apart, distances = _apart(x1, x2), distances.unsqueeze(-1)
    if p == float("inf"):
        return apart.sign() * (apart.abs() == distances)
    return norm_back(tg.ones_like(distances), apart, distances, p, -1, True, None)


def _row_tangent(x1, x2, p, x1_tangent, x2_tangent, result):
    return (_slopes(x1, x2, result, p) * _moved(x1_tangent, x2_tangent)).sum(-1)


def _moved(x1_tangent, x2_tangent):
    moved = 0 if x1_tangent is None else x1_tangent.unsqueeze(-2)
    return moved if x2_tangent is None else moved - x2_tangent.unsqueeze(-3)


def _bends(x1, x2, distances, p):
    """Slopes of those slopes, the distances taken as given; 0 where they are infinite."""
    apart, distances = _apart(x1, x2).abs(), distances.unsqueeze(-1)
    none = (distances == 0) | (apart == 0) if p < 2 else distances == 0
    far = distances + none
    return (p - 1) * ((apart + none) / far) ** (p - 2) / far * ~none


_STEADY = 1, float("inf")  # orders whose slopes stay as they are where rows are moved


def _row_twice(grad, weight, x1, x2, distances, p, needs):
    steady = p in _STEADY
    along, each = (grad.unsqueeze(-2) * _slopes(x1, x2, distances, p)).sum(-1), None
    if (needs[1] or needs[2]) and not steady:
        each = grad.unsqueeze(-2) * weight.unsqueeze(-1) * _bends(x1, x2, distances, p)
    return (
        along if needs[0] else None,
        each.sum(-2) if needs[1] and not steady else None,
        -each.sum(-3) if needs[2] and not steady else None,
        weight * along * _nearer(distances, p) if needs[3] and not steady else None,
    )


def _nearer(distances, p):
    return (1 - p) / (distances + (distances == 0))


def _row_slopes_tangent(
    weight, x1, x2, distances, p, weight_tangent, x1_tangent, x2_tangent, distances_tangent
):  # fmt: skip
    factor, each = weight_tangent, None
    if p not in _STEADY:
        if distances_tangent is not None:
            nearer = weight * distances_tangent * _nearer(distances, p)
            factor = nearer if factor is None else factor + nearer
        if x1_tangent is not None or x2_tangent is not None:
            each = weight.unsqueeze(-1) * _bends(x1, x2, distances, p) * _moved(x1_tangent, x2_tangent)
    if factor is not None:
        turned = factor.unsqueeze(-1) * _slopes(x1, x2, distances, p)
        each = turned if each is None else each + turned
    return tg.zeros_like(x1) if each is None else each.sum(-2)


def _weighed(grad, x1, x2, distances):
    """Gradient over distance, 0 for rows that are equal; and both matrices nearer to zero, where products lose less."""
    middle = x2.detach().mean(-2, True) if x2.shape[-2] else 0
    equal = distances == 0
    return fused.where(equal, 0, grad / fused.where(equal, 1, distances)), x1 - middle, x2 - middle


def _euclid_first(grad, x1, x2, result):
    weight, x1, x2 = _weighed(grad, x1, x2, result)
    return weight.sum(-1, True) * x1 - weight @ x2


def _euclid_second(grad, x1, x2, result):
    weight, x1, x2 = _weighed(grad, x1, x2, result)
    return weight.sum(-2).unsqueeze(-1) * x2 - weight.mT @ x1


def _euclid_tangent(x1, x2, x1_tangent, x2_tangent, result):
    """(x1 - x2) (dx1 - dx2) over the distance, without the differences."""
    _, x1, x2 = _weighed(result, x1, x2, result)
    total = 0
    if x1_tangent is not None:
        total = total + (x1 * x1_tangent).sum(-1).unsqueeze(-1) - x1_tangent @ x2.mT
    if x2_tangent is not None:
        total = total + (x2 * x2_tangent).sum(-1).unsqueeze(-2) - x1 @ x2_tangent.mT
    equal = result == 0
    return fused.where(equal, 0, total / fused.where(equal, 1, result))


def _cdist_reference(x1, x2, p=2.0):
    difference = abs(x1[..., :, None, :] - x2[..., None, :, :])
    if p == 0:
        return (difference != 0).sum(-1).astype(x1.dtype)
    return difference.max(-1) if p == float("inf") else (difference**p).sum(-1) ** (1 / p)


op(
    "aten::_euclid(Tensor x1, Tensor x2) -> Tensor",
    kernel="_euclid",
    batch="leading",
    types="float",
    variants="function",
    where="_fused",
    grad={"x1": _euclid_first, "x2": _euclid_second},
    jvp=_euclid_tangent,
    samples=lambda make: [
        Sample(make(3, 4), make(5, 4)),
        Sample(make(2, 6, 3), make(2, 19, 3)),
        Sample(make(0, 2), make(3, 2)),
        Sample(make(3, 0), make(2, 0)),
    ],
    reference=_cdist_reference,
    errors=[(lambda: fused._euclid(zeros(2, 3), zeros(2, 4)), RuntimeError, "equally long rows")],
    doc="Euclidean distance of each row of x1 and each row of x2; leading sizes are equal.",
)


op(
    "aten::_row_distances(Tensor x1, Tensor x2, float p) -> Tensor",
    kernel="row_distances",
    batch="leading",
    types="float",
    variants="function",
    where="_fused",
    grad={"x1, x2": _row_back},
    jvp=_row_tangent,
    samples=lambda make: [
        Sample(make(3, 4), make(5, 4), 1.0),
        Sample(make(2, 6, 3), make(2, 19, 3), float("inf")),
        Sample(make(0, 2), make(3, 2), 1.0),
        Sample(make(3, 4), make(18, 4), 3.0),
        Sample(make(5, 3), make(2, 3), 1.5),
    ],
    reference=_cdist_reference,
    errors=[
        (
            lambda: fused._row_distances(zeros(2, 3), zeros(2, 3), -3.0),
            RuntimeError,
            "p must be greater than 0, got -3",
        )
    ],
    doc="As _euclid, by the p-norm of differences: their sum for p=1, the greatest for inf.",
)


def _np_slopes(weight, x1, x2, distances, p):
    apart = x1[..., :, None, :] - x2[..., None, :, :]
    far = distances[..., None]
    if p == float("inf"):
        steep = abs(apart) == far
    else:
        steep = (abs(apart) / (far + (far == 0))) ** (p - 1) * (far != 0)
    return (weight[..., None] * _numpy("sign", apart) * steep).sum(-2).astype(x1.dtype)


def _slope_samples(make):
    yield Sample(make(3, 5), make(3, 4), make(5, 4), make(3, 5).square() + 1, 1.0)
    yield Sample(make(2, 6, 19), make(2, 6, 3), make(2, 19, 3), make(2, 6, 19).square() + 1, 3.0)
    yield Sample(make(3, 17), make(3, 5), make(17, 5), make(3, 17).square() + 1, 1.5)
    yield Sample(make(0, 3), make(0, 2), make(3, 2), make(0, 3), 1.0)
    # Of others the farthest coordinate is no longer as far as is said once it is moved.
    yield Sample(make(3, 0), make(3, 2), make(0, 2), make(3, 0), float("inf"))


op(
    "aten::_row_slopes(Tensor weight, Tensor x1, Tensor x2, Tensor distances, float p) -> Tensor",
    kernel="row_slopes",
    batch="leading",
    types="float",
    variants="function",
    where="_fused",
    grad={"weight, x1, x2, distances": _row_twice},
    jvp=_row_slopes_tangent,
    samples=_slope_samples,
    reference=_np_slopes,
    errors=[
        (
            lambda: fused._row_slopes(zeros(2, 3), zeros(2, 3), zeros(2, 3), zeros(2, 2), 1.0),
            RuntimeError,
            "_row_slopes: weight must have a Float for each distance of x1",
        )
    ],
    doc="Derivative of _row_distances by x1: for each of its rows the sum over those of x2 of weight times the slope "
    "of the distance.",
)


op(
    "aten::cdist(Tensor x1, Tensor x2, float p=2, str compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
    compose=_cdist,
    variants="function",
    types="float",
    samples=lambda make: [
        Sample(make(3, 4), make(5, 4)),
        Sample(make(2, 3, 4), make(2, 1, 4), 1.0),
        Sample(make(2, 3, 4), make(5, 4), 1.0),
        Sample(make(2, 3), make(2, 3), float("inf")),
        Sample(make(2, 3), make(4, 3), 3.0),
    ],
    reference=_cdist_reference,
    errors=[(lambda: tg.cdist(zeros(2, 3), zeros(2, 4)), RuntimeError, "must have the same number of columns")],
    doc="p-norm of the difference of each row of x1 with each row of x2, for each pair of a batch, which broadcasts. "
    "compute_mode is accepted: differences are always computed as such.",
)


@rounded_once
def _renorm(self, p, dim, maxnorm):
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported: p must be positive, got {p}")
    if self.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.dim()} dimensions")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    dim = wrapped(dim, self.dim())
    norms = self.norm(p, [d for d in range(self.dim()) if d != dim], True)
    return self * fused.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


op(
    "aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    compose=_renorm,
    variants="function method out inplace",
    types="float",
    samples=lambda make: [Sample(make(3, 4), 2, 0, 3.0), Sample(make(2, 3, 2), 1, 1, 5.0)],
    errors=[
        (lambda: zeros(3).renorm(2, 0, 1), RuntimeError, "input needs at least 2 dimensions"),
        (lambda: zeros(2, 3).renorm(2, 9, 1), IndexError, "Dimension out of range"),
    ],
    doc="Slices along a dimension, of which those whose p-norm exceeds maxnorm are made shorter to it.",
)
