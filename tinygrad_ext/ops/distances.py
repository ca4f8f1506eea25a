"""Distances between tensors and between their rows."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.norms import norm_back
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


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


def _euclid_back(grad, x1, x2, result, needs):
    weight = fused.div_or_zero(grad, result)
    return _sums_back(weight, x1, x2, needs)


def _sums_back(grad, x1, x2, needs):
    """What moves each row of x1 and of x2, from what pulls at each pair."""
    return (
        fused._apart_sums(grad, x1, x2) if needs[0] else None,
        fused._apart_sums(grad.mT, x2, x1) if needs[1] else None,
    )


def _dots(y1, y2, x1, x2):
    """Rows that are None are zeros."""
    return fused._apart_dots(tg.zeros_like(x1) if y1 is None else y1, tg.zeros_like(x2) if y2 is None else y2, x1, x2)


def _euclid_tangent(x1, x2, x1_tangent, x2_tangent, result):
    return fused.div_or_zero(_dots(x1_tangent, x2_tangent, x1, x2), result)


def _sums_twice(grad, weight, x1, x2, needs):
    return (
        _dots(grad, None, x1, x2) if needs[0] else None,
        grad * weight.sum(-1, True) if needs[1] else None,
        -(weight.mT @ grad) if needs[2] else None,
    )


def _sums_tangent(weight, x1, x2, weight_tangent, x1_tangent, x2_tangent):
    total = None if weight_tangent is None else fused._apart_sums(weight_tangent, x1, x2)
    if x1_tangent is None and x2_tangent is None:
        return tg.zeros_like(x1) if total is None else total
    moved = fused._apart_sums(
        weight,
        tg.zeros_like(x1) if x1_tangent is None else x1_tangent,
        tg.zeros_like(x2) if x2_tangent is None else x2_tangent,
    )
    return moved if total is None else total + moved


def _dots_back(grad, y1, y2, x1, x2, needs):
    return *_sums_back(grad, x1, x2, needs[:2]), *_sums_back(grad, y1, y2, needs[2:])


def _dots_tangent(y1, y2, x1, x2, y1_tangent, y2_tangent, x1_tangent, x2_tangent):
    parts = []
    if y1_tangent is not None or y2_tangent is not None:
        parts.append(_dots(y1_tangent, y2_tangent, x1, x2))
    if x1_tangent is not None or x2_tangent is not None:
        parts.append(_dots(x1_tangent, x2_tangent, y1, y2))
    return sum(parts[1:], parts[0])


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
    grad={"x1, x2": _euclid_back},
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
    "aten::_apart_sums(Tensor weight, Tensor x1, Tensor x2) -> Tensor",
    kernel="row_slopes",
    batch="leading",
    types="float",
    variants="function",
    where="_fused",
    grad={"weight, x1, x2": _sums_twice},
    jvp=_sums_tangent,
    samples=lambda make: [
        Sample(make(3, 5), make(3, 4), make(5, 4)),
        Sample(make(2, 19, 6).mT, make(2, 6, 3), make(2, 19, 3)),
        Sample(make(0, 3), make(0, 2), make(3, 2)),
        Sample(make(3, 0), make(3, 2), make(0, 2)),
    ],
    reference=lambda weight, x1, x2: (weight[..., None] * (x1[..., :, None, :] - x2[..., None, :, :])).sum(-2),
    errors=[
        (
            lambda: fused._apart_sums(zeros(2, 2), zeros(2, 3), zeros(3, 3)),
            RuntimeError,
            "_apart_sums: weight must have a Float for each distance of x1",
        )
    ],
    doc="For each row of x1 the sum over those of x2 of weight times their difference: the slopes of Euclidean "
    "distances, where weight is the gradient over the distance. No two sums of rows are subtracted from each other, "
    "which would leave nothing of rows that are near.",
)


op(
    "aten::_apart_dots(Tensor y1, Tensor y2, Tensor x1, Tensor x2) -> Tensor",
    kernel="apart_dots",
    batch="leading",
    types="float",
    variants="function",
    where="_fused",
    grad={"y1, y2, x1, x2": _dots_back},
    jvp=_dots_tangent,
    samples=lambda make: [
        Sample(make(3, 4), make(5, 4), make(3, 4), make(5, 4)),
        Sample(make(2, 6, 3), make(2, 19, 3), make(2, 6, 3), make(2, 19, 3)),
        Sample(make(0, 2), make(3, 2), make(0, 2), make(3, 2)),
    ],
    reference=lambda y1, y2, x1, x2: (
        (y1[..., :, None, :] - y2[..., None, :, :]) * (x1[..., :, None, :] - x2[..., None, :, :])
    ).sum(-1),
    errors=[
        (
            lambda: fused._apart_dots(zeros(2, 3), zeros(3, 3), zeros(2, 3), zeros(2, 3)),
            RuntimeError,
            "_apart_dots: y2 must be Float of size [2, 3] as x2",
        )
    ],
    doc="Dot of the difference of each row of y1 and each of y2 with that of the same rows of x1 and x2.",
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
