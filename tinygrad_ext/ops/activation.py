"""Activations of neural networks: rectifiers and exponential units.

Each hot one has a *_backward op, so that its backward is one pass over memory.
"""

from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _np():
    import numpy

    return numpy


def sigmoid_of(x):
    return 1 / (1 + _np().exp(-x))


def with_inplace(name, types, arguments, *defaults):
    """The form with `inplace` that nn.functional's functions take as their last argument."""

    def run(self, *values):
        *values, inplace = values
        return getattr(fused, name + "_" if inplace else name)(self, *values)

    op(
        f"aten::{name}.inplace(Tensor self{', ' + arguments if arguments else ''}, bool inplace=False) -> Tensor",
        compose=run,
        types=types,
        variants="function",
        where="nn.functional",
        samples=lambda make: [Sample(make(3, 4), *defaults, False)],
        doc=f"{name} with a switch for writing over self.",
    )


def _limits(make):
    yield Sample(make(3, 4), 0, 2)
    yield Sample(make(0, 3), 0, 1)
    if make.dtype.is_signed:
        yield Sample(make(3, 4))


# ---- rectifiers ----------------------------------------------------------------------------------------------------

op(
    "aten::relu(Tensor self) -> Tensor",
    scalar={"int float": "x <= 0 ? 0 : x", "half": "bits: (uint16_t)(x - 0x8000) <= INFINITE ? 0 : x"},
    grad={"self": lambda grad, result: fused.threshold_backward(grad, result, 0)},
    variants="function method inplace function_",
    where=". nn.functional",
    reference=lambda x: _np().maximum(x, 0),
    refuses={"bool": "Boolean inputs not supported for relu: convert them first, for example with .float()"},
    doc="The larger of zero and each element.",
)

op(
    "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    scalar={"float half": "y <= threshold ? 0 : x"},
    grad={"grad_output": "threshold_backward(grad, self, threshold)"},
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), 0)],
    reference=lambda g, x, t: _np().where(x <= t, 0, g),
    doc="The gradient where self is above the threshold, else zero.",
)

op(
    "aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    scalar={"int float": "x <= threshold ? value : x"},
    promote="cast",
    grad={"self": "threshold_backward(grad, self, threshold)"},
    variants="function inplace function_ out",
    where=". nn.functional",
    samples=lambda make: [Sample(make(3, 4), 1, -2)],
    reference=lambda x, t, v: _np().where(x <= t, _np().asarray(v).astype(x.dtype), x),
    doc="Elements above the threshold; `value` in place of the others.",
)

op(
    "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    scalar={"float": "x > 0 ? x : x * negative_slope"},
    grad={"self": "leaky_relu_backward(grad, self, negative_slope)"},
    variants="function inplace function_",
    where="nn.functional",
    reference=lambda x, slope=0.01: _np().where(x > 0, x, x * slope),
    doc="x where positive, else negative_slope * x.",
)

op(
    "aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope) -> Tensor",
    scalar={"float": "y > 0 ? x : x * negative_slope"},
    grad={"grad_output": "leaky_relu_backward(grad, self, negative_slope)"},
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), 0.1)],
    doc="Derivative of leaky_relu.",
)

op(
    "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    scalar={
        "int": {
            "aux[0].i < 0 && min_val > 0": "FAIL(TGX_BAD_VALUE)",  # a negative limit wrapped
            "else": "x < min_val ? min_val : x > max_val ? max_val : x",
        },
        "float": "(x < min_val ? min_val : x) > max_val ? max_val : x < min_val ? min_val : x",
    },
    promote="cast",
    failure="cannot do hardtanh on an unsigned type with negative limits: convert it first, for example with .int()",
    grad={"self": "hardtanh_backward(grad, self, min_val, max_val)"},
    refuses={
        "bool": "Bool inputs not supported for hardtanh: convert them first, for example with .float()",
        "crossed": "hardtanh: min_val cannot be greater than max_val",
    },
    variants="function inplace function_",
    where="nn.functional",
    samples=_limits,
    reference=lambda x, low=-1, high=1: _np().clip(x, low, high),
    doc="Elements limited to the range from min_val to max_val, with no gradient outside and on its ends.",
)

op(
    "aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    scalar={"float": "y <= min_val || y >= max_val ? 0 : x"},
    grad={"grad_output": "hardtanh_backward(grad, self, min_val, max_val)"},
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), -1, 1)],
    doc="The gradient strictly between the limits, else zero.",
)

op(
    "aten::relu6(Tensor self) -> Tensor",
    scalar={"int float": "x < 0 ? 0 : x > 6 ? 6 : x"},
    grad={"self": lambda grad, self: fused.hardtanh_backward(grad, self, 0, 6)},
    variants="function inplace",
    where="nn.functional",
    reference=lambda x: _np().clip(x, 0, 6),
    domain=(-4, 9),
    doc="min(max(x, 0), 6).",
)

op(
    "aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    scalar={"float": "x > 0 ? x : y * x"},
    grad={
        "self": "_prelu_slope(grad, self, weight)",
        "weight": "_prelu_weight_slope(grad, self)",
    },
    variants="function",
    where="_fused",
    doc="x where positive, else the slope of the same place times x.",
)


def _where_not_positive(grad, grad_output, self):
    return fused.where(self > 0, 0, grad * grad_output)


