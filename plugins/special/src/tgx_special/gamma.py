"""Incomplete gamma and beta functions, Hurwitz's zeta, Lambert's W."""

import tinygrad_ext as tg
from tgx_special.computed import add, fixed_first, no_derivative
from tinygrad_ext import ops
from tinygrad_ext.ops.samples import Sample


def _gamma_density(a, x):
    """x^(a-1) exp(-x) / gamma(a)."""
    return (tg.xlogy(a - 1, x) - x - a.lgamma()).exp()


def _beta_density(a, b, x):
    """x^(a-1) (1-x)^(b-1) / B(a, b)."""
    normal = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return (tg.xlogy(a - 1, x) + tg.xlogy(b - 1, 1 - x) - normal).exp()


def _lambertw(x, k=0):
    """Real part of SciPy's complex function where the value is real."""
    if k not in (0, -1):
        raise ValueError(f"special::lambertw: k must be 0 or -1, the branches with real values, not {k}")
    import numpy as np
    from scipy import special

    with np.errstate(invalid="ignore"):
        value = special.lambertw(x, k)
    return np.where(value.imag == 0, value.real, np.nan)


def _refused(name, arguments, by):
    """Call of the op that asks for the gradient that there is none."""

    def call():
        tensors = [tg.full((2,), 0.5, requires_grad=i == by) for i in range(arguments)]
        getattr(ops.special, name)(*tensors).sum().backward()

    return call, NotImplementedError, f"special::{name} has no derivative by"


def _beta_samples(make):
    for a, b, x in (((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), (3, 4)), ((), (2,), ()), ((0,), (1,), ())):
        yield Sample(make(*a).detach(), make(*b).detach(), make(*x))


def _lambert_samples(make):
    yield Sample(make(3, 4))
    yield Sample(make(()), 0)
    yield Sample(make(5, low=-0.35, high=-0.01), -1)
    yield Sample(make(0, 3))


_SHAPE = no_derivative("gammainc", "a", "it needs a hypergeometric function; keep the shape a fixed")
_SHAPE_C = no_derivative("gammaincc", "a", "it needs a hypergeometric function; keep the shape a fixed")


def register_all(register):
    """Add the ops of this file."""
    add(
        register,
        "gammainc(Tensor a, Tensor x)",
        {"a": _SHAPE, "x": lambda grad, a, x: grad * _gamma_density(a, x)},
        domain=((0.3, 5), (0.1, 6)),
        samples=fixed_first,
        errors=[_refused("gammainc", 2, 0)],
        doc="""Regularised lower incomplete gamma function P(a, x), for a > 0 and x >= 0.

        dP/dx = x^(a-1) exp(-x) / gamma(a): DLMF 8.8.13 with 8.2.4; the second derivative is NaN at 0.
        NotImplementedError for a gradient by a.""",
    )
    add(
        register,
        "gammaincc(Tensor a, Tensor x)",
        {"a": _SHAPE_C, "x": lambda grad, a, x: -grad * _gamma_density(a, x)},
        domain=((0.3, 5), (0.1, 6)),
        samples=fixed_first,
        errors=[_refused("gammaincc", 2, 0)],
        doc="""Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), for a > 0 and x >= 0.

        dQ/dx = -x^(a-1) exp(-x) / gamma(a): DLMF 8.8.13 with 8.2.4. NotImplementedError for a gradient by a.""",
    )
    add(
        register,
        "betainc(Tensor a, Tensor b, Tensor x)",
        {
            "a": no_derivative("betainc", "a", "it needs a hypergeometric function; keep the shape a fixed"),
            "b": no_derivative("betainc", "b", "it needs a hypergeometric function; keep the shape b fixed"),
            "x": lambda grad, a, b, x: grad * _beta_density(a, b, x),
        },
        domain=((0.4, 4), (0.4, 4), (0.1, 0.9)),
        samples=_beta_samples,
        errors=[_refused("betainc", 3, 0), _refused("betainc", 3, 1)],
        doc="""Regularised incomplete beta function I_x(a, b), for a, b > 0 and x in [0, 1].

        dI/dx = x^(a-1) (1-x)^(b-1) / B(a, b): DLMF 8.17.1 and 8.17.2. NotImplementedError for a gradient by a or b.""",
    )
    add(
        register,
        "zeta(Tensor x, Tensor q)",
        {
            "x": no_derivative("zeta", "x", "it is a series of logarithms; keep the exponent fixed"),
            "q": lambda grad, x, q: -grad * x * ops.special.zeta(x + 1, q),
        },
        domain=((1.5, 5), (0.4, 5)),
        samples=fixed_first,
        errors=[_refused("zeta", 2, 0)],
        doc="""Hurwitz zeta function, the sum of (n + q)^(-x) over n >= 0, for x > 1.

        dzeta/dq = -x zeta(x+1, q): DLMF 25.11.17. NotImplementedError for a gradient by x.""",
    )
    add(
        register,
        "lambertw(Tensor self, int k=0)",
        {"self": lambda grad, result: grad / (result.exp() * (1 + result))},
        domain=(-0.3, 6),
        samples=_lambert_samples,
        fn=_lambertw,
        errors=[(lambda: ops.special.lambertw(tg.ones(2), 1), ValueError, "k must be 0 or -1")],
        doc="""Lambert W: the real w with w exp(w) = x, of branch k: 0 (x >= -1/e) or -1 (-1/e <= x < 0); NaN elsewhere.

        W' = exp(-W) / (1 + W): DLMF 4.13.4. ValueError for another branch.""",
    )
