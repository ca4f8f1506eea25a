"""Channels into pixels and back, groups of channels, bilinear forms, shrinkage."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.formats import kept_format
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_ALL = "bool int float half complex"


def _put(self, parts, n, made, inside):
    """Elements in their new places, images of `made` channels, rows and columns. For channels_last images they are
    copied in the order `inside` of dimensions, in which the channels are the last."""
    batch = parts.shape[:n]
    if self.dim() != 4 or kept_format(self) is tg.contiguous_format:
        return parts.clone(memory_format=tg.contiguous_format).reshape((*batch, *made))
    parts = parts.permute((*range(n), *inside)).clone(memory_format=tg.contiguous_format)
    return parts.reshape((*batch, made[1], made[2], made[0])).permute((0, 3, 1, 2))


def _shuffled(self, upscale_factor):
    r = upscale_factor
    if self.dim() < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {self.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *batch, channels, height, width = self.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    n, made = len(batch), channels // (r * r)
    parts = self.reshape((*batch, made, r, r, height, width))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    if self.is_contiguous():
        made = (*batch, made, height * r, width * r)
        return parts.permute(order).clone(memory_format=tg.contiguous_format).reshape(made)
    return _put(self, parts.permute(order), n, (made, height * r, width * r), (n + 1, n + 2, n + 3, n + 4, n))


def _unshuffled(self, downscale_factor):
    r = downscale_factor
    if self.dim() < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {self.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *batch, channels, height, width = self.shape
    for name, size in (("height", height), ("width", width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({-2 if name == 'height' else -1})={size} is not divisible by {r}"
            )
    n = len(batch)
    parts = self.reshape((*batch, channels, height // r, r, width // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    made = (channels * r * r, height // r, width // r)
    return _put(self, parts.permute(order), n, made, (n + 3, n + 4, n, n + 1, n + 2))


def _np_shuffled(x, r):
    out = x.reshape((-1, x.shape[-3] // r**2, r, r, *x.shape[-2:])).transpose(0, 1, 4, 2, 5, 3)
    return out.reshape((*x.shape[:-3], x.shape[-3] // r**2, x.shape[-2] * r, x.shape[-1] * r))


def _np_unshuffled(x, r):
    out = x.reshape((-1, x.shape[-3], x.shape[-2] // r, r, x.shape[-1] // r, r)).transpose(0, 1, 3, 5, 2, 4)
    return out.reshape((*x.shape[:-3], x.shape[-3] * r**2, x.shape[-2] // r, x.shape[-1] // r))


op(
    "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    compose=_shuffled,
    variants="function",
    where=". nn.functional",
    types=_ALL,
    samples=lambda make: [Sample(make(1, 8, 2, 3), 2), Sample(make(9, 1, 2), 3), Sample(make(2, 2, 4, 1, 1), 1)],
    reference=_np_shuffled,
    errors=[(lambda: _shuffled(zeros(3, 2, 2), 2), RuntimeError, "is not divisible by 4")],
    doc="(*, C r r, H, W) as (*, C, H r, W r): r by r channels become a square of pixels (Shi et al. 2016).",
)

op(
    "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    compose=_unshuffled,
    variants="function",
    where=". nn.functional",
    types=_ALL,
    samples=lambda make: [Sample(make(1, 2, 4, 6), 2), Sample(make(1, 3, 3), 3), Sample(make(2, 2, 1, 4, 2), 2)],
    reference=_np_unshuffled,
    errors=[(lambda: _unshuffled(zeros(3, 3, 2), 2), RuntimeError, "expects height to be divisible")],
    doc="(*, C, H r, W r) as (*, C r r, H, W), the inverse of pixel_shuffle.",
)


def _channels(self, groups):
    if self.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    channels = self.shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    parts = self.reshape((self.shape[0], groups, channels // groups, *self.shape[2:]))
    made = parts.transpose(1, 2).clone(memory_format=tg.contiguous_format).reshape(self.shape)
    return made if self.is_contiguous() else made.contiguous(memory_format=kept_format(self))


op(
    "aten::channel_shuffle(Tensor self, int groups) -> Tensor",
    compose=_channels,
    variants="function",
    where=". nn.functional",
    types=_ALL,
    samples=lambda make: [Sample(make(1, 4, 2, 2), 2), Sample(make(2, 6, 3), 3)],
    errors=[(lambda: _channels(zeros(1, 3, 2), 2), RuntimeError, "must be divisible by groups")],
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
    grad={"self": lambda grad, self, lambd: grad * ((self < -lambd) | (self > lambd))},
    variants="function method out",
    where=". nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(3), 1.5)],
    reference=lambda x, lambd=0.5: _np().where(abs(x) <= lambd, 0, x),
    tags="exact",
    doc="The elements beyond lambd on either side; zero in place of the others.",
)

op(
    "aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    scalar={"float": "x > lambd ? x - lambd : x < -lambd ? x + lambd : x != x ? x : 0"},
    grad={"self": lambda grad, self, lambd: grad * ((self < -lambd) | (self > lambd))},
    refuses={"beyond": "softshrink(): argument lambd, the lambda,"},
    variants="function out",
    where="nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(3), 1.5)],
    errors=[(lambda: functions["nn.functional.softshrink"](zeros(2), -0.5), RuntimeError, "must be in range [0, 3.4")],
    reference=lambda x, lambd=0.5: _np().sign(x) * _np().maximum(abs(x) - lambd, 0),
    tags="exact",
    doc="Elements brought towards zero by lambd, zero where they are within it.",
)
