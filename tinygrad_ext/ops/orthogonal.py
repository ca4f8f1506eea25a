"""QR factors and Householder reflectors."""

import tinygrad_ext as tg
from tinygrad_ext.ops import matrix_slopes
from tinygrad_ext.ops.fused import fused, refusals, refused_slope
from tinygrad_ext.ops.matrices import TYPES, adjoint, check_matrix, check_same, conjugate, plus, regular, triangular
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

# ---- QR ------------------------------------------------------------------------------------------------------------


def _qr_back(grads, A, Q, R, mode):
    gQ, gR = grads
    if gQ is None and gR is None:
        return None
    m, n = A.shape[-2:]
    matrix_slopes.refuse_qr(m, n, mode, "backward")
    k = Q.shape[-1]
    beside = A.narrow(-1, k, n - k)  # A = Q [R1 R2]: R2 = Q^H A2, of no columns where A is not wider than high
    by_r = None if gR is None else gR.narrow(-1, k, n - k)
    square = None if gR is None else gR.narrow(-1, 0, k)
    if by_r is not None:
        gQ = plus(gQ, beside.matmul(adjoint(by_r)))
    left = _tall_back(gQ, square, Q, R.narrow(-1, 0, k))
    return tg.cat([left, tg.zeros_like(beside) if by_r is None else Q.matmul(by_r)], -1)


def _tall_back(gQ, gR, Q, R):
    """(gQ + Q S) R^-H: S is X + X^H with half of the diagonal, for X = triu(gR R^H - Q^H gQ)."""
    inner = None if gR is None else gR.matmul(adjoint(R))
    if gQ is not None:
        inner = plus(inner, -adjoint(Q).matmul(gQ))
    inner = inner.triu()
    inner = matrix_slopes.half_diagonal(inner + adjoint(inner))
    return triangular(adjoint(R), plus(gQ, Q.matmul(inner)), False, left=False)


def _numpy_qr(A, mode="reduced"):
    import numpy

    if mode == "r":
        return numpy.zeros(0, A.dtype), numpy.linalg.qr(A, "r")
    return tuple(numpy.linalg.qr(A, mode))


def _samples(make):
    for shape in ((3, 3), (2, 4, 2), (2, 3), (0, 2, 2)):
        yield Sample(regular(make, *shape))
    yield Sample(regular(make, 3, 3), "complete")


def _modes(make):
    yield from _samples(make)
    yield Sample(regular(make, 4, 2).detach(), "complete")


op(
    'aten::_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    batch="leading",
    kernel="_qr",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": _qr_back},
    jvp=matrix_slopes.qr,
    samples=_samples,
    reference=_numpy_qr,
    doc="linalg.qr.",
)

op(
    'aten::qr.linalg(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    compose=lambda A, mode: tuple(fused._qr(A, mode)),
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=_modes,
    reference=_numpy_qr,
    errors=[
        (lambda: tg.linalg.qr(zeros(2, 2), "full"), RuntimeError, "qr received unrecognized mode 'full'"),
        (lambda: tg.linalg.qr(zeros(2)), RuntimeError, "linalg.qr: The input tensor A must have at least 2"),
    ],
    doc="Q with orthonormal columns and the upper triangle R of A = Q R, A (..., m, n). mode: 'reduced' for min(m, n) "
    "columns, 'complete' for m (without a derivative where m > n), 'r' for R alone (without one at all).",
)

op(
    "aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    compose=lambda self, some: tuple(fused._qr(self, "reduced" if some else "complete")),
    types=TYPES,
    variants="function method out",
    samples=lambda make: [Sample(regular(make, 3, 3)), Sample(regular(make, 2, 4, 2))],
    reference=_numpy_qr,
    doc="linalg.qr: reduced, or complete where not some.",
)

# ---- reflectors ----------------------------------------------------------------------------------------------------


def _scipy(name, *args, **options):
    import scipy.linalg

    return getattr(scipy.linalg, name)(*args, **options)


def _raw(A):
    import numpy

    found = [_scipy("qr", a, mode="raw")[0] for a in A.reshape((-1, *A.shape[-2:]))]
    k = min(A.shape[-2:])
    factors = numpy.array([f[0] for f in found], A.dtype).reshape(A.shape)
    return factors, numpy.array([f[1] for f in found], A.dtype).reshape((*A.shape[:-2], k))


op(
    "aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    batch="leading",
    kernel="geqrf",
    grad={"self": refusals("geqrf")},
    jvp=refused_slope("geqrf"),
    types=TYPES,
    variants="function method out",
    samples=lambda make: [Sample(regular(make, *s).detach()) for s in ((3, 3), (2, 4, 2), (2, 3))],
    reference=_raw,
    errors=[
        (lambda: tg.geqrf(zeros(2)), RuntimeError, "geqrf: The input tensor input must have at least 2 dimensions")
    ],
    tags="casts",
    doc="The factors of linalg.qr as LAPACK keeps them: R, below it the vectors of reflectors, and their factors tau. "
    "It has no derivative; linalg.qr has.",
)


