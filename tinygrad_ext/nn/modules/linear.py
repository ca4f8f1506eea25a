"""Affine layers."""

import math

import tinygrad_ext as tg

from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Return the input. Takes and drops any arguments, so that it can stand in for another layer."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """``input @ weight.T + bias``.

    Args:
        in_features: last size of the input.
        out_features: last size of the output.
        bias: whether to add a learned offset.

    Both start uniform in ±1/sqrt(in_features).

        >>> import tinygrad_ext as tg
        >>> tg.nn.Linear(3, 4)(tg.zeros(2, 3)).shape
        torch.Size([2, 4])
    """

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(tg.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(tg.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_within_fan_in_(self.bias, self.weight)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear by the name that PyTorch's attention prints for its last projection."""


class Bilinear(Module):
    """``input1 @ weight[k] @ input2 + bias[k]`` for each output k.

    Args:
        in1_features, in2_features: last sizes of the two inputs.
        out_features: last size of the output.
        bias: whether to add a learned offset.

    Both start uniform in ±1/sqrt(in1_features).
    """

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(tg.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(tg.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias anew."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
