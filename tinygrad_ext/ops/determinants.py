"""Determinants, by LU factors."""

import tinygrad_ext as tg
from tinygrad_ext.ops import matrix_slopes
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import TYPES, conjugate, identity, lu_of, plus, squares
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import zeros


def _kept_apart(LU):
    """Factors whose zero pivots count as the smallest step from one, so that a singular matrix has a gradient."""
    tiny, diagonal = tg.finfo(LU.dtype).eps, LU.detach().diagonal(0, -2, -1)
    return LU.detach() + tg.diag_embed(tg.where(diagonal == 0, tiny, 0.0).to(LU.dtype))


def _divided(A, LU, pivots, factor):
    """factor A^-H."""
    right = identity(A) * factor.unsqueeze(-1).unsqueeze(-1)
    return fused._solve_again(A, LU, pivots, right, True)


def _det_back(grads, A, det, LU, pivots):
    if grads[0] is None:
        return None
    LU = _kept_apart(LU)
    return _divided(A, LU, pivots, grads[0] * conjugate(_near(det, LU, pivots)))


def _near(det, LU, pivots):
    """The determinant with the value of such factors and its own derivative."""
    exchanged = (pivots != tg.arange(1, pivots.shape[-1] + 1, device=pivots.device)).sum(-1)
    value = fused._det(LU.triu())[0] * (1 - 2 * (exchanged % 2))
    return det + (value - det).detach()


def _det_slopes(A, A_tangent, det, LU, pivots):
    LU = _kept_apart(LU)
    return _near(det, LU, pivots) * matrix_slopes.trace_of_quotient(A, LU, pivots, A_tangent), None, None


def _slogdet_back(grads, A, sign, LU, pivots):
    by_sign, by_log = grads[0], grads[1]
    if A.is_complex():
        factor = None if by_log is None else by_log.to(A.dtype)
        if by_sign is not None:
            factor = plus(factor, -1j * (by_sign.conj_physical() * sign).imag)
    else:
        factor = by_log
    return None if factor is None else _divided(A, _kept_apart(LU), pivots, factor)


def _det_reference(x):
    import numpy

    return numpy.linalg.det(x)


def _slogdet_reference(x):
    import numpy

    return tuple(numpy.linalg.slogdet(x))


op(
    "aten::_det(Tensor A) -> (Tensor det, Tensor LU, Tensor pivots)",
    batch="leading",
    kernel="_det",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": _det_back},
    jvp=_det_slopes,
    determined=lambda found: (found[0], found[2]),  # the factors are no more than kept
    samples=squares(),
    reference=lambda A: (_det_reference(A), lu_of(A)[1]),
    doc="The determinant, and the LU factors that it was computed by.",
)

op(
    "aten::_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    batch="leading",
    kernel="_slogdet",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": _slogdet_back},
    jvp=matrix_slopes.slogdet,
    determined=lambda found: (found[0], found[1], found[3]),
    samples=squares(),
    reference=lambda A: (*_slogdet_reference(A), lu_of(A)[1]),
    doc="Sign and logarithm of the determinant, and the LU factors that they were computed by.",
)

for _place, _variants in ((".", "function method out"), ("linalg", "function out")):
    _self = "self" if _place == "." else "A"
    _overload = "" if _place == "." else ".linalg"
    op(
        f"aten::det{_overload}(Tensor {_self}) -> Tensor",
        compose=lambda A: fused._det(A)[0],
        types=TYPES,
        where=_place,
        variants=_variants,
        samples=squares(),
        reference=_det_reference,
        errors=[(lambda: tg.linalg.det(zeros(2, 3)), RuntimeError, "linalg.det: A must be batches of square")],
        doc="The determinant of each matrix of A (..., n, n).",
    )
    op(
        f"aten::slogdet{_overload}(Tensor {_self}) -> (Tensor sign, Tensor logabsdet)",
        compose=lambda A: tuple(fused._slogdet(A))[:2],
        types=TYPES,
        where=_place,
        variants=_variants,
        samples=squares(),
        reference=_slogdet_reference,
        doc="The determinant as its sign (a complex number of size one for complex ones, 0 if it is 0) and the "
        "logarithm of its magnitude, which do not overflow.",
    )


def _logdet(A):
    sign, logabsdet = tuple(fused._slogdet(A))[:2]
    return logabsdet + sign.log()


op(
    "aten::logdet(Tensor self) -> Tensor",
    compose=_logdet,
    types="float",
    variants="function method",
    samples=squares(),
    reference=lambda x: _slogdet_reference(x)[1] + _logarithm(_slogdet_reference(x)[0]),
    doc="The logarithm of the determinant of each matrix of (..., n, n); NaN where it is negative.",
)


def _logarithm(x):
    import numpy

    return numpy.log(x)
