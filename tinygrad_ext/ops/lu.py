"""LU factors of matrices under their public names, and systems with them."""

import tinygrad_ext as tg
from tinygrad_ext.ops.factors import factors_of, rows_moved
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import TYPES, adjoint, check_matrix, check_same, lu_of, no_info, regular, triangular
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _factor(A, pivot, check_errors, title):
    if not pivot:
        raise RuntimeError(f"{title}: LU without pivoting is not implemented on the CPU; leave pivot=True")
    return fused._lu_factor(A, True, check_errors, title)


def _singular():
    return tg.linalg.lu_factor(zeros(2, 2))


op(
    "aten::lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    compose=lambda A, pivot: tuple(_factor(A, pivot, True, "linalg.lu_factor"))[:2],
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [Sample(regular(make, 3, 3)), Sample(regular(make, 2, 3, 3))],
    reference=lu_of,
    errors=[
        (_singular, RuntimeError, "linalg.lu_factor: U[1,1] is zero"),
        (lambda: tg.linalg.lu_factor(zeros(3)), RuntimeError, "must have at least 2 dimensions"),
        (lambda: tg.linalg.lu_factor(zeros(2, 2), pivot=False), RuntimeError, "without pivoting"),
    ],
    doc="L and U of P L U = A (..., m, n) in one matrix, L's diagonal of ones left out, and which row each one was "
    "exchanged with, from 1 on (int32). RuntimeError if U has a zero on its diagonal.",
)

op(
    "aten::lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
    "(Tensor LU, Tensor pivots, Tensor info)",
    compose=lambda A, pivot, check_errors: tuple(_factor(A, pivot, check_errors, "linalg.lu_factor_ex")),
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [Sample(regular(make, 3, 3)), Sample(regular(make, 2, 3, 3))],
    reference=lambda A: (*lu_of(A), no_info(A)),
    doc="linalg.lu_factor with info: 0, or the number of the first zero on U's diagonal; an error only with "
    "check_errors.",
)


def _unpack(LU, pivots, unpack_data, unpack_pivots):
    """(P, L, U), those that are not wanted without elements."""
    if LU.dim() < 2:
        check_matrix(LU, "lu_unpack", "LU_data")
    m, n = LU.shape[-2:]
    P = L = U = LU.new_empty((0,))
    if unpack_data:  # slices, which end where the matrix does: graphs take that for any sizes
        L = LU[..., :m].tril(-1)
        L = L + tg.eye(m, L.shape[-1], dtype=LU.dtype, device=LU.device)
        U = LU[..., :n, :].triu()
    if unpack_pivots:
        order = fused._lu_permutation(pivots, m, True)
        P = (order.unsqueeze(-1) == tg.arange(m, device=LU.device)).to(LU.dtype)
    return P, L, U


def _unpacked(LU, pivots):
    import numpy

    m, n = LU.shape[-2:]
    k = min(m, n)
    P = numpy.zeros((*LU.shape[:-2], m, m))
    for matrix, exchanges in zip(P.reshape(-1, m, m), pivots.astype(int).reshape(-1, k)):
        order = list(range(m))
        for i, j in enumerate(exchanges):
            order[i], order[j - 1] = order[j - 1], order[i]
        matrix[order, range(m)] = 1
    return P, numpy.tril(LU[..., :k], -1) + numpy.eye(m, k), numpy.triu(LU[..., :k, :])


def _packed(make):
    for shape in ((3, 3), (2, 3, 3), (3, 2), (2, 3)):
        yield _packed_one(make, shape)


def _packed_one(make, shape):
    """Factors as tensors of their own, in the dtype under test, and pivots."""
    drawn = regular(make, *shape).detach()
    wide = drawn.to(tg.complex128 if drawn.is_complex() else tg.float64)
    LU, pivots, _ = fused._lu_factor(wide, True, False)
    return make.like(
        (LU if drawn.is_floating_point() or drawn.is_complex() else LU.round().to(drawn.dtype)).tolist()
    ), pivots


