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
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
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

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__

    def forward(self, input):
        return F.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool2d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__

    def forward(self, input):
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool3d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__

    def forward(self, input):
        return F.max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class _MaxUnpoolNd(Module):
    """Each value put back where the max pooling found it, in zeros.

    Args:
        kernel_size, stride, padding: those of the pooling, one number or one per dimension;
            the stride is the kernel size unless given.

    A call takes the values, their indices (``return_indices=True``) and, if several sizes pool to theirs, an
    ``output_size``.

    Raises:
        ValueError: an ``output_size`` that does not pool to the size of the values.
    """

    dims = 0

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = n_tuple(kernel_size, self.dims)
        self.stride = self.kernel_size if stride is None else n_tuple(stride, self.dims)
        self.padding = n_tuple(padding, self.dims)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    dims = 1

    def forward(self, input, indices, output_size: "list[int] | None" = None):
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    dims = 2

    def forward(self, input, indices, output_size: "list[int] | None" = None):
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    dims = 3

    def forward(self, input, indices, output_size: "list[int] | None" = None):
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(Module):
    """Largest value of each of ``output_size`` windows, whose places are drawn at random.

    Args:
        kernel_size: size of a window, one number or one per dimension.
        output_size: how many windows there are, likewise; or
        output_ratio: that number divided by the input's size, between 0 and 1.
        return_indices: return ``(values, indices)``.
        _random_samples: numbers between 0 and 1, (N, C, dimensions), in place of those drawn at each call.

    Raises:
        ValueError: neither or both of ``output_size`` and ``output_ratio``, or a ratio out of range.
    """

    dims = 0

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        self._check_kernel_size(kernel_size)
        self.kernel_size = n_tuple(kernel_size, self.dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else n_tuple(output_size, self.dims)
        self.output_ratio = None if output_ratio is None else n_tuple(output_ratio, self.dims)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError(f"{name}: only one of output_size and output_ratio may be specified")
        if output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")

    def _check_kernel_size(self, kernel_size):
        """Two dimensions leave it to the op."""

    def _pool(self, pool, input):
        return pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    __doc__ = _FractionalMaxPool.__doc__
    dims = 2

    def forward(self, input):
        return self._pool(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPool):
    __doc__ = _FractionalMaxPool.__doc__
    dims = 3

    def _check_kernel_size(self, kernel_size):
        if any(size <= 0 for size in n_tuple(kernel_size, 3)):
            raise ValueError(f"FractionalMaxPool3d: kernel_size must be greater than 0, but got {kernel_size}")

    def forward(self, input):
        return self._pool(F.fractional_max_pool3d, input)


class _LPPoolNd(Module):
    """``norm_type``-norm of each window: the root of the sum of the powers.

    Args:
        norm_type: the exponent.
        kernel_size, stride: one number or one per dimension; the stride is the kernel size unless given.
        ceil_mode: keep a last window that reaches over the edge.
    """

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__

    def forward(self, input):
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__

    def forward(self, input):
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__

    def forward(self, input):
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AvgPoolNd(Module):
    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
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


class _Averaging(_AvgPoolNd):
    """Mean of each window.

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


class AvgPool2d(_Averaging):
    __doc__ = "Mean of each window of ``(N, C, H, W)``.\n\n" + _Averaging.__doc__.partition("\n\n")[2]

    def forward(self, input):
        return F.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool3d(_Averaging):
    __doc__ = "Mean of each window of ``(N, C, D, H, W)``.\n\n" + _Averaging.__doc__.partition("\n\n")[2]

    def forward(self, input):
        return F.avg_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class _AdaptiveAvgPoolNd(Module):
    """Mean over windows chosen so that the output has ``output_size``; None keeps a size."""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__

    def forward(self, input):
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__

    def forward(self, input):
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__

    def forward(self, input):
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
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


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__

    def forward(self, input):
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__

    def forward(self, input):
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__

    def forward(self, input):
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
