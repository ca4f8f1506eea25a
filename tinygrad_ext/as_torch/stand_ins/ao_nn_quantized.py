"""torch.ao.nn.quantized: the functions that models are written with to be quantized later, in floats."""

import tinygrad_ext as _tg
from tinygrad_ext import nn as _nn

__all__ = ["FXFloatFunctional", "FloatFunctional", "MaxPool2d"]

MaxPool2d = _nn.MaxPool2d  # the largest of quantized numbers is that of what they stand for


class FXFloatFunctional(_nn.Module):
    """Functions as methods of a module, which could observe their results."""

    def forward(self, x):
        """Refused: RuntimeError."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        """x + y."""
        return _tg.add(x, y)

    add_scalar = add

    def mul(self, x, y):
        """x * y."""
        return _tg.mul(x, y)

    mul_scalar = mul

    def matmul(self, x, y):
        """x @ y."""
        return _tg.matmul(x, y)

    def cat(self, x, dim=0):
        """The tensors of a list behind each other."""
        return _tg.cat(x, dim)

    def add_relu(self, x, y):
        """relu(x + y)."""
        return _tg.relu(_tg.add(x, y))


class FloatFunctional(FXFloatFunctional):
    """The same with a place for an observer, `activation_post_process`."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = _nn.Identity()
