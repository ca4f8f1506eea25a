"""Normal random numbers around means and with deviations that are tensors."""

import tinygrad_ext as tg
from tinygrad_ext.ops.random import FACTORY
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _normal_around(mean, std, generator):
    return mean.new_empty(mean.shape).normal_(0, std, generator=generator).add_(mean)


def _normal_spread(mean, std, generator):
    _check_std(std)
    return std.new_empty(std.shape).normal_(generator=generator).mul_(std).add_(mean)


def _normal_each(mean, std, generator):
    _check_std(std)
    shape = tg.broadcast_tensors(mean, std)[0].shape
    return mean.new_empty(shape).normal_(generator=generator).mul_(std).add_(mean)


def _check_std(std):
    if std.dtype.is_complex:
        raise RuntimeError(f"normal expects standard deviation to be non-complex, got {std.dtype}")
    if std.numel() and bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0: there is a negative one")


def _zeros_like(name):
    if name == "mean":
        return lambda grad, mean_shape: grad.new_zeros(mean_shape)
    return lambda grad, std_shape: grad.new_zeros(std_shape)


op(
    "aten::normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
    kernel=_normal_around,
    shape=lambda mean, std, generator: mean.new_empty(mean.shape),
    variants="function out",
    grad={"mean": _zeros_like("mean")},
    types="float half",
    tags="random casts",
    samples=lambda make: [Sample(make(2, 3).detach(), 2.0), Sample(make().detach()), Sample(make(0).detach(), 1.0)],
    doc="Normal numbers, each with its own mean.",
)

op(
    "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    kernel=_normal_spread,
    shape=lambda mean, std, generator: std.new_empty(std.shape),
    variants="function out",
    grad={"std": _zeros_like("std")},
    types="float half",
    tags="random casts",
    samples=lambda make: [Sample(2.0, make(2, 3, low=0, high=2).detach())],
    errors=[(lambda: tg.normal(0.0, tg.tensor([-1.0])), RuntimeError, "std >= 0.0")],
    doc="Normal numbers of one mean, each with its own standard deviation.",
)

op(
    "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    kernel=_normal_each,
    variants="function out",
    types="float half",
    tags="random casts",
    shape=lambda mean, std, generator: mean.new_empty((mean + std).shape),
    grad={"mean": _zeros_like("mean"), "std": _zeros_like("std")},
    samples=lambda make: [
        Sample(make(2, 3).detach(), make(2, 3, low=0, high=2).detach()),
        Sample(make(3).detach(), make(2, 1, low=0, high=2).detach()),
    ],
    doc="Normal numbers, each with its own mean and standard deviation; the two broadcast.",
)

op(
    f"aten::normal.float_float(float mean, float std, int[] size, *, {FACTORY}) -> Tensor",
    kernel="normal_size",
    variants="function out",
    tags="random casts",
    samples=lambda make: [Sample(1.0, 2.0, (2, 3)), Sample(0.0, 1.0, ())],
    doc="Normal numbers of one mean and standard deviation, in a tensor of the given size.",
)
