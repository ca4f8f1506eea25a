"""Convolutions."""

import math

import tinygrad_ext as tg

from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter
from .utils import n_tuple

__all__ = ["Conv1d", "Conv2d"]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What the convolutions share; a subclass has ``dims`` and ``convolve``.

    Args:
        in_channels, out_channels: sizes of the channel dimension.
        kernel_size, stride, dilation: one number or one per dimension.
        padding: likewise, or ``"valid"`` (none) or ``"same"`` (output as large as the input).
        groups: number of blocks of channels that do not see each other.
        bias: whether to add one number per output channel.
        padding_mode: what stands in the padding.

    Raises:
        ValueError: channels not divisible by ``groups``, or an unknown padding.
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
        bias=True, padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = n_tuple(kernel_size, self.dims)
        self.stride = n_tuple(stride, self.dims)
        self.padding = padding if isinstance(padding, str) else n_tuple(padding, self.dims)
        self.dilation = n_tuple(dilation, self.dims)
        self.transposed = False
        self.output_padding = (0,) * self.dims
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(tg.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(tg.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(self):
        if self.groups <= 0:
            raise ValueError(f"groups must be a positive integer, got {self.groups}")
        for name in ("in_channels", "out_channels"):
            if getattr(self, name) % self.groups:
                raise ValueError(f"{name} must be divisible by groups, got {getattr(self, name)} and {self.groups}")
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {self.padding!r}, should be one of {{'same', 'valid'}} or numbers"
                )
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError(f"padding='same' is not supported for strided convolutions, got stride {self.stride}")
        if self.padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {PADDING_MODES}, but got padding_mode={self.padding_mode!r}")

    def reset_parameters(self):
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_within_fan_in_(self.bias, self.weight)

    def _edges(self):
        """Return the padding as ``F.pad`` wants it: before and after, last dimension first."""
        if self.padding == "valid":
            return [0] * (2 * self.dims)
        edges = []
        for i in reversed(range(self.dims)):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                edges += [total // 2, total - total // 2]
            else:
                edges += [self.padding[i]] * 2
        return edges

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._edges(), mode=self.padding_mode), 0
        return self.convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.dims:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv1d(_ConvNd):
    __doc__ = "Convolution of ``(N, C, L)`` or ``(C, L)``.\n\n" + _ConvNd.__doc__.partition("\n\n")[2]
    dims = 1

    def convolve(self, *args):
        return F.conv1d(*args)


class Conv2d(_ConvNd):
    __doc__ = "Convolution of ``(N, C, H, W)`` or ``(C, H, W)``.\n\n" + _ConvNd.__doc__.partition("\n\n")[2]
    dims = 2

    def convolve(self, *args):
        return F.conv2d(*args)
