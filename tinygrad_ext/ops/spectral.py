"""Singular values and eigenvalues of matrices, with their vectors."""

import tinygrad_ext as tg
from tinygrad_ext.ops import matrix_slopes
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import TYPES, adjoint, hermitian, plus, positive, regular
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

# ---- singular values -----------------------------------------------------------------------------------------------


def _diagonal(t):
    return t.diagonal(0, -2, -1)


def _embedded(t):
    return tg.diag_embed(t)


def _skewed(vectors, grad, other, title):
    """X - X^H for X = vectors^H grad, refused where it hangs on a phase."""
    found = adjoint(vectors).matmul(grad)
    if found.is_complex():
        found = fused._same_phase(found, other, title)
    return found - adjoint(found)


def _svd_back(grads, A, U, S, Vh, full_matrices, compute_uv):
    """U (skew(U^H gU)/E S + S skew(V^H gV)/E + gS) V^H, and what of gU and gV leaves the spaces of U and V, with
    E = S_j^2 - S_i^2 beside the diagonal and skew(X) = X - X^H (Townsend, Differentiating the SVD)."""
    gU, gS, gVh = grads
    if not compute_uv:
        if gS is None:
            return None
        U, _, Vh = fused._svd(A, False, True)
        return (U * gS.unsqueeze(-2).to(U.dtype)).matmul(Vh)
    m, n, k = U.shape[-2], Vh.shape[-1], S.shape[-1]
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    gU = None if gU is None else gU.narrow(-1, 0, k)
    gVh = None if gVh is None else gVh.narrow(-2, 0, k)
    if gU is None and gVh is None:
        return None if gS is None else (U * gS.unsqueeze(-2).to(U.dtype)).matmul(Vh)
    V, gV = adjoint(Vh), None if gVh is None else adjoint(gVh)
    one = tg.eye(k, dtype=S.dtype, device=S.device)
    gaps = (S.unsqueeze(-2) - S.unsqueeze(-1)) * (S.unsqueeze(-2) + S.unsqueeze(-1)) + one
    by_u = by_v = None
    if gU is not None:
        by_u = _skewed(U, gU, None if gV is None else Vh.matmul(gV), "svd_backward")
    if gV is not None:
        by_v = _skewed(V, gV, None if gU is None else adjoint(U).matmul(gU), "svd_backward")
    inner = None
    if by_u is not None:
        inner = by_u / gaps * S.unsqueeze(-2)
    if by_v is not None:
        inner = plus(inner, S.unsqueeze(-1) * (by_v / gaps))
    if by_u is not None and U.is_complex():
        inner = inner - _embedded(_diagonal(inner)) + _embedded(_diagonal(by_u) / (2 * S))
    elif by_u is None and U.is_complex():
        inner = inner - _embedded(_diagonal(inner))
    if gS is not None:
        inner = inner + _embedded(gS).to(inner.dtype)
    found = U.matmul(inner).matmul(Vh)
    if gU is not None and m > k:
        left = gU / S.unsqueeze(-2)
        found = found + (left - U.matmul(adjoint(U).matmul(left))).matmul(Vh)
    if gV is not None and n > k:
        right = gV / S.unsqueeze(-2)
        found = found + U.matmul(adjoint(right - V.matmul(Vh.matmul(right))))
    return found


def _magnitudes(result):
    """Vectors are determined up to their sign or phase."""
    U, S, Vh = result
    return U.abs(), S, Vh.abs()


def _svds(A, full_matrices=False):
    import numpy

    U, S, Vh = numpy.linalg.svd(A, full_matrices)
    return numpy.abs(U), S, numpy.abs(Vh)


def _values_of(A):
    import numpy

    return numpy.linalg.svd(A, compute_uv=False)


def _rectangles(make, *args, **options):
    for shape in ((3, 3), (2, 3, 2), (2, 4), (0, 2, 2)):
        yield Sample(regular(make, *shape), *args, **options)


op(
    "aten::_svd(Tensor A, bool full_matrices=False, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor Vh)",
    batch="leading",
    kernel="_svd",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": _svd_back},
    jvp=matrix_slopes.svd,
    determined=_magnitudes,
    samples=_rectangles,
    reference=_svds,
    doc="linalg.svd; without compute_uv U and Vh have no elements.",
)

op(
    "aten::_same_phase(Tensor self, Tensor? other, str title) -> Tensor",
    batch=lambda b, self, other, title: fused._same_phase(
        b.whole(self), None if other is None else b.whole(other), title
    ),
    kernel="_same_phase",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"self": "grad"},
    jvp=lambda self_tangent: self_tangent,
    samples=lambda make: [Sample(make.like([[1.0, 2.0], [3.0, 4.0]]), None, "eigh_backward")],
    reference=lambda self, other, title: self,
    errors=[
        (
            lambda: fused._same_phase(tg.tensor([[1j]]), None, "eigh_backward"),
            RuntimeError,
            "eigh_backward: The vectors in the complex case are specified up to multiplication by e^{i phi}",
        )
    ],
    doc="self, refused where the imaginary part of its diagonal and other's together is not zero: a gradient that "
    "hangs on the phase of complex vectors.",
)


