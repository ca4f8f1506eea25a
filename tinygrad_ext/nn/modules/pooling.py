"""Pooling over windows."""

from .. import functional as F
from ..module import Module
from .utils import n_tuple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "MaxPool1d",
    "MaxPool2d",
]


class _MaxPool(Module):
    """Largest value of each window.

    Args:
        kernel_size, stride, padding, dilation: one number or one per dimension;
            the stride is the kernel size unless given.
        return_indices: return ``(values, indices)``.
        ceil_mode: keep a last window that reaches over the edge.
    """

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _window(self):
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "ceil_mode": self.ceil_mode,
            "return_indices": self.return_indices,
        }

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    __doc__ = _MaxPool.__doc__

    def forward(self, input):
        return F.max_pool1d(input, self.kernel_size, **self._window())


class MaxPool2d(_MaxPool):
    __doc__ = _MaxPool.__doc__

    def forward(self, input):
        return F.max_pool2d(input, self.kernel_size, **self._window())


class AvgPool1d(Module):
    """Mean of each window of ``(N, C, L)``.

    Args:
        kernel_size, stride, padding: sizes in elements; the stride is the kernel size unless given.
        ceil_mode: keep a last window that reaches over the edge.
        count_include_pad: count padding as zeros.
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = n_tuple(kernel_size, 1)
        self.stride = self.kernel_size if stride is None else n_tuple(stride, 1)
        self.padding = n_tuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """Mean of each window of ``(N, C, H, W)``.

    Args:
        kernel_size, stride, padding: one number or one per dimension;
            the stride is the kernel size unless given.
        ceil_mode: keep a last window that reaches over the edge.
        count_include_pad: count padding as zeros.
        divisor_override: divide by this instead of the window's size.
    """

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptiveAvgPool(Module):
    """Mean over windows chosen so that the output has ``output_size``; None keeps a size."""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    __doc__ = _AdaptiveAvgPool.__doc__

    def forward(self, input):
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    __doc__ = _AdaptiveAvgPool.__doc__

    def forward(self, input):
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    __doc__ = _AdaptiveAvgPool.__doc__

    def forward(self, input):
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPool(Module):
    """Largest value over windows chosen so that the output has ``output_size``; None keeps a size.

    Args:
        output_size: one number or one per dimension.
        return_indices: return ``(values, indices)``.
    """

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    __doc__ = _AdaptiveMaxPool.__doc__

    def forward(self, input):
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    __doc__ = _AdaptiveMaxPool.__doc__

    def forward(self, input):
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    __doc__ = _AdaptiveMaxPool.__doc__

    def forward(self, input):
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
