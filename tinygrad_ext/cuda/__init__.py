"""What scripts ask and do about a GPU: there is none here, so what would wait for one or empty it does nothing."""

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.errors import refuse_unknown

from . import absent as _absent
from . import amp

__all__ = [
    "amp",
    "current_device",
    "device",
    "device_count",
    "device_of",
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
    "stream",
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


class device:
    """A context with another current device; only None and negative numbers, which mean none, are taken."""

    def __init__(self, device):
        set_device(-1 if device is None else device)

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return False


@_boundary
def device_of(obj):
    """A context with the device of a tensor as the current one: nothing changes."""
    return device(None)


@_boundary
def stream(stream):
    """A context with another stream; None, which means none, is taken."""
    if stream is not None:
        _refuse("stream")
    return device(None)


@_boundary
def get_rng_state_all():
    """No states: there is no device."""
    return []


@_boundary
def set_rng_state_all(new_states):
    """Do nothing: there is no device."""


def _refuse(name):
    raise AssertionError(
        f"cuda.{name}(): tinygrad_ext is not compiled with CUDA enabled. Ask cuda.is_available() first, which is False "
        "here; tensors live on the cpu."
    )


globals().update(_absent.types())
globals().update(_absent.functions(_refuse))
default_generators = ()
has_half = has_magma = False


class OutOfMemoryError(RuntimeError):
    """Nothing raises it: there is no device whose memory could run out."""


@_boundary
def is_current_stream_capturing():
    """False."""
    return False


@_boundary
def get_arch_list():
    """No architectures."""
    return []


@_boundary
def max_memory_reserved(device=None):
    """0."""
    return 0


@_boundary
def memory_stats(device=None):
    """Nothing."""
    return {}


@_boundary
def reset_max_memory_allocated(device=None):
    """Do nothing."""


@_boundary
def ipc_collect():
    """Do nothing."""


@_boundary
def seed():
    """Do nothing: there is no device to seed."""


seed_all = seed
__getattr__ = refuse_unknown(__name__)