def _product_back(grad, input, tau, needs):
    """By the compact form P = E - V T W of all reflectors at once (Schreiber and Van Loan 1989): E the first columns
    of the identity, V the vectors, W = V^H E, T = D M, D of tau, M = (1 + N D)^-1 and N = V^H V above its diagonal."""
    (m, n), k = input.shape[-2:], tau.shape[-1]
    options = {"dtype": input.dtype, "device": input.device}
    vectors = input.narrow(-1, 0, k).tril(-1) + tg.eye(m, k, **options)
    first, columns = tg.eye(m, n, **options), tau.unsqueeze(-2)
    above = adjoint(vectors).matmul(vectors).triu(1)
    behind = triangular(above * columns, tg.eye(k, **options).expand((*input.shape[:-2], k, k)), True, unit=True)
    kept, rows = tau.unsqueeze(-1) * behind, adjoint(vectors).matmul(first)
    by_kept = -adjoint(vectors).matmul(grad).matmul(adjoint(rows))
    by_solved = -adjoint(behind).matmul(conjugate(tau).unsqueeze(-1) * by_kept).matmul(adjoint(behind))
    by_above = (by_solved * conjugate(columns)).triu(1)
    by_vectors = -grad.matmul(adjoint(kept.matmul(rows))) - first.matmul(adjoint(grad)).matmul(vectors.matmul(kept))
    by_vectors = (by_vectors + vectors.matmul(by_above + adjoint(by_above))).tril(-1)
    by_tau = (by_kept * conjugate(behind)).sum(-1) + (by_solved * conjugate(above)).sum(-2)
    return tg.cat([by_vectors, tg.zeros_like(input.narrow(-1, k, n - k))], -1), by_tau


def _product(A, tau):
    import numpy

    m, n = A.shape[-2:]
    found = numpy.tile(numpy.eye(m, n, dtype=A.dtype), (*A.shape[:-2], 1, 1))
    for i in reversed(range(tau.shape[-1])):
        v = A[..., i : i + 1] * (numpy.arange(m) > i)[:, None] + (numpy.arange(m) == i)[:, None]
        found = found - tau[..., i, None, None] * v @ (v.swapaxes(-1, -2).conj() @ found)
    return found


def _of_reflectors(make):
    for shape, k in (((3, 3), 3), ((2, 4, 2), 2), ((4, 3), 2), ((3, 2), 0)):
        yield Sample(make(*shape, low=-1, high=1), make(*shape[:-2], k, low=-1, high=1))


op(
    "aten::_householder_product(Tensor input, Tensor tau) -> Tensor",
    batch=lambda b, input, tau: fused._householder_product(b.whole(input), b.whole(tau)),
    kernel="_householder_product",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"input, tau": _product_back},
    jvp="transposed",
    samples=_of_reflectors,
    reference=_product,
    doc="linalg.householder_product.",
)

for _place, _name, _named, _variants in (
    ("linalg", "householder_product", "Tensor input, Tensor tau", "function out"),
    (".", "orgqr", "Tensor self, Tensor input2", "function method out"),
):
    op(
        f"aten::{_name}({_named}) -> Tensor",
        compose=lambda A, tau: fused._householder_product(A, tau),
        types=TYPES,
        where=_place,
        variants=_variants,
        samples=_of_reflectors,
        reference=_product,
        errors=[
            (
                lambda: tg.linalg.householder_product(zeros(2, 3), zeros(2)),
                RuntimeError,
                "input.shape[-2] must be greater than or equal to input.shape[-1]",
            ),
            (
                lambda: tg.linalg.householder_product(zeros(3, 2), zeros(3)),
                RuntimeError,
                "Expected tau to have a vector",
            ),
        ],
        tags="casts",
        doc="The first n columns of the product of reflectors 1 - tau v v^H, whose vectors v stand below the diagonal "
        "of (..., m, n), m >= n: Q of what geqrf gives.",
    )


def _ormqr_back(grad, input, tau, other, left, transpose):
    """By the slope of Q, of which the reflectors are the first columns."""
    n, k = input.shape[-1], tau.shape[-1]
    by_q = grad.matmul(adjoint(other)) if left else adjoint(other).matmul(grad)
    wide = _square(input, k)
    by_input, by_tau = _product_back(adjoint(by_q) if transpose else by_q, wide, tau, None)
    by_input = by_input.narrow(-1, 0, k)
    return tg.cat([by_input, tg.zeros_like(input.narrow(-1, k, n - k))], -1) if n > k else by_input, by_tau


