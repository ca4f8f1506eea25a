"""torch.nn.grad: the gradients of a convolution, each by itself."""

import tinygrad_ext as _tg
from tinygrad_ext.nn import functional as _nn

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _slope(conv, which, size, other, grad_output, *options):
    with _tg.enable_grad():
        asked = _tg.zeros(*size, dtype=other.dtype, device=other.device, requires_grad=True)
        result = conv(*((asked, other) if which == 0 else (other, asked)), None, *options)
    return _tg.autograd.grad(result, asked, grad_output, create_graph=_tg.is_grad_enabled())[0]


def _pair(conv):
    def by_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        """Gradient of the convolution for its input, of `input_size`."""
        return _slope(conv, 0, input_size, weight, grad_output, stride, padding, dilation, groups)

    def by_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        """Gradient of the convolution for its weight, of `weight_size`."""
        return _slope(conv, 1, weight_size, input, grad_output, stride, padding, dilation, groups)

    return by_input, by_weight


conv1d_input, conv1d_weight = _pair(_nn.conv1d)
conv2d_input, conv2d_weight = _pair(_nn.conv2d)
conv3d_input, conv3d_weight = _pair(_nn.conv3d)
