"""Losses: distances of a prediction from a target, and likelihoods of classes.

The public functions are PyTorch's, with its old options size_average and reduce; the work is done by ops that take a
reduction only.
"""

from tinygrad_ext.ops import shapes
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _reduction(size_average, reduce, reduction):
    """The reduction, spelled the new way."""
    if size_average is not None or reduce is not None:
        import warnings

        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
                      UserWarning, stacklevel=3)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction: it must be 'mean', 'sum' or 'none'")
    return reduction


def _reduced(loss, reduction):
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _weighted(loss, weight, reduction):
    """The loss times a weight for each element; a mean divides by the sum of weights."""
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size. Got {weight.shape} and {loss.shape}.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduced(loss, reduction)


def _warn_sizes(self, target):
    if self.shape != target.shape:
        import warnings

        warnings.warn(f"Using a target size ({target.shape}) that is different to the input size ({self.shape}). This will "
                      "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
                      UserWarning, stacklevel=3)


def _np_reduced(loss, reduction):
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _pairs(make):
    for reduction in ("mean", "sum", "none"):
        yield Sample(make(3, 4), make(3, 4), reduction=reduction)
        yield Sample(make(), make(), reduction=reduction)
        yield Sample(make(0, 2), make(0, 2), reduction=reduction) if reduction != "mean" else Sample(make(5), make(5))


# ---- squared error -------------------------------------------------------------------------------------------------


def _mse_loss(self, target, size_average, reduce, reduction, weight):
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    if self.shape != target.shape:
        _warn_sizes(self, target)
    if weight is not None:
        return _weighted(self._mse_loss(target, "none"), weight, _reduction(None, None, reduction))
    return self._mse_loss(target, reduction)


def _mse_reference(x, y, reduction="mean", weight=None):
    return _np_reduced((x - y) ** 2, reduction)


def _loss_shape(self, target, reduction):
    both = shapes.broadcast(self, target)
    return both if reduction == "none" else shapes.meta((), both.dtype)


op("aten::mse_loss(Tensor self, Tensor target, bool? size_average=None, bool? reduce=None, str reduction=\"mean\", "
   "Tensor? weight=None) -> Tensor",
   compose=_mse_loss, variants="function", where="nn.functional", samples=_pairs, reference=_mse_reference,
   doc="Squared difference of input and target; its mean, its sum, or one value per element.")

op("aten::_mse_loss(Tensor self, Tensor target, str reduction) -> Tensor",
   kernel="mse_loss", variants="method", shape=_loss_shape,
   samples=lambda make: iter([Sample(make(3, 4), make(3, 4), r) for r in ("mean", "sum", "none")]),
   reference=_mse_reference,
   grad={"self": lambda grad, self, target, reduction: grad._mse_loss_backward(self, target, reduction),
         "target": lambda grad, self, target, reduction: grad._mse_loss_backward(target, self, reduction)},
   doc="mse_loss with a reduction only.")


def _mse_twice(grad, self, target, reduction):
    each = grad * (self - target) * 2
    return _reduced(each, reduction)


def _mse_backward_self(grad, grad_output, reduction):
    each = grad * grad_output * 2
    return each / grad.numel() if reduction == "mean" else each


op("aten::_mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, str reduction) -> Tensor",
   kernel="mse_loss_backward", variants="method", shape=lambda g, self, target, reduction: shapes.broadcast(self, target),
   samples=lambda make: iter([Sample(make(), make(3, 4), make(3, 4), r) for r in ("mean", "sum")]
                             + [Sample(make(3, 4), make(3, 4), make(3, 4), "none")]),
   reference=lambda g, x, y, reduction: 2 * g * (x - y) / (x.size if reduction == "mean" else 1),
   grad={"grad_output": _mse_twice,
         "self": _mse_backward_self,
         "target": lambda grad, grad_output, reduction: -_mse_backward_self(grad, grad_output, reduction)},
   doc="Derivative of mse_loss by its input.")

# ---- distances -----------------------------------------------------------------------------------------------------


def _l1_loss(self, target, size_average, reduce, reduction, weight):
    reduction = _reduction(size_average, reduce, reduction)
    _warn_sizes(self, target)
    loss = (self - target).abs()
    return _reduced(loss, reduction) if weight is None else _weighted(loss, weight, reduction)


op("aten::l1_loss(Tensor self, Tensor target, bool? size_average=None, bool? reduce=None, str reduction=\"mean\", "
   "Tensor? weight=None) -> Tensor",
   compose=_l1_loss, variants="function", where="nn.functional", samples=_pairs,
   reference=lambda x, y, reduction="mean": _np_reduced(abs(x - y), reduction),
   doc="Distance of input and target; its mean, its sum, or one value per element.")

