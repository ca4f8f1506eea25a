"""Losses between probabilities: binary cross entropy and Kullback-Leibler divergence."""

from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.loss import np_reduced, pairs, reduced, reduction_of
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

# ---- of probabilities ----------------------------------------------------------------------------------------------

op(
    "aten::_binary_cross_entropy(Tensor self, Tensor target) -> Tensor",
    scalar={"float": "-y * at_least(log(x), -100) - (1 - y) * at_least(log1p(-x), -100)"},
    variants="function",
    where="_fused",
    # the slope is kept finite where the logarithm is cut off
    grad={
        "self": lambda grad, self, target: grad * (self - target) / ((1 - self) * self).clamp_min(1e-12),
        "target": lambda grad, self: grad * ((-self).log1p().clamp_min(-100) - self.log().clamp_min(-100)),
    },
    samples=lambda make: iter([Sample(_probability(make, 3, 4), _probability(make, 3, 4))]),
    reference=lambda x, y: _np_bce(x, y),
    doc="binary_cross_entropy of each element.",
)


def _np_bce(x, y, reduction="none"):
    import numpy as np

    with np.errstate(divide="ignore"):
        loss = -y * np.maximum(np.log(x), -100) - (1 - y) * np.maximum(np.log1p(-x), -100)
    return np_reduced(loss, reduction)


def _check_probability(t, name):
    if hasattr(t, "level"):  # carried: it has no elements, and what is computed with it is not checked
        return
    if t.numel() and t.device.type != "meta" and not (t.min().item() >= 0 and t.max().item() <= 1):
        raise RuntimeError(
            f"all elements of {name} should be between 0 and 1: got {t.min().item()} to "
            f"{t.max().item()}. For scores of any size there is binary_cross_entropy_with_logits."
        )


@rounded_once
def _binary_cross_entropy(self, target, weight, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if self.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({self.shape}) is "
            "deprecated. Please ensure they have the same size."
        )
    if target.dtype != self.dtype:
        raise RuntimeError(f"Found dtype {target.dtype} but expected {self.dtype}: target must have the dtype of input")
    _check_probability(self, "input")
    _check_probability(target, "target")
    loss = fused._binary_cross_entropy(self, target)
    return reduced(loss if weight is None else loss * weight.expand_as(loss), reduction)


def _probability(make, *shape):
    return make(*shape, low=0.1, high=0.9) if make.dtype.is_floating_point else make(*shape, low=0, high=1)


def _probabilities(make):
    for reduction in ("mean", "sum", "none"):
        yield Sample(_probability(make, 3, 4), _probability(make, 3, 4), reduction=reduction)
    yield Sample(_probability(make), _probability(make))


op(
    "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None, "
    'bool? reduce=None, str reduction="mean") -> Tensor',
    compose=_binary_cross_entropy,
    variants="function",
    where="nn.functional",
    samples=_probabilities,
    reference=lambda x, y, reduction="mean": _np_bce(x, y, reduction),
    doc="Cross entropy of a yes-or-no probability and its target, both in [0, 1]; a logarithm counts as at least -100.",
)

# ---- of scores -----------------------------------------------------------------------------------------------------

op(
    "aten::_binary_cross_entropy_with_logits(Tensor self, Tensor target) -> Tensor",
    scalar={"float": "(1 - y) * x + softplus(-x)"},
    variants="function",
    where="_fused",
    numbers="target",
    grad={
        "self": lambda grad, self, target: grad * (self.sigmoid() - target),
        "target": lambda grad, self: -grad * self,
    },
    samples=lambda make: pairs(make, None),
    reference=lambda x, y: _np_logits(x, y),
    doc="binary_cross_entropy_with_logits of each element, without weights.",
)


def _np_logits(x, y, reduction="none"):
    import numpy as np

    return np_reduced((1 - y) * x + np.logaddexp(0, -x), reduction)


def _with_logits(self, target, weight, size_average, reduce, reduction, pos_weight):
    reduction = reduction_of(size_average, reduce, reduction)
    if self.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({self.shape})")
    if pos_weight is None:
        loss = fused._binary_cross_entropy_with_logits(self, target)
    else:
        softplus = fused._binary_cross_entropy_with_logits(self, 1)  # log(1 + exp(-self))
        loss = (1 - target) * self + ((pos_weight - 1) * target + 1) * softplus
    return reduced(loss if weight is None else loss * weight, reduction)


def _logit_samples(make):
    yield from pairs(make)
    yield Sample(make(2, 3), make(2, 3, low=0, high=1), make(3).detach(), pos_weight=make(3, low=1, high=2).detach())


def _np_with_logits(x, y, weight=None, reduction="mean", pos_weight=None):
    import numpy as np

    loss = (1 - y) * x + (1 if pos_weight is None else (pos_weight - 1) * y + 1) * np.logaddexp(0, -x)
    return np_reduced(loss if weight is None else loss * weight, reduction)


op(
    "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None, "
    'bool? reduce=None, str reduction="mean", Tensor? pos_weight=None) -> Tensor',
    compose=_with_logits,
    variants="function",
    where="nn.functional",
    samples=_logit_samples,
    reference=_np_with_logits,
    doc="binary_cross_entropy of sigmoid(input), without its overflow. pos_weight multiplies the part of positive "
    "targets.",
)

# ---- divergence ----------------------------------------------------------------------------------------------------


def _kl_div(self, target, size_average, reduce, reduction, log_target):
    if reduction == "mean" and size_average is None and reduce is None:
        import warnings

        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.",
            UserWarning,
            stacklevel=2,
        )
    by_batch = reduction == "batchmean"
    reduction = reduction_of(size_average, reduce, "sum" if by_batch else reduction)
    loss = target.exp() * (target - self) if log_target else target.xlogy(target) - target * self
    if by_batch and self.dim():
        return loss.sum() / self.shape[0]
    return reduced(loss, reduction)


def _np_kl_div(x, y, reduction="mean", log_target=False):
    import numpy as np
    import scipy.special

    if log_target:
        loss = np.exp(y if y.dtype.kind == "f" else y.astype(np.float32)) * (y - x)
    else:
        loss = scipy.special.xlogy(y, y) - y * x
    return loss.sum() / x.shape[0] if reduction == "batchmean" else np_reduced(loss, reduction)


def _kl_samples(make):
    for reduction in ("sum", "none", "batchmean"):
        yield Sample(make(3, 4), make(3, 4, low=0.1, high=1), reduction=reduction)
    yield Sample(make(3, 4), make(3, 4), reduction="sum", log_target=True)


op(
    'aten::kl_div(Tensor self, Tensor target, bool? size_average=None, bool? reduce=None, str reduction="mean", '
    "bool log_target=False) -> Tensor",
    compose=_kl_div,
    variants="function",
    where="nn.functional",
    samples=_kl_samples,
    reference=_np_kl_div,
    doc="Kullback-Leibler divergence, target (log target - input), of log-probabilities input from target, which holds "
    "probabilities or, with log_target, their logarithms. 'batchmean' divides the sum by the batch size.",
)
