"""Layer norm, batch norm and their relatives."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_layers, forward
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.norm_twice import batch_norm_twice, layer_norm_twice
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

# ---- layer norm ----------------------------------------------------------------------------------------------------


def _layer_samples(make):
    yield Sample(make(3, 4), (4,), make(4), make(4))
    yield Sample(make(2, 3, 4), (3, 4), make(3, 4))
    yield Sample(make(2, 5), (5,))
    yield Sample(make(2, 5), (5,), eps=0.1)
    yield Sample(make(0, 4), (4,), make(4), make(4))


def np_layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    import numpy as np

    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


_LAYER_NORM = {
    "kernel": "layer_norm", "variants": "function",
    "samples": _layer_samples, "reference": np_layer_norm,
    "grad": {"input, weight, bias": "_layer_norm_backward(grad, input, normalized_shape, weight, eps, needs)"},
    "jvp": forward.layer_norm,
    "doc": "Bring each part of input that has the shape normalized_shape, counted from the last dimension, to mean 0 "
           "and variance 1 (the biased one, plus eps), then multiply by weight and add bias, both of that shape.",
}  # fmt: skip

op(
    "aten::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    batch=batching_layers.layer_norm,
    **_LAYER_NORM,
)
op(
    "aten::layer_norm.functional(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05) -> Tensor",
    where="nn.functional",
    batch=batching_layers.layer_norm_functional,
    **_LAYER_NORM,
)


def _three(make):
    yield Sample(make(3, 4), make(3, 4), (4,), make(4), 1e-5, (True, True, True))
    yield Sample(make(2, 3, 4), make(2, 3, 4), (3, 4), None, 1e-5, (True, False, False))


op(
    "aten::_layer_norm_backward(Tensor grad_output, Tensor self, int[] normalized_shape, Tensor? weight, float eps, "
    "bool[3] output_mask) -> (Tensor dx, Tensor dweight, Tensor dbias)",
    batch=batching_layers.layer_norm_backward,
    kernel="layer_norm_backward",
    variants="function",
    where="_fused",
    samples=_three,
    grad={"grad_output, self, weight": layer_norm_twice},
    gaps={"reference": "gradcheck of layer_norm compares it"},
    doc="Derivatives of layer_norm by input, weight and bias, None for those not in output_mask.",
)

# ---- batch norm ----------------------------------------------------------------------------------------------------


def _batch_samples(make):
    yield Sample(make(4, 3), None, None, make(3), make(3), True)
    yield Sample(make(2, 3, 5), None, None, make(3), make(3), True, 0.1, 1e-3)
    yield Sample(make(2, 3, 2, 2), None, None, training=True)
    yield Sample(
        make(4, 3), make.like([0.5, 0.0, -1.0]).detach(), make.like([1.0, 2.0, 0.5]).detach(), make(3), make(3)
    )


def _np_batch_norm(
    x, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    import numpy as np

    axes = (0, *range(2, x.ndim))

    def spread(v):
        return v.reshape(1, -1, *[1] * (x.ndim - 2))

    mean = x.mean(axes) if training else running_mean
    var = x.var(axes) if training else running_var
    y = (x - spread(mean)) / np.sqrt(spread(var) + eps)
    y = y if weight is None else y * spread(weight)
    return y if bias is None else y + spread(bias)


def np_native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """With the statistics that were used."""
    import numpy as np

    axes = (0, *range(2, x.ndim))
    y = _np_batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    mean, var = (x.mean(axes), x.var(axes)) if training else (running_mean, running_var)
    return y, mean, 1 / np.sqrt(var + eps)


def _refuse_single(input):
    count = input.numel() // input.shape[1] if input.dim() > 1 and input.shape[1] else 0
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")


def _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    if training:
        _refuse_single(input)
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return fused.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


op(
    "aten::batch_norm.functional(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
    "Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
    compose=_batch_norm,
    variants="function",
    where="nn.functional",
    samples=_batch_samples,
    reference=_np_batch_norm,
    doc="Bring each channel (dimension 1) to mean 0 and variance 1, then multiply by weight and add bias (C each). "
    "training takes mean and variance from the batch and moves running_mean and running_var towards them by "
    "momentum, in place; otherwise these two are used.",
)


def _batch_norm_top(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    return fused.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


op(
    "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    compose=_batch_norm_top,
    variants="function",
    samples=lambda make: iter([Sample(make(4, 3), make(3), make(3), None, None, True, 0.1, 1e-5, False)]),
    reference=lambda x, w, b, rm, rv, training, momentum, eps, _: _np_batch_norm(
        x, rm, rv, w, b, training, momentum, eps
    ),
    doc="nn.functional.batch_norm with the arguments in another order.",
)


def _batch_norm_grad(grad_out, input, weight, save_mean, save_invstd, training, eps, needs):
    return fused._batch_norm_backward(grad_out, input, weight, save_mean, save_invstd, training, eps, needs[:3])


op(
    "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, "
    "Tensor(b!)? running_var, bool training, float momentum, float eps) "
    "-> (Tensor out, Tensor save_mean, Tensor save_invstd)",
    batch=batching_layers.batch_norm,
    kernel="batch_norm",
    variants="function",
    samples=lambda make: iter([Sample(make(4, 3), make(3), make(3), None, None, True, 0.1, 1e-5)]),
    grad={"input, weight, bias": _batch_norm_grad},
    jvp=forward.batch_norm,
    reference=np_native_batch_norm,
    doc="batch_norm, and the mean and 1 / sqrt(variance + eps) of each channel that it used.",
)

op(
    "aten::_batch_norm_backward(Tensor grad_output, Tensor self, Tensor? weight, Tensor mean, Tensor invstd, "
    "bool training, float eps, bool[3] output_mask) -> (Tensor dx, Tensor dweight, Tensor dbias)",
    batch=batching_layers.batch_norm_backward,
    kernel="batch_norm_backward",
    variants="function",
    where="_fused",
    grad={"grad_output, self, weight": batch_norm_twice},
    samples=lambda make: iter(
        [
            Sample(
                make(4, 3),
                make(4, 3),
                make(3),
                make(3).detach(),
                make(3, low=1, high=2).detach(),
                training,
                1e-5,
                (True, True, True),
            )
            for training in (True, False)
        ]
    ),
    gaps={
        "reference": "gradcheck of batch_norm compares it",
        "gradcheck": "takes mean and invstd for functions of self, which they are in use",
        "gradgradcheck": "takes mean and invstd for functions of self, which they are in use",
    },
    doc="Derivatives of batch_norm by input, weight and bias, None for those not in output_mask.",
)

# ---- relatives -----------------------------------------------------------------------------------------------------


@rounded_once
def _rms_norm(input, normalized_shape, weight, eps):
    n = len(normalized_shape)
    if n == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []: rms_norm needs the sizes of the last dimensions to normalize over"
        )
    if weight is not None and tuple(weight.shape) != tuple(normalized_shape):
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} "
            f"and normalized_shape = {list(normalized_shape)}"
        )
    if tuple(input.shape[input.dim() - n :]) != tuple(normalized_shape):
        text = ", ".join(map(str, normalized_shape))
        raise RuntimeError(
            f"Given normalized_shape=[{text}], expected input with shape [*, {text}], but got input of "
            "size"
            f"{list(input.shape)}"
        )
    eps = tg.finfo(input.dtype).eps if eps is None else eps
    out = input * ((input * input).mean(tuple(range(-n, 0)), keepdim=True) + eps).rsqrt()
    return out if weight is None else out * weight


def _np_rms_norm(x, normalized_shape, weight=None, eps=None):
    import numpy as np

    axes = tuple(range(-len(normalized_shape), 0))
    y = x / np.sqrt((x * x).mean(axes, keepdims=True) + (np.finfo(x.dtype).eps if eps is None else eps))
    return y if weight is None else y * weight


_RMS_NORM = {
    "compose": _rms_norm, "variants": "function", "reference": _np_rms_norm,
    "samples": lambda make: iter([Sample(make(3, 4), (4,), make(4)), Sample(make(2, 3, 4), (3, 4), eps=0.1)]),
    "doc": "Divide each part of input that has the shape normalized_shape by its root mean square, then multiply by "
           "weight.",
}  # fmt: skip

op("aten::rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", **_RMS_NORM)
op(
    "aten::rms_norm.functional(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    where="nn.functional",
    **_RMS_NORM,
)


@rounded_once
def _normalize(input, p, dim, eps):
    return input / input.norm(p, dim, True).clamp_min(eps)


op(
    "aten::normalize(Tensor input, float p=2.0, int[1]? dim=1, float eps=1e-12) -> Tensor",
    compose=_normalize,
    variants="function out",
    where="nn.functional",
    samples=lambda make: iter(
        [
            Sample(make(3, 4)),
            Sample(make(3, 4), p=1.0, dim=0),
            Sample(make(2, 3, 2), dim=-1),
            Sample(make(2, 3, 2), dim=(1, -1)),
            Sample(make(2, 3), dim=None),
        ]
    ),
    reference=lambda x, p=2.0, dim=1, eps=1e-12: x / (abs(x) ** p).sum(dim, keepdims=True).clip(eps) ** (1 / p),
    tags="casts",
    doc="Divide input by its p-norm over dim, one or several dimensions or None for all, which counts as at least eps.",
)


@rounded_once
def _cosine_similarity(x1, x2, dim, eps):
    if x1.is_complex() or x2.is_complex():
        raise RuntimeError(
            "cosine_similarity: expected common dtype to be floating point, yet common dtype is "
            f"{(x1 if x1.is_complex() else x2).dtype}: an angle is between real vectors; pass "
            "view_as_real(x).flatten(-2)"
        )
    common = tg.promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise RuntimeError(
            f"cosine_similarity: expected common dtype to be floating point, yet common dtype is {common}: convert "
            "one of the vectors with float()"
        )
    if x1.dtype != x2.dtype:
        x1, x2 = x1.to(common), x2.to(common)
    x1, x2 = fused.broadcast_tensors(x1, x2)
    return (x1 * x2).sum(dim) / (x1.norm(2, dim).clamp_min(eps) * x2.norm(2, dim).clamp_min(eps))


def _np_cosine(a, b, dim=1, eps=1e-8):
    import numpy

    a, b = numpy.broadcast_arrays(a, b)
    return (a * b).sum(dim) / ((a * a).sum(dim) ** 0.5 * (b * b).sum(dim) ** 0.5).clip(eps)


op(
    "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    compose=_cosine_similarity,
    variants="function",
    samples=lambda make: iter(
        [
            Sample(make(3, 4), make(3, 4)),
            Sample(make(3, 4), make(3, 4), dim=0),
            Sample(make(1, 2, 3), make(2, 1, 3), dim=-2),
        ]
    ),
    reference=_np_cosine,
    errors=[
        (
            lambda: fused.cosine_similarity(tg.zeros(2, 3, dtype=tg.complex64), tg.zeros(2, 3)),
            RuntimeError,
            "expected common dtype to be floating point",
        ),
        (
            lambda: fused.cosine_similarity(tg.zeros(2, 3, dtype=tg.int8), tg.zeros(2, 3, dtype=tg.int16)),
            RuntimeError,
            "yet common dtype is torch.int16",
        ),
    ],
    doc="Cosine of the angle between x1 and x2 along dim; a length below eps counts as eps.",
)
