"""Powers and roots."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused, zeros
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _exponents(make):
    for e in (0, 1, 2, 3, 4):
        yield Sample(make(3, 4, low=0.5, high=3), e)
    yield Sample(make(0, 3), 2)
    yield Sample(make((), low=0.5, high=3), 2)


def _real_exponents(make):
    yield from _exponents(make)
    for e in (0.5, -0.5, -1.0, -2.0, 2.5):
        yield Sample(make(3, 4, low=0.5, high=3), e)


def _bases(make):
    # PyTorch has NaN for the gradient of 0 ** z, which is 0 to the right of the imaginary axis
    for base in (1, 2, 3) if make.dtype.is_complex else (0, 1, 2, 3):
        yield Sample(base, make(3, 4, low=0, high=4))


def _tensors(make):
    for a, b in (((3, 4), (3, 4)), ((3, 4), (4,)), ((), (2, 2)), ((0, 3), (3,))):
        yield Sample(make(*a, low=0.5, high=3), make(*b, low=0, high=4))


def _scalar_grad(grad, self, exponent):
    if exponent == 0:
        return zeros(grad)
    if exponent == 2 and not tg.is_grad_enabled():  # the power of one keeps self in sight of further derivatives
        return grad * (self * 2)
    return grad * (exponent * self.pow(exponent - 1))


def _self_grad(grad, self, exponent):
    return fused.where(exponent == 0, 0, grad * (exponent * self.pow(exponent - 1)))


def _at_least_zero(exponent):
    return exponent.real >= 0 if exponent.is_complex() else exponent >= 0


def _exponent_grad(grad, self, exponent, result):
    """At a base of zero the limit for positive exponents, not 0 * log 0. A negative base has a complex logarithm."""
    if result.is_complex() and not self.is_complex():
        self = self.to(result.dtype)
    return grad * fused.where((self == 0) & _at_least_zero(exponent), 0, result * self.log())


def _base_grad(grad, self, exponent, result):
    from cmath import log as complex_log
    from math import inf, log, nan

    if result.is_complex():
        slope = grad * (result * (complex_log(self) if self else -inf))
        return fused.where(_at_least_zero(exponent), 0, slope) if self == 0 else slope
    if self == 0:
        return grad * fused.where(exponent >= 0, 0, -float("inf"))
    return grad * (result * (log(self) if self > 0 else nan))


op(
    "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    scalar={"int": "vm_ipow(x, y)", "float complex": "pow(x, y)"},
    holomorphic=True,
    grad={"self": _self_grad, "exponent": _exponent_grad},
    operator="pow",
    samples=_tensors,
    reference="numpy.power",
    doc="self to the power of exponent, element by element; an integer to a negative power is 0 unless it is 1 or -1.",
)

# The exponents that have a cheap exact form get loops of their own. aux[0].i is the exponent before it is made one of
# the tensor's dtype, in which a negative one could look positive.
op(
    "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    scalar={
        "bool": "exponent ? x : 1",  # the two powers of a bool
        "int": {
            "exponent == 2": "x * x",
            "aux[0].i == 0": "1",
            "aux[0].i < 0": "FAIL(TGX_NEGATIVE_POWER)",
            "else": "vm_ipow(x, aux[0].i)",
        },
        "float": {
            "exponent == 2": "x * x",
            "exponent == 3": "x * x * x",
            "exponent == 1": "x",
            "exponent == 0.5": "sqrt(x)",
            "exponent == -0.5": "rsqrt(x)",
            "exponent == -1": "1 / x",
            "exponent == -2": "1 / (x * x)",
            "exponent == 0": "1",
            "else": "pow(x, exponent)",
        },
        "complex": {
            "exponent == 2": "TIMES(x, x)",
            "exponent == 3": "TIMES(TIMES(x, x), x)",
            "exponent == 1": "x",
            "exponent == 0.5": "sqrt(x)",
            "exponent == -1": "div(1, x)",
            "exponent == 0": "1",
            "else": "pow(x, exponent)",
        },
    },
    promote="scalars",
    holomorphic=True,
    grad={"self": _scalar_grad},
    samples=_exponents,
    reference="numpy.power",
    errors=[(lambda: tg.tensor([2]) ** -1, RuntimeError, "Integers to negative integer powers are not allowed")],
    doc="self to the power of a number.",
)

op(
    "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    scalar={
        "int": "vm_ipow(self, x)",
        "float": {"self == 2": "exp2(x)", "self == 1": "1", "else": "pow(self, x)"},
        "complex": {"self == 1": "1", "else": "pow(self, x)"},
    },
    promote="scalars",
    holomorphic=True,
    grad={"exponent": _base_grad},
    variants="function out",
    samples=_bases,
    reference="numpy.power",
    doc="A number to the power of each element.",
)

op(
    "aten::__rpow__(Tensor self, Tensor other) -> Tensor",
    compose=lambda self, other: fused.pow(other, self),
    operator="rpow",
    numbers="other",
    types="int float complex",
    variants="method",
    samples=lambda make: [
        Sample(make(3, 4, low=0, high=4), 2),
        Sample(make(3, low=0, high=4), make(2, 1, low=1, high=3)),
    ],
    reference=lambda x, y: y**x,
    doc="What `other ** self` calls when other has no power of its own for it.",
)


def _float_power(self, exponent):
    dtype = tg.complex128 if tg.result_type(self, exponent).is_complex else tg.float64
    self, exponent = (
        v.to(dtype) if hasattr(v, "dtype") else complex(v) if dtype is tg.complex128 else float(v)
        for v in (self, exponent)
    )
    return fused.pow(self, exponent)


op(
    "aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    compose=_float_power,
    numbers="self|exponent",
    variants="function method inplace out",
    samples=_tensors,
    refuses={
        "out": "the output given to float_power has dtype {got} but the operation's result requires dtype {wanted}"
    },
    tags="exact_inplace",
    reference="numpy.float_power",
    doc="self to the power of exponent, computed in float64.",
)

op(
    "aten::square(Tensor self) -> Tensor",
    scalar={"int float": "x * x", "complex": "TIMES(x, x)"},
    promote="int",
    holomorphic=True,
    grad={"self": lambda grad, self: _scalar_grad(grad, self, 2)},
    reference="numpy.square",
    doc="self * self.",
)

op(
    "aten::sqrt(Tensor self) -> Tensor",
    scalar="sqrt(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, result: grad / (2 * result)},
    domain=(0.1, 9),
    reference="numpy.sqrt",
    doc="Square root; NaN for negative elements.",
)

op(
    "aten::rsqrt(Tensor self) -> Tensor",
    scalar="rsqrt(x)",
    types="float complex",
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, result: grad * (-0.5 * result.pow(3))},
    domain=(0.1, 9),
    reference=lambda x: 1 / __import__("numpy").sqrt(x),
    doc="1 / sqrt(self).",
)