def _driver(driver):
    if driver is not None:
        raise RuntimeError(f"linalg.svd: keyword argument `driver=` is only supported on CUDA inputs, got {driver!r}")


def _svd(A, full_matrices, driver):
    _driver(driver)
    return tuple(fused._svd(A, full_matrices, True))


def _svdvals(A, driver=None):
    _driver(driver)
    return fused._svd(A, False, False)[1]


op(
    "aten::svd.linalg(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    compose=_svd,
    types=TYPES,
    where="linalg",
    variants="function out",
    determined=lambda result: _magnitudes([*result[:2], result[2]]),
    samples=lambda make: [Sample(regular(make, 3, 3)), *_rectangles(make, full_matrices=False)],
    reference=lambda A, full_matrices=True: _svds(A, full_matrices),
    errors=[
        (lambda: tg.linalg.svd(zeros(3)), RuntimeError, "linalg.svd: The input tensor A must have at least 2"),
        (
            lambda: tg.linalg.svd(tg.tensor([[float("nan")]])),
            tg.linalg.LinAlgError,
            "linalg.svd: (Batch element 0): The algorithm failed to converge because the input matrix contained",
        ),
    ],
    doc="U, S and Vh of A = U diag(S) Vh: orthonormal columns and rows and the singular values, the largest first. For "
    "A (..., m, n) U is (..., m, m) and Vh (..., n, n), or min(m, n) columns and rows of them without full_matrices. "
    "Vectors are determined up to their sign or phase; the gradient is refused where it would hang on phases.",
)

op(
    "aten::svdvals(Tensor A, *, str? driver=None) -> Tensor",
    compose=_svdvals,
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=_rectangles,
    reference=_values_of,
    doc="The singular values of each matrix, the largest first.",
)


def _old_svd(self, some, compute_uv):
    U, S, Vh = fused._svd(self, not some, compute_uv)
    if compute_uv:
        return U, S, adjoint(Vh)
    m, n = self.shape[-2:]
    return self.new_zeros((*self.shape[:-2], m, m)), S, self.new_zeros((*self.shape[:-2], n, n))


op(
    "aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    compose=_old_svd,
    types=TYPES,
    variants="function method out",
    determined=_magnitudes,
    samples=_rectangles,
    reference=lambda A: (*_svds(A)[:2], _svds(A)[2].swapaxes(-1, -2)),
    doc="linalg.svd with V instead of its adjoint, and some=True for what full_matrices=False is there.",
)

# ---- Hermitian matrices --------------------------------------------------------------------------------------------


def _with_diagonal(t, diagonal):
    found = matrix_slopes.beside_diagonal(t)
    return found if diagonal is None else found + _embedded(diagonal.to(t.dtype))


def _eigh_back(grads, A, eigenvalues, eigenvectors, UPLO, compute_v):
    """V (V^H gV / E + gL) V^H, E = L_j - L_i, of which the Hermitian part is what a Hermitian matrix can follow."""
    by_values, by_vectors = grads
    values, vectors = eigenvalues, eigenvectors
    if not compute_v:
        if by_values is None:
            return None
        by_vectors, (values, vectors) = None, fused._eigh(A, UPLO, True)
    if by_vectors is None:
        if by_values is None:
            return None
        return (vectors * by_values.unsqueeze(-2).to(vectors.dtype)).matmul(adjoint(vectors))
    inner = adjoint(vectors).matmul(by_vectors)
    if inner.is_complex():
        inner = fused._same_phase(inner, None, "linalg_eigh_backward")
    inner = inner / matrix_slopes.gaps(values)
    inner = _with_diagonal((inner + adjoint(inner)) / 2, by_values)
    return vectors.matmul(inner).matmul(adjoint(vectors))


def _eighs(A, UPLO="L"):
    import numpy

    values, vectors = numpy.linalg.eigh(A, UPLO)
    return values, numpy.abs(vectors)


def _hermitians(make):
    for shape in ((3, 3), (1, 1), (2, 3, 3), (0, 0)):
        yield Sample(positive(make, *shape))
    yield Sample(positive(make, 3, 3), "U")


op(
    'aten::_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    batch="leading",
    kernel="_eigh",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": _eigh_back},
    jvp=matrix_slopes.eigh,
    valid=hermitian,
    determined=lambda result: (result[0], result[1].abs()),
    samples=_hermitians,
    reference=_eighs,
    doc="linalg.eigh; without compute_v the vectors have no elements.",
)