op("aten::_smooth_l1(Tensor self, Tensor target, float beta) -> Tensor",
   scalar={"float": "fabs(x - y) < beta ? 0.5f * (x - y) * (x - y) / beta : fabs(x - y) - 0.5f * beta"},
   variants="method",
   grad={"self": lambda grad, self, target, beta: grad * ((self - target) / beta).clamp(-1, 1),
         "target": lambda grad, self, target, beta: grad * ((target - self) / beta).clamp(-1, 1)},
   samples=lambda make: iter([Sample(make(3, 4), make(3, 4), 0.5), Sample(make(3), make(), 2.0)]),
   reference=lambda x, y, beta: _np_smooth(x, y, beta),
   doc="Distance of input and target, its tip below beta replaced by a parabola.")


def _np_smooth(x, y, beta):
    import numpy as np

    d = abs(x - y)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2) if beta else d


def _smooth_l1_loss(self, target, size_average, reduce, reduction, beta):
    reduction = _reduction(size_average, reduce, reduction)
    _warn_sizes(self, target)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. Got {beta}")
    return _reduced(self._smooth_l1(target, beta) if beta else (self - target).abs(), reduction)


def _smooth_samples(make):
    for reduction in ("mean", "sum", "none"):
        yield Sample(make(3, 4), make(3, 4), reduction=reduction, beta=0.7)
    yield Sample(make(3), make(3))
    yield Sample(make(3), make(3), beta=0.0)


op("aten::smooth_l1_loss(Tensor self, Tensor target, bool? size_average=None, bool? reduce=None, "
   "str reduction=\"mean\", float beta=1.0) -> Tensor",
   compose=_smooth_l1_loss, variants="function", where="nn.functional", samples=_smooth_samples,
   reference=lambda x, y, reduction="mean", beta=1.0: _np_reduced(_np_smooth(x, y, beta), reduction),
   doc="Distance of input and target, squared and halved over beta where it is below beta.")


def _huber_loss(self, target, reduction, delta, weight):
    reduction = _reduction(None, None, reduction)
    _warn_sizes(self, target)
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. Got {delta}")
    loss = self._smooth_l1(target, delta) * delta
    return _reduced(loss, reduction) if weight is None else _weighted(loss, weight, reduction)


def _huber_samples(make):
    for reduction in ("mean", "sum", "none"):
        yield Sample(make(3, 4), make(3, 4), reduction=reduction, delta=0.7)
    yield Sample(make(3), make(3))


op("aten::huber_loss(Tensor self, Tensor target, str reduction=\"mean\", float delta=1.0, Tensor? weight=None) -> Tensor",
   compose=_huber_loss, variants="function", where="nn.functional", samples=_huber_samples,
   reference=lambda x, y, reduction="mean", delta=1.0: _np_reduced(delta * _np_smooth(x, y, delta), reduction),
   doc="Half the squared distance up to delta, and from there a line of slope delta.")

# ---- classes -------------------------------------------------------------------------------------------------------


def _nll_loss(self, target, weight, size_average, ignore_index, reduce, reduction):
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return self._nll_loss(target, weight, reduction, ignore_index)


def _class_samples(make):
    w = (make(4, low=0.1, high=1.0),)
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
    return loss.sum() / factor.sum() if reduction == "mean" else _np_reduced(loss, reduction)


def _np_cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100):
    import scipy.special

    return _np_nll(scipy.special.log_softmax(x, axis=1 if x.ndim > 1 else 0), target, weight, reduction, ignore_index)


def _class_shape(self, target, weight, reduction, ignore_index):
    return shapes.meta(target.shape if reduction == "none" else (), self.dtype)


op("aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
   "bool? reduce=None, str reduction=\"mean\") -> Tensor",
   compose=_nll_loss, variants="function", where="nn.functional", samples=_class_samples, reference=_np_nll,
   doc="Negative log likelihood: minus the target's entry of input (N, C, ...), which holds log-probabilities. target is "
       "(N, ...) with class numbers; a mean is weighted by weight (C).")

op("aten::_nll_loss(Tensor self, Tensor target, Tensor? weight, str reduction, int ignore_index) -> Tensor",
   kernel="nll_loss", variants="method", shape=_class_shape,
   samples=lambda make: iter([Sample(make(5, 4), make.ints(0, 4, (5,)), None, "mean", -100)]),
   reference=_np_nll,
   grad={"self": lambda grad, target, weight, self_shape, reduction, ignore_index:
         grad._nll_loss_backward(target, weight, self_shape, reduction, ignore_index)},
   doc="nll_loss with a reduction only.")

op("aten::_nll_loss_backward(Tensor grad_output, Tensor target, Tensor? weight, int[] sizes, str reduction, "
   "int ignore_index) -> Tensor",
   kernel="nll_loss_backward", variants="method",
   shape=lambda grad_output, target, weight, sizes, *_: shapes.meta(sizes, grad_output.dtype),
   samples=lambda make: iter([Sample(make(), make.ints(0, 4, (5,)), None, (5, 4), "mean", -100)]),
   # the loss is linear, so the derivative of its derivative is the loss itself
   grad={"grad_output": lambda grad, target, weight, reduction, ignore_index:
         grad._nll_loss(target, weight, reduction, ignore_index)},
   gaps={"reference": "the adjoint of nll_loss, which has one; gradcheck compares the two"},
   doc="Derivative of nll_loss by its input.")


