"""Error functions, Fresnel integrals and the normal distribution."""

import math

from tgx_special.computed import add

_ROOT_PI = math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def _fresnel_back(grads, self):
    angle = self.square() * (math.pi / 2)
    by_sine, by_cosine = grads
    return by_sine * angle.sin() + by_cosine * angle.cos()


def register_all(register):
    """Add the ops of this file."""
    add(
        register,
        "erfcx(Tensor self)",
        {"self": lambda grad, self, result: grad * (2 * self * result - 2 / _ROOT_PI)},
        domain=(-2, 6),
        doc="exp(x^2) erfc(x), which does not underflow. erfcx' = 2 x erfcx - 2 / sqrt(pi): DLMF 7.10.2.",
    )
    add(
        register,
        "erfinv(Tensor self)",
        {"self": lambda grad, result: grad * result.square().exp() * (_ROOT_PI / 2)},
        domain=(-0.9, 0.9),
        doc="Inverse of erf, on [-1, 1]. Its derivative is sqrt(pi) / 2 exp(y^2), from DLMF 7.2.1.",
    )
    add(
        register,
        "dawsn(Tensor self)",
        {"self": lambda grad, self, result: grad * (1 - 2 * self * result)},
        domain=(-5, 5),
        doc="Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x. F' = 1 - 2 x F: DLMF 7.2.5.",
    )
    add(
        register,
        "fresnel(Tensor self)",
        {"self": _fresnel_back},
        returns="(Tensor s, Tensor c)",
        domain=(-2, 2),
        doc="Fresnel integrals of sin and cos of pi/2 t^2 from 0 to x: DLMF 7.2.7 and 7.2.8.",
    )
    add(
        register,
        "ndtr(Tensor self)",
        {"self": lambda grad, self: grad * (self.square() * -0.5).exp() / _ROOT_TWO_PI},
        domain=(-5, 5),
        doc="Distribution function of the normal distribution. Its derivative is exp(-x^2/2) / sqrt(2 pi): DLMF 7.2.1.",
    )
    add(
        register,
        "log_ndtr(Tensor self)",
        {"self": lambda grad, self, result: grad * (self.square() * -0.5 - result).exp() / _ROOT_TWO_PI},
        domain=(-8, 5),
        doc="""Logarithm of ndtr, exact far to the left where ndtr is 0.

        Its derivative is exp(-x^2/2 - log_ndtr) / sqrt(2 pi), from DLMF 7.2.1; left of -1e5 rounding spoils it.""",
    )
    add(
        register,
        "ndtri(Tensor self)",
        {"self": lambda grad, result: grad * (result.square() * 0.5).exp() * _ROOT_TWO_PI},
        domain=(0.05, 0.95),
        doc="Inverse of ndtr, on [0, 1]. Its derivative is sqrt(2 pi) exp(y^2/2), from DLMF 7.2.1.",
    )
