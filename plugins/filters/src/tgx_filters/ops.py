"""What the ops of _kernels.pyx are checked with and compared to; documentation, type stub and checks follow from it."""

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import Sample

from . import _kernels


def samples(make):
    """Inputs for the checks."""
    yield Sample(make(3, 4), 0.25)
    yield Sample(make(2, 1, 5), 1.0)
    yield Sample(make(6), alpha=0.9)
    yield Sample(make(0, 2), 0.5)
    yield Sample(make(2, 0), 0.5)


def average(x, alpha):
    """The same once more, slowly."""
    x = np.asarray(x)
    y, kept = np.empty_like(x), np.zeros(x.shape[:-1])
    for t in range(x.shape[-1]):
        kept = alpha * x[..., t] + (1 - alpha) * kept
        y[..., t] = kept
    return y


def refused(name):
    """Calls that must fail, and how."""
    call = lambda *args: lambda: getattr(tg.ops.filters, name)(*args)
    return [
        (call(tg.ones(3), 0.0), ValueError, "alpha must be above 0 and at most 1, not 0"),
        (call(tg.ones(3), float("nan")), ValueError, "alpha must be above 0"),
        (call(tg.ones(()), 0.5), RuntimeError, "must have a dimension to go along"),
        (call(tg.ones(3, dtype=tg.int64), 0.5), NotImplementedError, "must be float32 or float64"),
    ]


FACTS = {
    "ema": {
        "types": "float",
        "reference": average,
        "samples": samples,
        "errors": refused("ema"),
        "doc": """Exponential average along the last dimension: y[t] = alpha x[t] + (1 - alpha) y[t - 1], from y = 0.

        alpha is above 0 and at most 1; 1 gives x. float32 (summed in float64) and float64.""",
    },
    "ema_adjoint": {
        "types": "float",
        "reference": lambda grad, alpha: average(np.asarray(grad)[..., ::-1], alpha)[..., ::-1],
        "samples": samples,
        "errors": refused("ema_adjoint"),
        "doc": "Gradient of ema by its tensor: the same average, from the end.",
    },
}


def register_all(register):
    """Called once, from the hook."""
    _kernels.start(FACTS)
