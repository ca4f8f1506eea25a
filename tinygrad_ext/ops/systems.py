"""Systems of linear equations, by the LAPACK that NumPy brings."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_masks, forward
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.linalg import _adjoint
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.ops.shapes import broadcast_sizes, meta

_TYPES = "float complex"


def _solve(A, B, left):
    vectors = _check(A, B, left)
    if vectors:
        return fused._solve(A, B.unsqueeze(-1)).squeeze(-1)
    if left:
        return fused._solve(A, B)
    return fused._solve(A.transpose(-2, -1), B.transpose(-2, -1)).transpose(-2, -1)


def _check(A, B, left):
    """Whether B holds vectors; an error for what is no system of equations."""
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(
            f"linalg.solve: Expected a floating point or complex tensor as input. Got {A.dtype}: convert it "
            "with .float()"
        )
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {A.dtype} and B of type "
            f"{B.dtype} instead: convert one of them with .to(dtype)"
        )
    rows = A.shape[:-1]
    vectors = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == rows)
    if A.dim() < 2 or (B.dim() < 2 and not vectors):
        which, shape = ("A", A.shape) if A.dim() < 2 else ("B", B.shape)
        raise RuntimeError(
            f"linalg.solve: The input tensor {which} must have at least 2 dimensions. It has shape {list(shape)}."
        )
    m, n = A.shape[-2:]
    if m != n:
        raise RuntimeError(f"linalg.solve: A must be batches of square matrices, but they are {m} by {n} matrices")
    sides = (B.shape[-1], 1) if vectors else B.shape[-2:]
    if sides[0 if left else 1] != n:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({n}x{n} and {sides[0]}x{sides[1]}). B holds vectors only if it has one dimension or A's shape without "
            "the last."
        )
    return vectors


def _solved(A, B):
    """The kernel: X of A X = B, for matrices whose dimensions in front broadcast."""
    import numpy

    shape = _shape(A, B).shape
    if A.dtype.itemsize < 4:
        raise NotImplementedError(f'"linalg.solve" not implemented for {A.dtype}: convert A and B with .float()')
    a, b = A.numpy(), B.numpy()
    try:
        return tg.from_numpy(numpy.linalg.solve(a, b).reshape(shape))
    except numpy.linalg.LinAlgError:
        which = f"(Batch element {_first_singular(a)}): " if a.ndim > 2 else ""
    raise tg.linalg.LinAlgError(
        f"linalg.solve: {which}The solver failed because the input matrix is singular: no single X solves it"
    )


def _first_singular(matrices):
    """Index, among all matrices in turn, of the first that has no inverse."""
    import numpy

    for i, matrix in enumerate(matrices.reshape(-1, *matrices.shape[-2:])):
        try:
            numpy.linalg.solve(matrix, matrix)
        except numpy.linalg.LinAlgError:
            return i


def _shape(A, B):
    if A.dim() < 2 or B.dim() < 2 or A.shape[-1] != A.shape[-2] or A.shape[-1] != B.shape[-2] or A.dtype != B.dtype:
        raise RuntimeError(
            f"_solve: expected square matrices A and as many rows in B, of one dtype, got {list(A.shape)} {A.dtype} "
            f"and {list(B.shape)} {B.dtype}"
        )
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(f"_solve: expected a floating point or complex dtype, got {A.dtype}: convert with .float()")
    return meta((*broadcast_sizes(A.shape[:-2], B.shape[:-2]), *B.shape[-2:]), A.dtype)


def _solve_back(grad, A, result, A_shape, B_shape, needs):
    """With X = A^-1 B: A^-H grad for B, and -(A^-H grad) X^H for A."""
    by_b = fused._solve(_adjoint(A), grad)
    by_a = -by_b.matmul(_adjoint(result)).sum_to_size(A_shape) if needs[0] else None
    return by_a, by_b.sum_to_size(B_shape)


# ---- samples and reference -----------------------------------------------------------------------------------------


def _regular(make, *shape):
    """Matrices far from singular: the diagonal outweighs its row."""
    if 0 in shape:
        return make(*shape)
    drawn = make(*shape, low=-1, high=1).detach()
    return make.like((drawn + 4 * tg.eye(shape[-1], dtype=drawn.dtype)).tolist())


def _systems(*pairs):
    return lambda make: [Sample(_regular(make, *a), make(*b)) for a, b in pairs]


_MATRICES = (
    ((3, 3), (3, 2)),
    ((1, 1), (1, 1)),
    ((2, 3, 3), (3, 2)),
    ((3, 3), (2, 3, 1)),
    ((2, 1, 2, 2), (3, 2, 2)),
    ((0, 2, 2), (0, 2, 1)),
)
_VECTORS = (((3, 3), (3,)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3)), ((0, 0), (0,)))


def _both_sides(make):
    yield from _systems(*_MATRICES, *_VECTORS)(make)
    yield Sample(_regular(make, 3, 3), make(2, 3), left=False)
    yield Sample(_regular(make, 2, 3, 3), make(1, 3), left=False)


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


# ---- records -------------------------------------------------------------------------------------------------------

op(
    "aten::_solve(Tensor A, Tensor B) -> Tensor",
    batch=batching_masks.solve,
    kernel=_solved,
    types=_TYPES,
    variants="function",
    where="_fused",
    shape=_shape,
    grad={"A, B": _solve_back},
    jvp=forward.solve,
    samples=_systems(*_MATRICES),
    reference=_reference,
    doc="linalg.solve for matrices on both sides.",
)

op(
    "aten::solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    compose=_solve,
    types=_TYPES,
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
