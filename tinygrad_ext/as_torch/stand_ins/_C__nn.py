"""torch._C._nn: the compiled functions of layers, which are nn.functional's here, and how `to` reads its arguments."""

import tinygrad_ext as _tg
from tinygrad_ext.nn import functional as _functional
from tinygrad_ext.nn.convert import _parse_to as _device_and_dtype


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) of arguments of `to`, by their types and names."""
    memory_format = kwargs.pop("memory_format", None)
    device, dtype, non_blocking = _device_and_dtype(*args, **kwargs)
    return device, dtype, non_blocking, memory_format


def __getattr__(name):
    for room in (_functional, _tg):
        if hasattr(room, name):
            return getattr(room, name)
    raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}': torch is tinygrad_ext here")
