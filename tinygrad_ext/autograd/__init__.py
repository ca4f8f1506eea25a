"""Reverse-mode differentiation: backward, grad, grad modes, gradient checks.

The engine is compiled (core/grad/node, core/grad/record, core/grad/engine); this package is its public face.
"""

from tinygrad_ext.autograd import function, functional
from tinygrad_ext.autograd.engine import backward, grad
from tinygrad_ext.autograd.function import Function
from tinygrad_ext.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tinygrad_ext.autograd.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
    set_multithreading_enabled,
)
from tinygrad_ext.autograd.variable import Variable
from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.errors import refuse_unknown

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "explain",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "graph",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_LAZY = ("forward_ad", "graph", "profiler")
_refuse = refuse_unknown(__name__)


@_boundary
def __getattr__(name):
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name == "explain":
        from tinygrad_ext.autograd.explanation import explain  # lazy: few programs ask

        return explain
    return _refuse(name)


def __dir__():
    return sorted({*globals(), *_LAZY, "explain"})
