"""Systems of linear equations, inverses and determinants, by LU factors."""

import tinygrad_ext as tg
from tinygrad_ext.ops import matrix_slopes
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import (
    TYPES,
    adjoint,
    check_matrix,
    check_same,
    lu_of,
    no_info,
    plus,
    regular,
    squares,
    together,
)
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import broadcast_sizes

# ---- solve ---------------------------------------------------------------------------------------------------------


def _solve(A, B, left, check_errors, title):
    """(X, info)."""
    vectors = _check(A, B, left, title)
    if vectors:
        X, info = _solve_matrices(A, B.unsqueeze(-1), check_errors, title)
        return X.squeeze(-1), info
    if left:
        return _solve_matrices(A, B, check_errors, title)
    X, info = _solve_matrices(A.transpose(-2, -1), B.transpose(-2, -1), check_errors, title)
    return X.transpose(-2, -1), info


def _solve_matrices(A, B, check_errors, title):
    """Systems of one matrix are one system with more columns; else both get all dimensions in front."""
    if A.dim() == 2 and B.dim() > 2:
        columns = B.movedim(-2, 0)
        X, _, _, info = fused._solve(A, columns.reshape((B.shape[-2], -1)), check_errors, title)
        return X.reshape(columns.shape).movedim(0, -2), info
    batch = broadcast_sizes(A.shape[:-2], B.shape[:-2])
    if tuple(A.shape[:-2]) == tuple(batch):
        found = fused._solve(A, B, check_errors, title)
        return found[0], found[3]
    found = fused._solve(A.expand((*batch, *A.shape[-2:])), B, check_errors, title)
    return found[0], _of_each(found[3], A.shape[:-2])


def _of_each(info, batch):
    """What info says of the matrices that were given, not of their repetitions."""
    if info.numel() == 0:
        return info.new_zeros(batch)
    for _ in range(info.dim() - len(batch)):
        info = info.select(0, 0)
    for dim, size in enumerate(batch):
        info = info.narrow(dim, 0, size)
    return info


def _check(A, B, left, title):
    """Whether B holds vectors; an error for what is no system of equations."""
    check_matrix_types(A, B, title)
    rows = A.shape[:-1]
    vectors = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == rows)
    check_matrix(A, title)
    if not vectors:
        check_matrix(B, title, "B")
    check_matrix(A, title, square=True)
    n = A.shape[-1]
    sides = (B.shape[-1], 1) if vectors else B.shape[-2:]
    if sides[0 if left else 1] != n:
        raise RuntimeError(
            f"{title}: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({n}x{n} and {sides[0]}x{sides[1]}). B holds vectors only if it has one dimension or A's shape without "
            "the last."
        )
    return vectors


def check_matrix_types(A, B, title):
    if A.dtype.is_floating_point or A.dtype.is_complex:
        check_same(A, B, title)
    else:
        check_matrix(A, title)


def _solve_back(grads, A, solution, LU, pivots, A_shape, B_shape, needs):
    """With X = A^-1 B: A^-H grad for B, and -(A^-H grad) X^H for A."""
    if grads[0] is None:
        return None, None
    by_b = fused._solve_again(A, LU.detach(), pivots, grads[0], True)
    by_a = -by_b.matmul(adjoint(solution)).sum_to_size(A_shape) if needs[0] else None
    return by_a, by_b.sum_to_size(B_shape) if needs[1] else None


def _again_back(grad, A, LU, pivots, result, adjoint_, A_shape, B_shape, needs):
    by_b = fused._solve_again(A, LU, pivots, grad, not adjoint_)
    by_a = None
    if needs[0]:
        by_a = -(result.matmul(adjoint(by_b)) if adjoint_ else by_b.matmul(adjoint(result))).sum_to_size(A_shape)
    return by_a, by_b.sum_to_size(B_shape) if needs[3] else None


