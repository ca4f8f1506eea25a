"""Incomplete gamma functions, the zeta function, the multivariate gamma function. Formulas: kernels/special_gamma.h."""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused, refusal
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _density(grad, self, other):
    """x^(a - 1) e^-x / gamma(a), by logarithms."""
    return grad * ((self - 1) * other.log() - other - self.lgamma()).exp()


def _shapes(make):
    """The first argument has no derivative, so it carries no gradient."""
    for a, b in (((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1), (3,)), ((), (2, 2)), ((0, 3), (3,)), ((), ())):
        yield Sample(make(*a).detach(), make(*b))


op(
    "aten::igamma(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "igamma(x, y)"},
    grad={"self": refusal("igamma"), "other": _density},
    aliases="special.gammainc",
    domain=(0.2, 9),
    samples=_shapes,
    reference="scipy.special.gammainc",
    doc="Lower incomplete gamma function of order self at other, over gamma(self). NaN for negative arguments.",
)

op(
    "aten::igammac(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "igammac(x, y)"},
    grad={"self": refusal("igammac"), "other": lambda grad, self, other: -_density(grad, self, other)},
    aliases="special.gammaincc",
    domain=(0.2, 9),
    samples=_shapes,
    reference="scipy.special.gammaincc",
    doc="Upper incomplete gamma function of order self at other, over gamma(self): 1 - igamma without cancellation.",
)

op(
    "aten::zeta(Tensor self, Tensor other) -> Tensor",
    scalar={"float": "zeta(x, y)"},
    promote="float",
    grad={
        "self": refusal("zeta"),
        "other": lambda grad, self, other: grad * -self * fused.zeta(self + 1, other),
    },
    numbers="self|other",
    variants="function out",
    where="special",
    domain=(1.2, 9),
    samples=_shapes,
    reference="scipy.special.zeta",
    doc="Hurwitz's zeta function: the sum of (k + other) ** -self over k = 0, 1, ...",
)


def _mvlgamma(self, p):
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, got {p}")
    if self.dtype.is_complex:
        raise NotImplementedError(f"\"mvlgamma_cpu\" not implemented for '{self.dtype}': take a real tensor")
    if not self.dtype.is_floating_point:
        self = self.to(tg.get_default_dtype())
    steps = tg.arange((1 - p) / 2, 0.25, 0.5, dtype=self.dtype, device=self.device)
    return (self.unsqueeze(-1) + steps).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


op(
    "aten::mvlgamma(Tensor self, int p) -> Tensor",
    compose=_mvlgamma,
    variants="function method inplace out",
    types="int float",
    aliases="special.multigammaln",
    domain=(3.1, 9),
    samples=lambda make: [Sample(make(3, 4), 1), Sample(make(2, 3), 3), Sample(make(), 5), Sample(make(0, 2), 2)],
    reference=lambda x, p: __import__("scipy.special").special.multigammaln(x, p),
    errors=[(lambda: tg.mvlgamma(tg.ones(2), 0), RuntimeError, "p has to be greater than or equal to 1, got 0")],
    tags="casts",
    doc="Logarithm of the multivariate gamma function of dimension p, for elements above (p - 1) / 2.",
)
