"""Convolutions."""

import math

import tinygrad_ext as tg

from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter
from .utils import n_tuple

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What the convolutions share; a subclass has ``dims``, and ``_conv_forward``, or ``convolve`` if it is transposed.

    A plain one computes with what PyTorch's has too: libraries hand such methods objects of their own as self.

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

    transposed = False

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
        bias=True, padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self._configure(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, where
        )

    def _configure(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups,
        bias, padding_mode, where,
    ):  # fmt: skip
        """Keep and check the arguments, and make weight and bias."""
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = n_tuple(kernel_size, self.dims)
        self.stride = n_tuple(stride, self.dims)
        self.padding = padding if isinstance(padding, str) else n_tuple(padding, self.dims)
        self.dilation = n_tuple(dilation, self.dims)
        self.transposed = type(self).transposed
        self.output_padding = n_tuple(output_padding, self.dims)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        self._reversed_padding_repeated_twice = self._edges()
        self.weight = Parameter(tg.empty(self._weight_shape(), **where))
        if bias:
            self.bias = Parameter(tg.empty(out_channels, **where))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self):
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

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

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.dims:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self.dims:
            text += f", output_padding={self.output_padding}"
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

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return F.conv1d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_ConvNd):
    __doc__ = "Convolution of ``(N, C, H, W)`` or ``(C, H, W)``.\n\n" + _ConvNd.__doc__.partition("\n\n")[2]
    dims = 2

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return F.conv2d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_ConvNd):
    __doc__ = "Convolution of ``(N, C, D, H, W)`` or ``(C, D, H, W)``.\n\n" + _ConvNd.__doc__.partition("\n\n")[2]
    dims = 3

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return F.conv3d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """What the transposed convolutions share: each one is the gradient of a convolution with respect to its input.

    Args:
        in_channels, out_channels: sizes of the channel dimension.
        kernel_size, stride, padding, dilation: those of the convolution, one number or one per dimension.
        output_padding: added to the output's size at one side, where several sizes convolve to that of the input.
        groups: number of blocks of channels that do not see each other.
        bias: whether to add one number per output channel.
        padding_mode: ``"zeros"``; there is no other.

    A call takes the input and, instead of ``output_padding``, an ``output_size``: all sizes or those of the last
    dimensions.

    Raises:
        ValueError: channels not divisible by ``groups``, another padding mode, or an ``output_size`` out of reach.
    """

    transposed = True

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
        bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        Module.__init__(self)
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}, got {padding_mode!r}')
        where = {"device": device, "dtype": dtype}
        self._configure(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
            padding_mode, where,
        )  # fmt: skip

    def forward(self, input, output_size: "list[int] | None" = None):
        output_padding = (
            list(self.output_padding) if output_size is None else self._padding_for(input, list(output_size))
        )
        return self.convolve(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )

    def _padding_for(self, input, sizes):
        """Return the output padding that leads to the sizes asked for."""
        before = input.dim() - self.dims
        if len(sizes) == before + self.dims:
            sizes = sizes[before:]
        if len(sizes) != self.dims:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {self.dims} or "
                f"{before + self.dims} elements (got {len(sizes)})"
            )
        least = [
            (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1
            for size, stride, padding, dilation, kernel in zip(
                input.shape[before:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        most = [size + stride - 1 for size, stride in zip(least, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(least, sizes, most)):
            raise ValueError(
                f"{type(self).__name__}: requested an output size of {sizes}, but valid sizes range from {least} "
                f"to {most} (for an input of {list(input.shape[before:])})"
            )
        return [size - low for size, low in zip(sizes, least)]


class ConvTranspose1d(_ConvTransposeNd):
    __doc__ = (
        "Transposed convolution of ``(N, C, L)`` or ``(C, L)``.\n\n" + _ConvTransposeNd.__doc__.partition("\n\n")[2]
    )
    dims = 1

    def convolve(self, *args):
        return F.conv_transpose1d(*args)


class ConvTranspose2d(_ConvTransposeNd):
    __doc__ = (
        "Transposed convolution of ``(N, C, H, W)`` or ``(C, H, W)``.\n\n"
        + _ConvTransposeNd.__doc__.partition("\n\n")[2]
    )
    dims = 2

    def convolve(self, *args):
        return F.conv_transpose2d(*args)


class ConvTranspose3d(_ConvTransposeNd):
    __doc__ = (
        "Transposed convolution of ``(N, C, D, H, W)`` or ``(C, D, H, W)``.\n\n"
        + _ConvTransposeNd.__doc__.partition("\n\n")[2]
    )
    dims = 3

    def convolve(self, *args):
        return F.conv_transpose3d(*args)
