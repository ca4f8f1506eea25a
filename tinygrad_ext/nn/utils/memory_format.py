"""Weights of convolutions in another order of memory."""

from tinygrad_ext.core.call.boundary import boundary

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, names):
    for layer in module.modules():
        if type(layer).__name__ in names:
            layer.weight.data = layer.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


@boundary
def convert_conv2d_weight_memory_format(module, memory_format):
    """Give the weights of 2-d convolutions that order of memory, and return the module."""
    return _convert(module, memory_format, ("Conv2d", "ConvTranspose2d"))


@boundary
def convert_conv3d_weight_memory_format(module, memory_format):
    """Give the weights of 3-d convolutions that order of memory, and return the module."""
    return _convert(module, memory_format, ("Conv3d", "ConvTranspose3d"))