op(
    "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
    "(Tensor P, Tensor L, Tensor U)",
    compose=_unpack,
    types=TYPES,
    variants="function out",
    samples=lambda make: [Sample(LU, pivots) for LU, pivots in _packed(make)],
    reference=_unpacked,
    doc="P, L and U of P L U = A from what linalg.lu_factor gave for A.",
)


def _lu(A, pivot):
    found = _factor(A, pivot, False, "linalg.lu")
    return _unpack(found[0], found[1], True, True)


op(
    "aten::lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    compose=_lu,
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [Sample(regular(make, *s)) for s in ((3, 3), (2, 3, 3), (4, 2), (2, 3))],
    reference=lambda A: _unpacked(*factors_of(A)[:2]),
    doc="P, L and U of P L U = A (..., m, n): a permutation, a lower triangle with ones on its diagonal, an upper one.",
)


def _lu_solve(LU, pivots, B, left, adjoint_, title):
    check_matrix(LU, title, "LU", square=True)
    check_matrix(B, title, "B")
    check_same(LU, B, title, ("LU", "B"))
    if pivots.dtype != tg.int32:
        raise RuntimeError(
            f"{title}: pivots should be a Tensor of scalar type torch.int32, got {pivots.dtype}; lu_factor gives them"
        )
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise RuntimeError(
            f"{title}: Number of pivots per batch should be same as the dimension of the matrix: LU is "
            f"{list(LU.shape)}, pivots {list(pivots.shape)}"
        )
    if LU.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{title}: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({LU.shape[-2]}x{LU.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    if not left:
        return adjoint(_with_factors(LU, pivots, adjoint(B), not adjoint_))
    return _with_factors(LU, pivots, B, adjoint_)


def _with_factors(LU, pivots, B, adjoint_):
    if adjoint_:
        found = triangular(adjoint(LU), B, False)
        return rows_moved(triangular(adjoint(LU), found, True, unit=True), pivots, True)
    found = triangular(LU, rows_moved(B, pivots, False), False, unit=True)
    return triangular(LU, found, True)


def _solve_reference(LU, pivots, B, *, left=True, adjoint=False):
    import numpy

    P, L, U = _unpacked(LU, pivots)
    A = P @ L @ U
    A = numpy.linalg.inv(A.swapaxes(-1, -2).conj() if adjoint else A)
    return A @ B if left else B @ A


def _factored(make, options, *sides):
    """LU, pivots, B."""
    for shape, side in sides:
        yield Sample(*_packed_one(make, shape), make(*side), **options)


op(
    "aten::lu_solve.linalg(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    compose=lambda LU, pivots, B, left, adjoint: _lu_solve(LU, pivots, B, left, adjoint, "linalg.lu_solve"),
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [
        *_factored(make, {}, ((3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((2, 3, 3), (3, 1))),
        *_factored(make, {"left": False}, ((3, 3), (2, 3))),
        *_factored(make, {"adjoint": True}, ((3, 3), (3, 2))),
    ],
    reference=_solve_reference,
    errors=[
        (
            lambda: tg.linalg.lu_solve(zeros(2, 2), zeros(2), zeros(2, 1)),
            RuntimeError,
            "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32",
        ),
        (
            lambda: tg.linalg.lu_solve(zeros(2, 2), zeros(2, dtype=tg.int32), zeros(3, 1)),
            RuntimeError,
            "linalg.lu_solve: Incompatible shapes",
        ),
    ],
    doc="X of A X = B, or of X A = B without left, for the A whose factors are LU and pivots, or for its adjoint.",
)

op(
    "aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    compose=lambda self, LU_data, LU_pivots: _lu_solve(LU_data, LU_pivots, self, True, False, "lu_solve"),
    types=TYPES,
    variants="function method out",
    samples=lambda make: [
        Sample(s.args[2], *s.args[:2]) for s in _factored(make, {}, ((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)))
    ],
    reference=lambda B, LU, pivots: _solve_reference(LU, pivots, B),
    doc="X of A X = self for the A whose LU factors are given.",
)
