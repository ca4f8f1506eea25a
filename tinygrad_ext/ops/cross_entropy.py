"""Cross entropy with soft targets, written in ops: class probabilities, and label smoothing."""

from tinygrad_ext.ops.fused import fused


def _check(self, target, weight, ignore_index, label_smoothing):
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if self.shape != target.shape:
        return False
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}. "
            "Class numbers have a shape without the dimension of classes."
        )
    if ignore_index >= 0:
        raise RuntimeError(
            "ignore_index is not supported for floating point target: leave it out, or give class numbers"
        )
    classes = self.shape[1 if self.dim() > 1 else 0] if self.dim() else 1
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
            f"classes but got weight tensor of shape: {list(weight.shape)}"
        )
    return True


def soft_cross_entropy(self, target, weight, ignore_index, reduction, label_smoothing):
    """cross_entropy for what its fused kernel does not take."""
    soft = _check(self, target, weight, ignore_index, label_smoothing)
    dim = 1 if self.dim() > 1 else 0
    logp = self.log_softmax(dim)
    along = None if weight is None else weight.reshape([-1 if i == dim else 1 for i in range(self.dim())])
    if soft:
        return _probabilities(logp, target, along, dim, reduction, label_smoothing)
    return _smoothed(logp, target, weight, along, dim, ignore_index, reduction, label_smoothing)


def _probabilities(logp, target, along, dim, reduction, label_smoothing):
    classes = logp.shape[dim]
    if label_smoothing and classes:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    loss = logp * target if along is None else logp * target * along
    if reduction == "none":
        return -loss.sum(dim)
    count = 1 if dim == 0 else logp.numel() // classes if classes else 0
    total = -loss.sum()
    return total if reduction == "sum" else total / count if count else total * float("nan")


def _smoothed(logp, target, weight, along, dim, ignore_index, reduction, label_smoothing):
    """(1 - s) nll + s / C times the sum over classes, ignored targets left out of both."""
    classes = logp.shape[dim]
    hard = fused._nll_loss(logp, target, weight, reduction, ignore_index)
    even = -(logp if along is None else logp * along).sum(dim)
    keep = target.reshape(even.shape) != ignore_index
    even = even * keep
    if reduction != "none":
        even = even.sum()
    if reduction == "mean":
        count = (
            keep.sum()
            if weight is None
            else -fused._nll_loss(logp.detach() * 0 + 1, target, weight, "sum", ignore_index)
        )
        even = even / count
    return hard * (1 - label_smoothing) + even * (label_smoothing / classes)
