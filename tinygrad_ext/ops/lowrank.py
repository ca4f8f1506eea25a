"""Approximate factors of large matrices by random projections, made of ops: each call draws its own directions.

N. Halko, P. G. Martinsson, J. A. Tropp: Finding structure with randomness (2009), algorithms 4.4 and 5.1.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.overridable import overridable
from tinygrad_ext.ops.matrices import adjoint


def _range_of(A, q, niter):
    """Orthonormal columns that span nearly what A does: subspace iteration of q random directions."""
    random = tg.randn((*A.shape[:-2], A.shape[-1], q), dtype=A.dtype, device=A.device)
    Q = tg.linalg.qr(A.matmul(random)).Q
    for _ in range(niter):
        Q = tg.linalg.qr(A.mH.matmul(Q)).Q
        Q = tg.linalg.qr(A.matmul(Q)).Q
    return Q


def _check(A, q, niter, title):
    if A.dim() < 2:
        raise ValueError(f"{title}(): expected A of at least 2 dimensions, got {list(A.shape)}")
    least = min(A.shape[-2:])
    if not 0 <= q <= least:
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}: {title}() of "
            f"{list(A.shape)} cannot have more factors"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer: {title}() makes so many rounds")


def _factors(A, q, niter):
    wide = A.shape[-2] < A.shape[-1]  # the smaller side is projected
    tall = A.mH if wide else A
    Q = _range_of(tall, q, niter)
    U, S, Vh = tg.linalg.svd(Q.mH.matmul(tall), full_matrices=False)
    U, V = Q.matmul(U), adjoint(Vh)
    return (V, S, U) if wide else (U, S, V)


@overridable
def svd_lowrank(A, q=6, niter=2, M=None):
    """U (..., m, q), S (..., q), V (..., n, q) with U diag(S) V^H nearly A, or A - M, for a rank of about q.

    niter: rounds of subspace iteration, more of them for singular values that fall slowly.
    Raises ValueError for fewer than 2 dimensions, for q above the smaller one and for a negative niter.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    _check(A, q, niter, "svd_lowrank")
    return _factors(A if M is None else A - M, q, niter)


@overridable
def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of the rows of A (..., m, n): svd_lowrank of A less the mean of its rows.

    q: how many, by default min(6, m, n). center: False takes the rows as they are. The columns of V are the
    directions, S squared over m - 1 the variances along them.
    """
    if q is None and A.dim() > 1:
        q = min(6, *A.shape[-2:])
    _check(A, q, niter, "pca_lowrank")
    return _factors(A - A.mean(-2, keepdim=True) if center else A, q, niter)
