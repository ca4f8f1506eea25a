"""Functions of one or two elements that are short to say: degrees, sinc, logit, extremes without NaN, divisors."""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops import forward
from tinygrad_ext.ops.fused import fused, zeros
from tinygrad_ext.ops.halves import in_float, rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _pairs(make):
    for a, b in (((3, 4), (3, 4)), ((3, 4), (4,)), ((), (2, 2)), ((0, 3), (3,))):
        yield Sample(make(*a), make(*b))


@in_float
def _sinc_grad(grad, self):
    angle = self * math.pi
    slope = (angle * angle.cos() - angle.sin()) / (angle * self)
    return grad * fused.where(self * self == 0, 0, slope)  # the square of a tiny one is zero too


op(
    "aten::deg2rad(Tensor self) -> Tensor",
    scalar={"float": "x * 0.017453292519943295"},
    promote="float",
    grad={"self": lambda grad: grad * (math.pi / 180)},
    reference="numpy.deg2rad",
    doc="Degrees as radians.",
)

op(
    "aten::rad2deg(Tensor self) -> Tensor",
    scalar={"float": "x * 57.295779513082321"},
    promote="float",
    grad={"self": lambda grad: grad * (180 / math.pi)},
    reference="numpy.rad2deg",
    doc="Radians as degrees.",
)

op(
    "aten::sinc(Tensor self) -> Tensor",
    scalar={"float": "x == 0 ? 1 : sin(x * 3.141592653589793) / (x * 3.141592653589793)", "complex": "sinc(x)"},
    promote="float",
    holomorphic=True,
    grad={"self": _sinc_grad},
    reference="numpy.sinc",
    aliases="special.sinc",
    doc="sin(pi x) / (pi x), 1 at zero.",
)

op(
    "aten::angle(Tensor self) -> Tensor",
    scalar={"float": "x != x ? x : x < 0 ? 3.141592653589793 : 0", "complex": "angle(x)"},
    promote="float",
    returns="real",
    variants="function method out",
    grad={"self": lambda grad, self: _angle_grad(grad, self)},
    jvp=forward.angle,
    reference="numpy.angle",
    doc="Angle in radians between an element and the positive real axis: 0 or pi for real ones, NaN for NaN.",
)


def _angle_grad(grad, self):
    """i z / |z|^2, and 0 at zero."""
    if not self.is_complex():
        return zeros(grad)
    square = self.real * self.real + self.imag * self.imag
    turned = tg.complex(-self.imag, self.real)
    return fused.where(self == 0, 0, grad * turned / fused.where(square == 0, 1, square))


def _polar(abs, angle):
    if abs.dtype != angle.dtype or not abs.is_floating_point():
        return tg.complex(abs, angle)  # which says what it takes
    return tg.complex(abs * angle.cos(), abs * angle.sin())


def _polar_samples(make):
    yield Sample(make(3, 4, low=0, high=3), make(3, 4))
    yield Sample(make(3, 1, low=0, high=3), make(4))
    yield Sample(make(low=0, high=3), make(0))


op(
    "aten::polar(Tensor abs, Tensor angle) -> Tensor",
    compose=_polar,
    refuses={"out": "Expected object of scalar type {wanted} but got scalar type {got} for argument 'out'"},
    variants="function out",
    types="float",
    samples=_polar_samples,
    errors=[
        (
            lambda: tg.polar(tg.ones(2).int(), tg.ones(2).int()),
            RuntimeError,
            "Expected both inputs to be Half, Float or Double",
        ),
    ],
    reference=lambda size, angle: size * (2.718281828459045 ** (1j * angle)),
    doc="Complex numbers from their absolute values and angles in radians.",
)

op(
    "aten::signbit(Tensor self) -> Tensor",
    scalar={"bool": "0", "int": "x < 0", "natural": "0", "float": "signbit(x) != 0"},
    returns="bool",
    variants="function method out",
    grad={"self": "none"},
    reference="numpy.signbit",
    refuses={"complex": "signbit is not implemented for complex tensors: they have no sign"},
    tags="exact",
    doc="Whether an element has its sign bit set: negative numbers, -0.0 and some NaN.",
)


