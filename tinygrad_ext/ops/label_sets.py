"""Losses of sets of labels, and cross entropy of a linear layer."""

import itertools

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _older(size_average, reduce, reduction):
    """What the two deprecated arguments say."""
    if size_average is None and reduce is None:
        return reduction
    return "none" if reduce is False else "mean" if size_average in (None, True) else "sum"


# ---- sets of labels ------------------------------------------------------------------------------------------------


def _multilabel_margin_loss(self, target, size_average, reduce, reduction):
    if self.dim() > 2 or self.shape != target.shape:
        raise RuntimeError(
            f"multilabel_margin_loss: Expected non-empty vector or matrix and a target of the same size, but got "
            f"{list(self.shape)} and {list(target.shape)}"
        )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction: take none, mean or sum")
    if target.dtype != tg.int64:
        raise RuntimeError(f"multilabel_margin_loss: expected scalar type Long for target but found {target.dtype}")
    rows = (self, target) if self.dim() else (self.reshape(1), target.reshape(1))
    loss = fused._multilabel_margin(*rows)[0]
    reduction = _older(size_average, reduce, reduction)
    return loss if reduction == "none" else getattr(loss, reduction)()


op(
    "aten::multilabel_margin_loss(Tensor self, Tensor target, bool? size_average=None, bool? reduce=None, "
    'str reduction="mean") -> Tensor',
    compose=_multilabel_margin_loss,
    types="float",
    variants="function",
    where="nn.functional",
    samples=lambda make: [
        Sample(make(2, 4), make.of([[1, 3, -1, 0], [0, -1, 2, 2]])),
        Sample(make(3), make.of([2, 0, 1]), reduction="sum"),
        Sample(make(1, 3), make.of([[0, 1, -1]]), reduction="none"),
    ],
    errors=[
        (
            lambda: functions["nn.functional.multilabel_margin_loss"](zeros(2), zeros(3).long()),
            RuntimeError,
            "a target of the same size",
        ),
        (
            lambda: functions["nn.functional.multilabel_margin_loss"](zeros(2), zeros(2), reduction="abc"),
            ValueError,
            "abc is not a valid value for reduction",
        ),
        (
            lambda: functions["nn.functional.multilabel_margin_loss"](zeros(2), zeros(2)),
            RuntimeError,
            "expected scalar type Long for target",
        ),
    ],
    doc="Sum over labels and other classes of max(0, 1 - (x[label] - x[other])) / classes; labels end at the first -1.",
)


def _np_margins(x, target):
    import numpy

    loss, slope = numpy.zeros(x.shape[:-1]), numpy.zeros(x.shape)
    for row in numpy.ndindex(loss.shape):
        labels = list(itertools.takewhile(lambda label: label >= 0, target[row]))
        for label, i in itertools.product(labels, set(range(x.shape[-1])) - set(labels)):
            margin = 1 - x[row][label] + x[row][i]
            if margin > 0:
                loss[row] += margin / x.shape[-1]
                slope[row][i] += 1 / x.shape[-1]
                slope[row][label] -= 1 / x.shape[-1]
    return loss, slope


op(
    "aten::_multilabel_margin(Tensor self, Tensor target) -> (Tensor loss, Tensor slope)",
    kernel="multilabel_margin",
    batch="leading",
    variants="function",
    where="_fused",
    samples=lambda make: iter(
        [
            Sample(make(2, 4), make.of([[1, 3, -1, 0], [0, -1, 2, 2]])),
            Sample(make(3), make.of([1, 1, 2])),
            Sample(make(1, 1, 3), make.of([[[-1, 0, 1]]])),
        ]
    ),
    reference=_np_margins,
    grad={"self": lambda grad_loss, slope: grad_loss.unsqueeze(-1) * slope.detach()},
    jvp=lambda self_tangent, slope: ((self_tangent * slope).sum(-1), None),
    errors=[
        (
            lambda: fused._multilabel_margin(zeros(2), zeros(2).long() + 2),
            RuntimeError,
            "'target' is out of range",
        ),
    ],
    doc="multilabel_margin_loss of each row along the last dimension, and its slope.",
)


# ---- cross entropy of a linear layer -------------------------------------------------------------------------------


@rounded_once
def _linear_cross_entropy(
    input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing, options
):
    if input.dim() and linear_weight.dim() and input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "linear_cross_entropy: expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if input.dim() not in (1, 2) or linear_weight.dim() < 2:
        raise RuntimeError(
            "linear_cross_entropy: expected input (in_features,) or (N, in_features) and linear_weight (classes, ..., "
            f"in_features), got {list(input.shape)} and {list(linear_weight.shape)}"
        )
    if linear_weight.dim() > 2 and input.dim() < 2:
        raise RuntimeError(
            f"linear_cross_entropy: K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} "
            f"requires batched input, (N, in_features), got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], *linear_weight.shape[:-1])
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    scores = functions["nn.functional.linear"](input, flat, bias).reshape(shape)
    if options is not None and not hasattr(options, "acc_policy"):
        raise TypeError(
            "linear_cross_entropy(): argument 'options' must be nn.LinearCrossEntropyOptions or None, not "
            f"{type(options).__name__}"
        )
    return functions["nn.functional.cross_entropy"](
        scores,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


op(
    "aten::linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *, Tensor? linear_bias=None, "
    'Tensor? weight=None, str reduction="mean", int? ignore_index=None, float label_smoothing=0.0, Any '
    "options=None) -> Tensor",
    compose=_linear_cross_entropy,
    types="float",
    variants="function",
    where="nn.functional",
    samples=lambda make: [
        Sample(make(3, 4), make(5, 4), make.of([0, 4, 2])),
        Sample(make(3, 4), make(5, 4), make.of([0, 4, 2]), linear_bias=make(5), reduction="sum", label_smoothing=0.1),
    ],
    errors=[
        (
            lambda: functions["nn.functional.linear_cross_entropy"](
                zeros(1, 2), zeros(3, 2), zeros(1).long(), options={"batch_chunk_size": 2}
            ),
            TypeError,
            "must be nn.LinearCrossEntropyOptions or None, not dict",
        ),
        (
            lambda: functions["nn.functional.linear_cross_entropy"](zeros(3), zeros(2, 4, 3), zeros(2, 4)),
            RuntimeError,
            "requires batched input",
        ),
    ],
    doc="cross_entropy of linear(input, linear_weight, linear_bias).",
)