op(
    "aten::_prelu_slope(Tensor grad_output, Tensor self, Tensor weight) -> Tensor",
    scalar={"float": "y > 0 ? x : x * z"},
    grad={"grad_output": "_prelu_slope(grad, self, weight)", "weight": _where_not_positive},
    variants="function",
    where="_fused",
    doc="The gradient where self is positive, else times the slope of the same place.",
)

op(
    "aten::_prelu_weight_slope(Tensor grad_output, Tensor self) -> Tensor",
    scalar={"float": "y > 0 ? 0 : x * y"},
    grad={"grad_output": "_prelu_weight_slope(grad, self)", "self": _where_not_positive},
    variants="function",
    where="_fused",
    doc="What the slopes of prelu get of each place: zero where self is positive, else the gradient times self.",
)


def _prelu(self, weight):
    count = weight.numel()
    if weight.dim() > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}. It holds one "
            "slope, or one for each channel."
        )
    if self.dim() == 0 and count > 1:
        raise RuntimeError("Not allow zero-dim input tensor. prelu with several slopes needs a dimension of channels.")
    if count > 1 and self.shape[1 if self.dim() > 1 else 0] != count:
        found = self.shape[1 if self.dim() > 1 else 0]
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{count} and channel size = {found}."
        )
    shape = [1] * self.dim()
    if self.dim() > 0:
        shape[1 if self.dim() > 1 else 0] = count
    return fused._prelu_kernel(self, weight.reshape(shape))


op(
    "aten::prelu(Tensor self, Tensor weight) -> Tensor",
    compose=_prelu,
    types="float",
    where=". nn.functional",
    samples=lambda make: [Sample(make(3, 4), make(4)), Sample(make(2, 3, 4), make(3)), Sample(make(3, 4), make(1))],
    doc="x where positive, else weight * x; weight has one slope or one for each channel (dimension 1).",
)

# ---- exponential units ---------------------------------------------------------------------------------------------

op(
    "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    scalar={"float": "x <= 0 ? expm1(x * input_scale) * alpha * scale : x * scale"},
    grad={"self": "elu_backward(grad, self, alpha, scale, input_scale)"},
    variants="function inplace",
    where="_fused",
    reference=lambda x, a=1, s=1, i=1: _np().where(x <= 0, a * s * _np().expm1(_np().minimum(x * i, 0)), s * x),
    doc="Exponential linear unit.",
)

op(
    "aten::elu_backward(Tensor grad_output, Tensor self, Scalar alpha, Scalar scale, Scalar input_scale) -> Tensor",
    scalar={"float": "y <= 0 ? x * input_scale * alpha * scale * exp(y * input_scale) : x * scale"},
    grad={
        "grad_output": "elu_backward(grad, self, alpha, scale, input_scale)",
        "self": lambda grad, grad_output, self, alpha, scale, input_scale: _elu_second(
            grad * grad_output, self, alpha, scale, input_scale
        ),
    },
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), 1.5, 1.0, 1.0)],
    doc="Derivative of elu.",
)


def _elu_second(grad, self, alpha, scale, input_scale):
    curve = (self * input_scale).exp() * (alpha * scale * input_scale * input_scale)
    return grad * fused.where(self < 0, curve, 0)


op(
    "aten::elu.functional(Tensor self, Scalar alpha=1.0, bool inplace=False) -> Tensor",
    types="float",
    compose=lambda self, alpha, inplace: (fused.elu_ if inplace else fused.elu)(self, alpha),
    variants="function",
    where="nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(3, 4), 0.5)],
    reference=lambda x, a=1: _np().where(x <= 0, a * _np().expm1(_np().minimum(x, 0)), x),
    doc="x where positive, else alpha * (exp(x) - 1).",
)

_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

op(
    "aten::selu(Tensor self) -> Tensor",
    scalar={"float": "x <= 0 ? expm1(x) * 1.7580993408473768 : x * 1.0507009873554805"},
    grad={"self": lambda grad, self: fused.elu_backward(grad, self, _ALPHA, _SCALE, 1)},
    variants="function inplace function_",
    where=". nn.functional",
    reference=lambda x: _SCALE * _np().where(x <= 0, _ALPHA * _np().expm1(_np().minimum(x, 0)), x),
    doc="elu with the constants of self-normalising networks (Klambauer et al., 2017).",
)

op(
    "aten::celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    compose=lambda self, alpha: _celu(self, alpha),
    types="float",
    variants="function inplace function_",
    where=". nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(3, 4), 0.5)],
    errors=[(lambda: _celu(None, 0), RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU")],
    doc="x where positive, else alpha * (exp(x / alpha) - 1).",
)


def _celu(self, alpha):
    if alpha == 0:
        raise RuntimeError(
            "ZeroDivisionError: alpha cannot be 0 for CELU: celu() divides by it. Use relu() for the limit."
        )
    return fused.elu(self, alpha, 1, 1 / alpha)


for _name in ("relu", "relu6"):
    with_inplace(_name, "int float", "")
with_inplace("selu", "float", "")
with_inplace("leaky_relu", "float", "Scalar negative_slope=0.01", 0.1)
with_inplace("celu", "float", "Scalar alpha=1.0", 2.0)
with_inplace("hardtanh", "int float", "Scalar min_val=-1.0, Scalar max_val=1.0", 0.0, 2.0)
with_inplace("threshold", "int float", "Scalar threshold, Scalar value", 0.5, 2.0)
