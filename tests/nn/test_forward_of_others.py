"""A layer's `forward` computes with what PyTorch's has: libraries hand it objects of their own as self."""

import types

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

LAYERS = [
    *[(kind(2, 3, 3, padding=1, padding_mode="reflect"), 2) for kind in (nn.Conv1d, nn.Conv2d)],
    *[(kind(2, 3, 3, padding=1), 2) for kind in (nn.Conv1d, nn.Conv3d)],
    (nn.Conv2d(2, 3, 3, padding="same"), 2),
    *[(kind(2), 2) for kind in (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)],
    *[(kind(1), 2) for kind in (nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReplicationPad1d, nn.ReplicationPad3d)],
    (nn.ConstantPad2d(1, 3.0), 2), (nn.ZeroPad2d(1), 2), (nn.Linear(4, 3), 4), (nn.LayerNorm(4), 4), (nn.GELU(), 2),
    (nn.Embedding(4, 3), None), (nn.PReLU(), 2), (nn.GroupNorm(2, 4), 4), (nn.Softmax(1), 2), (nn.Flatten(), 2),
]  # fmt: skip


def name(value):
    return type(value).__name__ if isinstance(value, nn.Module) else None


@pytest.mark.parametrize(("layer", "channels"), LAYERS, ids=name)
def test_it_needs_the_attributes_of_the_instance_alone(layer, channels):
    kind = type(layer)
    dims = int(kind.__name__[-2]) if kind.__name__.endswith("d") else 0
    x = tg.arange(3) if channels is None else tg.linspace(-1, 1, channels * 4**dims).view(1, channels, *[4] * dims)
    other = types.SimpleNamespace(**vars(layer))
    if hasattr(kind, "_conv_forward"):
        other._conv_forward = types.MethodType(kind._conv_forward, other)
    assert kind.forward(other, x).tolist() == layer(x).tolist()
