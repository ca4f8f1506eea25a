"""Bessel functions. Derivatives are written without a division where the function is smooth at 0, so that they hold
there to any order: J1' = (J0 - J2) / 2 and not J0 - J1 / x."""

from tgx_special.computed import add, fixed_first, no_derivative
from tinygrad_ext import ops

_WIDE, _POSITIVE = (-8, 8), (0.3, 8)
_ORDERS = ((0, 4), (0.5, 6))


def _second(name, x):
    """The function of order 2."""
    return getattr(ops.special, name)(x.new_full((), 2), x)


def _halved(name, sign):
    """x -> (F[v-1] + sign F[v+1]) / 2, from the two neighbouring orders."""

    def derivative(v, x):
        function = getattr(ops.special, name)
        return (function(v - 1, x) + sign * function(v + 1, x)) / 2

    return derivative


def _with_order(register, name, derivative, doc):
    add(
        register,
        f"{name}(Tensor v, Tensor x)",
        {"v": no_derivative(name, "v", "keep the order fixed"), "x": lambda grad, v, x: grad * derivative(v, x)},
        domain=_ORDERS,
        samples=fixed_first,
        errors=[(lambda: _backward_by_order(name), NotImplementedError, "no derivative by 'v' in closed form")],
        doc=f"{doc}\n\nv and x are real and broadcast. NotImplementedError for a gradient by the order v.",
    )


def _backward_by_order(name):
    import tinygrad_ext as tg

    getattr(ops.special, name)(tg.ones(2, requires_grad=True), tg.ones(2)).sum().backward()


def _first_kind(register):
    add(
        register,
        "j0(Tensor self)",
        {"self": lambda grad, self: -grad * ops.special.j1(self)},
        domain=_WIDE,
        doc="Bessel function of the first kind of order 0. J0' = -J1: DLMF 10.6.3.",
    )
    add(
        register,
        "j1(Tensor self)",
        {"self": lambda grad, self: grad * (ops.special.j0(self) - _second("jv", self)) / 2},
        domain=_WIDE,
        doc="Bessel function of the first kind of order 1. J1' = (J0 - J2) / 2: DLMF 10.6.1.",
    )
    _with_order(
        register,
        "jv",
        _halved("jv", -1),
        "Bessel function of the first kind of order v. Jv' = (J[v-1] - J[v+1]) / 2: DLMF 10.6.1.",
    )
    add(
        register,
        "spherical_jn(int n, Tensor self)",
        {"self": _spherical_back},
        domain=_WIDE,
        samples=_spherical_samples,
        doc="""Spherical Bessel function of the first kind of order n >= 0.

        (2n+1) jn' = n j[n-1] - (n+1) j[n+1]: DLMF 10.51.1. j0 is sin(x) / x.""",
    )


def _spherical_back(grad, n, self):
    upper = (n + 1) * ops.special.spherical_jn(n + 1, self)
    lower = n * ops.special.spherical_jn(n - 1, self) if n else 0
    return grad * (lower - upper) / (2 * n + 1)


def _spherical_samples(make):
    from tinygrad_ext.ops.samples import Sample

    for n, shape in ((0, (3, 4)), (1, (5,)), (3, (0, 2)), (2, ())):
        yield Sample(n, make(*shape))


def _second_kind(register):
    add(
        register,
        "y0(Tensor self)",
        {"self": lambda grad, self: -grad * ops.special.y1(self)},
        domain=_POSITIVE,
        doc="Bessel function of the second kind of order 0, for positive numbers. Y0' = -Y1: DLMF 10.6.3.",
    )
    add(
        register,
        "y1(Tensor self)",
        {"self": lambda grad, self, result: grad * (ops.special.y0(self) - result / self)},
        domain=_POSITIVE,
        doc="Bessel function of the second kind of order 1, for positive numbers. Y1' = Y0 - Y1 / x: DLMF 10.6.2.",
    )
    _with_order(
        register,
        "yv",
        _halved("yv", -1),
        "Bessel function of the second kind of order v. Yv' = (Y[v-1] - Y[v+1]) / 2: DLMF 10.6.1.",
    )


