"""Cholesky factors of matrices, and systems with them."""

import tinygrad_ext as tg
from tinygrad_ext.ops import matrix_slopes
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import (
    TYPES,
    adjoint,
    check_matrix,
    hermitian,
    identity,
    no_info,
    positive,
    regular,
    squares,
    triangular,
)
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_SMALL = 24  # up to this size the matrices of a batch are solved side by side


def _cholesky_back(grads, L, upper):
    """L^-H (P + below(P)^H) / 2 L^-1, P the lower triangle of L^H grad."""
    if grads[0] is None:
        return None
    lower, grad = (adjoint(L), adjoint(grads[0])) if upper else (L, grads[0])
    inner = adjoint(lower).matmul(grad).tril()
    inner = 0.5 * (inner + adjoint(inner.tril(-1)))
    return triangular(adjoint(lower), triangular(lower, inner, False, left=False), True)


def _lower(A, upper=False):
    import numpy

    L = numpy.linalg.cholesky(A)
    return L.swapaxes(-1, -2).conj() if upper else L


op(
    'aten::_cholesky(Tensor self, bool upper=False, bool check_errors=True, str title="linalg.cholesky") -> '
    "(Tensor L, Tensor info)",
    batch="leading",
    kernel="_cholesky",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"self": _cholesky_back},
    jvp=matrix_slopes.cholesky,
    valid=hermitian,
    samples=lambda make: [*squares(positive)(make), Sample(positive(make, 3, 3), True)],
    reference=lambda A, upper=False: (_lower(A, upper), no_info(A)),
    doc="linalg.cholesky_ex, whose name in messages is title.",
)

for _place, _variants, _title in (
    (".", "function method out", "cholesky"),
    ("linalg", "function out", "linalg.cholesky"),
):
    op(
        f"aten::cholesky{'' if _place == '.' else '.linalg'}(Tensor self, "
        f"{'' if _place == '.' else '*, '}bool upper=False) -> Tensor",
        compose=lambda self, upper, *, _title=_title: fused._cholesky(self, upper, True, _title)[0],
        types=TYPES,
        where=_place,
        variants=_variants,
        valid=hermitian,
        samples=lambda make: [*squares(positive)(make), Sample(positive(make, 3, 3), upper=True)],
        reference=_lower,
        errors=[
            (
                lambda: tg.linalg.cholesky(tg.tensor([[1.0, 0], [0, -1]])),
                tg.linalg.LinAlgError,
                "linalg.cholesky: The factorization could not be completed because the input is not positive-definite "
                "(the leading minor of order 2",
            ),
            (lambda: tg.linalg.cholesky(zeros(2, 3)), RuntimeError, "must be batches of square matrices"),
        ],
        tags="casts" if _place == "." else None,
        doc="The lower triangle L of L L^H = A, or with upper U of U^H U = A, for Hermitian positive definite A "
        "(..., n, n), of which one triangle is read. linalg.LinAlgError for others.",
    )

op(
    "aten::cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    compose=lambda self, upper, check_errors: tuple(fused._cholesky(self, upper, check_errors, "linalg.cholesky_ex")),
    types=TYPES,
    where="linalg",
    variants="function out",
    valid=hermitian,
    samples=lambda make: [Sample(positive(make, 3, 3)), Sample(positive(make, 2, 3, 3), upper=True)],
    reference=lambda A, upper=False: (_lower(A, upper), no_info(A)),
    doc="linalg.cholesky with info: 0, or the order of the first leading minor that is not positive definite; "
    "linalg.LinAlgError only with check_errors.",
)


def _cholesky_solve(self, L, upper, title=None):
    check_matrix(self, "cholesky_solve", "b")
    check_matrix(L, "cholesky_solve", "u", square=True)
    first, then = (adjoint(L), L) if upper else (L, adjoint(L))
    half = fused._solve_triangular(first, self, False, False, True, title)
    return fused._solve_triangular(then, half, True, False, True)


def _inverse_of(L, upper=False):
    import numpy

    L = numpy.triu(L) if upper else numpy.tril(L)
    turned = L.swapaxes(-1, -2).conj()
    return numpy.linalg.inv(turned @ L if upper else L @ turned)


op(
    "aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    compose=_cholesky_solve,
    types=TYPES,
    variants="function method out",
    valid=lambda b, L, upper=False: (b, L.triu() if upper else L.tril(), upper),
    samples=lambda make: [
        Sample(make(3, 2), regular(make, 3, 3)),
        Sample(make(2, 3, 1), regular(make, 3, 3), True),
    ],
    reference=lambda b, L, upper=False: _inverse_of(L, upper) @ b,
    errors=[
        (lambda: zeros(2, 2).cholesky_solve(zeros(2, 3)), RuntimeError, "cholesky_solve: u must be batches of square")
    ],
    tags="casts",
    doc="X of A X = self for the A whose Cholesky factor is input2. The gradient of input2 = L is that of A = L L^H by "
    "all elements of L, as PyTorch's is, also by those in the triangle that is not read and taken as zero.",
)


def _inverse_back(grad, self, result, upper):
    """-X (G + G^H) L^-H of X = (L L^H)^-1, or -U^-H (G + G^H) X of (U^H U)^-1."""
    both = (grad + adjoint(grad)).matmul(result)  # its adjoint is X (G + G^H)
    if upper:
        return -fused._solve_triangular(adjoint(self), both, False, False, True)
    return -adjoint(fused._solve_triangular(self, both, False, False, True))


def _inverse_slope(self, self_tangent, result, upper):
    """-(P + P^H), P = U^-1 U' X, or the adjoint of X L' L^-1."""
    moved = (self_tangent if upper else adjoint(self_tangent)).matmul(result)
    part = fused._solve_triangular(self if upper else adjoint(self), moved, True, False, True)
    return -(part + adjoint(part))


op(
    "aten::_cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    batch="leading",
    kernel="_cholesky_inverse",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"self": _inverse_back},
    jvp=_inverse_slope,
    valid=lambda L, upper=False: (L.triu() if upper else L.tril(), upper),
    samples=lambda make: [Sample(regular(make, 3, 3)), Sample(regular(make, 2, 3, 3), True), Sample(make(0, 0))],
    reference=_inverse_of,
    doc="cholesky_inverse of one matrix after the other.",
)


def _cholesky_inverse(self, upper):
    check_matrix(self, "cholesky_inverse", square=True)
    if self.shape[-1] > _SMALL:
        return fused._cholesky_inverse(self, upper)
    return _cholesky_solve(identity(self), self, upper, "cholesky_inverse")


op(
    "aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    compose=_cholesky_inverse,
    types=TYPES,
    variants="function method out",
    valid=lambda L, upper=False: (L.triu() if upper else L.tril(), upper),
    samples=lambda make: [Sample(positive(make, 3, 3)), Sample(positive(make, 2, 3, 3), True)],
    reference=_inverse_of,
    errors=[(lambda: zeros(2, 2).cholesky_inverse(), RuntimeError, "cholesky_inverse: The diagonal element 1 is zero")],
    tags="casts",
    doc="The inverse of the A whose Cholesky factor is self, with a gradient as that of cholesky_solve.",
)
