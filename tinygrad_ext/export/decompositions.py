"""`default_decompositions`: ops told in simpler ones, for those who read graphs and want to know few ops.

Each function takes what the op takes and uses elementary functions, products, reductions and views. Results and
gradients are the op's but for rounding.
"""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.overrides.opened import matmul

_TABLE = {}


def _of(*names):
    """Put a function into the table under names of ops of aten."""

    def put(function):
        _TABLE.update(dict.fromkeys(names, function))
        return function

    return put


@boundary
def default_decompositions():
    """A dict of op -> function that tells it in simpler ops: what `run_decompositions()` uses.

    It is the caller's own: take out what should stay, put in what should go.

    >>> import tinygrad_ext as tg
    >>> table = tg.export.default_decompositions()
    >>> table[tg.ops.aten.square.default](tg.tensor([3.0]))
    tensor([9.])
    """
    found = {}
    for name, function in _TABLE.items():
        packet, _, overload = name.partition(".")
        found[getattr(getattr(tg.ops.aten, packet), overload or "default")] = function
    return found


# ---- products


_of("matmul")(matmul)


@_of("linear")
def _linear(input, weight, bias=None):
    if weight.dim() != 2 or not input.dim():
        product = tg.matmul(input, weight)
        return product if bias is None else product + bias
    turned = weight.permute(1, 0)
    *outer, size = input.shape
    if len(outer) == 1:
        rows = input
    else:
        rows = (input.view if input.is_contiguous() else input.reshape)(math.prod(outer), size)
    if bias is not None and bias.dim() == 1:
        product = tg.addmm(bias, rows, turned)
    else:
        product = tg.mm(rows, turned) if bias is None else tg.mm(rows, turned) + bias
    return product if len(outer) == 1 else product.view(*outer, weight.size(0))


@_of("baddbmm")
def _plus_product(self, first, second, *, beta=1, alpha=1):
    product = tg.bmm(first, second)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (self if beta == 1 else self * beta) + product


@_of("dot")
def _dot(self, tensor):
    return (self * tensor).sum()


# ---- activations


@_of("silu")
def _silu(self):
    return self * tg.sigmoid(self)


@_of("mish")
def _mish(self):
    return self * tg.tanh(_softplus(self))


@_of("softplus")
def _softplus(self, beta=1, threshold=20):
    scaled = self * beta
    large = scaled > threshold
    return tg.where(large, self, tg.where(large, 0, scaled).exp().log1p() / beta)


@_of("logsigmoid")
def _logsigmoid(self):
    return self.clamp(max=0) - (-self.abs()).exp().log1p()


@_of("hardsigmoid")
def _hardsigmoid(self):
    return (self + 3).clamp(0, 6) / 6


@_of("hardswish")
def _hardswish(self):
    return self * (self + 3).clamp(0, 6) / 6


@_of("relu6")
def _relu6(self):
    return self.clamp(0, 6)


@_of("softsign")
def _softsign(self):
    return self / (1 + self.abs())


@_of("tanhshrink")
def _tanhshrink(self):
    return self - tg.tanh(self)


@_of("selu")
def _selu(self):
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * tg.where(self > 0, self, alpha * self.clamp(max=0).expm1())


@_of("gelu")
def _gelu(self, *, approximate="none"):
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (self + 0.044715 * self * self * self)
        return 0.5 * self * (1 + tg.tanh(inner))
    return 0.5 * self * (1 + tg.erf(self * math.sqrt(0.5)))


# ---- arithmetic


@_of("square")
def _square(self):
    return self * self


@_of("addcmul")
def _addcmul(self, tensor1, tensor2, *, value=1):
    return self + (tensor1 * tensor2 if value == 1 else tensor1 * tensor2 * value)


@_of("addcdiv")
def _addcdiv(self, tensor1, tensor2, *, value=1):
    return self + (tensor1 / tensor2 if value == 1 else tensor1 / tensor2 * value)


@_of("rsub.Tensor")
def _rsub(self, other, *, alpha=1):
    return other - (self if alpha == 1 else self * alpha)


@_of("lerp.Tensor", "lerp.Scalar")
def _lerp(self, end, weight):
    return self + weight * (end - self)


@_of("frac")
def _frac(self):
    return self - self.trunc().detach()


@_of("clamp_min")
def _clamp_min(self, min):
    return self.clamp(min=min)


@_of("clamp_max")
def _clamp_max(self, max):
    return self.clamp(max=max)


@_of("isposinf")
def _isposinf(self):
    return self == math.inf


@_of("isneginf")
def _isneginf(self):
    return self == -math.inf


@_of("logical_xor")
def _logical_xor(self, other):
    return (self != 0) != (other != 0)


# ---- reductions


@_of("std.correction")
def _std(self, dim=None, *, correction=None, keepdim=False):
    return self.var(dim, correction=correction, keepdim=keepdim).sqrt()


@_of("count_nonzero", "count_nonzero.dim_IntList")
def _count_nonzero(self, dim=None):
    return (self != 0).sum() if dim is None else (self != 0).sum(dim)


# ---- sizes


@_of("expand_as")
def _expand_as(self, other):
    return self.expand(other.shape)


@_of("view_as")
def _view_as(self, other):
    return self.view(other.shape)


@_of("reshape_as")
def _reshape_as(self, other):
    return self.reshape(other.shape)


@_of("ravel")
def _ravel(self):
    return self.reshape(-1)