def _ormqr_tangent(input, tau, other, left, transpose, input_tangent, tau_tangent, other_tangent):
    """By the product rule, one reflector after the other."""
    if not left:
        turned = None if other_tangent is None else adjoint(other_tangent)
        slopes = input_tangent, tau_tangent, turned
        return adjoint(_ormqr_tangent(input, tau, adjoint(other), True, not transpose, *slopes))
    k, zeros = tau.shape[-1], tg.zeros_like
    vectors = input.narrow(-1, 0, k).tril(-1) + tg.eye(input.shape[-2], k, dtype=input.dtype)
    slopes = zeros(vectors) if input_tangent is None else input_tangent.narrow(-1, 0, k).tril(-1)
    factors, rises = tau, zeros(tau) if tau_tangent is None else tau_tangent
    if transpose:
        factors, rises = factors.conj(), rises.conj()
    y, tangent = other, zeros(other) if other_tangent is None else other_tangent
    for i in range(k) if transpose else reversed(range(k)):
        v, slope = vectors.narrow(-1, i, 1), slopes.narrow(-1, i, 1)
        factor, rise = factors[..., i, None, None], rises[..., i, None, None]
        along = adjoint(v) @ y
        change = factor * (slope @ along + v @ (adjoint(slope) @ y + adjoint(v) @ tangent)) + rise * (v @ along)
        y, tangent = y - factor * (v @ along), tangent - change
    return tangent


def _square(input, k):
    """The first k columns, with zeros behind them."""
    vectors, m = input.narrow(-1, 0, k), input.shape[-2]
    return vectors if m == k else tg.cat([vectors, vectors.new_zeros((*vectors.shape[:-1], m - k))], -1)


_WIDE = 128  # numbers of a reflector from which on LAPACK applies them, and rounds less than a product with Q


def _ormqr(self, tau, other, left, transpose):
    check_matrix(self, "ormqr", "input")
    check_matrix(other, "ormqr", "other")
    check_same(self, other, "ormqr", ("input", "other"))
    size, k = other.shape[-2 if left else -1], tau.shape[-1]
    if self.shape[-2] != size or k > self.shape[-1]:
        raise RuntimeError(
            f"ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], and input must have a column "
            f"for each number of tau, but input is {list(self.shape)}, tau {list(tau.shape)} and "
            f"other {list(other.shape)}"
        )
    if size >= _WIDE and self.shape[:-2] == other.shape[:-2]:
        return fused._ormqr(self, tau, other, left, transpose)
    Q = fused._householder_product(_square(self, k), tau)
    Q = adjoint(Q) if transpose else Q
    return Q.matmul(other) if left else other.matmul(Q)


def _ormqr_reference(A, tau, other, left=True, transpose=False):
    import numpy

    size, k = other.shape[-2 if left else -1], tau.shape[-1]
    wide = numpy.zeros((*A.shape[:-2], size, size), A.dtype)
    wide[..., :k] = A[..., :k]
    Q = _product(wide, tau)
    Q = Q.swapaxes(-1, -2).conj() if transpose else Q
    return Q @ other if left else other @ Q


def _ormqr_samples(make):
    yield Sample(make(3, 2, low=-1, high=1), make(2, low=-1, high=1), make(3, 2))
    yield Sample(make(2, 3, 3, low=-1, high=1), make(2, 3, low=-1, high=1), make(2, 2, 3), False, True)


op(
    "aten::_ormqr(Tensor input, Tensor tau, Tensor other, bool left, bool transpose) -> Tensor",
    batch=lambda b, input, tau, other, left, transpose: fused._ormqr(
        b.whole(input), b.whole(tau), b.whole(other), left, transpose
    ),
    kernel="_ormqr",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={
        "input, tau": lambda grad, input, tau, other, left, transpose, needs: _ormqr_back(
            grad, input, tau, other, left, transpose
        ),
        "other": lambda grad, input, tau, left, transpose: fused._ormqr(input, tau, grad, left, not transpose),
    },
    jvp=_ormqr_tangent,
    samples=lambda make: [
        *(
            Sample(make(*s, low=-1, high=1), make(*s[:-2], k, low=-1, high=1), make(*other), left, transpose)
            for s, k, other, left, transpose in (
                ((3, 2), 2, (3, 2), True, False),
                ((2, 3, 3), 2, (2, 2, 3), False, True),
                ((3, 2), 1, (3, 4), True, True),
                ((4, 3), 3, (2, 4), False, False),
            )
        )
    ],
    reference=_ormqr_reference,
    errors=[
        (lambda: fused._ormqr(zeros(3, 2), zeros(2), zeros(2, 2), True, False), RuntimeError, "do not fit other of"),
    ],
    doc="ormqr of matrices in one batch, by LAPACK.",
)

op(
    "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    compose=_ormqr,
    types=TYPES,
    variants="function method out",
    samples=_ormqr_samples,
    reference=_ormqr_reference,
    errors=[(lambda: zeros(3, 2).ormqr(zeros(2), zeros(2, 2)), RuntimeError, "must be equal to input.shape[-2]")],
    doc="Q times input3, or input3 times Q without left, for the product Q (m x m) of the reflectors that self and "
    "input2 (tau) hold as geqrf gives them; with transpose its adjoint.",
)
