"""Group norm and instance norm: channels of an example brought to mean 0 and variance 1, several or one at a time."""

import tinygrad_ext as tg
from tinygrad_ext.ops import forward
from tinygrad_ext.ops.batching_layers import channels_folded, channels_unfolded
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float, rounded_once
from tinygrad_ext.ops.norm_twice import group_norm_twice
from tinygrad_ext.ops.normalize import np_layer_norm
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _by_channel(t, rank):
    return t.reshape(1, -1, *[1] * (rank - 2))


def _group_norm(input, num_groups, weight, bias, eps, cudnn_enabled=True):
    shape = input.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if num_groups <= 0 or shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(shape)} and num_groups={num_groups}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and tuple(t.shape) != (shape[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but "
                f"got {name} of shape {list(t.shape)} and input of shape {list(shape)}"
            )
    return fused._group_norm(input, num_groups, weight, bias, eps)


@in_float
def _group_back(grad, input, num_groups, weight, bias, eps, needs):
    by_input, gains, shifts = fused._group_norm_backward(grad, input, num_groups, weight, eps)
    return (
        by_input if needs[0] else None,
        gains.sum(0).to(weight.dtype) if needs[1] else None,
        shifts.sum(0).to(bias.dtype) if needs[2] else None,
    )


def _group_back_batch(b, grad_output, self, num_groups, weight, eps):
    """The batch is more examples, or more channels where it has weights of its own."""
    grad, x = b.whole(grad_output), b.whole(self)
    if b.owns(weight):
        found = fused._group_norm_backward(
            channels_folded(grad), channels_folded(x), b.size * num_groups, b.whole(weight).reshape(-1), eps
        )
        return tuple(channels_unfolded(t, b.size, x.shape[2]) for t in found)
    grad, folded = (t.reshape((t.shape[0] * t.shape[1], *t.shape[2:])) for t in (grad, x))
    found = fused._group_norm_backward(grad, folded, num_groups, weight, eps)
    return tuple(t.reshape((b.size, x.shape[1], *t.shape[1:])) for t in found)


def _group_back_forward(
    grad_output, grad_output_tangent, self, self_tangent, num_groups, weight, weight_tangent, eps
):  # fmt: skip
    """With y normalized, s one over the deviation and g the gradient times weight: of s (g - mean g - y mean(g y))."""
    space = self.shape[2:].numel()
    grouped = lambda t: t.reshape((self.shape[0], num_groups, self.shape[1] // num_groups * space))
    mean = lambda t: t.mean(-1, keepdim=True)
    summed = lambda t: t.reshape((*self.shape[:2], space)).sum(-1)
    times = lambda t, w: t if w is None else t * _by_channel(w, self.dim())
    whole = fused._group_norm(self, num_groups, None, None, eps)
    y, g = grouped(whole), grouped(times(grad_output, weight))
    s = (grouped(self).var(-1, correction=0, keepdim=True) + eps).rsqrt()
    total = gains = shifts = None
    moved = None if grad_output_tangent is None else times(grad_output_tangent, weight)
    if weight_tangent is not None:
        moved = forward.plus(moved, times(grad_output, weight_tangent))
    if moved is not None:
        dg = grouped(moved)
        total = s * (dg - mean(dg) - y * mean(dg * y))
    if grad_output_tangent is not None:
        gains, shifts = summed(grad_output_tangent * whole), summed(grad_output_tangent)
    if self_tangent is not None:
        turned = fused._group_norm_backward(self_tangent, self, num_groups, None, eps)[0]
        dy, inner = grouped(turned), mean(g * y)
        slope = -s * mean(y * grouped(self_tangent)) * (g - mean(g) - y * inner) - (dy * inner + y * mean(g * dy))
        total = forward.plus(total, s * slope)
        gains = forward.plus(gains, summed(grad_output * turned))
    return total.reshape(self.shape), gains, shifts


def _np_group_norm_backward(grad_output, self, num_groups, weight, eps):
    import numpy as np

    grouped = lambda t: t.reshape(len(self), num_groups, -1)
    x, summed = grouped(self), lambda t: t.reshape(*self.shape[:2], -1).sum(-1)
    s = 1 / np.sqrt(x.var(-1, keepdims=True) + eps)
    y = (x - x.mean(-1, keepdims=True)) * s
    by = 1 if weight is None else weight.reshape(1, -1, *[1] * (self.ndim - 2))
    g = grouped(grad_output * by)
    dx = s * (g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True))
    return dx.reshape(self.shape), summed(grad_output * y.reshape(self.shape)), summed(grad_output)


def _group_forward(input, input_tangent, num_groups, weight, weight_tangent, bias_tangent, eps, result):
    """Without weight the derivative is symmetric, so the rule for the gradient serves."""
    total = None
    if input_tangent is not None:
        total = rounded_once(fused._group_norm_backward)(input_tangent, input, num_groups, None, eps)[0]
        total = total if weight is None else total * _by_channel(weight, input.dim())
    if weight_tangent is not None:
        plain = fused._group_norm(input, num_groups, None, None, eps)
        total = forward.plus(total, plain * _by_channel(weight_tangent, input.dim()))
    if bias_tangent is not None:
        total = forward.plus(total, _by_channel(bias_tangent, input.dim()))
    return total.expand(result.shape)


def _group_batch(b, input, num_groups, weight, bias, eps):
    """The batch is more examples; parameters of its own are applied afterwards."""
    whole = b.whole(input)
    own = b.owns(weight) or b.owns(bias)
    found = fused._group_norm(
        whole.reshape((whole.shape[0] * whole.shape[1], *whole.shape[2:])),
        num_groups,
        None if own else weight,
        None if own else bias,
        eps,
    ).reshape(whole.shape)
    for t, apply in ((weight, tg.mul), (bias, tg.add)):
        if own and t is not None:
            found = apply(found, b.whole(t).reshape((b.size, 1, -1, *[1] * (whole.dim() - 3))))
    return found


def _group_samples(make):
    yield Sample(make(2, 6, 3), 3, make(6), make(6))
    yield Sample(make(2, 4), 2)


def _np_group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    y = np_layer_norm(
        x.reshape(x.shape[0], num_groups, -1), (1,) if not x.size else (x[0].size // num_groups,), eps=eps
    )
    y = y.reshape(x.shape)
    y = y if weight is None else y * weight.reshape(1, -1, *[1] * (x.ndim - 2))
    return y if bias is None else y + bias.reshape(1, -1, *[1] * (x.ndim - 2))


_GROUP_NORM = {
    "compose": _group_norm, "variants": "function", "samples": _group_samples, "reference": _np_group_norm,
    "doc": "Bring each of num_groups groups of channels (dimension 1), with all that follows, to mean 0 and variance 1 "
           "for each example, then multiply by weight and add bias (C each).",
}  # fmt: skip

op(
    "aten::_group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps) -> Tensor",
    kernel="group_norm",
    batch=_group_batch,
    variants="function",
    where="_fused",
    samples=lambda make: [
        Sample(make(2, 6, 3), 3, make(6), make(6), 1e-5),
        Sample(make(2, 4), 2, None, make(4), 0.1),
        Sample(make(1, 2, 2, 3), 1, make(2), None, 1e-5),
    ],
    reference=_np_group_norm,
    grad={"input, weight, bias": _group_back},
    jvp=_group_forward,
    doc="group_norm of an input whose sizes were checked.",
)
op(
    "aten::_group_norm_backward(Tensor grad_output, Tensor self, int num_groups, Tensor? weight, float eps) -> "
    "(Tensor dx, Tensor gains, Tensor shifts)",
    kernel="group_norm_backward",
    batch=_group_back_batch,
    variants="function",
    where="_fused",
    samples=lambda make: [
        Sample(make(2, 6, 3), make(2, 6, 3), 3, make(6), 1e-5),
        Sample(make(2, 4), make(2, 4), 2, None, 0.1),
        Sample(make(1, 2, 2, 3), make(1, 2, 2, 3), 1, make(2), 1e-5),
    ],
    grad={"grad_output, self, weight": group_norm_twice},
    jvp=_group_back_forward,
    reference=_np_group_norm_backward,
    doc="Derivatives of group_norm by input, and by weight and bias for each example.",
)
op(
    "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enabled=True) -> Tensor",
    **_GROUP_NORM,
)
op(
    "aten::group_norm.functional(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05) -> Tensor",
    where="nn.functional",
    **_GROUP_NORM,
)


def _instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps):
    n, c, *space = input.shape
    if use_input_stats and input.numel() == n * c:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if input.dtype in (tg.float16, tg.bfloat16):  # gradients of examples are summed, and round after that
        weight, bias = (t if t is None else t.float() for t in (weight, bias))
    w, b, mean, var = (t if t is None else t.repeat(n) for t in (weight, bias, running_mean, running_var))
    out = tg.native_batch_norm(input.reshape(1, n * c, *space), w, b, mean, var, use_input_stats, momentum, eps)[0]
    if use_input_stats:
        with tg.no_grad():
            for running, moved in ((running_mean, mean), (running_var, var)):
                if running is not None:
                    running.copy_(moved.reshape(n, c).mean(0))
    return out.reshape(input.shape)


op(
    "aten::instance_norm.functional(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, "
    "Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
    compose=_instance_norm,
    variants="function",
    where="nn.functional",
    samples=lambda make: iter([Sample(make(2, 3, 4)), Sample(make(2, 3, 4), None, None, make(3), make(3))]),
    reference=lambda x, rm=None, rv=None, w=None, b=None: _np_group_norm(x, x.shape[1], w, b),
    doc="batch_norm of each example by itself.",
)
