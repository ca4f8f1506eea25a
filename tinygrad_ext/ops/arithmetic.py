"""Sums, products, quotients, and the operators over them."""

import tinygrad_ext as tg
from tinygrad_ext.core.grad.rules import scaled
from tinygrad_ext.ops import forward
from tinygrad_ext.ops.fused import conj, fused, zeros
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

_NO_BOOL_SUB = {
    "bool": "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
    "use the `~` or `logical_not()` operator instead."
}
_NO_BOOL_NEG = {
    "bool": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
    "the `~` or `logical_not()` operator instead."
}


def _with_alpha(make):
    for a, b in (((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((0, 3), (3,)), ((), ())):
        yield Sample(make(*a), make(*b))
    yield Sample(make(3, 4), make(3, 4), alpha=2)
    yield Sample(make(3, 4), 2)


def _divisors(make):
    for a, b in (((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((0, 3), (3,)), ((), ())):
        yield Sample(make(*a), make(*b, low=1, high=5))
    yield Sample(make(3, 4), 2)


def _rounded(make):
    for mode in (None, "floor", "trunc"):
        yield Sample(make(3, 4), make(4, low=1, high=5), rounding_mode=mode)
    yield Sample(make(0, 3), make(3, low=1, high=5), rounding_mode="floor")


# ---- sum, difference, product --------------------------------------------------------------------------------------

op(
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    older="self alpha other",
    scalar={
        "int float half": {"alpha == 1": "x + y", "else": "x + alpha * y"},
        "complex": {"alpha == 1": "x + y", "else": "x + TIMES(alpha, y)"},
        "bool": "x | ((alpha != 0) & y)",
    },
    grad={"self": "grad", "other": "grad * alpha"},
    operator="add",
    numbers="self other",
    samples=_with_alpha,
    reference=lambda x, y, alpha=1: x + y if alpha == 1 else x + alpha * y,
    errors=[
        (lambda: tg.tensor([1]).add(1, alpha=1.5), RuntimeError, "alpha must not be a floating point number"),
        (lambda: tg.tensor([1]).add(1, alpha=True), RuntimeError, "Boolean alpha only supported"),
        (lambda: tg.tensor([1, 2]).add(tg.tensor([1, 2, 3])), RuntimeError, "must match the size"),
    ],
    doc="self + alpha * other, element by element, with broadcasting.",
)

op(
    "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    older="self alpha other",
    scalar={
        "int float half": {"alpha == 1": "x - y", "else": "x - alpha * y"},
        "complex": {"alpha == 1": "x - y", "else": "x - TIMES(alpha, y)"},
    },
    grad={"self": "grad", "other": lambda grad, alpha: -scaled(grad, alpha)},
    operator="sub",
    numbers="self other",
    aliases="subtract",
    refuses=_NO_BOOL_SUB,
    samples=_with_alpha,
    reference=lambda x, y, alpha=1: x - y if alpha == 1 else x - alpha * y,
    errors=[(lambda: tg.tensor([True]) - True, RuntimeError, "with a bool tensor is not supported")],
    doc="self - alpha * other, element by element, with broadcasting.",
)

op(
    "aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    scalar={
        "int float half": {"alpha == 1": "y - x", "else": "y - alpha * x"},
        "complex": {"alpha == 1": "y - x", "else": "y - TIMES(alpha, x)"},
    },
    grad={"self": lambda grad, alpha: -scaled(grad, alpha), "other": "grad"},
    numbers="other",
    variants="function",
    refuses=_NO_BOOL_SUB,
    samples=_with_alpha,
    reference=lambda x, y, alpha=1: y - x if alpha == 1 else y - alpha * x,
    errors=[(lambda: 1 - tg.tensor([True]), RuntimeError, "with a bool tensor is not supported")],
    doc="other - alpha * self: subtraction with the operands exchanged.",
)

op(
    "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    compose=lambda self, other, alpha: tg.rsub(self, other, alpha=alpha),
    variants="function",
    types="int float half complex",
    samples=lambda make: [Sample(make(2, 3), 2, 3), Sample(make(3), 1)],
    reference=lambda x, other, alpha=1: other - alpha * x,
    doc="`rsub` of a number, whose factor may be given by position.",
)

op(
    "aten::__rsub__(Tensor self, Tensor other) -> Tensor",
    scalar={"int float half complex": "y - x"},
    grad={"self": "neg(grad)", "other": "grad"},
    operator="rsub",
    numbers="other",
    variants="method",
    refuses=_NO_BOOL_SUB,
    reference=lambda x, y: y - x,
    doc="What `other - self` calls when other is no tensor.",
)

op(
    "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"int natural float half": "x * y", "complex": "TIMES(x, y)", "bool": "x & y"},
    promote="number",
    grad={"self": "mul_conj(grad, other)", "other": "mul_conj(grad, self)"},
    operator="mul",
    numbers="self other",
    aliases="multiply",
    reference="numpy.multiply",
    doc="Product, element by element, with broadcasting.",
)

op(
    "aten::mul_conj(Tensor incoming, Tensor factor) -> Tensor",
    scalar={"float half": "x * y", "complex": "TIMES(x, conj(y))"},
    promote="number",
    grad={"incoming": "mul(grad, factor)", "factor": lambda grad, incoming: conj(grad) * incoming},
    jvp="each",
    numbers="factor",
    variants="function",
    where="_fused",
    doc="The gradient times the conjugate of the other factor: the derivative of a product.",
)

# ---- quotient ------------------------------------------------------------------------------------------------------

op(
    "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"float half": "x / y", "complex": "div(x, y)"},
    promote="float number",
    grad={
        "self": lambda grad, other: grad / conj(other),
        "other": in_float(lambda grad, self, other: -grad * conj((self / other) / other)),
    },
    operator="truediv",
    numbers="self other",
    aliases="divide true_divide",
    samples=_divisors,
    reference="numpy.true_divide",
    doc="Quotient, element by element, with broadcasting; integers give floating results.",
)


def _div_mode(self, other, rounding_mode):
    if rounding_mode is None:
        return fused.div(self, other)
    if rounding_mode == "floor":
        return fused.floor_divide(self, other)
    if rounding_mode == "trunc":
        return fused.div_trunc(self, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


def _rounded_reference(x, y, rounding_mode):
    import numpy

    if rounding_mode is None:
        return numpy.true_divide(x, y)
    if rounding_mode == "floor":
        return numpy.floor_divide(x, y)
    return numpy.trunc(numpy.true_divide(x, y)).astype(numpy.result_type(x, y))


op(
    "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    compose=_div_mode,
    types="int float",
    numbers="self other",
    aliases="divide",
    variants="function method inplace out",
    samples=_rounded,
    reference=_rounded_reference,
    errors=[(lambda: tg.tensor([1.0]).div(1, rounding_mode="up"), RuntimeError, "rounding_mode to be one of")],
    tags="casts",
    doc="Quotient, rounded as rounding_mode says: None, 'trunc' (to zero) or 'floor'; integers stay integers "
    "when rounded.",
)

op(
    "aten::div_or_zero(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "y == 0 ? 0 : x / y"},
    grad={
        "self": "div_or_zero(grad, other)",
        "other": lambda grad, other, result: fused.div_or_zero(-grad * result, other),
    },
    domain=((-4, 4), (0.5, 4)),
    variants="function",
    where="_fused",
    reference="numpy.divide",
    doc="Quotient, and 0 where other is 0.",
)

op(
    "aten::div_trunc(Tensor self, Tensor other) -> Tensor",
    scalar={"int": "TRUNC_DIV(x, y)", "float half": "trunc(x / y)"},
    promote="number",
    grad={"self": zeros, "other": zeros},
    numbers="self other",
    variants="function",
    where="_fused",
    samples=_divisors,
    doc="Quotient rounded to zero.",
)

op(
    "aten::floor_divide(Tensor self, Tensor other) -> Tensor",
    scalar={"int": "FLOOR_DIV(x, y)", "float half": "floor_div(x, y)"},
    promote="number",
    grad={"self": zeros, "other": zeros},
    operator="floordiv",
    numbers="self other",
    samples=_divisors,
    reference="numpy.floor_divide",
    errors=[(lambda: tg.tensor([1]) // 0, RuntimeError, "ZeroDivisionError")],
    doc="Quotient rounded down.",
)

op(
    "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"int": "FLOOR_MOD(x, y)", "float half": "floor_mod(x, y)"},
    grad={"self": "grad", "other": lambda grad, self, other: -grad * fused.floor_divide(self, other)},
    operator="mod",
    numbers="self|other",
    samples=_divisors,
    reference="numpy.remainder",
    errors=[(lambda: tg.tensor([1]) % 0, RuntimeError, "ZeroDivisionError")],
    doc="Remainder of the quotient rounded down: it has the divisor's sign.",
)

op(
    "aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"int": "TRUNC_MOD(x, y)", "float half": "fmod(x, y)"},
    grad={"self": "grad", "other": lambda grad, self, other: -grad * fused.div_trunc(self, other)},
    numbers="other",
    samples=_divisors,
    reference="numpy.fmod",
    errors=[(lambda: tg.tensor([1]).fmod(0), RuntimeError, "ZeroDivisionError")],
    doc="Remainder of the quotient rounded to zero: it has the dividend's sign.",
)

# ---- operators whose left operand is a number ----------------------------------------------------------------------

op(
    "aten::__rdiv__(Tensor self, Tensor other) -> Tensor",
    scalar={"float half": "y / x", "complex": "div(y, x)"},
    promote="float",
    grad={
        "self": in_float(lambda grad, self, other: -grad * conj((other / self) / self)),
        "other": in_float(lambda grad, self: grad / conj(self)),
    },
    operator="rtruediv",
    numbers="other",
    variants="method",
    aliases="__rtruediv__",
    domain=(1, 5),
    reference=lambda x, y: y / x,
    doc="What `other / self` calls when other is no tensor.",
)

op(
    "aten::__rfloordiv__(Tensor self, Tensor other) -> Tensor",
    compose=lambda self, other: fused.floor_divide(other, self),
    operator="rfloordiv",
    numbers="other",
    variants="method",
    types="int float",
    domain=(1, 5),
    samples=lambda make: [Sample(make(3, 4), 7)],
    reference=lambda x, y: y // x,
    doc="What `other // self` calls when other is no tensor.",
)

op(
    "aten::__rmod__(Tensor self, Tensor other) -> Tensor",
    compose=lambda self, other: fused.remainder(other, self),
    operator="rmod",
    numbers="other",
    variants="method",
    types="int float",
    domain=(1, 5),
    samples=lambda make: [Sample(make(3, 4), 7)],
    reference=lambda x, y: y % x,
    doc="What `other % self` calls when other is no tensor.",
)

# ---- one operand ---------------------------------------------------------------------------------------------------

op(
    "aten::neg(Tensor self) -> Tensor",
    scalar={"int": "NEGATE(x)", "float complex": "-x", "half": "bits: x ^ 0x8000"},
    grad={"self": "neg(grad)"},
    operator="neg",
    aliases="negative",
    refuses=_NO_BOOL_NEG,
    reference="numpy.negative",
    errors=[(lambda: -tg.tensor([True]), RuntimeError, "on a bool tensor is not supported")],
    tags="exact",
    doc="Each element with the other sign; unsigned integers wrap.",
)

op(
    "aten::abs(Tensor self) -> Tensor",
    scalar={"int": "x < 0 ? NEGATE(x) : x", "float": "fabs(x)", "half": "bits: x & 0x7fff", "complex": "abs(x)"},
    returns="real",
    grad={"self": lambda grad, self: grad * self.sgn()},
    jvp=forward.absolute,
    operator="abs",
    aliases="absolute",
    reference="numpy.absolute",
    tags="exact",
    doc="Distance of each element from zero; real for complex elements. The derivative at zero is zero.",
)


def _positive(self):
    if self.dtype.name == "bool":
        raise RuntimeError(
            "The `+` operator, on a bool tensor is not supported: positive() takes numbers. Convert it first, "
            "for example with .int()."
        )
    return self


op(
    "aten::positive(Tensor(a) self) -> Tensor(a)",
    compose=_positive,
    types="int float half complex",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(0))],
    operator="pos",
    reference="numpy.positive",
    errors=[(lambda: +tg.tensor([True]), RuntimeError, "positive")],
    doc="The tensor itself.",
)

op(
    "aten::sign(Tensor self) -> Tensor",
    variants="function method inplace out",
    scalar={"int float": "(x > 0) - (x < 0)", "bool": "x"},
    grad={"self": zeros},
    reference=lambda x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype) if x.dtype != bool else x,
    tags="exact",
    doc="-1, 0 or 1, by each element's sign; 0 for NaN.",
)

op(
    "aten::sgn(Tensor self) -> Tensor",
    variants="function method inplace out",
    scalar={"int float half": "(x > 0) - (x < 0)", "bool": "x", "complex": "direction(x)"},
    grad={"self": lambda grad, self: _sgn_grad(grad, self)},
    jvp=lambda self, self_tangent: _sgn_grad(self_tangent, self),  # a projection
    tags="exact",
    doc="Sign of each element; for a complex one the number of length 1 in its direction, or zero.",
)


def _sgn_grad(grad, self):
    if not self.dtype.is_complex:
        return zeros(grad)
    unit, size = self.sgn(), self.abs()
    size = fused.where(size == 0, 1, size)
    return ((grad - (grad * unit.conj_physical()).real * unit) * (unit != 0)) / size


op(
    "aten::reciprocal(Tensor self) -> Tensor",
    scalar={"float half": "1 / x", "complex": "div(1, x)"},
    promote="float",
    grad={"self": lambda grad, result: -grad * conj(result * result)},
    domain=(0.5, 4),
    reference=lambda x: 1.0 / x if x.dtype.kind in "iub" else 1 / x,
    doc="1 / self.",
)
