"""Losses: distances of a prediction from a target.

The public functions are PyTorch's, with its old options size_average and reduce; the work is done by ops that take a
reduction only.
"""

from tinygrad_ext.ops import batching_losses, forward
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def reduction_of(size_average, reduce, reduction):
    """The reduction, spelled the new way."""
    if size_average is not None or reduce is not None:
        import warnings

        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=3,
        )
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction: it must be 'mean', 'sum' or 'none'")
    return reduction


def reduced(loss, reduction):
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def weighted(loss, weight, reduction):
    """The loss times a weight for each element; a mean divides by the sum of weights."""
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size. Got {weight.shape} and {loss.shape}.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


def warn_sizes(self, target):
    if self.shape != target.shape:
        import warnings

        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({self.shape}). This "
            "will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=3,
        )


def np_reduced(loss, reduction):
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def pairs(make, reductions=("mean", "sum", "none")):
    """Samples of two tensors of one shape, with every reduction (None: the op takes none)."""
    for shape in ((3, 4), (), (5,), (0, 2)):
        if reductions is None:
            yield Sample(make(*shape), make(*shape))
            continue
        for reduction in reductions:
            if 0 not in shape or reduction != "mean":
                yield Sample(make(*shape), make(*shape), reduction=reduction)


# ---- squared error -------------------------------------------------------------------------------------------------


def mse_loss(self, target, size_average, reduce, reduction, weight):
    """mse_loss with any arguments; the compiled composite comes here for all but the plain call."""
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    if self.shape != target.shape:
        warn_sizes(self, target)
    if weight is not None:
        return weighted(fused._mse_loss(self, target, "none"), weight, reduction_of(None, None, reduction))
    return fused._mse_loss(self, target, reduction)


def _mse_reference(x, y, reduction="mean", weight=None):
    return np_reduced((x - y) ** 2, reduction)


op(
    'aten::mse_loss(Tensor self, Tensor target, bool? size_average=None, bool? reduce=None, str reduction="mean", '
    "Tensor? weight=None) -> Tensor",
    compose="mse_loss_public",
    variants="function",
    where="nn.functional",
    samples=pairs,
    reference=_mse_reference,
    doc="Squared difference of input and target; its mean, its sum, or one value per element.",
)

op(
    "aten::_mse_loss(Tensor self, Tensor target, str reduction) -> Tensor",
    batch=batching_losses.mse_loss,
    kernel="mse_loss",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(3, 4), make(3, 4), r) for r in ("mean", "sum", "none")]),
    reference=_mse_reference,
    grad={
        "self": "_mse_loss_backward(grad, self, target, reduction)",
        "target": "_mse_loss_backward(grad, target, self, reduction)",
    },
    jvp=forward.mse_loss,
    doc="mse_loss with a reduction only.",
)


def _mse_twice(grad, self, target, reduction):
    each = grad * (self - target) * 2
    return reduced(each, reduction)


def _mse_backward_self(grad, grad_output, reduction):
    each = grad * grad_output * 2
    return each / grad.numel() if reduction == "mean" else each


op(
    "aten::_mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, str reduction) -> Tensor",
    batch=batching_losses.mse_loss_backward,
    kernel="mse_loss_backward",
    variants="function",
    where="_fused",
    samples=lambda make: iter(
        [Sample(make(), make(3, 4), make(3, 4), r) for r in ("mean", "sum")]
        + [Sample(make(3, 4), make(3, 4), make(3, 4), "none")]
    ),
    reference=lambda g, x, y, reduction: 2 * g * (x - y) / (x.size if reduction == "mean" else 1),
    grad={
        "grad_output": _mse_twice,
        "self": _mse_backward_self,
        "target": lambda grad, grad_output, reduction: -_mse_backward_self(grad, grad_output, reduction),
    },
    jvp=forward.mse_loss_backward,
    doc="Derivative of mse_loss by its input.",
)

# ---- distances -----------------------------------------------------------------------------------------------------


