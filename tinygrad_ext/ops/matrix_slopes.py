"""Forward mode of factors of matrices: what their parts do as the matrix moves along a tangent.

The formulas are those of Giles, An extended collection of matrix derivative results, 2008; for QR of Walter and
Lehmann, Algorithmic differentiation of linear algebra functions, 2010; for singular values of Townsend,
Differentiating the SVD, 2016. Vectors that are determined up to a phase move as reverse mode takes it.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import adjoint, plus, triangular


def _diagonal(t):
    return t.diagonal(0, -2, -1)


def beside_diagonal(t):
    return t - tg.diag_embed(_diagonal(t))


def half_diagonal(t):
    return t - 0.5 * tg.diag_embed(_diagonal(t))


def gaps(values):
    """L_j - L_i, ones on the diagonal."""
    one = tg.eye(values.shape[-1], dtype=values.dtype, device=values.device)
    return values.unsqueeze(-2) - values.unsqueeze(-1) + one


def _hermitian(t):
    return 0.5 * (t + adjoint(t))


# ---- determinants and systems --------------------------------------------------------------------------------------


def trace_of_quotient(A, LU, pivots, tangent):
    """The trace of A^-1 A'."""
    return _diagonal(fused._solve_again(A, LU, pivots, tangent, False)).sum(-1)


def slogdet(A, A_tangent, sign, LU, pivots):
    found = trace_of_quotient(A, LU.detach(), pivots, A_tangent)
    if A.is_complex():
        return sign * (1j * found.imag), found.real, None, None
    return tg.zeros_like(sign), found, None, None


def solve_triangular(A, A_tangent, B_tangent, result, upper, unitriangular, whole):
    """tri(A) X = B: tri(A) X' = B' - tri(A') X, or B' - A' X by the whole of A."""
    right = B_tangent
    if A_tangent is not None:
        moved = A_tangent
        if not whole:
            moved = moved.triu(int(unitriangular)) if upper else moved.tril(-int(unitriangular))
        right = plus(right, -moved.matmul(result))
    return fused._solve_triangular(A, right.expand(result.shape), upper, unitriangular, whole)


def solve_again(A, A_tangent, B_tangent, LU, pivots, result, adjoint_):
    """A X = B: A X' = B' - A' X, or the same with adjoints."""
    right = B_tangent
    if A_tangent is not None:
        right = plus(right, -(adjoint(A_tangent) if adjoint_ else A_tangent).matmul(result))
    return fused._solve_again(A, LU.detach(), pivots, right.expand(result.shape), adjoint_)


# ---- factors -------------------------------------------------------------------------------------------------------


def cholesky(self_tangent, L, upper):
    """L half(L^-1 A' L^-H); half: the lower triangle with half of the diagonal."""
    lower = adjoint(L) if upper else L
    inner = triangular(lower, _hermitian(self_tangent), False)
    inner = triangular(adjoint(lower), inner, True, left=False)
    found = lower.matmul(half_diagonal(inner.tril()))
    return adjoint(found) if upper else found, None


def qr(A, A_tangent, Q, R, mode):
    """R' = P R and Q' = A' R^-1 - Q P: P is X + X^H above the diagonal and half of it there, X = Q^H A' R^-1."""
    m, n = A.shape[-2:]
    refuse_qr(m, n, mode, "jvp")
    k = Q.shape[-1]
    square, tangent = R.narrow(-1, 0, k), A_tangent.narrow(-1, 0, k)
    moved = triangular(square, tangent, True, left=False)
    inner = adjoint(Q).matmul(moved)
    inner = half_diagonal((inner + adjoint(inner)).triu())
    Q_slope, R_slope = moved - Q.matmul(inner), inner.matmul(square)
    beside, moved = A.narrow(-1, k, n - k), A_tangent.narrow(-1, k, n - k)  # A = Q [R1 R2]: R2 = Q^H A2
    R_slope = tg.cat([R_slope, adjoint(Q_slope).matmul(beside) + adjoint(Q).matmul(moved)], -1)
    return Q_slope, R_slope


def refuse_qr(m, n, mode, which):
    """RuntimeError where QR has no derivative in forward ("jvp") or reverse mode ("backward")."""
    if mode == "r":
        raise RuntimeError(
            f"linalg_qr_{which}: The derivative of linalg.qr depends on Q, which is not computed when mode='r': use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients"
        )
    if mode == "complete" and m > n:
        raise RuntimeError(
            f"linalg_qr_{which}: The QR decomposition is not differentiable when mode='complete' and nrows > ncols: "
            "use mode='reduced'"
        )


# ---- singular values and eigenvalues -------------------------------------------------------------------------------


def svd(A, A_tangent, U, S, Vh, full_matrices, compute_uv):
    """With P = U^H A' V: S' is P's real diagonal, U' and V' what turns within the spaces of U and V, and what leaves
    them."""
    if not compute_uv:
        U, _, Vh = fused._svd(A, False, True)
        return None, _diagonal(adjoint(U).matmul(A_tangent).matmul(adjoint(Vh))).real, None
    k, wide = S.shape[-1], U.shape[-1]
    more = Vh.narrow(-2, k, Vh.shape[-2] - k)
    extra, U, Vh = U.narrow(-1, k, wide - k), U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    V, row, column = adjoint(Vh), S.unsqueeze(-2), S.unsqueeze(-1)
    right, left = A_tangent.matmul(V), adjoint(A_tangent).matmul(U)
    P = adjoint(U).matmul(right)
    apart = (row - column) * (row + column) + tg.eye(k, dtype=S.dtype, device=S.device)
    by_u = beside_diagonal((P * row + column * adjoint(P)) / apart)
    if P.is_complex():  # the phase of a pair of vectors goes with U
        by_u = by_u + tg.diag_embed(1j * _diagonal(P).imag / S)
    by_v = beside_diagonal((column * P + adjoint(P) * row) / apart)
    U_slope = U.matmul(by_u) + (right - U.matmul(P)) / row
    V_slope = V.matmul(by_v) + (left - V.matmul(adjoint(P))) / row
    if full_matrices:
        U_slope = tg.cat([U_slope, tg.zeros_like(extra)], -1)
        return U_slope, _diagonal(P).real, tg.cat([adjoint(V_slope), tg.zeros_like(more)], -2)
    return U_slope, _diagonal(P).real, adjoint(V_slope)


def eigh(A, A_tangent, eigenvalues, eigenvectors, UPLO, compute_v):
    """With P = V^H A' V: L' is P's diagonal, V' = V (P / E) beside it, E = L_j - L_i."""
    vectors = eigenvectors if compute_v else fused._eigh(A, UPLO, True)[1]
    P = adjoint(vectors).matmul(A_tangent).matmul(vectors)
    values = _diagonal(P).real
    return values, vectors.matmul(beside_diagonal(P / gaps(eigenvalues))) if compute_v else None


def eig(A, A_tangent, eigenvalues, eigenvectors, compute_v):
    """With P = V^-1 A' V: L' is P's diagonal, V' = V (P / E) beside it, E = L_j - L_i, less what changes lengths."""
    vectors = eigenvectors if compute_v else fused._eig(A, True)[1]
    P = fused._solve(vectors, A_tangent.to(vectors.dtype).matmul(vectors))[0]
    if not compute_v:
        return _diagonal(P), None
    moved = vectors.matmul(beside_diagonal(P / gaps(eigenvalues)))
    longer = (vectors.conj_physical() * moved).sum(-2, keepdim=True).real
    return _diagonal(P), moved - vectors * longer
