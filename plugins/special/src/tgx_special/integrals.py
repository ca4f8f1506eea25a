"""Exponential, sine and cosine integrals."""

from tgx_special.computed import add
from tinygrad_ext import ops
from tinygrad_ext.ops.samples import Sample


def _sici(x):
    from scipy import special

    return special.sici(x)


def _expn_back(grad, n, self):
    if n > 0:
        return -grad * ops.special.expn(n - 1, self)
    return -grad * (-self).exp() / self * (1 + 1 / self)  # E0 is exp(-x) / x


def _expn_samples(make):
    for n, shape in ((1, (3, 4)), (2, (5,)), (0, ()), (3, (0, 2))):
        yield Sample(n, make(*shape))


def register_all(register):
    """Add the ops of this file."""
    add(
        register,
        "expi(Tensor self)",
        {"self": lambda grad, self: grad * self.exp() / self},
        domain=(0.3, 4),
        doc="Exponential integral Ei. Ei' = exp(x) / x: DLMF 6.2.5.",
    )
    add(
        register,
        "exp1(Tensor self)",
        {"self": lambda grad, self: -grad * (-self).exp() / self},
        domain=(0.3, 4),
        doc="Exponential integral E1, for positive numbers. E1' = -exp(-x) / x: DLMF 6.2.1.",
    )
    add(
        register,
        "expn(int n, Tensor self)",
        {"self": _expn_back},
        domain=(0.3, 4),
        samples=_expn_samples,
        doc="Exponential integral En, for n >= 0 and positive numbers. En' = -E[n-1]: DLMF 8.19.13.",
    )
    # SciPy has the two as one function; apart, the one keeps its derivative at 0, where the other has none
    add(
        register,
        "si(Tensor self)",
        {"self": lambda grad, self: grad * ops.special.spherical_jn(0, self)},
        domain=(-8, 8),
        fn=lambda x: _sici(x)[0],
        doc="Sine integral, the first result of SciPy's sici. Si' = sin(x) / x: DLMF 6.2.9 and 10.49.3.",
    )
    add(
        register,
        "ci(Tensor self)",
        {"self": lambda grad, self: grad * self.cos() / self},
        domain=(0.3, 8),
        fn=lambda x: _sici(x)[1],
        doc="Cosine integral, the second result of SciPy's sici, for positive numbers. Ci' = cos(x) / x: DLMF 6.2.11.",
    )
