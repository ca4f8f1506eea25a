"""Channels into pixels and back, groups of channels, bilinear forms, shrinkage."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops import batching_layers
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_ALL = "bool int float half complex"


def _np_shuffled(x, r):
    out = x.reshape((-1, x.shape[-3] // r**2, r, r, *x.shape[-2:])).transpose(0, 1, 4, 2, 5, 3)
    return out.reshape((*x.shape[:-3], x.shape[-3] // r**2, x.shape[-2] * r, x.shape[-1] * r))


def _np_unshuffled(x, r):
    out = x.reshape((-1, x.shape[-3], x.shape[-2] // r, r, x.shape[-1] // r, r)).transpose(0, 1, 3, 5, 2, 4)
    return out.reshape((*x.shape[:-3], x.shape[-3] * r**2, x.shape[-2] // r, x.shape[-1] // r))


def _np_channels(x, groups):
    return x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])).swapaxes(1, 2).reshape(x.shape)


op(
    "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    kernel="pixel_shuffle",
    batch="leading",
    variants="function",
    where=". nn.functional",
    types=_ALL,
    grad={"self": lambda grad, upscale_factor: tg.pixel_unshuffle(grad, upscale_factor)},
    jvp="linear",
    samples=lambda make: [Sample(make(1, 8, 2, 3), 2), Sample(make(9, 1, 2), 3), Sample(make(2, 2, 4, 1, 1), 1)],
    reference=_np_shuffled,
    errors=[
        (lambda: tg.pixel_shuffle(zeros(3, 2, 2), 2), RuntimeError, "is not divisible by 4"),
        (lambda: tg.pixel_shuffle(zeros(3, 2, 2), 2**40), RuntimeError, "is not divisible by 9223372036854775807"),
        (lambda: tg.pixel_shuffle(zeros(0, 2, 2), 2**63 - 1), RuntimeError, "has too many elements"),
        (lambda: tg.pixel_shuffle(zeros(3, 2, 2), 0), RuntimeError, "expects a positive upscale_factor, but got 0"),
        (lambda: tg.pixel_shuffle(zeros(3, 2), 1), RuntimeError, "at least 3 dimensions, but got input with 2"),
        (lambda: tg.pixel_shuffle(zeros(*[1] * 63), 1), RuntimeError, "with 63 dimension(s); 62 at most"),
    ],
    doc="(*, C r r, H, W) as (*, C, H r, W r): r by r channels become a square of pixels (Shi et al. 2016).",
)

op(
    "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    kernel="pixel_unshuffle",
    batch="leading",
    variants="function",
    where=". nn.functional",
    types=_ALL,
    grad={"self": lambda grad, downscale_factor: tg.pixel_shuffle(grad, downscale_factor)},
    jvp="linear",
    samples=lambda make: [Sample(make(1, 2, 4, 6), 2), Sample(make(1, 3, 3), 3), Sample(make(2, 2, 1, 4, 2), 2)],
    reference=_np_unshuffled,
    errors=[
        (lambda: tg.pixel_unshuffle(zeros(3, 3, 2), 2), RuntimeError, "height to be divisible"),
        (
            lambda: tg.pixel_unshuffle(zeros(3, 2, 3), 2),
            RuntimeError,
            "divisible by downscale_factor, but input.size(-1)=3",
        ),
        (lambda: tg.pixel_unshuffle(zeros(3, 0, 0), 2**62), RuntimeError, "has too many elements"),
        (lambda: tg.pixel_unshuffle(zeros(3, 2, 2), -1), RuntimeError, "a positive downscale_factor, but got -1"),
    ],
    doc="(*, C, H r, W r) as (*, C r r, H, W), the inverse of pixel_shuffle.",
)


def _channels_back(grad, groups):
    """Each channel back to its group; also where there is none, so that groups of none need not be counted."""
    shape = grad.shape
    return grad.reshape((shape[0], shape[1] // groups, groups, *shape[2:])).transpose(1, 2).reshape(shape)


op(
    "aten::channel_shuffle(Tensor self, int groups) -> Tensor",
    kernel="channel_shuffle",
    batch=batching_layers.channel_shuffle,
    variants="function",
    where=". nn.functional",
    types=_ALL,
    grad={"self": _channels_back},
    jvp="linear",
    samples=lambda make: [Sample(make(1, 4, 2, 2), 2), Sample(make(2, 6, 3), 3)],
    reference=_np_channels,
    errors=[
        (lambda: tg.channel_shuffle(zeros(1, 3, 2), 2), RuntimeError, "must be divisible by groups"),
        (lambda: tg.channel_shuffle(zeros(1, 3, 2), 0), RuntimeError, "must be positive. Value of groups:0"),
        (lambda: tg.channel_shuffle(zeros(3, 2), 1), RuntimeError, "than 64, but got input with sizes [3, 2]"),
    ],
    doc="Channels of groups one after the other: the first of each group, then the second of each (Zhang et al. 2017).",
)


@rounded_once
def _bilinear(input1, input2, weight, bias):
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    if weight.dim() != 3:
        raise RuntimeError(f"bilinear(): expected weight of shape (out, in1, in2), got {list(weight.shape)}")
    for i, x in ((1, input1), (2, input2)):
        if x.shape[-1] != weight.shape[i]:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {x.shape[-1]} but expected "
                f"{weight.shape[i]}"
            )
    outputs, rows, columns = weight.shape
    out = input2 @ weight.reshape(outputs * rows, columns).mT  # one product for all outputs
    if rows == 1:
        out = out * input1  # a product for each row of a batch would be one of a number
    else:
        out = (out.reshape((*input2.shape[:-1], outputs, rows)) @ input1.unsqueeze(-1)).squeeze(-1)
    return out if bias is None else out + bias


op(
    "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    compose=_bilinear,
    variants="function",
    where=". nn.functional",
    types="float",
    samples=lambda make: [
        Sample(make(3, 4), make(3, 5), make(2, 4, 5)),
        Sample(make(4), make(5), make(2, 4, 5), make(2)),
        Sample(make(2, 3, 4), make(2, 3, 1), make(2, 4, 1), make(2)),
        Sample(make(2, 3, 1), make(2, 3, 4), make(2, 1, 4), make(2)),
    ],
    reference=lambda a, b, w, bias=0.0: _np().einsum("...i,kij,...j->...k", a, w, b) + bias,
    errors=[
        (
            lambda: _bilinear(zeros(3), zeros(3), zeros(3), None),
            RuntimeError,
            "expected weight of shape (out, in1, in2)",
        ),
        (
            lambda: _bilinear(zeros(2), zeros(3), zeros(1, 3, 3), None),
            RuntimeError,
            "input1 size does not match weight",
        ),
    ],
    doc="A bilinear form for each output: input1 (*, I) and input2 (*, J) with weight (K, I, J) give (*, K); "
    "bias is added.",
)


def _np():
    import numpy

    return numpy


op(
    "aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    scalar={"float": "(x >= -lambd) & (x <= lambd) ? 0 : x"},
    grad={"self": "hardshrink_backward(grad, self, lambd)"},
    variants="function method out",
    where=". nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(3), 1.5)],
    reference=lambda x, lambd=0.5: _np().where(abs(x) <= lambd, 0, x),
    tags="exact",
    doc="The elements beyond lambd on either side; zero in place of the others.",
)

op(
    "aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
    scalar={"float": "(y >= -lambd) & (y <= lambd) ? 0 : x"},
    grad={"grad_out": "hardshrink_backward(grad, self, lambd)"},
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), 0.5)],
    reference=lambda g, x, lambd: _np().where(abs(x) <= lambd, 0, g),
    tags="exact",
    doc="The gradient where self is beyond lambd on either side, else zero: that of softshrink too.",
)

op(
    "aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    scalar={"float": "x - ((x < -lambd ? -lambd : x) > lambd ? lambd : x < -lambd ? -lambd : x)"},
    grad={"self": "hardshrink_backward(grad, self, lambd)"},
    refuses={"beyond": "softshrink(): argument lambd, the lambda,"},
    variants="function out",
    where="nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(3), 1.5)],
    errors=[(lambda: functions["nn.functional.softshrink"](zeros(2), -0.5), RuntimeError, "must be in range [0, 3.4")],
    reference=lambda x, lambd=0.5: _np().sign(x) * _np().maximum(abs(x) - lambd, 0),
    tags="exact",
    doc="Elements brought towards zero by lambd, zero where they are within it.",
)
