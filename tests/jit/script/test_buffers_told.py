"""Buffers that a statement of `__init__` annotates: what they hold counts, as of others."""

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


class Weighted(nn.Module):
    def __init__(self, weight=None):
        super().__init__()
        self.register_buffer("weight", weight)
        self.weight: tg.Tensor | None

    def forward(self, x):
        if self.weight is not None and x.dim() == 1:
            if self.weight.dim() == 0:
                self.weight = tg.as_tensor([self.weight, self.weight])
            if self.weight.min() < 0:
                raise ValueError("below zero")
            x = x * self.weight
        return x


def test_a_tensor_is_a_tensor():
    for weight in (tg.tensor([2.0, 3.0]), tg.tensor(4.0)):
        assert jit.script(Weighted(weight.clone()))(tg.ones(2)).tolist() == Weighted(weight)(tg.ones(2)).tolist()


def test_none_is_none():
    assert jit.script(Weighted())(tg.ones(2)).tolist() == [1, 1]
