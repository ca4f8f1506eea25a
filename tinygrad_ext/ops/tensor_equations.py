"""Exponentials of matrices, and systems of equations whose unknowns are tensors."""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.matrices import TYPES, adjoint, regular
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

# ---- the exponential -------------------------------------------------------------------------------------------------


def _along(A, direction):
    """The exponential's slope at A along a direction: the corner of that of [[A, direction], [0, A]]."""
    n = A.shape[-1]
    above, below = tg.cat([A, direction], -1), tg.cat([tg.zeros_like(A), A], -1)
    return fused._matrix_exp(tg.cat([above, below], -2)).narrow(-2, 0, n).narrow(-1, n, n)


def _np_exp(A):
    import numpy
    import scipy.linalg

    if A.size == 0:
        return A
    return numpy.array([scipy.linalg.expm(a) for a in A.reshape(-1, *A.shape[-2:])], A.dtype).reshape(A.shape)


def _small(make):
    for shape in ((3, 3), (1, 1), (2, 3, 3), (0, 0), (0, 2, 2)):
        yield Sample(make(*shape, low=-1, high=1))


op(
    "aten::_matrix_exp(Tensor self) -> Tensor",
    batch="leading",
    kernel="_matrix_exp",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"self": lambda grad, self: _along(adjoint(self), grad)},
    jvp=lambda self, self_tangent: _along(self, self_tangent),
    samples=_small,
    reference=_np_exp,
    doc="matrix_exp of square matrices.",
)


for _place, _variants in (("linalg", "function out"), (".", "function method")):
    op(
        f"aten::matrix_exp{'.linalg' if _place == 'linalg' else ''}(Tensor self) -> Tensor",
        compose=rounded_once(lambda self: fused._matrix_exp(self)),
        types=TYPES,
        where=_place,
        variants=_variants,
        samples=lambda make: [*_small(make), Sample(make(3, 3, low=-20, high=20))],
        reference=_np_exp,
        errors=[
            (lambda: zeros(2, 3).matrix_exp(), RuntimeError, "linalg.matrix_exp: A must be batches of square matrices"),
            (lambda: tg.linalg.matrix_exp(tg.tensor([[1]])), RuntimeError, "Expected a floating point or complex"),
        ],
        doc="The sum of A^k / k! over all k for each square matrix, by scaling and squaring.",
    )

# ---- unknowns that are tensors ---------------------------------------------------------------------------------------


def _tensorinv(self, ind):
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind': linalg.tensorinv got {ind}")
    front, back = list(self.shape[:ind]), list(self.shape[ind:])
    rows, columns = math.prod(front), math.prod(back)
    if rows != columns:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}: linalg.tensorinv takes the first {ind} dimensions for rows"
        )
    return tg.linalg.inv(self.reshape((rows, columns))).reshape((*back, *front))


def _np_linalg(name):
    def reference(*args):
        import numpy

        return getattr(numpy.linalg, name)(*args)

    return reference


def _cube(make, *shape):
    rows = math.prod(shape) and math.isqrt(math.prod(shape))
    return make.like(regular(make, rows, rows).detach().reshape(shape).tolist())


op(
    "aten::tensorinv(Tensor self, int ind=2) -> Tensor",
    compose=_tensorinv,
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [
        Sample(_cube(make, 2, 2, 4)),
        Sample(_cube(make, 4, 2, 2), 1),
        Sample(_cube(make, 2, 3, 3, 2)),
    ],
    reference=_np_linalg("tensorinv"),
    errors=[
        (lambda: tg.linalg.tensorinv(zeros(2, 2, 3)), RuntimeError, "prod(self.shape[ind:]) == prod(self.shape[:ind])"),
        (lambda: tg.linalg.tensorinv(zeros(2, 2), 0), RuntimeError, "Expected a strictly positive integer for 'ind'"),
    ],
    tags="casts",
    doc="The inverse X of a tensor for tensordot: tensordot(X, self, ind) is the identity, with the first ind "
    "dimensions as rows of a matrix.",
)


def _tensorsolve(self, other, dims):
    if dims is not None:
        self = self.movedim([d for d in dims], list(range(self.dim() - len(dims), self.dim())))
    wanted = list(self.shape[other.dim() :])
    rows, columns = math.prod(other.shape), math.prod(wanted)
    if rows != columns or math.prod(self.shape) != rows * columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {columns} != {math.prod(self.shape[: other.dim()])}: linalg.tensorsolve makes a square matrix of "
            "self"
        )
    return tg.linalg.solve(self.reshape((rows, columns)), other.reshape((rows,))).reshape(wanted)


op(
    "aten::tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    compose=_tensorsolve,
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [
        Sample(_cube(make, 2, 2, 4), make(2, 2)),
        Sample(_cube(make, 3, 2, 6), make(3, 2)),
        Sample(_cube(make, 2, 4, 2), make(2, 2), (1,)),
    ],
    reference=_np_linalg("tensorsolve"),
    errors=[
        (lambda: tg.linalg.tensorsolve(zeros(2, 3), zeros(2)), RuntimeError, "Expected self to satisfy the require")
    ],
    tags="casts",
    doc="X with tensordot(self, X, X.ndim) = other; the dimensions dims of self go to its end first.",
)
