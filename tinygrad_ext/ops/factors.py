"""Triangular systems, and LU factors of matrices with their systems."""

import tinygrad_ext as tg
from tinygrad_ext.ops import matrix_slopes
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import (
    TYPES,
    adjoint,
    check_matrix,
    check_same,
    identity,
    lu_of,
    no_info,
    regular,
    together,
    triangular,
)
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import broadcast_sizes


def _scipy(name, *args, **options):
    import scipy.linalg

    return getattr(scipy.linalg, name)(*args, **options)


# ---- triangular systems --------------------------------------------------------------------------------------------


def _triangular_back(grad, A, result, upper, unitriangular, whole, A_shape, B_shape, needs):
    by_b = fused._solve_triangular(adjoint(A), grad, not upper, unitriangular, whole)
    by_a = None
    if needs[0]:
        by_a = -by_b.matmul(adjoint(result)).sum_to_size(A_shape)
        if not whole:
            by_a = by_a.triu(int(unitriangular)) if upper else by_a.tril(-int(unitriangular))
    return by_a, by_b.sum_to_size(B_shape) if needs[1] else None


def _triangular_reference(A, B, upper, unitriangular=False, whole=False):
    import numpy

    A = numpy.triu(A) if upper else numpy.tril(A)
    if unitriangular:
        A = A - A * numpy.eye(A.shape[-1]) + numpy.eye(A.shape[-1])
    return numpy.matmul(numpy.linalg.inv(A), B)


def _triangle_if_whole(A, B, upper, unitriangular=False, whole=False):
    return (A.triu() if upper else A.tril()) if whole else A, B, upper, unitriangular, whole


_SIDES = (((3, 3), (3, 2)), ((2, 3, 3), (3, 1)), ((3, 3), (2, 3, 2)), ((0, 0), (0, 2)))

op(
    "aten::_solve_triangular(Tensor A, Tensor B, bool upper, bool unitriangular=False, bool whole=False, "
    "str? title=None) -> Tensor",
    batch=together("_solve_triangular", lambda *args: fused._solve_triangular(*args), (2, 2, *[None] * 4)),
    kernel="_solve_triangular",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A, B": _triangular_back},
    jvp=matrix_slopes.solve_triangular,
    samples=lambda make: (
        [
            Sample(regular(make, *a), make(*b), upper, unit)
            for a, b in _SIDES
            for upper in (False, True)
            for unit in (False, True)
        ]
        + [Sample(regular(make, 3, 3), make(3, 2), upper, False, True) for upper in (False, True)]
    ),
    valid=_triangle_if_whole,
    reference=_triangular_reference,
    doc="linalg.solve_triangular with A on the left; with `whole`, and a diagonal that is read, the derivatives are "
    "those of the solution by all of A, in which what is not read happens to be zero. With a title a zero on the "
    "diagonal is refused by that name.",
)


