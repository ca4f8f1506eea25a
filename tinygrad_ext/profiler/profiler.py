"""The names of `torch.profiler.profiler`, for programs that import them from there."""

from tinygrad_ext.profiler.files import tensorboard_trace_handler
from tinygrad_ext.profiler.observers import ExecutionTraceObserver, kineto_available
from tinygrad_ext.profiler.schedules import ProfilerAction, ProfilerActivity, schedule, supported_activities
from tinygrad_ext.profiler.session import _ExperimentalConfig, profile

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "_ExperimentalConfig",
    "kineto_available",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