op(
    "aten::_logit(Tensor self) -> Tensor",
    scalar={"float": "log(x / (1 - x))"},
    grad={"self": "_logit_backward(grad, self)"},
    variants="function",
    where="_fused",
    domain=(0.05, 0.95),
    reference=lambda x: _numpy_logit(x),
    doc="logit without limits.",
)

op(
    "aten::_logit_backward(Tensor grad_output, Tensor self) -> Tensor",
    scalar={"float": "x / (y * (1 - y))"},
    grad={
        "grad_output": "_logit_backward(grad, self)",
        "self": lambda grad, grad_output, self: grad * grad_output * (2 * self - 1) / (self * (1 - self)).square(),
    },
    variants="function",
    where="_fused",
    domain=(0.05, 0.95),
    doc="Derivative of logit without limits.",
)


def _logit(self, eps):
    if self.dtype.is_complex:
        raise NotImplementedError('"logit" not implemented for complex tensors: write (x / (1 - x)).log()')
    x = self if self.dtype.is_floating_point else self.to(tg.get_default_dtype())
    return fused._logit(x if eps is None else x.clamp(eps, 1 - eps))


def _numpy_logit(self, eps=None):
    import numpy

    x = self if eps is None else numpy.clip(self, eps, 1 - eps)
    with numpy.errstate(all="ignore"):
        return numpy.log(x / (1 - x))


op(
    "aten::logit(Tensor self, float? eps=None) -> Tensor",
    compose=_logit,
    variants="function method out inplace function_",
    types="bool int float",
    domain=(0.05, 0.95),
    samples=lambda make: [Sample(make(3, 4)), Sample(make(3), 0.2), Sample(make()), Sample(make(0, 2))],
    reference=_numpy_logit,
    errors=[(lambda: _logit(tg.zeros(2, dtype=tg.complex64), None), NotImplementedError, "for complex tensors")],
    aliases="special.logit",
    tags="casts",
    doc="log(x / (1 - x)), the inverse of sigmoid; with eps of x limited to [eps, 1 - eps].",
)

# ---- two elements --------------------------------------------------------------------------------------------------

_FIRST = {
    "fmax": lambda x, y: (x >= y) | y.isnan(),
    "fmin": lambda x, y: (x <= y) | y.isnan(),
}


def _chosen(name, own):
    def rule(grad, self, other):
        first = _FIRST[name](self, other)
        return grad * (first if own else first.logical_not())

    return rule


op(
    "aten::fmax(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int": "x >= y ? x : y", "float": "(x >= y) | (y != y) ? x : y"},
    grad={"self": _chosen("fmax", True), "other": _chosen("fmax", False)},
    variants="function method out",
    samples=_pairs,
    reference="numpy.fmax",
    refuses={"complex": "fmax not implemented for complex tensors: they have no order"},
    doc="The larger of two elements, or the other one where one is NaN. Of equal ones the first gets the gradient.",
)

op(
    "aten::fmin(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int": "x <= y ? x : y", "float": "(x <= y) | (y != y) ? x : y"},
    grad={"self": _chosen("fmin", True), "other": _chosen("fmin", False)},
    variants="function method out",
    samples=_pairs,
    reference="numpy.fmin",
    refuses={"complex": "fmin not implemented for complex tensors: they have no order"},
    doc="The smaller of two elements, or the other one where one is NaN. Of equal ones the first gets the gradient.",
)

op(
    "aten::gcd(Tensor self, Tensor other) -> Tensor",
    scalar={"int": "vm_gcd(x, y)"},
    variants="function method inplace out function_",
    grad={"self": "none", "other": "none"},
    samples=_pairs,
    reference="numpy.gcd",
    doc="The greatest common divisor, never negative; gcd(0, 0) is 0.",
)

op(
    "aten::lcm(Tensor self, Tensor other) -> Tensor",
    scalar={"int": "vm_lcm(x, y)"},
    variants="function method inplace out function_",
    grad={"self": "none", "other": "none"},
    samples=_pairs,
    reference="numpy.lcm",
    doc="The least common multiple, never negative, modulo the dtype's range; of 0 and anything 0.",
)


@rounded_once
def _ldexp(self, other):
    return self * tg.pow(2.0, other)


op(
    "aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    compose=_ldexp,
    variants="function method inplace out function_",
    types="bool int float complex",
    samples=_pairs,
    reference=lambda self, other: self * 2.0**other,
    tags="casts",
    doc="self times 2 to the power of other.",
)
