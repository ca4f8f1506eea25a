"""Functions of the normal distribution, and x log y's relatives. Formulas: kernels/special_normal.h."""

import math

from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op

op(
    "aten::erfinv(Tensor self) -> Tensor",
    scalar="erfinv(x)",
    promote="float",
    grad={"self": lambda grad, result: grad * (math.sqrt(math.pi) / 2) * (result * result).exp()},
    variants="function method inplace out",
    aliases="special.erfinv",
    domain=(-0.95, 0.95),
    reference="scipy.special.erfinv",
    doc="Inverse of erf: infinite at -1 and 1, NaN beyond; error 5 ulp.",
)

op(
    "aten::erfcx(Tensor self) -> Tensor",
    scalar="erfcx(x)",
    promote="float",
    grad={"self": lambda grad, self, result: grad * (2 * self * result - 2 / math.sqrt(math.pi))},
    variants="function out",
    where="special",
    reference="scipy.special.erfcx",
    doc="exp(self ** 2) * erfc(self), without underflow; error 4 ulp.",
)

op(
    "aten::ndtr(Tensor self) -> Tensor",
    scalar="ndtr(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * ((self * self * -0.5).exp() / math.sqrt(2 * math.pi))},
    variants="function out",
    where="special",
    reference="scipy.special.ndtr",
    doc="Area below the density of the normal distribution, left of self.",
)

op(
    "aten::log_ndtr(Tensor self) -> Tensor",
    scalar="log_ndtr(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * (math.sqrt(2 / math.pi) / fused.erfcx(self * -math.sqrt(0.5)))},
    variants="function out",
    where="special",
    reference="scipy.special.log_ndtr",
    doc="Logarithm of ndtr, without underflow on the left.",
)

op(
    "aten::ndtri(Tensor self) -> Tensor",
    scalar="ndtri(x)",
    promote="float",
    grad={"self": lambda grad, result: grad * math.sqrt(2 * math.pi) * (result * result * 0.5).exp()},
    variants="function out",
    where="special",
    domain=(0.02, 0.98),
    reference="scipy.special.ndtri",
    doc="Quantile of the normal distribution, the inverse of ndtr: infinite at 0 and 1, NaN beyond; error 5 ulp.",
)

op(
    "aten::entr(Tensor self) -> Tensor",
    scalar={"float": "x > 0 ? -x * log(x) : x == 0 ? 0 : x < 0 ? -INFINITY : x"},
    promote="float",
    grad={"self": lambda grad, self: grad * (-self.log() - 1)},
    variants="function out",
    where="special",
    domain=(0.1, 5),
    reference="scipy.special.entr",
    doc="-self * log(self): 0 at zero, -inf left of it.",
)

op(
    "aten::xlog1py(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "y != y ? y : x == 0 ? 0 : x * log1p(y)"},
    promote="float",
    grad={
        "self": in_float(
            lambda grad, self, other: fused.where((self == 0) & (other <= -1), 0, fused.xlog1py(grad, other))
        ),
        "other": in_float(lambda grad, self, other: grad * self / (other + 1)),
    },
    numbers="self|other",
    variants="function out",
    where="special",
    domain=((-4, 4), (-0.9, 4)),
    reference="scipy.special.xlog1py",
    doc="self * log1p(other), and 0 where self is 0 unless other is NaN.",
)