def _cross_entropy(self, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing):
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    if label_smoothing == 0.0 and not target.dtype.is_floating_point and (self.shape != target.shape or not self.dim()):
        return self._cross_entropy(target, weight, reduction, ignore_index)[0]
    from tinygrad_ext.ops.cross_entropy import soft_cross_entropy

    return soft_cross_entropy(self, target, weight, ignore_index, _reduction(None, None, reduction), label_smoothing)


op("aten::cross_entropy(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None, "
   "int ignore_index=-100, bool? reduce=None, str reduction=\"mean\", float label_smoothing=0.0) -> Tensor",
   compose=_cross_entropy, variants="function", where="nn.functional", samples=_class_samples,
   reference=_np_cross_entropy,
   doc="nll_loss of log_softmax over the classes of input (N, C, ...). target holds class numbers (N, ...), or a "
       "probability of each class in input's shape. label_smoothing moves that share of the target to all classes evenly.")

op("aten::_cross_entropy(Tensor self, Tensor target, Tensor? weight, str reduction, int ignore_index) "
   "-> (Tensor loss, Tensor lse)",
   kernel="cross_entropy", variants="method",
   shape=lambda self, target, *rest: (_class_shape(self, target, *rest), shapes.meta(target.shape, self.dtype)),
   samples=lambda make: iter([Sample(make(5, 4), make.ints(0, 4, (5,)), None, "mean", -100)]),
   reference=lambda x, target, *rest: (_np_cross_entropy(x, target, *rest), _np_lse(x)),
   grad={"self": lambda grad_loss, self, lse, target, weight, reduction, ignore_index:
         grad_loss._cross_entropy_backward(self, lse, target, weight, reduction, ignore_index)},
   gaps={"grad": "lse serves the derivative of loss and has none of its own"},
   doc="cross_entropy of class numbers, and the logarithm of each row's sum of exponentials.")


def _np_lse(x):
    import scipy.special

    return scipy.special.logsumexp(x, axis=1)


def _scale(grad_output, self, target, weight, reduction, ignore_index):
    """(p, scale): the probabilities, and the factor of each row, both differentiable."""
    dim = 1 if self.dim() > 1 else 0
    scale = grad_output._class_scale(self, target, weight, reduction, ignore_index)
    return dim, self.softmax(dim), scale.reshape(*self.shape[:dim], 1, *self.shape[dim + 1:])


def _cross_entropy_twice_self(grad, grad_output, self, target, weight, reduction, ignore_index):
    dim, p, scale = _scale(grad_output, self, target, weight, reduction, ignore_index)
    return (grad * scale)._softmax_backward_data(p, dim, self.dtype)


def _cross_entropy_twice_grad(grad, grad_output, self, target, weight, reduction, ignore_index):
    dim = 1 if self.dim() > 1 else 0
    each = (grad * self.softmax(dim)).sum(dim) + grad._nll_loss(target, None, "none", ignore_index)
    each = each * (grad_output * 0 + 1)._class_scale(self, target, weight, reduction, ignore_index)
    return each if reduction == "none" else each.sum()


op("aten::_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor lse, Tensor target, Tensor? weight, "
   "str reduction, int ignore_index) -> Tensor",
   kernel="cross_entropy_backward", variants="method", shape=lambda g, self, *_: shapes.same(self),
   samples=lambda make: iter([Sample(make(), make(5, 4), make(5), make.ints(0, 4, (5,)), None, "mean", -100)]),
   grad={"grad_output": _cross_entropy_twice_grad, "self": _cross_entropy_twice_self},
   gaps={"reference": "gradcheck of cross_entropy compares it", "grad": "lse is a function of self here"},
   doc="Derivative of cross_entropy by its input: (softmax - one hot target) times the factor of each row.")

op("aten::_class_scale(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, str reduction, int ignore_index) "
   "-> Tensor",
   kernel="class_scale", variants="method",
   shape=lambda grad_output, self, target, *_: shapes.meta(target.shape, grad_output.dtype),
   samples=lambda make: iter([Sample(make(), make(5, 4), make.ints(0, 4, (5,)), None, "mean", -100)]),
   grad={"grad_output": lambda grad, grad_output, self, target, weight, reduction, ignore_index:
         _unscale(grad * (grad_output * 0 + 1)._class_scale(self, target, weight, reduction, ignore_index), reduction)},
   gaps={"reference": "part of the derivative of cross_entropy, which gradcheck compares"},
   doc="Factor of each target in the derivative of a loss of classes: gradient times weight over the total weight.")


def _unscale(each, reduction):
    return each if reduction == "none" else each.sum()
