"""Orthogonal polynomials of a degree that is a tensor or a number. Source: kernels/special_polynomials.h.

The degree, which is cut to an integer, has no derivative; below 0 the result is 0. The derivatives stay in two families
with a parameter: C' = 2 a C of a + 1 (Gegenbauer) and L' = -L of a + 1 (Laguerre), one degree lower (DLMF 18.9).
"""

from tinygrad_ext.ops.fused import fused, zeros
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _degrees(make):
    for a, n in (((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1), (3,)), ((0, 3), (3,)), ((), ())):
        yield Sample(make(*a), make.ints(-1 if make.dtype.is_signed else 0, 6, n).to(make.dtype))
    yield Sample(make(3), 12)


def _reference(name, x, n):
    import numpy
    import scipy.special

    n = numpy.trunc(n).astype(int)
    found = getattr(scipy.special, "eval_" + name)(n, numpy.asarray(x, float))
    return numpy.where(n < 0, 0, found)


def _third(x, n):
    """V_n by U_n, since SciPy has no kind of its own."""
    return _reference("chebyu", x, n) - _reference("chebyu", x, n - 1)


def _fourth(x, n):
    return _reference("chebyu", x, n) + _reference("chebyu", x, n - 1)


def _lower(self, n, steps):
    """The degree, less by one or two; a number becomes a tensor, which the two families take alone."""
    if isinstance(n, (int, float)):
        return self.new_full((), n - steps)
    return n - steps


def _t_slope(grad, self, n):
    return grad * n * fused._gegenbauer(self, _lower(self, n, 1), 1.0)


def _u_slope(grad, self, n):
    return grad * 2 * fused._gegenbauer(self, _lower(self, n, 1), 2.0)


def _v_slope(grad, self, n):
    return (
        grad * 2 * (fused._gegenbauer(self, _lower(self, n, 1), 2.0) - fused._gegenbauer(self, _lower(self, n, 2), 2.0))
    )


def _w_slope(grad, self, n):
    return (
        grad * 2 * (fused._gegenbauer(self, _lower(self, n, 1), 2.0) + fused._gegenbauer(self, _lower(self, n, 2), 2.0))
    )