op(
    'aten::eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    compose=lambda self, UPLO: tuple(fused._eigh(self, UPLO, True)),
    types=TYPES,
    where="linalg",
    variants="function out",
    valid=hermitian,
    determined=lambda result: (result[0], result[1].abs()),
    samples=_hermitians,
    reference=_eighs,
    errors=[
        (lambda: tg.linalg.eigh(zeros(2, 2), "X"), RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got X"),
        (lambda: tg.linalg.eigh(zeros(2, 3)), RuntimeError, "linalg.eigh: A must be batches of square matrices"),
    ],
    doc="Eigenvalues (real, the smallest first) and eigenvectors (columns) of Hermitian matrices (..., n, n), of which "
    "the lower triangle is read, or the upper one for UPLO='U'. Vectors are determined up to their sign or phase; the "
    "gradient is refused where it would hang on phases.",
)

op(
    'aten::eigvalsh(Tensor self, str UPLO="L") -> Tensor',
    compose=lambda self, UPLO: fused._eigh(self, UPLO, False)[0],
    types=TYPES,
    where="linalg",
    variants="function out",
    valid=hermitian,
    samples=_hermitians,
    reference=lambda A, UPLO="L": _eighs(A, UPLO)[0],
    doc="The eigenvalues of Hermitian matrices, the smallest first.",
)

# ---- general matrices ----------------------------------------------------------------------------------------------


def _eig_back(grads, A, eigenvalues, eigenvectors, compute_v):
    """V^-H ((V^H gV - V^H V Re(diag(V^H gV))) / conj(E) + gL) V^H, E = L_j - L_i."""
    by_values, by_vectors = grads
    values, vectors = eigenvalues, eigenvectors
    if not compute_v:
        if by_values is None:
            return None
        by_vectors, (values, vectors) = None, fused._eig(A, True)
    turned, inner = adjoint(vectors), None
    if by_vectors is not None:
        inner = fused._same_phase(turned.matmul(by_vectors), None, "linalg_eig_backward")
        inner = inner - turned.matmul(vectors * _diagonal(inner).real.unsqueeze(-2))
        inner = _with_diagonal(inner / matrix_slopes.gaps(values).conj_physical(), by_values)
    elif by_values is not None:
        inner = _embedded(by_values)
    if inner is None:
        return None
    found = fused._solve(turned, inner.matmul(turned))[0]
    return found if A.is_complex() else found.real


def _ordered(values, vectors=None):
    """Eigenvalues come in no order that is anybody's promise, and a pair of conjugate ones in two."""
    order = values.abs().argsort(-1)
    values = values.gather(-1, order)
    found = values.real, values.imag.abs()
    if vectors is None:
        return found
    return (*found, vectors.abs().gather(-1, order.unsqueeze(-2).expand(vectors.shape)))


def _eigs(A):
    import numpy

    values, vectors = numpy.linalg.eig(A)
    order = numpy.argsort(numpy.abs(values), -1)
    values = numpy.take_along_axis(values, order, -1)
    return values.real, numpy.abs(values.imag), numpy.take_along_axis(numpy.abs(vectors), order[..., None, :], -1)


def _complex(real, imag):
    """One tensor of both, ours or PyTorch's."""
    return real + imag * 1j


def _values(A):
    return _complex(*_eigs(A)[:2])


def _general(make):
    for shape in ((3, 3), (2, 3, 3), (0, 0)):
        drawn = make(*shape, low=-1, high=1).detach()
        spread = tg.diag_embed(tg.arange(shape[-1], dtype=tg.float64).expand(shape[:-1])) * 4 + 3
        yield Sample(make.like((drawn + spread.to(drawn.dtype)).tolist()) if drawn.numel() else make(*shape))


op(
    "aten::_eig(Tensor A, bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
    batch="leading",
    kernel="_eig",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": _eig_back},
    jvp=matrix_slopes.eig,
    determined=lambda result: _ordered(*result),
    samples=_general,
    reference=_eigs,
    doc="linalg.eig; without compute_v the vectors have no elements.",
)

op(
    "aten::eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    compose=lambda self: tuple(fused._eig(self, True)),
    types=TYPES,
    where="linalg",
    tags="casts",
    variants="function out",
    determined=lambda result: _ordered(*result),
    samples=_general,
    reference=_eigs,
    errors=[(lambda: tg.linalg.eig(zeros(2, 3)), RuntimeError, "linalg.eig: A must be batches of square matrices")],
    doc="Eigenvalues and eigenvectors (columns of length one) of square matrices (..., n, n), complex also for real "
    "ones, in no particular order. The gradient is refused where it would hang on the phase of a vector.",
)

op(
    "aten::eigvals(Tensor self) -> Tensor",
    compose=lambda self: fused._eig(self, False)[0],
    types=TYPES,
    where="linalg",
    tags="casts",
    variants="function out",
    determined=lambda values: _complex(*_ordered(values)),
    samples=_general,
    reference=_values,
    doc="The eigenvalues of square matrices, complex also for real ones, in no particular order.",
)
