"""How losses go through vmap: one value for each row of each sample, and each sample's own sum or mean of them."""

import tinygrad_ext as tg
from tinygrad_ext.ops.batching import told, unfit, widened
from tinygrad_ext.ops.batching_layers import rows_folded
from tinygrad_ext.ops.fused import fused

# ---- squared error -------------------------------------------------------------------------------------------------


def _check(reduction):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _reduced(each, reduction, dims):
    _check(reduction)
    if reduction == "none" or not dims:
        return each
    return each.sum(dims) if reduction == "sum" else each.mean(dims)


def _aligned(b, *values):
    """The tensors behind values that are broadcast with each other, and the dimensions of a sample."""
    rank = max(v.dim() for v in values)
    return [widened(b.whole(v), rank) for v in values], list(range(1, rank + 1))


@told("_mse_loss")
def mse_loss(b, self, target, reduction):
    (x, y), dims = _aligned(b, self, target)
    return _reduced(fused._mse_loss(x, y, "none"), reduction, dims)


def mse_loss_backward(b, grad_output, self, target, reduction):
    (x, y), dims = _aligned(b, self, target)
    if reduction == "none":
        return fused._mse_loss_backward(widened(b.whole(grad_output), len(dims)), x, y, "none")
    shape = tg.broadcast_shapes(x.shape, y.shape)
    grad = b.whole(grad_output)
    if reduction == "mean":
        count = 1
        for s in shape[1:]:
            count *= s
        grad = grad / count
    return fused._mse_loss_backward(widened(grad, len(dims)).expand(shape), x, y, "none")


# ---- classes -------------------------------------------------------------------------------------------------------
# Of a sample (C) with one target, or (N, C, ...) with targets (N, ...); rows are what has one target.


class Rows:
    """The rows of all samples of a loss of classes.

    Attributes:
        x: (rows, C, ...) of all samples, target: (rows, ...).
        shape: of the targets with the batch in front.
        weight: of the classes, if all samples share it, for the kernel; factor: of each target otherwise.
    """

    def __init__(self, b, x, target, weight, ignore_index, sizes=None):
        sizes = tuple(x.shape if sizes is None else sizes)
        whole = None if x is None else b.whole(x)
        if len(sizes) == 1 and tuple(target.shape) == (1,):  # one row
            sizes, whole = (1, *sizes), None if x is None else whole.unsqueeze(1)
        if not sizes or tuple(target.shape) != (*sizes[: len(sizes) > 1], *sizes[2:]):
            raise unfit("nll_loss")
        self.single, self.classes = len(sizes) < 2, sizes[0 if len(sizes) < 2 else 1]
        self.b, self.ignore_index, self.sizes = b, ignore_index, sizes
        target = b.whole(target)
        self.shape = tuple(target.shape)
        self.x = None if x is None else self.folded(whole)
        self.target = self.folded(target)
        if weight is not None and (
            tuple(weight.shape) != (self.classes,) or (x is not None and weight.dtype != x.dtype)
        ):
            raise unfit("nll_loss")
        self.given, self.weight = weight, None if b.owns(weight) else weight
        self.factor = self.factors() if b.owns(weight) else None

    def folded(self, whole):
        return whole if self.single else rows_folded(whole)

    def unfolded(self, tensor):
        """What belongs to rows, with the batch in front."""
        return tensor if self.single else tensor.unflatten(0, self.shape[:2])

    def factors(self):
        """The weight of each target, zero for those that are ignored."""
        target = self.target.reshape(self.shape)
        keep = target != self.ignore_index
        if self.given is None:
            return keep
        at = target.clamp(0, self.classes - 1).reshape((self.b.size, self.count()))
        return self.b.whole(self.given).gather(1, at).reshape(self.shape) * keep

    def totals(self):
        """The weights of each sample's targets, summed up."""
        found = self.factors() if self.factor is None else self.factor
        return found.sum(self.dims()) if len(self.shape) > 1 else found

    def count(self):
        """How many targets a sample has."""
        found = 1
        for s in self.shape[1:]:
            found *= s
        return found

    def dims(self):
        return list(range(1, len(self.shape)))

    def reduced(self, each, reduction):
        """Values of rows, reduced over each sample."""
        _check(reduction)
        each = self.unfolded(each)
        if self.factor is not None:
            each = each * self.factor
        if reduction == "none":
            return each
        total = each.sum(self.dims()) if len(self.shape) > 1 else each
        return total if reduction == "sum" else total / self.totals()

    def spread(self, grad, reduction):
        """The gradient of a reduced loss, for each row."""
        if reduction == "mean":
            grad = grad / self.totals()
        if reduction != "none":
            grad = grad.reshape((self.b.size, *(1,) * len(self.dims()))).expand(self.shape)
        if self.factor is not None:
            grad = grad * self.factor
        return self.folded(grad)


@told("_nll_loss")
def nll_loss(b, self, target, weight, reduction, ignore_index):
    rows = Rows(b, self, target, weight, ignore_index)
    return rows.reduced(fused._nll_loss(rows.x, rows.target, rows.weight, "none", ignore_index), reduction)


def nll_loss_backward(b, grad_output, target, weight, sizes, reduction, ignore_index):
    rows = Rows(b, None, target, weight, ignore_index, sizes)
    grad = rows.spread(b.whole(grad_output), reduction)
    size = (b.size, *sizes) if rows.single else (b.size * rows.sizes[0], *rows.sizes[1:])
    found = fused._nll_loss_backward(grad, rows.target, rows.weight, size, "none", ignore_index)
    return found.reshape((b.size, *sizes))


@told("_cross_entropy")
def cross_entropy(b, self, target, weight, reduction, ignore_index):
    rows = Rows(b, self, target, weight, ignore_index)
    loss, lse = fused._cross_entropy(rows.x, rows.target, rows.weight, "none", ignore_index)
    return rows.reduced(loss, reduction), rows.unfolded(lse)


def cross_entropy_backward(b, grad_output, self, lse, target, weight, reduction, ignore_index):
    rows = Rows(b, self, target, weight, ignore_index)
    grad, sums = rows.spread(b.whole(grad_output), reduction), rows.folded(b.whole(lse))
    found = fused._cross_entropy_backward(grad, rows.x, sums, rows.target, rows.weight, "none", ignore_index)
    return found.reshape((b.size, *self.shape))


def class_scale(b, grad_output, self, target, weight, reduction, ignore_index):
    rows = Rows(b, self, target, weight, ignore_index)
    grad = rows.spread(b.whole(grad_output), reduction)
    return rows.unfolded(fused._class_scale(grad, rows.x, rows.target, rows.weight, "none", ignore_index))
