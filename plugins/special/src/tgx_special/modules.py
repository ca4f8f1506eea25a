"""Modules built on the ops of this package."""

import math

import tinygrad_ext as tg
from tinygrad_ext import nn, ops
from tinygrad_ext.ops.samples import Sample


class NormalGate(nn.Module):
    """x * ndtr(steepness * x): a gate between linear (0) and ReLU (infinity), whose steepness each channel learns.

    With a steepness of 1 it is GELU.

    Args:
        channels: size of dimension 1 of the input, one steepness for each.
        steepness: where all start.

    `forward(input)`: (batch, channels, ...) to the same shape.
    """

    def __init__(self, channels, steepness=1.0):
        super().__init__()
        self.channels = channels
        self.steepness = nn.Parameter(tg.full((channels,), float(steepness)))

    def forward(self, input):
        steepness = self.steepness.reshape(-1, *(1,) * (input.dim() - 2))
        return input * ops.special.ndtr(input * steepness)

    def extra_repr(self):
        return f"{self.channels}"


class VonMisesNLLLoss(nn.Module):
    """Negative log likelihood of angles under von Mises distributions, the normal distributions of the circle.

    `forward(input, target, concentration)`: predicted and true angles in radians, of any shapes that broadcast, and
    the positive concentrations, which may be predicted too. Returns the mean, the sum, or with reduction="none" one
    value for each angle.

    The density is exp(k cos(target - input)) / (2 pi I0(k)); log I0 comes from i0e, so that large k do not overflow.
    """

    def __init__(self, reduction="mean"):
        super().__init__()
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"special::VonMisesNLLLoss: reduction must be 'none', 'mean' or 'sum', not {reduction!r}")
        self.reduction = reduction

    def forward(self, input, target, concentration):
        log_normal = ops.special.i0e(concentration).log() + concentration + math.log(2 * math.pi)
        loss = log_normal - concentration * (target - input).cos()
        return loss if self.reduction == "none" else getattr(loss, self.reduction)()

    def extra_repr(self):
        return f"reduction={self.reduction!r}"


def gate_samples(make):
    """What `plugins check` makes a NormalGate with and feeds it."""
    yield Sample(make(2, 3), channels=3)
    yield Sample(make(2, 3, 4), channels=3, steepness=2.0)


def loss_samples(make):
    """Angles, and concentrations above zero."""
    yield Sample(make(4), make(4), make(4, low=0.5, high=3))
    yield Sample(make(2, 3), make(2, 3), make((), low=0.5, high=3), reduction="none")
