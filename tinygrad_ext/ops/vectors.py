"""Products of two vectors, element with element, and sums along a diagonal."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.linalg import NUMBERS, added, added_reference, as_rows, call_of, of_shapes
from tinygrad_ext.ops.products import check_factors
from tinygrad_ext.ops.record import op


def _check_vectors(self, vec2):
    for name, t in (("self", self), ("vec2", vec2)):
        if t.dim() != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {name}, but got {t.dim()}-D: outer() multiplies two vectors; flatten() "
                "makes one"
            )


def _outer(self, vec2):
    _check_vectors(self, vec2)
    return self.unsqueeze(1) * vec2


def _inner(self, other):
    if self.dim() == 0 or other.dim() == 0:
        return self * other
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and "
            f"{list(other.shape)}"
        )
    if other.dim() <= 2:
        return self.matmul(other.t())
    out = self.matmul(as_rows(other).t())
    return out.reshape((*self.shape[:-1], *other.shape[:-1]))


def _check_factors(dtype, **factors):
    """Refuse a factor of a kind that the result's dtype has not."""
    for name, factor in factors.items():
        if isinstance(factor, bool) and dtype != tg.bool:
            raise RuntimeError(f"addr(): Boolean {name} only supported for Boolean results: the result is {dtype}")
        if isinstance(factor, float) and not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(
                f"addr(): For integral input tensors, argument {name} must not be a floating point number. "
                f"The result is {dtype}, {name} is {factor}"
            )
        if isinstance(factor, complex) and not dtype.is_complex:
            raise RuntimeError(f"addr(): value cannot be converted to {dtype} without overflow: {name} is {factor}")


_PLAIN = frozenset(("float32", "float64", "complex64", "complex128"))


def _addr(self, vec1, vec2, beta, alpha):
    dtype = self.dtype
    if (
        dtype.name in _PLAIN
        and vec1.dtype is dtype is vec2.dtype
        and beta
        and vec1.dim() == 1 == vec2.dim()
        and self.shape == vec1.shape + vec2.shape
        and type(alpha) in (int, float)
        and type(beta) in (int, float)
    ):
        return fused.addcmul(self if beta == 1 else self * beta, vec1.unsqueeze(1), vec2, value=alpha)
    return _addr_of_any(self, vec1, vec2, beta, alpha)


@rounded_once
def _addr_of_any(self, vec1, vec2, beta, alpha):
    """Of all dtypes, and of what is repeated or refused."""
    _check_vectors(vec1, vec2)
    dtype, shape = tg.promote_types(vec1.dtype, vec2.dtype), (vec1.shape[0], vec2.shape[0])
    _check_factors(tg.promote_types(dtype, self.dtype), beta=beta, alpha=alpha)
    if dtype.name == "bool":  # factors count as true or false
        beta, alpha = bool(beta), bool(alpha)
    check_factors("addr", dtype, beta=beta, alpha=alpha)
    if self.dim() > 2 or any(s not in (n, 1) for s, n in zip(reversed(self.shape), reversed(shape))):
        raise RuntimeError(
            f"The expanded size of the tensor must match the existing size: addr() cannot expand self "
            f"{list(self.shape)} to the product's shape {list(shape)}"
        )
    if beta and dtype.is_floating_point and self.dtype == dtype and not isinstance(alpha, complex):
        return tg.addcmul(self if beta == 1 else self * beta, vec1.unsqueeze(1), vec2, value=alpha)
    product = vec1.unsqueeze(1) * vec2
    product = product if alpha == 1 else product * alpha
    return product + (self if beta == 1 else self * beta) if beta else product


def _trace(self):
    if self.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.dim()}")
    return self.diagonal(0, 0, 1).sum()


def _addr_reference(self, vec1, vec2, beta=1, alpha=1):
    import numpy

    return (
        added_reference(self, vec1[:, None], vec2[None, :], beta, alpha)
        if vec1.size and vec2.size
        else numpy.zeros((vec1.size, vec2.size), vec1.dtype)
    )


op(
    "aten::outer(Tensor self, Tensor vec2) -> Tensor",
    compose=_outer,
    types="bool " + NUMBERS,
    variants="function method out",
    aliases="ger",
    reference="numpy.outer",
    samples=of_shapes(((2,), (3,)), ((0,), (2,)), ((1,), (1,))),
    errors=[(call_of("outer", (2, 2), (3,)), RuntimeError, "outer: Expected 1-D argument self, but got 2-D")],
    tags="casts",
    doc="All products of an element of one vector with an element of another, as a matrix.",
)

op(
    "aten::inner(Tensor self, Tensor other) -> Tensor",
    compose=_inner,
    types=NUMBERS,
    variants="function method out",
    reference="numpy.inner",
    samples=of_shapes(((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((), (2,)), ((2, 3), (2, 2, 3)), ((0,), (0,))),
    errors=[
        (call_of("inner", (2, 3), (4,)), RuntimeError, "inner() the last dimension must match on both input tensors")
    ],
    tags="casts",
    doc="Sums of products over the last dimensions of both tensors.",
)

op(
    "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    older="beta self alpha vec1 vec2 | beta self vec1 vec2",
    compose=_addr,
    types=NUMBERS,
    variants="function method inplace out",
    reference=_addr_reference,
    samples=added(((2, 3), (2,), (3,)), ((3,), (2,), (3,)), ((0, 3), (0,), (3,))),
    errors=[(call_of("addr", (2, 3), (2,), (4,)), RuntimeError, "must match the existing size")],
    tags="casts",
    doc="beta * self + alpha * outer(vec1, vec2).",
)

op(
    "aten::trace(Tensor self) -> Tensor",
    compose=_trace,
    types=NUMBERS,
    reference="numpy.trace",
    samples=of_shapes(((3, 3),), ((2, 4),), ((0, 2),)),
    errors=[(call_of("trace", (2,)), RuntimeError, "trace: expected a matrix, but got tensor with dim 1")],
    doc="Sum of the elements on the main diagonal of a matrix.",
)
