"""Bessel and Airy functions. Source of the formulas: kernels/special_bessel.h and special_airy.h."""

from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op


def _over(value, self):
    """value / self where value is about self / 2 near zero, whose quotient is 1/2 there."""
    at_zero = self == 0
    return fused.where(at_zero, 0.5, value / fused.where(at_zero, 1.0, self))


# ---- I, of order 0 and 1, as it is and times e^-|x| ----------------------------------------------------------------

op(
    "aten::i0(Tensor self) -> Tensor",
    scalar="i0(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * fused.i1(self)},
    aliases="special.i0 special.modified_bessel_i0",
    reference="scipy.special.i0",
    doc="Modified Bessel function of the first kind, of order 0; error 4 ulp.",
)

op(
    "aten::i0e(Tensor self) -> Tensor",
    scalar="i0e(x)",
    promote="float",
    grad={"self": in_float(lambda grad, self, result: grad * (fused.i1e(self) - self.sgn() * result))},
    variants="function out",
    where="special",
    reference="scipy.special.i0e",
    doc="exp(-|self|) times i0; error 4 ulp.",
)

op(
    "aten::i1(Tensor self) -> Tensor",
    scalar="i1(x)",
    promote="float",
    grad={"self": lambda grad, self, result: grad * (fused.i0(self) - _over(result, self))},
    variants="function out",
    where="special",
    aliases="special.modified_bessel_i1",
    reference="scipy.special.i1",
    doc="Modified Bessel function of the first kind, of order 1; error 13 ulp.",
)

op(
    "aten::i1e(Tensor self) -> Tensor",
    scalar="i1e(x)",
    promote="float",
    grad={"self": lambda grad, self, result: grad * (fused.i0e(self) - self.sgn() * result - _over(result, self))},
    variants="function out",
    where="special",
    reference="scipy.special.i1e",
    doc="exp(-|self|) times i1; error 8 ulp.",
)

# ---- K -------------------------------------------------------------------------------------------------------------

op(
    "aten::modified_bessel_k0(Tensor self) -> Tensor",
    scalar="k0(x)",
    promote="float",
    grad={"self": lambda grad, self: -grad * fused.modified_bessel_k1(self)},
    variants="function out",
    where="special",
    domain=(0.1, 9),
    reference="scipy.special.k0",
    doc="Modified Bessel function of the second kind, of order 0: infinite at zero, NaN left of it; error 7 ulp.",
)

op(
    "aten::modified_bessel_k1(Tensor self) -> Tensor",
    scalar="k1(x)",
    promote="float",
    grad={"self": lambda grad, self, result: -grad * (fused.modified_bessel_k0(self) + result / self)},
    variants="function out",
    where="special",
    domain=(0.1, 9),
    reference="scipy.special.k1",
    doc="Modified Bessel function of the second kind, of order 1: infinite at zero, NaN left of it; error 4 ulp.",
)

op(
    "aten::scaled_modified_bessel_k0(Tensor self) -> Tensor",
    scalar="k0e(x)",
    promote="float",
    grad={"self": lambda grad, self, result: grad * (result - fused.scaled_modified_bessel_k1(self))},
    variants="function out",
    where="special",
    domain=(0.1, 9),
    reference="scipy.special.k0e",
    doc="exp(self) times modified_bessel_k0; error 6 ulp.",
)

op(
    "aten::scaled_modified_bessel_k1(Tensor self) -> Tensor",
    scalar="k1e(x)",
    promote="float",
    grad={"self": lambda grad, self, result: grad * (result - fused.scaled_modified_bessel_k0(self) - result / self)},
    variants="function out",
    where="special",
    domain=(0.1, 9),
    reference="scipy.special.k1e",
    doc="exp(self) times modified_bessel_k1; error 4 ulp.",
)

# ---- J and Y -------------------------------------------------------------------------------------------------------

op(
    "aten::bessel_j0(Tensor self) -> Tensor",
    scalar="bessel_j0(x)",
    promote="float",
    grad={"self": lambda grad, self: -grad * fused.bessel_j1(self)},
    variants="function out",
    where="special",
    reference="scipy.special.j0",
    doc="Bessel function of the first kind, of order 0; the C library's.",
)

op(
    "aten::bessel_j1(Tensor self) -> Tensor",
    scalar="bessel_j1(x)",
    promote="float",
    grad={"self": lambda grad, self, result: grad * (fused.bessel_j0(self) - _over(result, self))},
    variants="function out",
    where="special",
    reference="scipy.special.j1",
    doc="Bessel function of the first kind, of order 1; the C library's.",
)

op(
    "aten::bessel_y0(Tensor self) -> Tensor",
    scalar="bessel_y0(x)",
    promote="float",
    grad={"self": lambda grad, self: -grad * fused.bessel_y1(self)},
    variants="function out",
    where="special",
    domain=(0.1, 9),
    reference="scipy.special.y0",
    doc="Bessel function of the second kind, of order 0: -inf at zero, NaN left of it; the C library's.",
)

op(
    "aten::bessel_y1(Tensor self) -> Tensor",
    scalar="bessel_y1(x)",
    promote="float",
    grad={"self": lambda grad, self, result: grad * (fused.bessel_y0(self) - result / self)},
    variants="function out",
    where="special",
    domain=(0.1, 4.9),
    reference="scipy.special.y1",
    doc="Bessel function of the second kind, of order 1: -inf at zero, NaN left of it; the C library's.",
)

op(
    "aten::spherical_bessel_j0(Tensor self) -> Tensor",
    scalar="spherical_j0(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * fused._spherical_bessel_j0_slope(self)},
    variants="function out",
    where="special",
    reference=lambda x: __import__("scipy.special").special.spherical_jn(0, x.astype(float)),
    doc="Spherical Bessel function of the first kind, of order 0: sin(self) / self.",
)


def _second_slope(grad, self, result):
    """j0'' = -j0 - 2 j0' / x, which tends to -1/3 at zero."""
    at_zero = self == 0
    slope = result / fused.where(at_zero, 1.0, self)
    return grad * (-fused.spherical_bessel_j0(self) - 2 * fused.where(at_zero, -1 / 3, slope))


op(
    "aten::_spherical_bessel_j0_slope(Tensor self) -> Tensor",
    scalar="spherical_j0_slope(x)",
    promote="float",
    grad={"self": _second_slope},
    variants="function",
    where="_fused",
    reference=lambda x: __import__("scipy.special").special.spherical_jn(0, x.astype(float), True),
    doc="The derivative of spherical_bessel_j0.",
)

# ---- Airy ----------------------------------------------------------------------------------------------------------

op(
    "aten::airy_ai(Tensor self) -> Tensor",
    scalar="airy_ai(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * fused._airy_ai_slope(self)},
    variants="function out",
    where="special",
    reference=lambda x: __import__("scipy.special").special.airy(x)[0],
    doc="The Airy function Ai; error 4 ulp right of zero, 3e-16 left of it.",
)

op(
    "aten::_airy_ai_slope(Tensor self) -> Tensor",
    scalar="airy_ai_slope(x)",
    promote="float",
    grad={"self": lambda grad, self: grad * self * fused.airy_ai(self)},
    variants="function",
    where="_fused",
    reference=lambda x: __import__("scipy.special").special.airy(x)[1],
    doc="The derivative of airy_ai.",
)
