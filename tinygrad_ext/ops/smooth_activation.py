"""Activations of neural networks without a kink, and those made of them. Each hot one has a *_backward op."""

from math import pi, sqrt

import tinygrad_ext as tg
from tinygrad_ext.ops.activation import sigmoid_of, with_inplace
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _np():
    import numpy

    return numpy


_ROOT, _CUBE = sqrt(2 / pi), 0.044715


def _gelu_reference(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + _np().tanh(_ROOT * (x + _CUBE * x**3)))
    from scipy.special import erf

    return 0.5 * x * (1 + erf(x / sqrt(2)))


def _gelu_samples(make):
    for approximate in ("none", "tanh"):
        yield Sample(make(3, 4), approximate=approximate)
        yield Sample(make(0, 2), approximate=approximate)


op(
    "aten::gelu(Tensor self, *, str approximate='none') -> Tensor",
    scalar={"float": {"approximate == 0": "gelu(x)", "else": "gelu_tanh(x)"}},
    choices={"approximate": "none tanh"},
    grad={"self": lambda grad, self, approximate: fused.gelu_backward(grad, self, approximate=approximate)},
    variants="function out",
    where="nn.functional",
    reference=_gelu_reference,
    samples=_gelu_samples,
    errors=[
        (lambda: fused.gelu(tg.tensor([1.0]), approximate="x"), RuntimeError, "approximate argument must be either")
    ],
    tags="exact",
    doc="x times the normal distribution function of x, exactly or by a formula with tanh "
    "(Hendrycks and Gimpel, 2016).",
)

op(
    "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    scalar={"float": {"approximate == 0": "x * gelu_slope(y)", "else": "x * gelu_tanh_slope(y)"}},
    choices={"approximate": "none tanh"},
    grad={
        "grad_output": lambda grad, self, approximate: fused.gelu_backward(grad, self, approximate=approximate),
        "self": lambda grad, grad_output, self, approximate: grad * grad_output * _gelu_second(self, approximate),
    },
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), approximate=a) for a in ("none", "tanh")],
    doc="Derivative of gelu.",
)


def _gelu_second(x, approximate):
    """The second derivative of gelu."""
    if approximate == "none":
        return (2 - x * x) * (x * x * -0.5).exp() * (1 / sqrt(2 * pi))
    t = (_ROOT * (x + _CUBE * x * x * x)).tanh()
    slope, bend = _ROOT * (1 + 3 * _CUBE * x * x), 6 * _ROOT * _CUBE * x
    return (1 - t * t) * (slope + 0.5 * x * (bend - 2 * t * slope * slope))


op(
    "aten::silu(Tensor self) -> Tensor",
    scalar={"float": "x * sigmoid(x)", "complex": "TIMES(x, sigmoid(x))"},
    holomorphic=True,
    grad={"self": "silu_backward(grad, self)"},
    variants="function inplace",
    where="nn.functional",
    reference=lambda x: x * sigmoid_of(x),
    doc="x * sigmoid(x).",
)

op(
    "aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    scalar={"float complex": "silu_slope(x, y)"},
    holomorphic=True,
    grad={
        "grad_output": "silu_backward(grad, self)",
        "self": lambda grad, grad_output, self: grad * grad_output * _silu_second(self),
    },
    variants="function",
    where="_fused",
    doc="Derivative of silu.",
)


def _silu_second(x):
    s = x.sigmoid()
    return s * (1 - s) * (2 + x * (1 - 2 * s))


op(
    "aten::mish(Tensor self) -> Tensor",
    scalar={"float": "x * tanh(softplus(x))"},
    grad={"self": "mish_backward(grad, self)"},
    variants="function inplace",
    where="nn.functional",
    reference=lambda x: x * _np().tanh(_np().log1p(_np().exp(x))),
    doc="x * tanh(softplus(x)) (Misra, 2019).",
)

op(
    "aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor",
    scalar={"float": "mish_slope(x, y)"},
    grad={
        "grad_output": "mish_backward(grad, self)",
        "self": lambda grad, grad_output, self: grad * grad_output * _mish_second(self),
    },
    variants="function",
    where="_fused",
    doc="Derivative of mish.",
)


def _mish_second(x):
    s = x.sigmoid()
    t = fused.softplus(x).tanh()
    return (1 - t * t) * s * (2 + x * ((1 - s) - 2 * t * s))


op(
    "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    scalar={"float": "softplus_until(x, beta, threshold)"},
    grad={"self": "softplus_backward(grad, self, beta, threshold)"},
    variants="function out",
    where="nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(3, 4), 2, 3)],
    reference=lambda x, b=1, t=20: _np().where(x * b > t, x, _np().log1p(_np().exp(x * b)) / b),
    tags="exact",
    doc="log(1 + exp(beta * x)) / beta; x itself where beta * x is above threshold.",
)

