"""What autocast is set to in a thread, and the functions of the package's top that read and set it."""

import threading

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.dtype import by_name, device

__all__ = [
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_gpu_dtype",
    "set_autocast_enabled",
]

DEVICES = {"cpu": "bfloat16", "cuda": "float16"}  # -> the dtype that it computes in unless another is given


class State(threading.local):
    """Of one thread: what is on, in which dtype, and what was converted already."""

    def __init__(self):
        self.enabled = dict.fromkeys(DEVICES, False)
        self.dtype = {name: by_name[dtype] for name, dtype in DEVICES.items()}
        self.cache_enabled, self.nesting, self.cache = True, 0, {}
        self.level = None  # that which converts, while it is on the thread's stack


state = State()
level_class = []  # the level that converts: filled by autocast_mode, which is made of this module


def known(what, device_type):
    """The name of a device that autocast knows; RuntimeError for others, TypeError for what names none."""
    if not isinstance(device_type, str):
        raise TypeError(f"{what}(): argument 'device_type' must be str, not {type(device_type).__name__}")
    name = device(device_type).type
    if name not in DEVICES:
        raise RuntimeError(f"{what}(): unsupported autocast device_type '{name}': it is one of {', '.join(DEVICES)}")
    return name


@boundary
def is_autocast_enabled(device_type="cuda"):
    """Whether autocast is on in this thread, for a type of device."""
    return state.enabled[known("is_autocast_enabled", device_type)]


@boundary
def set_autocast_enabled(device_type, enabled=None):
    """Turn autocast on or off for a type of device, in this thread, as `with amp.autocast(...)` does."""
    if enabled is None:  # the older call, which meant cuda
        device_type, enabled = "cuda", device_type
    state.enabled[known("set_autocast_enabled", device_type)] = bool(enabled)
    if state.enabled["cpu"] and state.level is None:
        state.level = level_class[0]().__enter__()
    elif not state.enabled["cpu"] and state.level is not None:
        level, state.level = state.level, None
        level.__exit__()


@boundary
def get_autocast_dtype(device_type):
    """The dtype that autocast computes in, for a type of device."""
    return state.dtype[known("get_autocast_dtype", device_type)]


@boundary
def set_autocast_dtype(device_type, dtype):
    """Let autocast compute in a dtype, for a type of device."""
    state.dtype[known("set_autocast_dtype", device_type)] = dtype


@boundary
def is_autocast_cpu_enabled():
    """`is_autocast_enabled("cpu")`."""
    return is_autocast_enabled("cpu")


@boundary
def set_autocast_cpu_enabled(enabled):
    """`set_autocast_enabled("cpu", enabled)`."""
    set_autocast_enabled("cpu", enabled)


@boundary
def get_autocast_cpu_dtype():
    """`get_autocast_dtype("cpu")`."""
    return get_autocast_dtype("cpu")


@boundary
def set_autocast_cpu_dtype(dtype):
    """`set_autocast_dtype("cpu", dtype)`."""
    set_autocast_dtype("cpu", dtype)


@boundary
def get_autocast_gpu_dtype():
    """`get_autocast_dtype("cuda")`."""
    return get_autocast_dtype("cuda")


@boundary
def set_autocast_gpu_dtype(dtype):
    """`set_autocast_dtype("cuda", dtype)`."""
    set_autocast_dtype("cuda", dtype)


@boundary
def is_autocast_cache_enabled():
    """Whether parameters that were converted are kept until the outermost `with amp.autocast(...)` ends."""
    return state.cache_enabled


@boundary
def set_autocast_cache_enabled(enabled):
    """Keep converted parameters, or not."""
    state.cache_enabled = bool(enabled)


@boundary
def clear_autocast_cache():
    """Let go of the converted parameters."""
    state.cache.clear()


@boundary
def autocast_increment_nesting():
    """Count one more `with`; returns how many there are."""
    state.nesting += 1
    return state.nesting


@boundary
def autocast_decrement_nesting():
    """Count one less; returns how many there are."""
    state.nesting -= 1
    return state.nesting
