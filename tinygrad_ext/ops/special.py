"""Gamma family, x log y, signs and closeness."""

from tinygrad_ext.ops.fused import fused, refusal, zeros
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, binary

op(
    "aten::lgamma(Tensor self) -> Tensor",
    variants="function method inplace out",
    scalar="lgamma(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * self.digamma()},
    reference="scipy.special.gammaln",
    domain=(0.2, 9),
    aliases="special.gammaln",
    doc="Logarithm of the absolute value of the gamma function.",
)

op(
    "aten::digamma(Tensor self) -> Tensor",
    variants="function method inplace out",
    scalar="digamma(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * fused.polygamma(1, self)},
    reference="scipy.special.psi",
    domain=(0.2, 9),
    aliases="special.digamma special.psi",
    doc="Derivative of lgamma.",
)


def _orders(make):
    for n in (0, 1, 2, 3):
        yield Sample(n, make(3, 4))


op(
    "aten::polygamma(int n, Tensor self) -> Tensor",
    scalar={"n == 0": "digamma(x)", "n == 1": "trigamma(x)", "n < 0": "FAIL(TGX_BAD_VALUE)", "else": "polygamma(n, x)"},
    promote="float",
    grad={"self": lambda grad, n, self: grad * fused.polygamma(n + 1, self)},
    variants="function out",
    failure="polygamma(n, x) does not support negative n.",
    reference="scipy.special.polygamma",
    domain=(0.2, 9),
    samples=_orders,
    aliases="special.polygamma",
    doc="The n-th derivative of digamma.",
)

op(
    "aten::polygamma.method(Tensor self, int n) -> Tensor",
    compose=lambda self, n: fused.polygamma(n, self),
    variants="method inplace",
    domain=(0.2, 9),
    samples=lambda make: [Sample(make(3, 4), 1)],
    reference=lambda x, n: __import__("scipy.special").special.polygamma(n, x),
    doc="The n-th derivative of digamma.",
)

op(
    "aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "y != y ? y : x == 0 ? 0 : x * log(y)"},
    promote="float",
    grad={
        "self": in_float(
            lambda grad, self, other: fused.where((self == 0) & (other <= 0), 0, fused.xlogy(grad, other))
        ),
        "other": in_float(lambda grad, self, other: grad * self / other),
    },
    numbers="self|other",
    variants="function method inplace out function_",
    domain=((-4, 4), (0.1, 4)),
    reference="scipy.special.xlogy",
    aliases="special.xlogy",
    doc="self * log(other), and 0 where self is 0 unless other is NaN.",
)

op(
    "aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "copysign(x, y)", "half": "bits: (x & 0x7fff) | (y & 0x8000)"},
    promote="float",
    grad={"self": lambda grad, self, result: grad * (result.sign() * self.sign()), "other": zeros},
    numbers="other",
    reference="numpy.copysign",
    doc="self's magnitude with other's sign.",
)

op(
    "aten::nextafter(Tensor self, Tensor other) -> Tensor",
    scalar={"float half": "nextafter(x, y)"},
    grad={"self": lambda grad, self, other: grad * (self != other), "other": zeros},
    reference="numpy.nextafter",
    doc="The number of the result's dtype that follows self on the way to other; other where they are equal.",
)

op(
    "aten::heaviside(Tensor self, Tensor values) -> Tensor",
    scalar={"bool int": "x == 0 ? y : x > 0", "float": "x == 0 ? y : x > 0"},
    refuses={
        "mixed": "heaviside is not yet implemented for tensors with different dtypes: convert one of them",
        "complex": "heaviside is not yet implemented for complex tensors.",
        "out": "heaviside is not yet implemented for complex tensors, nor of several dtypes: out is {got}",
    },
    grad={"self": refusal("heaviside"), "values": refusal("heaviside", "values")},
    samples=lambda make: [Sample(*(t.detach() for t in sample.args)) for sample in binary(make)],
    reference="numpy.heaviside",
    tags="exact",
    doc="0 for negative elements, 1 for positive ones, `values` for zeros.",
)


def _pairs(make):
    a = make(3, 4)
    yield Sample(a, a)
    yield Sample(a, make(3, 4))
    yield Sample(a, make(4), rtol=1.0, atol=1.0)
    yield Sample(make(0, 2), make(2), equal_nan=True)


op(
    "aten::isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    scalar={
        "bool": {
            "aux[0].f < 0 || aux[1].f < 0": "FAIL(TGX_BAD_VALUE)",
            "else": "x == y || (double)(x != y) <= atol + fabs(rtol * y)",
        },
        "int natural": {
            "aux[0].f < 0 || aux[1].f < 0": "FAIL(TGX_BAD_VALUE)",
            "else": "x == y || fabs((double)x - (double)y) <= atol + fabs(rtol * (double)y)",
        },
        "float": {
            "aux[0].f < 0 || aux[1].f < 0": "FAIL(TGX_BAD_VALUE)",
            "else": "x == y || (equal_nan && x != x && y != y) "
            "|| (fabs(x - y) <= atol + fabs(rtol * y) && fabs(x - y) < INFINITY)",
        },
        "complex": {
            "aux[0].f < 0 || aux[1].f < 0": "FAIL(TGX_BAD_VALUE)",
            "else": "x == y || (equal_nan && x != x && y != y) "
            "|| (abs(x - y) <= atol + rtol * abs(y) && abs(x - y) < INFINITY)",
        },
    },
    failure="rtol must be greater than or equal to zero, and so must atol: isclose got a negative one",
    returns="bool",
    refuses={"mixed": "isclose: self and other did not match in dtype; convert one of them"},
    variants="function method",
    samples=_pairs,
    reference=lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: __import__("numpy").isclose(
        x, y, rtol, atol, equal_nan
    ),
    doc="Whether |self - other| <= atol + rtol * |other|; NaN equals NaN with equal_nan.",
)

op(
    "aten::allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    compose=lambda self, other, rtol, atol, equal_nan: bool(self.isclose(other, rtol, atol, equal_nan).all()),
    samples=_pairs,
    gaps={"shape": "the answer is a Python bool, which needs the elements"},
    reference=lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: __import__("numpy").allclose(
        x, y, rtol, atol, equal_nan
    ),
    doc="Whether isclose holds for all elements.",
)