def _solve_slopes(A, A_tangent, B_tangent, solution, LU, pivots):
    """A X = B: A X' = B' - A' X."""
    right = plus(B_tangent, None if A_tangent is None else -A_tangent.matmul(solution))
    return fused._solve_again(A, LU.detach(), pivots, right.expand(solution.shape), False), None, None, None


_MATRICES = (
    ((3, 3), (3, 2)),
    ((1, 1), (1, 1)),
    ((2, 3, 3), (3, 2)),
    ((3, 3), (2, 3, 1)),
    ((2, 1, 2, 2), (3, 2, 2)),
    ((0, 2, 2), (0, 2, 1)),
)
_VECTORS = (((3, 3), (3,)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3)), ((0, 0), (0,)))
_ALIKE = (((3, 3), (3, 2)), ((1, 1), (1, 1)), ((2, 3, 3), (2, 3, 2)), ((2, 3, 3), (3, 1)), ((0, 2, 2), (0, 2, 1)))


def systems(*pairs):
    return lambda make: [Sample(regular(make, *a), make(*b)) for a, b in pairs]


def _both_sides(make):
    yield from systems(*_MATRICES, *_VECTORS)(make)
    yield Sample(regular(make, 3, 3), make(2, 3), left=False)
    yield Sample(regular(make, 2, 3, 3), make(1, 3), left=False)


def _reference(A, B, left=True):
    import numpy

    if not left:
        return _reference(A.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)
    if B.ndim == 1 or B.shape == A.shape[:-1]:
        return numpy.matmul(numpy.linalg.inv(A), B[..., None])[..., 0]
    return numpy.matmul(numpy.linalg.inv(A), B)


def _refused(error, text, A, B, **options):
    """linalg.solve of these numbers, or of ones in these shapes, must raise."""

    def call():
        tensors = [tg.tensor(x) if isinstance(x, list) else tg.ones(x) for x in (A, B)]
        return tg.linalg.solve(*tensors, **options)

    return call, error, "linalg.solve: " + text


_solve_kernel = lambda *args: fused._solve(*args)

op(
    'aten::_solve(Tensor A, Tensor B, bool check_errors=True, str title="linalg.solve") -> (Tensor solution, '
    "Tensor LU, Tensor pivots, Tensor info)",
    batch=together("_solve", _solve_kernel, (2, 2, None, None)),
    kernel="_solve",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A, B": _solve_back},
    jvp=_solve_slopes,
    determined=lambda found: (found[0], found[2], found[3]),  # the factors are no more than kept
    samples=systems(*_ALIKE),
    reference=lambda A, B: (_reference(A, B), lu_of(A)[1], no_info(A)),
    doc="linalg.solve for matrices on both sides, with the factors of A and LAPACK's info. A has B's whole batch.",
)

op(
    "aten::_solve_again(Tensor A, Tensor LU, Tensor pivots, Tensor B, bool adjoint_) -> Tensor",
    batch=together("_solve_again", lambda *args: fused._solve_again(*args), (2, 2, 1, 2, None)),
    kernel="_solve_again",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A, B": _again_back},
    jvp=matrix_slopes.solve_again,
    samples=lambda make: [_factored(make, a, b, t) for a, b in _ALIKE for t in (False, True)],
    reference=lambda A, LU, pivots, B, adjoint_: _reference(A.swapaxes(-1, -2).conj() if adjoint_ else A, B),
    valid=lambda A, LU, pivots, B, adjoint_: (A, *tuple(fused._lu_factor(A.detach()))[:2], B, adjoint_),
    doc="X of A X = B, or with A's adjoint, by A's factors; the derivative is that of a system of A.",
)


def _factored(make, a, b, adjoint_):
    A = regular(make, *a)
    wide = A.detach().to(tg.complex128 if A.is_complex() else tg.float64)
    LU, pivots, _ = fused._lu_factor(wide, True, False)
    return Sample(A, LU.to(A.dtype), pivots, make(*b), adjoint_)


