"""Exponentials, logarithms, trigonometric and hyperbolic functions. Source of the formulas: kernels/vecmath.h."""

from math import log, pi

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op

_LN2, _LN10 = log(2), log(10)


def _np():
    import numpy

    return numpy


def _logaddexp_reference(x, y):
    if not _np().iscomplexobj(x):
        return _np().logaddexp(x, y)
    first = x.real >= y.real
    high, low = _np().where(first, x, y), _np().where(first, y, x)
    return high + _np().log1p(_np().exp(low - high))


# ---- exponentials and logarithms -----------------------------------------------------------------------------------

op(
    "aten::exp(Tensor self) -> Tensor",
    scalar="exp(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": "mul(grad, result)"},
    reference="numpy.exp",
    domain=(-10, 10),
    doc="Exponential of each element.",
)

op(
    "aten::exp2(Tensor self) -> Tensor",
    scalar="exp2(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, result: grad * (result * _LN2)},
    reference="numpy.exp2",
    domain=(-10, 10),
    aliases="special.exp2",
    doc="2 to the power of each element.",
)

op(
    "aten::expm1(Tensor self) -> Tensor",
    scalar="expm1(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, result: grad * (result + 1)},
    reference="numpy.expm1",
    aliases="special.expm1",
    doc="exp(self) - 1 without cancellation near zero.",
)

op(
    "aten::log(Tensor self) -> Tensor",
    scalar="log(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": "div(grad, self)"},
    reference="numpy.log",
    domain=(0.1, 10),
    doc="Natural logarithm; NaN for negative elements.",
)

op(
    "aten::log2(Tensor self) -> Tensor",
    scalar="log2(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad / (self * _LN2)},
    reference="numpy.log2",
    domain=(0.1, 10),
    doc="Logarithm to base 2.",
)

op(
    "aten::log10(Tensor self) -> Tensor",
    scalar="log10(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad / (self * _LN10)},
    reference="numpy.log10",
    domain=(0.1, 10),
    doc="Logarithm to base 10.",
)

op(
    "aten::log1p(Tensor self) -> Tensor",
    scalar="log1p(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad / (self + 1)},
    reference="numpy.log1p",
    domain=(-0.9, 10),
    aliases="special.log1p",
    doc="log(1 + self) without cancellation near zero.",
)

op(
    "aten::logaddexp(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "power_sum_log(x, y, 1.0, 1.0)", "complex": "logaddexp(x, y)"},
    holomorphic=True,
    grad={
        "self": in_float(lambda grad, self, other: grad * (self - other).sigmoid()),
        "other": in_float(lambda grad, self, other: grad * (other - self).sigmoid()),
    },
    variants="function method out",
    reference=_logaddexp_reference,
    doc="log(exp(self) + exp(other)) without overflow, for floating tensors.",
)

op(
    "aten::logaddexp2(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "power_sum_log(x, y, 0.69314718055994531, 1.4426950408889634)"},
    grad={
        "self": in_float(lambda grad, self, other: grad * ((self - other) * _LN2).sigmoid()),
        "other": in_float(lambda grad, self, other: grad * ((other - self) * _LN2).sigmoid()),
    },
    variants="function method out",
    reference="numpy.logaddexp2",
    doc="log2(2^self + 2^other) without overflow, for floating tensors.",
)

# ---- trigonometric -------------------------------------------------------------------------------------------------

op(
    "aten::sin(Tensor self) -> Tensor",
    scalar="sin(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad * self.cos()},
    reference="numpy.sin",
    doc="Sine of an angle in radians.",
)

op(
    "aten::cos(Tensor self) -> Tensor",
    scalar="cos(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: -grad * self.sin()},
    reference="numpy.cos",
    doc="Cosine of an angle in radians.",
)

op(
    "aten::tan(Tensor self) -> Tensor",
    scalar="tan(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, result: grad * (1 + result * result)},
    reference="numpy.tan",
    domain=(-1.4, 1.4),
    doc="Tangent of an angle in radians.",
)

op(
    "aten::asin(Tensor self) -> Tensor",
    scalar="asin(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad * (1 - self * self).rsqrt()},
    aliases="arcsin",
    reference="numpy.arcsin",
    domain=(-0.95, 0.95),
    doc="Angle in radians whose sine is the element; NaN outside [-1, 1].",
)

op(
    "aten::acos(Tensor self) -> Tensor",
    scalar="acos(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: -grad * (1 - self * self).rsqrt()},
    aliases="arccos",
    reference="numpy.arccos",
    domain=(-0.95, 0.95),
    doc="Angle in radians whose cosine is the element; NaN outside [-1, 1].",
)

op(
    "aten::atan(Tensor self) -> Tensor",
    scalar="atan(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad / (self * self + 1)},
    aliases="arctan",
    reference="numpy.arctan",
    doc="Angle in radians whose tangent is the element.",
)

