"""Windows of an image as columns, and columns added up to an image."""

from .. import functional as F
from .activation import _Shown

__all__ = ["Fold", "Unfold"]


class Fold(_Shown):
    """Add up windows: (N, C times the kernel's size, windows) to (N, C, *output_size).

    Args:
        output_size, kernel_size, dilation, padding, stride: one number or one per dimension.
    """

    shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size = output_size
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input):
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(_Shown):
    """The windows of (N, C, H, W), one a column: (N, C times the kernel's size, windows).

    Args:
        kernel_size, dilation, padding, stride: one number or one per dimension.
    """

    shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input):
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
