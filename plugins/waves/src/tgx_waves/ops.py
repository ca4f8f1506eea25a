"""What the ops of waves.zig are checked with and compared to; documentation, type stub and checks follow from it."""

from pathlib import Path

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import Sample


def phase(x, period):
    return x / period - np.floor(x / period + 0.5)


def tensors(number):
    """Inputs for the checks: so many tensors, and a period."""

    def samples(make):
        for shape, period in (((3, 4), 1.0), ((5,), 0.5), ((), 3.0), ((0, 2), 1.0)):
            yield Sample(*[make(*shape) for _ in range(number)], period)

    return samples


def refused():
    """Calls that must fail, and how."""
    call = lambda name, *args: lambda: getattr(tg.ops.waves, name)(*args)
    return [
        (call("triangle", tg.ones(3), 0.0), ValueError, "period must be a positive number"),
        (call("triangle", tg.ones(3, dtype=tg.int64)), NotImplementedError, "must be float32 or float64"),
        (call("triangle_slope", tg.ones(3), tg.ones(4)), RuntimeError, "must be of one dtype and shape"),
    ]


FACTS = {
    "triangle": {
        "types": "float",
        "reference": lambda x, period=1.0: 4 * abs(phase(x, period)) - 1,
        "samples": tensors(1),
        "errors": refused(),
        "doc": "A wave of straight lines between -1, where x is a multiple of the period, and 1, half a period away.",
    },
    "triangle_slope": {
        "types": "float",
        "reference": lambda grad, x, period=1.0: grad * np.sign(phase(x, period)) * 4 / period,
        "samples": tensors(2),
        "doc": "Gradient of triangle: grad times the slope at x, which is 0 where the wave turns below.",
    },
}


def register_all(register):
    """Called once, from the hook."""
    register.library(Path(__file__).with_name("_waves.so"), FACTS)
