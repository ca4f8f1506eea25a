"""Losses that compare inputs with each other, by margins or likelihoods, and distances of pairs."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.levels import levels_on
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.loss import np_reduced, reduced, reduction_of
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_OLD = 'bool? size_average=None, bool? reduce=None, str reduction="mean"'
_WAYS = ("mean", "sum", "none")


def _np():
    import numpy

    return numpy


def _signs(make, *shape):
    return make.ints(0, 2, shape) * 2 - 1


# ---- margins -------------------------------------------------------------------------------------------------------


def _margin_ranking(input1, input2, target, margin, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


op(
    f"aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, {_OLD}) -> Tensor",
    compose=_margin_ranking,
    variants="function",
    where="nn.functional .",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), _signs(make, 3, 4), 0.5, reduction=r) for r in _WAYS],
    types="float",
    reference=lambda a, b, y, margin=0, reduction="mean": np_reduced(
        _np().maximum(-y * (a - b) + margin, 0), reduction
    ),
    doc="max(0, margin - target (input1 - input2)): with target 1 the first is to be larger by the margin, with -1 the "
    "second.",
)


def _hinge_embedding(self, target, margin, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    margin = margin if self.dtype.is_floating_point else int(margin)  # integers stay what they are
    far = fused.where(target == 1, 0, (margin - self).clamp(min=0))
    near = fused.where(target == -1, 0, self)
    return reduced(far + near, reduction)


op(
    f"aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1, {_OLD}) -> Tensor",
    compose=_hinge_embedding,
    variants="function",
    where="nn.functional .",
    types="float",
    samples=lambda make: [Sample(make(3, 4), _signs(make, 3, 4), 1.5, reduction=r) for r in _WAYS],
    reference=lambda x, y, margin=1.0, reduction="mean": np_reduced(
        _np().where(y == 1, x, _np().maximum(margin - x, 0)), reduction
    ),
    doc="Distances, to be small where target is 1 and above the margin where it is -1.",
)


@rounded_once
def _cosine_embedding(input1, input2, target, margin, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if target.dim() not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError(
            "1D target tensor expects 2D input tensors, but found inputs with sizes " + _sizes(input1, input2)
        )
    if target.dim() == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError(
            "0D target tensor expects 1D input tensors, but found inputs with sizes " + _sizes(input1, input2)
        )
    tiny = 1e-12
    along = target.dim()
    product = (input1 * input2).sum(along)
    lengths = (((input1 * input1).sum(along) + tiny) * ((input2 * input2).sum(along) + tiny)).sqrt()
    cosine = product / lengths
    loss = fused.where(target == 1, 1 - cosine, 0) + fused.where(target == -1, (cosine - margin).clamp(min=0), 0)
    return reduced(loss, reduction)


def _sizes(a, b):
    return f"{list(a.shape)} and {list(b.shape)}."


op(
    f"aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, {_OLD}) -> Tensor",
    compose=_cosine_embedding,
    variants="function",
    where="nn.functional .",
    types="float",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), _signs(make, 3), 0.1, reduction=r) for r in _WAYS],
    reference=lambda a, b, y, margin=0.0, reduction="mean": np_reduced(
        _cosine_reference((a * b).sum(1) / _np().sqrt((a * a).sum(1) * (b * b).sum(1)), y, margin), reduction
    ),
    doc="1 - cosine of rows where target is 1, their cosine above the margin where it is -1.",
)


def _cosine_reference(cosine, y, margin):
    return _np().where(y == 1, 1 - cosine, _np().maximum(cosine - margin, 0))


@rounded_once
def _triplet(anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    near, far = _apart(anchor, positive, p, eps), _apart(anchor, negative, p, eps)
    if swap:
        far = tg.minimum(far, _apart(positive, negative, p, eps))
    return reduced((margin + near - far).clamp(min=0), reduction)


def _apart(x1, x2, p, eps, keepdim=False):
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def _np_apart(a, b, p=2.0, eps=1e-6):
    return _np().linalg.norm(a - b + eps, p, -1)


op(
    "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1, float p=2, "
    f"float eps=1e-06, bool swap=False, {_OLD}) -> Tensor",
    compose=_triplet,
    variants="function",
    where="nn.functional .",
    types="float",
    samples=lambda make: [
        *(Sample(make(3, 4), make(3, 4), make(3, 4), reduction=r) for r in _WAYS),
        Sample(make(4), make(4), make(4), 2.0, swap=True),
    ],
    reference=lambda a, x, y, margin=1.0, swap=False, reduction="mean": np_reduced(
        _np().maximum(
            margin + _np_apart(a, x) - (_np().minimum(_np_apart(a, y), _np_apart(x, y)) if swap else _np_apart(a, y)), 0
        ),
        reduction,
    ),
    doc="max(0, margin + distance to the positive - distance to the negative); with swap the positive's own distance "
    "to the negative counts where it is smaller (Balntas et al. 2016).",
)

op(
    "aten::pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    compose=_apart,
    variants="function",
    where=". nn.functional",
    types="float",
    samples=lambda make: [
        Sample(make(3, 4), make(3, 4)),
        Sample(make(4), make(4), 1.0),
        Sample(make(2, 3, 4), make(1, 4), 3.0, keepdim=True),
    ],
    reference=lambda a, b, p=2.0, keepdim=False: (
        _np().linalg.norm(a - b + 1e-6, p, -1, keepdim)
        if a.ndim < 3
        else (abs(a - b + 1e-6) ** p).sum(-1, keepdims=keepdim) ** (1 / p)
    ),
    doc="p-norm of x1 - x2 + eps along the last dimension.",
)

# ---- likelihoods ---------------------------------------------------------------------------------------------------


@rounded_once
def _soft_margin(self, target, size_average, reduce, reduction):
    return reduced((-target * self).exp().log1p(), reduction_of(size_average, reduce, reduction))


op(
    f"aten::soft_margin_loss(Tensor self, Tensor target, {_OLD}) -> Tensor",
    compose=_soft_margin,
    variants="function",
    where="nn.functional",
    types="float",
    samples=lambda make: [Sample(make(3, 4), _signs(make, 3, 4), reduction=r) for r in _WAYS],
    reference=lambda x, y, reduction="mean": np_reduced(_np().log1p(_np().exp(-y * x)), reduction),
    doc="log(1 + exp(-target input)) for targets of 1 and -1.",
)


def _multilabel_soft_margin(self, target, weight, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    each = -(target * fused.logsigmoid(self) + (1 - target) * fused.logsigmoid(-self))
    return reduced((each if weight is None else each * weight).mean(-1), reduction)


op(
    f"aten::multilabel_soft_margin_loss(Tensor self, Tensor target, Tensor? weight=None, {_OLD}) -> Tensor",
    compose=_multilabel_soft_margin,
    variants="function",
    where="nn.functional",
    types="float",
    samples=lambda make: [
        *(Sample(make(3, 4), make.ints(0, 2, (3, 4)), reduction=r) for r in _WAYS),
        Sample(make(3, 4), make.ints(0, 2, (3, 4)), make(4, low=0.5, high=2)),
    ],
    reference=lambda x, y, weight=1.0, reduction="mean": np_reduced(
        (weight * (y * _np().log1p(_np().exp(-x)) + (1 - y) * _np().log1p(_np().exp(x)))).mean(-1), reduction
    ),
    doc="Mean over the classes, the last dimension, of the cross entropy of each class with its target of 0 or 1.",
)


def _poisson_nll(self, target, log_input, full, size_average, eps, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    loss = self.exp() - target * self if log_input else self - target * (self + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + fused.where(target > 1, stirling, 0)
    return reduced(loss, reduction)


op(
    "aten::poisson_nll_loss(Tensor self, Tensor target, bool log_input=True, bool full=False, bool? size_average=None, "
    'float eps=1e-08, bool? reduce=None, str reduction="mean") -> Tensor',
    compose=_poisson_nll,
    variants="function",
    where="nn.functional",
    types="float",
    samples=lambda make: [
        *(Sample(make(3, 4), make(3, 4, low=0.5, high=4), reduction=r) for r in _WAYS),
        Sample(make(3, 4, low=0.5, high=4), make(3, 4, low=1.5, high=4), log_input=False, full=True),
    ],
    reference=lambda x, y, log_input=True, full=False, reduction="mean": np_reduced(
        (_np().exp(x) - y * x if log_input else x - y * _np().log(x + 1e-8))
        + full * (y > 1) * (y * _np().log(y) - y + 0.5 * _np().log(2 * math.pi * y)),
        reduction,
    ),
    doc="Negative log likelihood of counts, Poisson with rate exp(input), or input itself; full adds Stirling's "
    "approximation of log(target!) where that is above 1.",
)


@rounded_once
def _gaussian_nll(self, target, var, full, eps, reduction):
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = tg.full_like(self, var)
    elif not isinstance(var, tg.Tensor):
        raise TypeError(f"gaussian_nll_loss(): argument 'var' must be a Tensor or a number, not {type(var).__name__}")
    elif tuple(var.shape) != tuple(self.shape):
        if tuple(self.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif var.dim() != self.dim() or [v for v, n in zip(var.shape, self.shape) if v != n] != [1]:
            raise ValueError(f"var is of incorrect size: {list(var.shape)} for an input of {list(self.shape)}")
    if not levels_on() and not var.is_meta and (var.detach() < 0).any():
        raise ValueError("gaussian_nll_loss(): var has negative entry/entries")
    reduction = reduction_of(None, None, reduction)
    floor = var.detach().clamp(min=eps)
    var = var + (floor - var).detach()
    loss = 0.5 * (var.log() + (self - target) ** 2 / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


op(
    "aten::gaussian_nll_loss(Tensor self, Tensor target, Any var, bool full=False, float eps=1e-06, "
    'str reduction="mean") -> Tensor',
    compose=_gaussian_nll,
    variants="function",
    where="nn.functional",
    types="float",
    samples=lambda make: [
        *(Sample(make(3, 4), make(3, 4), make(3, 4, low=0.5, high=2), reduction=r) for r in _WAYS),
        Sample(make(3, 4), make(3, 4), make(3, 1, low=0.5, high=2), full=True),
        Sample(make(3, 4), make(3, 4), make(3, low=0.5, high=2)),
        Sample(make(3, 4), make(3, 4), make(1, 4, low=0.5, high=2)),
    ],
    reference=lambda x, y, var, full=False, reduction="mean": np_reduced(
        0.5 * (_np().log(_wide(var, x)) + (x - y) ** 2 / _wide(var, x)) + full * 0.5 * math.log(2 * math.pi), reduction
    ),
    errors=[
        (
            lambda: _gaussian_nll(zeros(2, 3), zeros(2, 3), zeros(3, 3), False, 1e-6, "mean"),
            ValueError,
            "var is of incorrect size",
        )
    ],
    doc="Negative log likelihood of targets, normal around input with a variance for each element or row, eps at "
    "least; full adds the constant.",
)


def _wide(var, x):
    return var[:, None] if var.ndim < x.ndim else var


def _multi_margin(self, target, p, margin, weight, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if weight is not None and weight.shape[0] != self.shape[-1]:
        raise RuntimeError(
            f"multi_margin_loss: inconsistent weight size, expected {self.shape[-1]} but got {list(weight.shape)}: a "
            "number for each class"
        )
    single = self.dim() < 2
    if not single and (target.dim() != 1 or target.shape[0] != self.shape[0]):
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{self.shape[0]}], but got {list(target.shape)}. Input has shape "
            f"{list(self.shape)}."
        )
    x, at = (self.reshape(1, -1), target.reshape(1)) if single else (self, target)
    column = at.unsqueeze(1)
    each = (margin - x.gather(1, column) + x).relu()
    each = each if p == 1 else each**p
    if weight is not None:
        each = each * weight[at].unsqueeze(1)
    loss = each.scatter(1, column, 0).sum(1) / x.shape[1]
    return reduced(loss.reshape(target.shape) if single else loss, reduction)


op(
    f"aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, {_OLD})"
    " -> Tensor",
    compose=_multi_margin,
    variants="function",
    where="nn.functional",
    types="float",
    samples=lambda make: [
        *(Sample(make(3, 4), make.ints(0, 4, (3,)), reduction=r) for r in _WAYS),
        Sample(make(3, 4), make.ints(0, 4, (3,)), 2, 0.5, tg.tensor([0.5, 2.0, 1.0, 1.5], dtype=make.dtype)),
    ],
    errors=[
        (
            lambda: _multi_margin(tg.zeros(2, 3), tg.tensor([1, 0]), 1, 1, tg.ones(2), None, None, "mean"),
            RuntimeError,
            "inconsistent weight size, expected 3 but got",
        ),
    ],
    doc="Mean over the classes but the target's of max(0, margin - its score + theirs) to the power of p, 1 or 2.",
)
