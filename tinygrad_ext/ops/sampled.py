"""Activations and dropout that draw: leaky slopes, noise that keeps mean and variance."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_SELU = -1.7580993408473766  # the value that selu tends to on the left


def _drawn(x, lower, upper, generator):
    """Slopes are drawn in double, one for each element that is not positive."""
    drawn = x.detach().new_empty((x.numel(),), dtype=tg.float64).uniform_(lower, upper, generator=generator)
    slope = tg.ones_like(x.detach()).masked_scatter(x.detach() <= 0, drawn.to(x.dtype))
    return x * slope


def _rrelu(input, lower, upper, training, inplace):
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound: rrelu got {lower} and {upper}"
        )
    if training:
        y = _drawn(input, lower, upper, None)
    else:
        y = fused.leaky_relu(input, (lower + upper) / 2)
    return input.copy_(y) if inplace else y


def _rrelu_at_top(self, lower, upper, training, generator):
    if training and generator is not None:
        return _drawn(self, lower, upper, generator)
    return _rrelu(self, lower, upper, training, False)


op(
    "aten::rrelu.functional(Tensor(a) input, float lower=0.125, float upper=0.3333333333333333, bool training=False, "
    "bool inplace=False) -> Tensor(a)",
    compose=_rrelu,
    types="float",
    tags="draws",
    variants="function",
    where="nn.functional",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(5), 0.1, 0.9)],
    errors=[(lambda: _rrelu(zeros(2), 0.5, 0.1, False, False), RuntimeError, "Lower bound should be less than")],
    doc="self where it is positive, elsewhere self times a slope: drawn for each element when training, "
    "else the middle of "
    "lower and upper (Xu et al. 2015).",
)

op(
    "aten::rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    compose=_rrelu_at_top,
    types="float",
    variants="function inplace function_",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(5), 0.1, 0.9)],
    doc="nn.functional.rrelu with a generator.",
)


def _alpha(name, channels):
    def run(input, p, training, inplace):
        if not 0 <= p <= 1:
            raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}: {name}")
        if not training or p == 0 or not input.numel():
            return input
        if p == 1:
            y = input * 0.0
        else:
            shape = (*input.shape[:2], *[1] * (input.dim() - 2)) if channels else input.shape
            kept = input.detach().new_empty(shape).bernoulli_(1 - p)
            a = (p * _SELU * _SELU + 1) ** -0.5 * (1 - p) ** -0.5
            y = input * (kept * a) + (1 - kept) * (a * _SELU) - p * _SELU * a
        return input.copy_(y) if inplace else y

    return run


for _name, _channels in (("alpha_dropout", False), ("feature_alpha_dropout", True)):
    _run = _alpha(_name, _channels)
    _doc = (
        f"Noise for networks of selu that keeps mean and variance: "
        f"{'channels' if _channels else 'elements'} are set to "
        "selu's limit on the left with probability p, and all are scaled (Klambauer et al. 2017)."
    )
    op(
        f"aten::{_name}.functional(Tensor(a) input, float p=0.5, bool training=False, bool inplace=False) -> Tensor(a)",
        compose=_run,
        types="float",
        tags="draws",
        variants="function",
        where="nn.functional",
        samples=lambda make: [Sample(make(3, 4)), Sample(make(2, 3, 2), 0.3, False), Sample(make(2, 3), 0.0, True)],
        errors=[(lambda run=_run: run(zeros(2), 2.0, True, False), RuntimeError, "has to be between 0 and 1")],
        doc=_doc,
    )
    op(
        f"aten::{_name}(Tensor(a) input, float p, bool train) -> Tensor(a)",
        compose=lambda input, p, train, run=_run: run(input, p, train, False),
        types="float",
        tags="draws",
        variants="function",
        samples=lambda make: [Sample(make(3, 4), 0.5, False), Sample(make(2, 3, 2), 0.0, True)],
        doc=_doc,
    )
