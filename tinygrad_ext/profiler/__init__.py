"""What a program does and how long it takes, operation by operation. The names are those of `torch.profiler`."""

import importlib

from tinygrad_ext.autograd.profiler import record_function
from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.errors import no_attribute
from tinygrad_ext.profiler.events import DeviceType
from tinygrad_ext.profiler.files import tensorboard_trace_handler
from tinygrad_ext.profiler.observers import ExecutionTraceObserver, kineto_available
from tinygrad_ext.profiler.receivers import receiver
from tinygrad_ext.profiler.schedules import ProfilerAction, ProfilerActivity, schedule, supported_activities
from tinygrad_ext.profiler.session import _ExperimentalConfig, profile  # noqa: F401

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "receiver",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
_LAZY = ("itt", "profiler")


@_boundary
def __getattr__(name):
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise no_attribute(__name__, name, [*__all__, *_LAZY])


def __dir__():
    return sorted({*globals(), *_LAZY})
