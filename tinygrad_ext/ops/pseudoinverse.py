"""Pseudoinverses of matrices and what else counts small singular values as zero: rank, least squares."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import (
    TYPES,
    adjoint,
    check_matrix,
    hermitian,
    positive,
    regular,
    together,
)
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

# ---- singular values that count --------------------------------------------------------------------------------------


def _limit(name, value, like):
    """atol or rtol as a tensor of like's real dtype, None as it is."""
    if value is None:
        return None
    value = tg.as_tensor(value, device=like.device)
    if value.is_complex():
        raise RuntimeError(f"{name} tensor of complex type is not supported. Got {value.dtype}: give its magnitude")
    return value.detach().to(like.dtype)


def limits(A, atol, rtol, title):
    """Both tolerances: rtol is the greater size times the dtype's epsilon, but 0 where atol alone is given."""
    real = A.detach().new_zeros(()).abs()
    atol, rtol = _limit(f"{title}: atol", atol, real), _limit(f"{title}: rtol", rtol, real)
    if rtol is None:
        m, n = A.shape[-2:]
        usual = real + tg.finfo(A.dtype).eps * ((m + n + abs(m - n)) // 2)  # max would make a graph for each answer
        rtol = usual if atol is None else tg.where(atol > 0, real, usual)
    return real if atol is None else atol, rtol


def counted(values, atol, rtol):
    """Which singular values are greater than both tolerances allow, and none of no values."""
    if not values.shape[-1]:
        return values > tg.maximum(atol, rtol).unsqueeze(-1)
    most = values.amax(-1)
    return values > tg.maximum(atol, rtol * most).unsqueeze(-1)


def singular_values(A, symmetric):
    A = A.detach()
    return fused._eigh(A, "L", False)[0].abs() if symmetric else fused._svd(A, False, False)[1]


# ---- pinv ------------------------------------------------------------------------------------------------------------


def _pinv_kernel(A, atol, rtol, symmetric):
    if symmetric:
        values, vectors = fused._eigh(A, "L", True)
        kept = counted(values.abs(), atol, rtol)
        U, Vh = vectors, adjoint(vectors)
    else:
        U, values, Vh = fused._svd(A, False, True)
        kept = counted(values, atol, rtol)
    turned = tg.where(kept, 1 / values, tg.zeros_like(values)).to(A.dtype)
    return adjoint(Vh).matmul(turned.unsqueeze(-1) * adjoint(U))


def pinv_back(grad, A, result):
    """-P^H G P^H + (1 - A P) G^H P P^H + P^H P G^H (1 - P A), for a rank that stays (Golub and Pereyra, 1973)."""
    turned, back = adjoint(result), adjoint(grad)
    first, second = back.matmul(result.matmul(turned)), turned.matmul(result).matmul(back)
    found = first - A.matmul(result.matmul(first)) + second - second.matmul(result).matmul(A)
    return found - turned.matmul(grad).matmul(turned)


def pinv_slope(A, A_tangent, result):
    """-P A' P + P P^H A'^H (1 - A P) + (1 - P A) A'^H P^H P."""
    turned, back = adjoint(result), adjoint(A_tangent)
    first, second = result.matmul(turned).matmul(back), back.matmul(turned.matmul(result))
    found = first - first.matmul(A).matmul(result) + second - result.matmul(A.matmul(second))
    return found - result.matmul(A_tangent).matmul(result)


def _pinv_shape(A, atol, rtol, symmetric=False):
    return A.new_empty((*tg.broadcast_shapes(A.shape[:-2], atol.shape, rtol.shape), A.shape[-1], A.shape[-2]))


def np_pinv(A, atol=None, rtol=None, hermitian=False):
    import numpy

    if A.size == 0:
        return numpy.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    limit = _np_limit(A, atol, rtol)
    U, S, Vh = numpy.linalg.svd(A, full_matrices=False)
    kept = limit[..., None] < S
    turned = numpy.where(kept, 1 / numpy.where(kept, S, 1), 0)
    return (Vh.swapaxes(-1, -2).conj() * turned[..., None, :]) @ U.swapaxes(-1, -2).conj()


def _np_limit(A, atol=None, rtol=None):
    import numpy

    S = numpy.linalg.svd(A, compute_uv=False)
    if rtol is None:
        usual = 1e-5 * max(A.shape[-2:])  # far from all singular values of samples, in any dtype
        rtol = usual if atol is None else numpy.where(numpy.asarray(atol) > 0, 0, usual)
    return numpy.maximum(0 if atol is None else atol, rtol * S[..., 0])


def _rectangles(make, *args, **options):
    for shape in ((3, 3), (2, 3, 2), (2, 4), (0, 2, 2), (2, 0)):
        yield Sample(regular(make, *shape), *args, **options)


def _with_limits(make):
    for sample in _rectangles(make):
        yield Sample(*sample.args, make.of(0.1), make.of(0.01), False)
    yield Sample(regular(make, 2, 3, 3), make.of([0.1, 0.2]), make.of(0.0), False)
    yield Sample(positive(make, 3, 3), make.of(0.1), make.of(0.01), True)


op(
    "aten::_pinv(Tensor A, Tensor atol, Tensor rtol, bool symmetric=False) -> Tensor",
    batch=together("_pinv", lambda *args: fused._pinv(*args), (2, 0, 0, None)),
    kernel=_pinv_kernel,
    shape=_pinv_shape,
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": pinv_back},
    jvp=pinv_slope,
    valid=lambda A, atol, rtol, symmetric: (hermitian(A)[0] if symmetric else A, atol, rtol, symmetric),
    samples=_with_limits,
    reference=lambda A, atol, rtol, symmetric=False: np_pinv(A, atol, rtol),
    doc="linalg.pinv with both tolerances.",
)


def _pinv(self, atol=None, rtol=None, hermitian=False):
    title = "linalg.pinv"
    check_matrix(self, title, square=hermitian)
    return fused._pinv(self, *limits(self, atol, rtol, title), hermitian)


def _by_singular_values(make):
    yield from _rectangles(make)
    yield Sample(positive(make, 3, 3), hermitian=True)


_PINV_DOC = (
    "The pseudoinverse of each matrix (..., m, n), as (..., n, m): what linalg.lstsq multiplies by. Singular values up "
    "to max(atol, rtol * the largest) count as zero; rtol is max(m, n) times the dtype's epsilon, or 0 where atol is "
    "given alone. hermitian: the matrices are, and their eigenvalues are taken. The derivative is for a constant rank."
)
_PINV = {"types": TYPES, "where": "linalg", "variants": "function out", "doc": _PINV_DOC}

op(
    "aten::pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
    compose=_pinv,
    numbers="atol rtol",
    samples=lambda make: [
        *_rectangles(make),
        Sample(regular(make, 3, 2), atol=0.5, rtol=0.1),
        Sample(regular(make, 2, 3, 2), atol=make.of([0.5, 0.1])),
        Sample(regular(make, 3, 2), rtol=make.of([0.5, 0.1])),
    ],
    reference=np_pinv,
    errors=[
        (lambda: tg.linalg.pinv(zeros(3)), RuntimeError, "linalg.pinv: The input tensor A must have at least 2"),
        (lambda: tg.linalg.pinv(zeros(2, 3), hermitian=True), RuntimeError, "linalg.pinv: A must be batches of square"),
        (lambda: tg.linalg.pinv(zeros(2, 2), rtol=tg.tensor(1j)), RuntimeError, "rtol tensor of complex type"),
    ],
    **_PINV,
    tags="casts",
)

op(
    "aten::pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
    compose=lambda self, rcond, hermitian: _pinv(self, None, rcond, hermitian),
    numbers="rcond",
    samples=lambda make: [
        Sample(regular(make, 3, 2), 0.1),
        Sample(regular(make, 2, 3, 2), make.of([0.1, 0.2])),
        Sample(positive(make, 3, 3), 0.1, True),
    ],
    valid=lambda A, rcond, symmetric=False: (hermitian(A)[0] if symmetric else A, rcond, symmetric),
    reference=lambda A, rcond, hermitian=False: np_pinv(A, None, rcond),
    **_PINV,
    tags="casts",
)

op(
    "aten::pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    compose=lambda self, rcond: _pinv(self, None, rcond, False),
    types=TYPES,
    variants="function method",
    samples=lambda make: [Sample(regular(make, *shape)) for shape in ((3, 3), (3, 2), (2, 2, 4))],
    reference=lambda A, rcond=1e-15: np_pinv(A, None, rcond),
    errors=[(lambda: zeros(3).pinverse(), RuntimeError, "must have at least 2 dimensions")],
    doc="linalg.pinv with rtol=rcond, under its older name.",
)

# ---- rank ------------------------------------------------------------------------------------------------------------


def _rank(self, atol=None, rtol=None, hermitian=False):
    title = "linalg.matrix_rank"
    check_matrix(self, title, square=hermitian)
    values = singular_values(self, hermitian)
    return counted(values, *limits(self, atol, rtol, title)).sum(-1)


def np_rank(A, atol=None, rtol=None, hermitian=False):
    import numpy

    if A.size == 0:
        return numpy.zeros(A.shape[:-2], numpy.int64)
    return (numpy.linalg.svd(A, compute_uv=False) > _np_limit(A, atol, rtol)[..., None]).sum(-1)


_RANK_DOC = (
    "How many singular values of each matrix are greater than max(atol, rtol * the largest); the tolerances are as in "
    "linalg.pinv. hermitian: magnitudes of eigenvalues are counted."
)

op(
    "aten::matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) "
    "-> Tensor",
    compose=_rank,
    jvp="none",
    numbers="atol rtol",
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [
        *_by_singular_values(make),
        Sample(make.like([[1, 2], [2, 4]])),
        Sample(regular(make, 3, 3), atol=4.5),
        Sample(regular(make, 2, 3, 2), rtol=make.of([0.5, 0.1])),
    ],
    reference=np_rank,
    errors=[
        (lambda: tg.linalg.matrix_rank(zeros(3)), RuntimeError, "linalg.matrix_rank: The input tensor A must have"),
        (lambda: tg.linalg.matrix_rank(zeros(2, 2), atol=1j), RuntimeError, "atol tensor of complex type"),
    ],
    tags="casts",
    doc=_RANK_DOC,
)

op(
    "aten::matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
    compose=lambda input, tol, hermitian: _rank(input, tol, 0.0, hermitian),
    jvp="none",
    numbers="tol",
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [Sample(regular(make, 3, 3), 4.5), Sample(positive(make, 3, 3), 1.0, True)],
    reference=lambda A, tol, hermitian=False: np_rank(A, tol, 0.0),
    tags="casts",
    doc=_RANK_DOC,
)

# ---- condition -------------------------------------------------------------------------------------------------------


def _cond(self, p=None):
    title = "linalg.cond"
    check_matrix(self, title)
    if 0 in self.shape:
        return self.new_zeros(self.shape[:-2], dtype=self.dtype.to_real())
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = fused._svd(self, False, False)[1]
        most, least = values.narrow(-1, 0, 1), values.narrow(-1, values.shape[-1] - 1, 1)
        return (least / most if p == -2 else most / least).squeeze(-1)
    check_matrix(self, title, square=True)
    if p not in ("fro", "nuc", 1, -1, float("inf"), -float("inf")):
        raise RuntimeError(
            f"linalg.cond got an invalid norm type: {p}; it is None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2"
        )
    inverse, info = fused._inverse(self, False, title)
    norm, singular = lambda A: tg.linalg.matrix_norm(A, p), info > 0
    inverse = inverse.masked_fill(singular[..., None, None], 0)  # without one there are no singular values to add up
    return (norm(self) * norm(inverse)).masked_fill(singular, float("inf"))


def _np_cond(A, p=None):
    import numpy

    return numpy.zeros(A.shape[:-2]) if A.size == 0 else numpy.linalg.cond(A, p)


_COND_DOC = (
    "How much a system of equations can enlarge errors: the norm of the matrix times that of its inverse, the largest "
    "over the smallest singular value for p None and 2. p is an order of linalg.matrix_norm; all but None, 2 and -2 "
    "want square matrices."
)

op(
    "aten::cond(Tensor self, Scalar? p=None) -> Tensor",
    compose=_cond,
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [
        *_rectangles(make),
        *(Sample(regular(make, 2, 3, 3), p) for p in (2, -2, 1, -1, float("inf"), -float("inf"))),
    ],
    reference=_np_cond,
    errors=[
        (lambda: tg.linalg.cond(zeros(2, 3), 1), RuntimeError, "linalg.cond: A must be batches of square"),
        (lambda: tg.linalg.cond(zeros(2, 2), 3), RuntimeError, "linalg.cond got an invalid norm type: 3"),
    ],
    tags="casts",
    doc=_COND_DOC,
)

op(
    "aten::cond.p_str(Tensor self, str p) -> Tensor",
    compose=_cond,
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [Sample(regular(make, 3, 3), "fro"), Sample(regular(make, 2, 3, 3), "nuc")],
    reference=_np_cond,
    errors=[(lambda: tg.linalg.cond(zeros(2, 2), "f"), RuntimeError, "linalg.cond got an invalid norm type: f")],
    tags="casts",
    doc=_COND_DOC,
)