def _l1_loss(self, target, size_average, reduce, reduction, weight):
    reduction = reduction_of(size_average, reduce, reduction)
    warn_sizes(self, target)
    loss = (self - target).abs()
    return reduced(loss, reduction) if weight is None else weighted(loss, weight, reduction)


op(
    'aten::l1_loss(Tensor self, Tensor target, bool? size_average=None, bool? reduce=None, str reduction="mean", '
    "Tensor? weight=None) -> Tensor",
    compose=_l1_loss,
    variants="function",
    where="nn.functional",
    samples=pairs,
    reference=lambda x, y, reduction="mean": np_reduced(abs(x - y), reduction),
    doc="Distance of input and target; its mean, its sum, or one value per element.",
)

op(
    "aten::_smooth_l1(Tensor self, Tensor target, float beta) -> Tensor",
    scalar={"float": "fabs(x - y) < beta ? 0.5f * (x - y) * (x - y) / beta : fabs(x - y) - 0.5f * beta"},
    variants="function",
    where="_fused",
    grad={
        "self": lambda grad, self, target, beta: grad * ((self - target) / beta).clamp(-1, 1),
        "target": lambda grad, self, target, beta: grad * ((target - self) / beta).clamp(-1, 1),
    },
    samples=lambda make: iter([Sample(make(3, 4), make(3, 4), 0.5), Sample(make(3), make(), 2.0)]),
    reference=lambda x, y, beta: _np_smooth(x, y, beta),
    doc="Distance of input and target, its tip below beta replaced by a parabola.",
)


def _np_smooth(x, y, beta):
    import numpy as np

    d = abs(x - y)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2) if beta else d


def _smooth_l1_loss(self, target, size_average, reduce, reduction, beta):
    reduction = reduction_of(size_average, reduce, reduction)
    warn_sizes(self, target)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. Got {beta}")
    return reduced(fused._smooth_l1(self, target, beta) if beta else (self - target).abs(), reduction)


def _smooth_samples(make):
    for reduction in ("mean", "sum", "none"):
        yield Sample(make(3, 4), make(3, 4), reduction=reduction, beta=0.7)
    yield Sample(make(3), make(3))
    yield Sample(make(3), make(3), beta=0.0)


op(
    "aten::smooth_l1_loss(Tensor self, Tensor target, bool? size_average=None, bool? reduce=None, "
    'str reduction="mean", float beta=1.0) -> Tensor',
    compose=_smooth_l1_loss,
    variants="function",
    where="nn.functional",
    samples=_smooth_samples,
    reference=lambda x, y, reduction="mean", beta=1.0: np_reduced(_np_smooth(x, y, beta), reduction),
    doc="Distance of input and target, squared and halved over beta where it is below beta.",
)


def _huber_loss(self, target, reduction, delta, weight):
    reduction = reduction_of(None, None, reduction)
    warn_sizes(self, target)
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. Got {delta}")
    loss = fused._smooth_l1(self, target, delta)
    loss = loss if delta == 1 else loss * delta
    if weight is None or reduction != "mean":
        return reduced(loss, reduction) if weight is None else weighted(loss, weight, reduction)
    return weighted(loss, weight, "none").mean()  # of all, where the other losses divide by the sum of the weights


def _huber_samples(make):
    for reduction in ("mean", "sum", "none"):
        yield Sample(make(3, 4), make(3, 4), reduction=reduction, delta=0.7)
    yield Sample(make(3), make(3))


op(
    'aten::huber_loss(Tensor self, Tensor target, str reduction="mean", float delta=1.0, Tensor? weight=None) -> '
    "Tensor",
    compose=_huber_loss,
    variants="function",
    where="nn.functional",
    samples=_huber_samples,
    reference=lambda x, y, reduction="mean", delta=1.0: np_reduced(delta * _np_smooth(x, y, delta), reduction),
    doc="Half the squared distance up to delta, and from there a line of slope delta.",
)
