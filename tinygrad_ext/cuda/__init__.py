"""What scripts ask and do about a GPU: there is none here, so what would wait for one or empty it does nothing."""

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.errors import refuse_unknown

from . import amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
]


@_boundary
def is_available():
    """False."""
    return False


@_boundary
def is_initialized():
    """False."""
    return False


@_boundary
def is_bf16_supported(including_emulation=True):
    """False."""
    return False


@_boundary
def device_count():
    """0."""
    return 0


# ---- what does nothing where there is no device --------------------------------------------------------------------


@_boundary
def manual_seed(seed):
    """Do nothing: there is no device to seed."""


@_boundary
def manual_seed_all(seed):
    """Do nothing: there is no device to seed."""


@_boundary
def empty_cache():
    """Do nothing; the memory of the cpu is given back by `tinygrad_ext.empty_cache`."""


@_boundary
def synchronize(device=None):
    """Do nothing: what was called has been computed when the call returns."""


@_boundary
def reset_peak_memory_stats(device=None):
    """Do nothing."""


@_boundary
def memory_allocated(device=None):
    """0."""
    return 0


@_boundary
def max_memory_allocated(device=None):
    """0."""
    return 0


@_boundary
def memory_reserved(device=None):
    """0."""
    return 0


# ---- what needs a device -------------------------------------------------------------------------------------------


@_boundary
def current_device():
    """Refused with AssertionError: there is no current device."""
    _refuse("current_device")


@_boundary
def get_device_name(device=None):
    """Refused with AssertionError: there is no device to name."""
    _refuse("get_device_name")


@_boundary
def set_device(device):
    """Refused with AssertionError, but for a negative number, which means none."""
    if not (isinstance(device, int) and device < 0):
        _refuse("set_device")


def _refuse(name):
    raise AssertionError(
        f"cuda.{name}(): tinygrad_ext is not compiled with CUDA enabled. Ask cuda.is_available() first, which is False "
        "here; tensors live on the cpu."
    )


__getattr__ = refuse_unknown(__name__)
