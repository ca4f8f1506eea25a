"""What the ops of gates.cpp are checked with and compared to; documentation, type stub and checks follow from it."""

from pathlib import Path

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import Sample

SHAPES = ((3, 4), (5,), (), (0, 2))


def sigmoid(g):
    return 1 / (1 + np.exp(-g))


def backward(grad, x, g):
    """The gradients in NumPy."""
    s = sigmoid(g)
    return grad * g * s, grad * x * s * (1 + g * (1 - s))


def refused():
    """Calls that must fail, and how."""
    call = lambda *args: lambda: tg.ops.gates.swiglu(*args)
    return [
        (call(tg.ones(3), tg.ones(4)), RuntimeError, "argument 1 must have the dtype and shape of the first"),
        (call(tg.ones(3), tg.ones(3, dtype=tg.float64)), RuntimeError, "argument 1 must have the dtype and shape"),
        (call(tg.ones(3, dtype=tg.int64), tg.ones(3)), NotImplementedError, "must be float32 or float64"),
    ]


FACTS = {
    "swiglu": {
        "types": "float",
        "reference": lambda x, g: x * g * sigmoid(g),
        "samples": lambda make: (Sample(make(*s), make(*s)) for s in SHAPES),
        "errors": refused(),
        "doc": "x * silu(g) of elements; silu(g) is g * sigmoid(g). Shazeer, GLU variants improve Transformer, 2020.",
    },
    "swiglu_backward": {
        "types": "float",
        "reference": backward,
        "samples": lambda make: (Sample(make(*s), make(*s), make(*s)) for s in SHAPES),
        "doc": "Gradients of swiglu by x and g.",
    },
}


def register_all(register):
    """Called once, from the hook."""
    register.library(Path(__file__).with_name("_gates.so"), FACTS)
