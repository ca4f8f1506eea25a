"""Batch normalisation folded into the layer before it, for inference."""

import copy

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _folded(weight, bias, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape):
    bias = tg.zeros_like(bn_rm) if bias is None else bias
    bn_w = tg.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = tg.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * tg.rsqrt(bn_rv + bn_eps)
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - bn_rm) * scale + bn_b).to(bias.dtype)
    return Parameter(new_weight, weight.requires_grad), Parameter(new_bias, bias.requires_grad)


@boundary
def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of a convolution that does what it and the normalisation behind it did.

    Args:
        conv_b: None for no bias; so may be ``bn_w`` and ``bn_b``.
        transpose: the convolution is a transposed one, whose outputs are the weight's second dimension.
    """
    channels = (1, -1) if transpose else (-1, 1)
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, channels + (1,) * (conv_w.dim() - 2))


@boundary
def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of a linear layer that does what it and the normalisation behind it did."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _check(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


@boundary
def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of the convolution that does what it and the normalisation behind it do, both in eval mode."""
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


@boundary
def fuse_linear_bn_eval(linear, bn):
    """A copy of the linear layer that does what it and the normalisation behind it do, both in eval mode."""
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