op(
    "aten::solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    compose=lambda A, B, left: _solve(A, B, left, True, "linalg.solve")[0],
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=_both_sides,
    reference=_reference,
    errors=[
        _refused(RuntimeError, "The solver failed because the input matrix is singular", (2, 2), (2,)),
        _refused(RuntimeError, "(Batch element 1): The solver", [[[1.0, 0], [0, 1]], [[1, 1], [1, 1]]], (2, 2)),
        _refused(RuntimeError, "A must be batches of square matrices", (2, 3), (2,)),
        _refused(RuntimeError, "The input tensor A must have at least 2", (3,), (3,)),
        _refused(RuntimeError, "The input tensor B must have at least 2", (2, 2), ()),
        _refused(RuntimeError, "Incompatible shapes of A and B for the equation AX = B (3x3 and 4x1)", (3, 3), (4,)),
        _refused(RuntimeError, "Incompatible shapes of A and B for the equation XA", (3, 3), (3, 2), left=False),
        _refused(RuntimeError, "Expected a floating point", [[1]], [1]),
        _refused(RuntimeError, "Expected A and B to have the same dtype", (1, 1), [1]),
    ],
    doc="X of A X = B, or of X A = B without left. A (..., n, n); B holds matrices (..., n, k), or vectors if it has "
    "one dimension or A's shape without the last; dimensions in front broadcast. linalg.LinAlgError if A is singular.",
)

op(
    "aten::solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    compose=lambda A, B, left, check_errors: _solve(A, B, left, check_errors, "linalg.solve_ex"),
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=systems(((3, 3), (3, 2)), ((2, 3, 3), (2, 3)), ((3, 3), (2, 3, 1))),
    reference=lambda A, B: (_reference(A, B), no_info(A)),
    doc="linalg.solve with info: 0, or the number of the pivot that is zero, where the result holds what comes of "
    "dividing by it; linalg.LinAlgError only with check_errors.",
)

# ---- inverses ------------------------------------------------------------------------------------------------------


def _inverse_back(grads, inverse):
    if grads[0] is None:
        return None
    turned = adjoint(inverse)
    return -turned.matmul(grads[0]).matmul(turned)


def inverse(A, title):
    return fused._inverse(A, True, title)[0]


def _inverses(A):
    import numpy

    return numpy.linalg.inv(A)


op(
    'aten::_inverse(Tensor A, bool check_errors=True, str title="linalg.inv") -> (Tensor inverse, Tensor info)',
    batch="leading",
    kernel="_inverse",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": _inverse_back},
    jvp=lambda A_tangent, inverse: (-inverse.matmul(A_tangent).matmul(inverse), None),
    samples=squares(),
    reference=lambda A: (_inverses(A), no_info(A)),
    doc="linalg.inv_ex, whose name in messages is title.",
)

op(
    "aten::inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    compose=lambda A, check_errors: tuple(fused._inverse(A, check_errors, "linalg.inv_ex")),
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=squares(),
    reference=lambda A: (_inverses(A), no_info(A)),
    doc="linalg.inv with info: 0, or the number of the diagonal element of U that is zero; linalg.LinAlgError only "
    "with check_errors.",
)

for _place, _name, _variants in (("linalg", "inv", "function out"), (".", "inverse", "function method out")):
    op(
        f"aten::{_name}(Tensor {'A' if _name == 'inv' else 'self'}) -> Tensor",
        compose=lambda A, *, title=f"linalg.{_name}" if _name == "inv" else "inverse": inverse(A, "linalg.inv"),
        types=TYPES,
        where=_place,
        variants=_variants,
        samples=squares(),
        reference=_inverses,
        errors=[
            (
                lambda name=_name: getattr(tg.linalg if name == "inv" else tg, name)(zeros(2, 2)),
                tg.linalg.LinAlgError,
                "The diagonal element 1 is zero",
            ),
            (
                lambda name=_name: getattr(tg.linalg if name == "inv" else tg, name)(zeros(2, 3)),
                RuntimeError,
                "must be batches of square matrices, but they are 2 by 3",
            ),
        ],
        doc="The matrices that times A give the identity, A (..., n, n). linalg.LinAlgError if one is singular.",
    )
