"""What a program does and how long it takes, operation by operation. The names are those of `torch.profiler`."""

from tinygrad_ext.autograd.profiler import record_function
from tinygrad_ext.profiler.files import tensorboard_trace_handler
from tinygrad_ext.profiler.schedules import ProfilerAction, ProfilerActivity, schedule, supported_activities
from tinygrad_ext.profiler.session import profile

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