op(
    "aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    scalar={"float": "y * beta > threshold ? x : x * sigmoid(y * beta)"},
    grad={
        "grad_output": "softplus_backward(grad, self, beta, threshold)",
        "self": lambda grad, grad_output, self, beta, threshold: _softplus_second(
            grad * grad_output, self, beta, threshold
        ),
    },
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), 1, 20)],
    doc="Derivative of softplus.",
)


def _softplus_second(grad, x, beta, threshold):
    s = (x * beta).sigmoid()
    return fused.where(x * beta >= threshold, 0, grad * (s * (1 - s) * beta))


op(
    "aten::logsigmoid(Tensor self) -> Tensor",
    scalar={"float": "-softplus(-x)"},
    grad={"self": lambda grad, self: grad * (-self).sigmoid()},
    variants="function out",
    where="nn.functional",
    reference=lambda x: -_np().log1p(_np().exp(-x)),
    tags="exact",
    doc="log(sigmoid(x)) without overflow.",
)


def _softsign_grad(grad, self):
    size = 1 + self.abs()
    if not self.is_complex():
        return grad / size.square()
    return grad / size - self.sgn() * ((grad * self.conj_physical()).real / size.square())


op(
    "aten::softsign(Tensor self) -> Tensor",
    scalar={"float": "x / (1 + fabs(x))", "complex": "x / (1 + abs(x))"},
    promote="float",
    grad={"self": lambda grad, self: _softsign_grad(grad, self)},
    jvp=lambda self, self_tangent: _softsign_grad(self_tangent, self),
    variants="function",
    where="nn.functional",
    reference=lambda x: x / (1 + abs(x)),
    doc="x / (1 + |x|).",
)

op(
    "aten::tanhshrink(Tensor self) -> Tensor",
    scalar={"float": "x - tanh(x)", "complex": "x - tanh(x)"},
    promote="float",
    holomorphic=True,
    grad={"self": lambda grad, self: grad * self.tanh().square()},
    variants="function",
    where="nn.functional",
    reference=lambda x: x - _np().tanh(x),
    doc="x - tanh(x).",
)

op(
    "aten::hardsigmoid(Tensor self) -> Tensor",
    # two choices one after the other: nested ones become a chain of masks
    scalar={"float": "((x + 3 < 0 ? 0 : x + 3) > 6 ? 6 : x + 3 < 0 ? 0 : x + 3) / 6"},
    grad={"self": "hardsigmoid_backward(grad, self)"},
    variants="function inplace",
    where="nn.functional",
    reference=lambda x: _np().clip(x + 3, 0, 6) / 6,
    doc="min(max(x + 3, 0), 6) / 6.",
)

op(
    "aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    scalar={"float": "(y <= -3) | (y >= 3) ? 0 : x / 6"},
    grad={"grad_output": "hardsigmoid_backward(grad, self)"},
    variants="function",
    where="_fused",
    reference=lambda g, x: _np().where(abs(x) < 3, g / 6, 0),
    doc="Derivative of hardsigmoid.",
)

op(
    "aten::hardswish(Tensor self) -> Tensor",
    scalar={"float": "x * ((x + 3 < 0 ? 0 : x + 3) > 6 ? 6 : x + 3 < 0 ? 0 : x + 3) / 6"},
    grad={"self": "hardswish_backward(grad, self)"},
    variants="function inplace",
    where="nn.functional",
    reference=lambda x: x * _np().clip(x + 3, 0, 6) / 6,
    doc="x * hardsigmoid(x) (Howard et al., 2019).",
)

op(
    "aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    scalar={"float": "y <= -3 ? 0 : y < 3 ? x * (y / 3 + 0.5) : x"},
    grad={
        "grad_output": "hardswish_backward(grad, self)",
        "self": lambda grad, grad_output, self: fused.hardtanh_backward(grad * grad_output, self, -3, 3) / 3,
    },
    variants="function",
    where="_fused",
    doc="Derivative of hardswish.",
)


def _glu(self, dim):
    if self.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if not self.dtype.is_floating_point:
        raise NotImplementedError(
            f'"glu" not implemented for {self.dtype}: convert the argument first, for example with .float()'
        )
    if self.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {self.shape[dim]}")
    half = self.shape[dim] // 2
    return self.narrow(dim, 0, half) * self.narrow(dim, half, half).sigmoid()


op(
    "aten::glu(Tensor self, int dim=-1) -> Tensor",
    compose=_glu,
    types="float",
    variants="function",
    where="nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(4, 3), 0), Sample(make(2, 3, 6), dim=-1)],
    reference=lambda x, dim=-1: _np().split(x, 2, dim)[0] * sigmoid_of(_np().split(x, 2, dim)[1]),
    errors=[(lambda: fused.glu(tg.tensor([1.0, 2.0, 3.0])), RuntimeError, "Halving dimension must be even")],
    doc="First half of dimension dim times the sigmoid of the second half.",
)

for _name in ("silu", "mish", "hardsigmoid", "hardswish"):
    with_inplace(_name, "float", "")
