"""What needs a device: it can be named, and is refused when it is used."""

from tinygrad_ext.core.call.boundary import boundary

_TYPES = ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
_STORAGES = (*_TYPES, "ComplexDouble", "ComplexFloat")
_OBJECTS = ("CUDAGraph", "Event", "ExternalStream", "Stream", "MemPool", "CUDAPluggableAllocator")
_FUNCTIONS = (
    "current_blas_handle",
    "current_stream",
    "default_stream",
    "get_device_capability",
    "get_device_properties",
    "get_rng_state",
    "graph",
    "make_graphed_callables",
    "mem_get_info",
    "memory_snapshot",
    "memory_summary",
    "set_rng_state",
    "set_stream",
    "set_per_process_memory_fraction",
    "utilization",
    "list_gpu_processes",
    "cudart",
    "can_device_access_peer",
    "init",
    "memory_usage",
)


class _NoDevice(type):
    """The type of a type that has no instances where there is no device."""

    def __call__(cls, *args, **kwargs):
        raise cls._error(
            f"type torch.cuda.{cls.__name__} not available: tinygrad_ext is not compiled with CUDA enabled; tensors "
            "live on the cpu"
        )


def _named(name, error):
    doc = f"Has no instances: making one raises {error.__name__}."
    return _NoDevice(name, (), {"__doc__": doc, "__module__": "torch.cuda", "_error": error})


def types():
    """The types of tensors, storages and streams, by name."""
    found = {name + "Tensor": _named(name + "Tensor", TypeError) for name in _TYPES}
    found |= {name + "Storage": _named(name + "Storage", TypeError) for name in _STORAGES}
    return found | {name: _named(name, RuntimeError) for name in _OBJECTS}


def functions(refuse):
    """Functions that need a device, by name; ``refuse(name)`` raises."""

    def one(name):
        @boundary
        def absent(*args, **kwargs):
            refuse(name)

        absent.__name__ = absent.__qualname__ = name
        absent.__doc__ = "Refused with AssertionError: there is no device."
        return absent

    return {name: one(name) for name in _FUNCTIONS}