def _solve_triangular(A, B, upper, left, unitriangular):
    title = "linalg.solve_triangular"
    check_matrix(A, title, square=True)
    check_matrix(B, title, "B")
    fits = A.is_complex() or (A.is_floating_point() and B.is_floating_point())
    B = B.to(A.dtype) if fits and (B.is_floating_point() or B.is_complex()) else B
    check_same(A, B, title)
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{title}: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({A.shape[-1]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    return triangular(A, B, upper, left, unitriangular)


op(
    "aten::solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    compose=_solve_triangular,
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [
        Sample(regular(make, 3, 3), make(3, 2), upper=True),
        Sample(regular(make, 2, 3, 3), make(2, 3), upper=False, left=False),
        Sample(regular(make, 3, 3), make(3, 1), upper=False, unitriangular=True),
    ],
    reference=lambda A, B, upper, left=True, unitriangular=False: (
        _triangular_reference(A, B, upper, unitriangular)
        if left
        else _triangular_reference(A.swapaxes(-1, -2), B.swapaxes(-1, -2), not upper, unitriangular).swapaxes(-1, -2)
    ),
    errors=[
        (lambda: tg.linalg.solve_triangular(zeros(2, 3), zeros(2, 2), upper=True), RuntimeError, "square matrices"),
        (lambda: tg.linalg.solve_triangular(zeros(2, 2), zeros(3, 2), upper=True), RuntimeError, "Incompatible shapes"),
    ],
    doc="X of A X = B, or of X A = B without left, for A (..., n, n) of which only the upper or the lower triangle is "
    "read, its diagonal neither if unitriangular. B (..., n, k), of any dtype that A's holds; batches broadcast.",
)


def _old_triangular(self, A, upper, transpose, unitriangular):
    check_matrix(A, "triangular_solve", square=True)
    check_matrix(self, "triangular_solve", "b")
    turned = A.transpose(-2, -1) if transpose else A
    solution = triangular(turned, self, upper != transpose, unit=unitriangular)
    return solution, A.expand((*solution.shape[:-2], *A.shape[-2:])).clone()


op(
    "aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)",
    compose=_old_triangular,
    types=TYPES,
    variants="function method out",
    samples=lambda make: [
        Sample(make(3, 2), regular(make, 3, 3)),
        Sample(make(2, 3, 1), regular(make, 2, 3, 3), False, True),
    ],
    reference=lambda b, A, upper=True, transpose=False: (
        _triangular_reference(A.swapaxes(-1, -2) if transpose else A, b, upper != transpose),
        A,
    ),
    doc="linalg.solve_triangular with the arguments exchanged, and a copy of A; transpose solves with A turned.",
)

# ---- LU ------------------------------------------------------------------------------------------------------------


def rows_moved(t, pivots, inverse):
    """t's rows in the order of a permutation matrix P by the pivots: P^T t, or P t for inverse."""
    order = fused._lu_permutation(pivots, t.shape[-2], inverse)
    batch = broadcast_sizes(order.shape[:-1], t.shape[:-2])
    order = order.unsqueeze(-1).expand((*batch, *t.shape[-2:]))
    return t.expand((*batch, *t.shape[-2:])).gather(-2, order)


def _parts(t, k):
    """The k x k square of a matrix, what is beside it and what is below, of which one at least is empty."""
    top, below = t.narrow(-2, 0, k), t.narrow(-2, k, t.shape[-2] - k)
    return top.narrow(-1, 0, k), top.narrow(-1, k, t.shape[-1] - k), below.narrow(-1, 0, k)


def _joined(square, beside, below):
    corner = below.new_zeros((*below.shape[:-1], beside.shape[-1]))
    return tg.cat([tg.cat([square, beside], -1), tg.cat([below, corner], -1)], -2)


def _lu_back(grads, LU, pivots):
    """P L1^-H Phi U1^-H, with Phi = tril(L1^H gL1 - gU2 U2^H, -1) + triu(gU1 U1^H - L2^H gL2); for what is beyond the
    square P gL2 U1^-H below or P L^-H gU2 beside it."""
    if grads[0] is None:
        return None
    k = pivots.shape[-1]
    square, beside_it, below_it = _parts(LU, k)
    g, beside, below = _parts(grads[0], k)
    L, U = square.tril(-1) + identity(square), square.triu()
    lower = adjoint(L).matmul(g.tril(-1)) - beside.matmul(adjoint(beside_it))
    upper = g.triu().matmul(adjoint(U)) - adjoint(below_it).matmul(below)
    found = triangular(adjoint(L), lower.tril(-1) + upper.triu(), True, unit=True)
    found = triangular(adjoint(U), found, False, left=False)
    beside = triangular(adjoint(L), beside, True, unit=True)
    below = triangular(adjoint(U), below, False, left=False)
    return rows_moved(_joined(found, beside, below), pivots, True)


def _lu_slopes(A_tangent, LU, pivots):
    """L1 tril(Z, -1) + triu(Z) U1 with Z = L1^-1 (P^T A')1 U1^-1; of what is beyond the square L1^-1 (A' - L1' U2)
    beside it, and (A' - L2 U1') U1^-1 below."""
    square, beside_it, below_it = _parts(LU, pivots.shape[-1])
    moved, beside, below = _parts(rows_moved(A_tangent, pivots, False), pivots.shape[-1])
    Z = triangular(square, triangular(square, moved, False, unit=True), True, left=False)
    L_slope = (square.tril(-1) + identity(square)).matmul(Z.tril(-1))
    U_slope = Z.triu().matmul(square.triu())
    beside = triangular(square, beside - L_slope.matmul(beside_it), False, unit=True)
    below = triangular(square, below - below_it.matmul(U_slope), True, left=False)
    return _joined(L_slope + U_slope, beside, below), None, None


def _wide(make):
    for shape in ((3, 3), (2, 3, 3), (2, 3), (4, 2), (0, 0)):
        yield regular(make, *shape)


def factors_of(A):
    import numpy

    if A.shape[-1] == A.shape[-2]:
        return (*lu_of(A), no_info(A))
    P, L, U = _scipy("lu", A, p_indices=True)
    k = min(A.shape)
    factors = numpy.zeros_like(A)
    factors[:, :k] += numpy.tril(L, -1)
    factors[:k] += U
    pivots, order = [], list(range(A.shape[0]))
    wanted = list(numpy.argsort(P))
    for i in range(k):
        j = order.index(wanted[i])
        order[i], order[j] = order[j], order[i]
        pivots.append(j + 1)
    return factors, numpy.array(pivots, numpy.int32), no_info(A)


op(
    'aten::_lu_factor(Tensor A, bool pivot=True, bool check_errors=True, str title="linalg.lu_factor") -> '
    "(Tensor LU, Tensor pivots, Tensor info)",
    batch="leading",
    kernel="_lu_factor",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": _lu_back},
    jvp=_lu_slopes,
    samples=lambda make: [Sample(A) for A in _wide(make)],
    reference=factors_of,
    doc="linalg.lu_factor_ex, whose name in messages is title.",
)

op(
    "aten::_lu_permutation(Tensor pivots, int n, bool inverse=False) -> Tensor",
    batch="leading",
    kernel="_lu_permutation",
    types="float",
    variants="function",
    where="_fused",
    samples=lambda make: [
        Sample(make.of([2, 3, 3], tg.int32), 3),
        Sample(make.of([2, 3, 3], tg.int32), 4, True),
        Sample(make.of([[3, 2], [1, 3]], tg.int32), 3),
    ],
    reference=lambda pivots, n, inverse=False: _ordered(pivots, n, inverse),
    doc="Which row each one is after exchanges with the rows of these numbers, from 1 on; inverse: which it was.",
)


def _ordered(pivots, n, inverse):
    import numpy

    found = numpy.tile(numpy.arange(n), (*pivots.shape[:-1], 1))
    for row, exchanges in zip(found.reshape(-1, n), pivots.astype(int).reshape(-1, pivots.shape[-1])):
        for i, j in enumerate(exchanges):
            row[[i, j - 1]] = row[[j - 1, i]]
    return numpy.argsort(found, -1) if inverse else found