op(
    "aten::atan2(Tensor self, Tensor other) -> Tensor",
    scalar="atan2(x, y)",
    promote="float",
    grad={
        "self": in_float(lambda grad, self, other: grad * _atan2_part(other, self, other)),
        "other": in_float(lambda grad, self, other: grad * _atan2_part(-self, self, other)),
    },
    aliases="arctan2",
    reference="numpy.arctan2",
    doc="Angle in radians of the point whose height is self and whose distance to the right is other.",
)


def _atan2_part(numerator, self, other):
    """numerator / (self^2 + other^2), and 0 at the origin."""
    square = self * self + other * other
    return fused.where(square == 0, 0, numerator / fused.where(square == 0, 1, square))


# ---- hyperbolic ----------------------------------------------------------------------------------------------------

op(
    "aten::sinh(Tensor self) -> Tensor",
    scalar="sinh(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad * self.cosh()},
    reference="numpy.sinh",
    doc="Hyperbolic sine.",
)

op(
    "aten::cosh(Tensor self) -> Tensor",
    scalar="cosh(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad * self.sinh()},
    reference="numpy.cosh",
    doc="Hyperbolic cosine.",
)

op(
    "aten::tanh(Tensor self) -> Tensor",
    scalar="tanh(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": "tanh_backward(grad, result)"},
    where=". nn.functional",
    reference="numpy.tanh",
    doc="Hyperbolic tangent.",
)

op(
    "aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    scalar={"float": "x * (1 - y * y)", "complex": "TIMES(x, 1 - TIMES(y, y))"},
    holomorphic=True,
    grad={
        "grad_output": "tanh_backward(grad, output)",
        "output": lambda grad, grad_output, output: grad * (-2 * (grad_output * output)),
    },
    variants="function",
    where="_fused",
    reference=lambda g, y: g * (1 - y * y),
    doc="Derivative of tanh from its result.",
)

op(
    "aten::asinh(Tensor self) -> Tensor",
    scalar="asinh(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad * (self * self + 1).rsqrt()},
    aliases="arcsinh",
    reference="numpy.arcsinh",
    doc="Inverse of sinh.",
)


def _acosh_slope(self):
    """The root of a product is the product of the roots only to the right of the imaginary axis."""
    if self.is_complex():
        return (self - 1).rsqrt() * (self + 1).rsqrt()
    return (self * self - 1).rsqrt()


op(
    "aten::acosh(Tensor self) -> Tensor",
    scalar="acosh(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad * _acosh_slope(self)},
    aliases="arccosh",
    reference="numpy.arccosh",
    domain=(1.1, 9),
    doc="Inverse of cosh; NaN below 1.",
)

op(
    "aten::atanh(Tensor self) -> Tensor",
    scalar="atanh(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad / (1 - self * self)},
    aliases="arctanh",
    reference="numpy.arctanh",
    domain=(-0.9, 0.9),
    doc="Inverse of tanh; NaN outside [-1, 1].",
)

op(
    "aten::sigmoid(Tensor self) -> Tensor",
    scalar="sigmoid(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": "sigmoid_backward(grad, result)"},
    where=". nn.functional",
    reference=lambda x: 1 / (1 + _np().exp(-x)),
    aliases="special.expit",
    doc="1 / (1 + exp(-self)).",
)

op(
    "aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    scalar={"float": "x * (1 - y) * y", "complex": "TIMES(TIMES(x, 1 - y), y)"},
    holomorphic=True,
    grad={
        "grad_output": "sigmoid_backward(grad, output)",
        "output": lambda grad, grad_output, output: grad * (grad_output * (1 - 2 * output)),
    },
    variants="function",
    where="_fused",
    reference=lambda g, y: g * (1 - y) * y,
    doc="Derivative of sigmoid from its result.",
)


def _hypot_slope(grad, part, x, y, result):
    """grad part / hypot; of halves from the unrounded result."""
    if result.dtype in (tg.float16, tg.bfloat16):
        grad, part, result = grad.float(), part.float(), fused.hypot(x.float(), y.float())
    return grad * (part / result)


op(
    "aten::hypot(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "hypot(x, y)"},
    grad={
        "self": lambda grad, self, other, result: _hypot_slope(grad, self, self, other, result),
        "other": lambda grad, self, other, result: _hypot_slope(grad, other, self, other, result),
    },
    reference="numpy.hypot",
    doc="sqrt(self^2 + other^2) without overflow, for floating tensors.",
)

_TWO_OVER_ROOT_PI = 2 / pi**0.5

op(
    "aten::erf(Tensor self) -> Tensor",
    scalar="erf(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * ((-(self * self)).exp() * _TWO_OVER_ROOT_PI)},
    reference="scipy.special.erf",
    aliases="special.erf",
    doc="Error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to each element.",
)

op(
    "aten::erfc(Tensor self) -> Tensor",
    scalar="erfc(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * ((-(self * self)).exp() * -_TWO_OVER_ROOT_PI)},
    reference="scipy.special.erfc",
    aliases="special.erfc",
    doc="1 - erf(self) without cancellation.",
)
