"""Ranges of a program that observers hear of, and the older face of the profiler."""

import contextlib

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.call.later import later as _later
from tinygrad_ext.core.call.levels import mark_range as _mark_range
from tinygrad_ext.errors import no_attribute as _no_attribute

_LATER = (
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
)
__all__ = ["record_function", *_LATER]


class record_function(contextlib.ContextDecorator):
    """Name what runs inside a `with`, or a function, for the observers of this thread.

    Args:
        name: the range's name. args: a further text that belongs to it, or None.

    Costs a call and nothing else while nobody observes.
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def __enter__(self):
        _mark_range(self.name, True)
        return self

    def __exit__(self, *exc):
        _mark_range(self.name, False)


@_boundary
def __getattr__(name):
    if name in _LATER:
        return getattr(_later("profiler"), name)  # who names a range loads no profiler
    raise _no_attribute(__name__, name, __all__)


def __dir__():
    return sorted({*globals(), *_LATER})
