"""Ranges for Intel's VTune, whose library is not here: `is_available()` is False, all else raises RuntimeError."""

from tinygrad_ext.core.call.boundary import boundary

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


@boundary
def is_available():
    return False


def _refuse(name):
    raise RuntimeError(f"itt.{name}: there is no ITT library here; name ranges with profiler.record_function")


@boundary
def range_push(msg):
    _refuse("range_push")


@boundary
def range_pop():
    _refuse("range_pop")


@boundary
def mark(msg):
    _refuse("mark")


@boundary
def range(msg, *args, **kwargs):
    _refuse("range")