op(
    "aten::chebyshev_polynomial_t(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "chebyshev_t(x, y)"},
    promote="float",
    grad={"self": _t_slope, "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(-1, 1),
    samples=_degrees,
    reference=lambda x, n: _reference("chebyt", x, n),
    doc="Chebyshev polynomial of the first kind, of degree n.",
)

op(
    "aten::chebyshev_polynomial_u(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "chebyshev_u(x, y)"},
    promote="float",
    grad={"self": _u_slope, "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(-1, 1),
    samples=_degrees,
    reference=lambda x, n: _reference("chebyu", x, n),
    doc="Chebyshev polynomial of the second kind, of degree n.",
)

op(
    "aten::chebyshev_polynomial_v(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "chebyshev_v(x, y)"},
    promote="float",
    grad={"self": _v_slope, "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(-1, 1),
    samples=_degrees,
    reference=_third,
    doc="Chebyshev polynomial of the third kind, of degree n.",
)

op(
    "aten::chebyshev_polynomial_w(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "chebyshev_w(x, y)"},
    promote="float",
    grad={"self": _w_slope, "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(-1, 1),
    samples=_degrees,
    reference=_fourth,
    doc="Chebyshev polynomial of the fourth kind, of degree n.",
)

op(
    "aten::shifted_chebyshev_polynomial_t(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "shifted_chebyshev_t(x, y)"},
    promote="float",
    grad={"self": lambda grad, self, n: 2 * _t_slope(grad, self * 2 - 1, n), "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(0, 1),
    samples=_degrees,
    reference=lambda x, n: _reference("chebyt", 2 * x - 1, n),
    doc="Chebyshev polynomial of the first kind, of degree n, at 2 * self - 1.",
)

op(
    "aten::shifted_chebyshev_polynomial_u(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "shifted_chebyshev_u(x, y)"},
    promote="float",
    grad={"self": lambda grad, self, n: 2 * _u_slope(grad, self * 2 - 1, n), "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(0, 1),
    samples=_degrees,
    reference=lambda x, n: _reference("chebyu", 2 * x - 1, n),
    doc="Chebyshev polynomial of the second kind, of degree n, at 2 * self - 1.",
)

op(
    "aten::shifted_chebyshev_polynomial_v(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "shifted_chebyshev_v(x, y)"},
    promote="float",
    grad={"self": lambda grad, self, n: 2 * _v_slope(grad, self * 2 - 1, n), "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(0, 1),
    samples=_degrees,
    reference=lambda x, n: _third(2 * x - 1, n),
    doc="Chebyshev polynomial of the third kind, of degree n, at 2 * self - 1.",
)

op(
    "aten::shifted_chebyshev_polynomial_w(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "shifted_chebyshev_w(x, y)"},
    promote="float",
    grad={"self": lambda grad, self, n: 2 * _w_slope(grad, self * 2 - 1, n), "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(0, 1),
    samples=_degrees,
    reference=lambda x, n: _fourth(2 * x - 1, n),
    doc="Chebyshev polynomial of the fourth kind, of degree n, at 2 * self - 1.",
)

op(
    "aten::hermite_polynomial_h(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "hermite_h(x, y)"},
    promote="float",
    grad={"self": lambda grad, self, n: grad * 2 * n * fused.hermite_polynomial_h(self, n - 1), "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(-1, 1),
    samples=_degrees,
    reference=lambda x, n: _reference("hermite", x, n),
    doc="Hermite polynomial of physicists, of degree n, with the weight exp(-self ** 2).",
)

op(
    "aten::hermite_polynomial_he(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "hermite_he(x, y)"},
    promote="float",
    grad={"self": lambda grad, self, n: grad * n * fused.hermite_polynomial_he(self, n - 1), "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(-1, 1),
    samples=_degrees,
    reference=lambda x, n: _reference("hermitenorm", x, n),
    doc="Hermite polynomial of probabilists, of degree n, with the weight exp(-self ** 2 / 2).",
)

op(
    "aten::laguerre_polynomial_l(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "laguerre_l(x, y)"},
    promote="float",
    grad={"self": lambda grad, self, n: -grad * fused._laguerre(self, _lower(self, n, 1), 1.0), "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(-1, 1),
    samples=_degrees,
    reference=lambda x, n: _reference("laguerre", x, n),
    doc="Laguerre polynomial of degree n.",
)

op(
    "aten::legendre_polynomial_p(Tensor self, Tensor n) -> Tensor",
    scalar={"float": "legendre_p(x, y)"},
    promote="float",
    grad={"self": lambda grad, self, n: grad * fused._gegenbauer(self, _lower(self, n, 1), 1.5), "n": zeros},
    numbers="self|n",
    variants="function out",
    where="special",
    domain=(-1, 1),
    samples=_degrees,
    reference=lambda x, n: _reference("legendre", x, n),
    doc="Legendre polynomial of degree n.",
)


def _with_order(make):
    for order in (1.0, 1.5, 2.0):
        yield Sample(make(3, 4), make.ints(-1 if make.dtype.is_signed else 0, 6, (4,)).to(make.dtype), order)


def _with_parameter(name):
    def reference(x, n, order):
        import numpy
        import scipy.special

        n = numpy.trunc(n).astype(int)
        found = getattr(scipy.special, name)(n, order, numpy.asarray(x, float))
        return numpy.where(n < 0, 0, found)

    return reference


op(
    "aten::_gegenbauer(Tensor self, Tensor n, float order) -> Tensor",
    scalar={"float": "gegenbauer(x, y, order)"},
    promote="float",
    grad={
        "self": lambda grad, self, n, order: grad * (2 * order) * fused._gegenbauer(self, n - 1, order + 1),
        "n": zeros,
    },
    variants="function",
    where="_fused",
    domain=(-1, 1),
    samples=_with_order,
    reference=_with_parameter("eval_gegenbauer"),
    doc="Gegenbauer polynomial of degree n and an order: what the derivatives of Legendre's and Chebyshev's are.",
)

op(
    "aten::_laguerre(Tensor self, Tensor n, float order) -> Tensor",
    scalar={"float": "laguerre(x, y, order)"},
    promote="float",
    grad={"self": lambda grad, self, n, order: -grad * fused._laguerre(self, n - 1, order + 1), "n": zeros},
    variants="function",
    where="_fused",
    domain=(-1, 1),
    samples=_with_order,
    reference=_with_parameter("eval_genlaguerre"),
    doc="Associated Laguerre polynomial of degree n and an order: what the derivatives of Laguerre's are.",
)
