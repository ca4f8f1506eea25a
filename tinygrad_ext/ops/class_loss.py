"""Losses of classes: negative log likelihood and cross entropy, each with a fused kernel both ways."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_losses, forward
from tinygrad_ext.ops.cross_entropy import soft_cross_entropy
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.loss import np_reduced, reduction_of
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _no_gradient(op_name, weight):
    if weight is not None and weight.requires_grad:
        raise RuntimeError(
            f"{op_name} is not differentiable with respect to argument 'weight'. This input cannot have "
            "requires_grad True: give weight.detach()."
        )


def _nll_loss(self, target, weight, size_average, ignore_index, reduce, reduction):
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    if weight is not None:
        _no_gradient("nll_loss", weight)
    return fused._nll_loss(self, target, weight, reduction, ignore_index)


def _class_samples(make):
    w = (make(4, low=0.1, high=1.0).detach(),)
    for reduction in ("mean", "sum", "none"):
        yield Sample(make(5, 4), make.ints(0, 4, (5,)), reduction=reduction)
        yield Sample(make(5, 4), make.ints(0, 4, (5,)), *w, reduction=reduction, ignore_index=2)
        yield Sample(make(2, 4, 3, 2), make.ints(0, 4, (2, 3, 2)), *w, reduction=reduction)
    yield Sample(make(4), make.ints(0, 4, ()))
    yield Sample(make(0, 4), make.ints(0, 4, (0,)), reduction="sum")
    yield Sample(make(0, 4), make.ints(0, 4, (0,)), reduction="none")


def _np_nll(logp, target, weight=None, reduction="mean", ignore_index=-100):
    import numpy as np

    axis = 1 if logp.ndim > 1 else 0
    w = np.ones(logp.shape[axis], logp.dtype) if weight is None else weight
    keep = target != ignore_index
    t = np.where(keep, target, 0)
    picked = np.take_along_axis(logp, np.expand_dims(t, axis), axis).squeeze(axis)
    factor = w[t] * keep
    loss = -picked * factor
    return loss.sum() / factor.sum() if reduction == "mean" else np_reduced(loss, reduction)


def _np_cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100):
    import scipy.special

    return _np_nll(scipy.special.log_softmax(x, axis=1 if x.ndim > 1 else 0), target, weight, reduction, ignore_index)


op(
    "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
    'bool? reduce=None, str reduction="mean") -> Tensor',
    compose=_nll_loss,
    variants="function",
    where="nn.functional",
    samples=_class_samples,
    reference=_np_nll,
    doc="Negative log likelihood: minus the target's entry of input (N, C, ...), which holds log-probabilities. target "
    "is (N, ...) with class numbers; a mean is weighted by weight (C).",
)

op(
    "aten::_nll_loss(Tensor self, Tensor target, Tensor? weight, str reduction, int ignore_index) -> Tensor",
    batch=batching_losses.nll_loss,
    kernel="nll_loss",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(5, 4), make.ints(0, 4, (5,)), None, "mean", -100)]),
    reference=_np_nll,
    grad={"self": "_nll_loss_backward(grad, target, weight, self_shape, reduction, ignore_index)"},
    jvp="linear",
    doc="nll_loss with a reduction only.",
)

op(
    "aten::_nll_loss_backward(Tensor grad_output, Tensor target, Tensor? weight, int[] sizes, str reduction, "
    "int ignore_index) -> Tensor",
    batch=batching_losses.nll_loss_backward,
    kernel="nll_loss_backward",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(), make.ints(0, 4, (5,)), None, (5, 4), "mean", -100)]),
    # the loss is linear, so the derivative of its derivative is the loss itself
    grad={"grad_output": "_nll_loss(grad, target, weight, reduction, ignore_index)"},
    jvp="linear",
    gaps={"reference": "the adjoint of nll_loss, which has one; gradcheck compares the two"},
    doc="Derivative of nll_loss by its input.",
)


def cross_entropy(self, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing):
    """cross_entropy with any arguments; the compiled composite comes here for all but the plain call."""
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    if weight is not None:
        _no_gradient("cross_entropy", weight)
    if label_smoothing == 0.0 and not target.dtype.is_floating_point and (self.shape != target.shape or not self.dim()):
        return fused._cross_entropy(self, target, weight, reduction, ignore_index)[0]
    return soft_cross_entropy(self, target, weight, ignore_index, reduction_of(None, None, reduction), label_smoothing)


op(
    "aten::cross_entropy(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None, "
    'int ignore_index=-100, bool? reduce=None, str reduction="mean", float label_smoothing=0.0) -> Tensor',
    compose="cross_entropy_public",
    variants="function",
    where="nn.functional",
    samples=_class_samples,
    reference=_np_cross_entropy,
    doc="nll_loss of log_softmax over the classes of input (N, C, ...). target holds class numbers (N, ...), or a "
    "probability of each class in input's shape. label_smoothing moves that share of the target to all classes "
    "evenly.",
)


def _cross_entropy_back(grad_loss, self, lse, target, weight, reduction, ignore_index):
    """Of halves by an lse that was not rounded: e to the power of its error would be a factor of every probability."""
    if self.dtype in (tg.float16, tg.bfloat16):
        grad_loss, self, weight = grad_loss.float(), self.float(), weight if weight is None else weight.float()
        lse = self.logsumexp(min(1, self.dim() - 1))
    return fused._cross_entropy_backward(grad_loss, self, lse, target, weight, reduction, ignore_index)


op(
    "aten::_cross_entropy(Tensor self, Tensor target, Tensor? weight, str reduction, int ignore_index) "
    "-> (Tensor loss, Tensor lse)",
    batch=batching_losses.cross_entropy,
    kernel="cross_entropy",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(5, 4), make.ints(0, 4, (5,)), None, "mean", -100)]),
    reference=lambda x, target, *rest: (_np_cross_entropy(x, target, *rest), _np_lse(x)),
    grad={"self": _cross_entropy_back},
    jvp=forward.cross_entropy,
    doc="cross_entropy of class numbers, and the logarithm of each row's sum of exponentials.",
)


def _np_lse(x):
    import scipy.special

    return scipy.special.logsumexp(x, axis=1)


def _scale(grad_output, self, target, weight, reduction, ignore_index):
    """(p, scale): the probabilities, and the factor of each row, both differentiable."""
    dim = 1 if self.dim() > 1 else 0
    scale = fused._class_scale(grad_output, self, target, weight, reduction, ignore_index)
    return dim, self.softmax(dim), scale.reshape(*self.shape[:dim], 1, *self.shape[dim + 1 :])


def _cross_entropy_twice_self(grad, grad_output, self, target, weight, reduction, ignore_index):
    dim, p, scale = _scale(grad_output, self, target, weight, reduction, ignore_index)
    return fused._softmax_backward_data(grad * scale, p, dim, self.dtype)


def _cross_entropy_twice_grad(grad, grad_output, self, target, weight, reduction, ignore_index):
    dim = 1 if self.dim() > 1 else 0
    each = (grad * self.softmax(dim)).sum(dim) + fused._nll_loss(grad, target, None, "none", ignore_index)
    each = each * fused._class_scale(grad_output * 0 + 1, self, target, weight, reduction, ignore_index)
    return each if reduction == "none" else each.sum()


op(
    "aten::_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor lse, Tensor target, Tensor? weight, "
    "str reduction, int ignore_index) -> Tensor",
    batch=batching_losses.cross_entropy_backward,
    kernel="cross_entropy_backward",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(), make(5, 4), make(5), make.ints(0, 4, (5,)), None, "mean", -100)]),
    grad={"grad_output": _cross_entropy_twice_grad, "self": _cross_entropy_twice_self},
    gaps={
        "reference": "gradcheck of cross_entropy compares it",
        "gradcheck": "takes lse for a function of self, which it is in use",
        "gradgradcheck": "takes lse for a function of self, which it is in use",
    },
    doc="Derivative of cross_entropy by its input: (softmax - one hot target) times the factor of each row.",
)

op(
    "aten::_class_scale(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, str reduction, int "
    "ignore_index) -> Tensor",
    batch=batching_losses.class_scale,
    kernel="class_scale",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(), make(5, 4), make.ints(0, 4, (5,)), None, "mean", -100)]),
    grad={
        "grad_output": lambda grad, grad_output, self, target, weight, reduction, ignore_index: _unscale(
            grad * fused._class_scale(grad_output * 0 + 1, self, target, weight, reduction, ignore_index), reduction
        )
    },
    gaps={"reference": "part of the derivative of cross_entropy, which gradcheck compares"},
    doc="Factor of each target in the derivative of a loss of classes: gradient times weight over the total weight.",
)


def _unscale(each, reduction):
    return each if reduction == "none" else each.sum()