def _modified_first_kind(register):
    add(
        register,
        "i0(Tensor self)",
        {"self": lambda grad, self: grad * ops.special.i1(self)},
        domain=_WIDE,
        doc="Modified Bessel function of the first kind of order 0. I0' = I1: DLMF 10.29.3.",
    )
    add(
        register,
        "i1(Tensor self)",
        {"self": lambda grad, self: grad * (ops.special.i0(self) + _second("iv", self)) / 2},
        domain=_WIDE,
        doc="Modified Bessel function of the first kind of order 1. I1' = (I0 + I2) / 2: DLMF 10.29.1.",
    )
    _with_order(
        register,
        "iv",
        _halved("iv", 1),
        "Modified Bessel function of the first kind of order v. Iv' = (I[v-1] + I[v+1]) / 2: DLMF 10.29.1.",
    )
    add(
        register,
        "i0e(Tensor self)",
        {"self": lambda grad, self, result: grad * (ops.special.i1e(self) - self.sign() * result)},
        domain=_WIDE,
        doc="exp(-|x|) I0(x), which does not overflow. From I0' = I1: DLMF 10.29.3.",
    )
    add(
        register,
        "i1e(Tensor self)",
        {
            "self": lambda grad, self, result: (
                grad * ((ops.special.i0e(self) + _second("ive", self)) / 2 - self.sign() * result)
            )
        },
        domain=_WIDE,
        doc="exp(-|x|) I1(x), which does not overflow. From I1' = (I0 + I2) / 2: DLMF 10.29.1.",
    )
    scaled = _halved("ive", 1)
    _with_order(
        register,
        "ive",
        lambda v, x: scaled(v, x) - x.sign() * ops.special.ive(v, x),
        "exp(-|x|) Iv(x), which does not overflow. From Iv' = (I[v-1] + I[v+1]) / 2: DLMF 10.29.1.",
    )


def _modified_second_kind(register):
    add(
        register,
        "k0(Tensor self)",
        {"self": lambda grad, self: -grad * ops.special.k1(self)},
        domain=_POSITIVE,
        doc="Modified Bessel function of the second kind of order 0, for positive numbers. K0' = -K1: DLMF 10.29.3.",
    )
    add(
        register,
        "k1(Tensor self)",
        {"self": lambda grad, self, result: -grad * (ops.special.k0(self) + result / self)},
        domain=_POSITIVE,
        doc="Modified Bessel function of the second kind of order 1, for positive numbers. K1' = -K0 - K1 / x: "
        "DLMF 10.29.2.",
    )
    add(
        register,
        "k0e(Tensor self)",
        {"self": lambda grad, self, result: grad * (result - ops.special.k1e(self))},
        domain=_POSITIVE,
        doc="exp(x) K0(x), which does not underflow. From K0' = -K1: DLMF 10.29.3.",
    )
    add(
        register,
        "k1e(Tensor self)",
        {"self": lambda grad, self, result: grad * (result - ops.special.k0e(self) - result / self)},
        domain=_POSITIVE,
        doc="exp(x) K1(x), which does not underflow. From K1' = -K0 - K1 / x: DLMF 10.29.2.",
    )
    second = _halved("kv", 1)
    _with_order(
        register,
        "kv",
        lambda v, x: -second(v, x),
        "Modified Bessel function of the second kind of order v. Kv' = -(K[v-1] + K[v+1]) / 2: DLMF 10.29.1.",
    )


def _airy_back(grads, self, ai, aip, bi, bip):
    """Ai'' = x Ai, and Bi'' = x Bi."""
    return sum(g * t for g, t in zip(grads, (aip, self * ai, bip, self * bi)))


def register_all(register):
    """Add the ops of this file."""
    _first_kind(register)
    _second_kind(register)
    _modified_first_kind(register)
    _modified_second_kind(register)
    add(
        register,
        "airy(Tensor self)",
        {"self": _airy_back},
        returns="(Tensor ai, Tensor aip, Tensor bi, Tensor bip)",
        domain=(-4, 3),
        doc="Airy functions Ai and Bi, each followed by its derivative. Ai'' = x Ai: DLMF 9.2.1.",
    )
