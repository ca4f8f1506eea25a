"""The one way to bring a device: for plugins by the hook, for programs by `library.register_device`."""

import contextlib

from tinygrad_ext.core.data import devices
from tinygrad_ext.core.data.dtype import device
from tinygrad_ext.registry.checks import is_plain_name

brought = {}  # name of a device -> Owner of what brings it

_METHODS = ("allocate", "read", "write")


class DeviceRegistrar:
    """Brings devices in the name of a scope's owner: register("example", memory)."""

    def __init__(self, to):
        self.scope = to

    def __call__(self, name, memory):
        """Bring a device of a name; memory has the methods allocate, read and write. See docs/devices.md.

        Raises RuntimeError for a name that is taken, TypeError for what is no memory.
        """
        if self.scope is None:
            raise RuntimeError(f"{name}: `register` is for use inside the hook only, which is over")
        bring(name, memory, self.scope)

    def close(self):
        """Refuse whatever comes after the end of the hook."""
        self.scope = None


def bring(name, memory, scope):
    """Make a device of a name, until the scope is undone."""
    if not isinstance(name, str) or not is_plain_name(name):
        raise ValueError(
            f"register_device: the name must be small letters, digits and _, such as 'example', not {name!r}"
        )
    missing = [m for m in _METHODS if not callable(getattr(memory, m, None))]
    if missing:
        raise TypeError(
            f"register_device: the memory of '{name}' needs methods {', '.join(_METHODS)}, and "
            f"{type(memory).__name__} has no {missing[0]}: allocate(nbytes) returns (address, owner), "
            "read(address, into) and write(address, data) copy bytes"
        )
    devices.bring(name, memory, str(scope.owner))
    scope.note(devices.take_back, name)
    scope.put(brought, name, scope.owner)


def put_kernel(op, device_type, fn, scope, override=False):
    """Let fn compute a built-in op on a device that was brought. RuntimeError where it would never be called."""
    why = _why_not(op, device_type)
    if why:
        raise RuntimeError(f"{op.name}: {why}")
    if not callable(fn):
        raise TypeError(f"{op.name}: the kernel for '{device_type}' must be a function, not {type(fn).__name__}")
    before = (op.rows or {}).get(device_type)
    if before is not None and not override:
        raise RuntimeError(
            f"{op.name}: there is a kernel for the device '{device_type}' already. Leave one of them out, or say "
            "allow_override=True where this is meant"
        )
    _set(op, device_type, fn)
    scope.note(_set, op, device_type, before)


def _why_not(op, device_type):
    with contextlib.suppress(RuntimeError):
        device(device_type)  # a plugin that brings it is loaded
    if device_type not in brought:
        return (
            f"a built-in op, to which nothing can be registered but kernels for devices that were brought, and "
            f"'{device_type}' is none: {', '.join(sorted(brought)) or 'there are none'}. Bring it with "
            "library.register_device() or the hook tgx_register_devices first. To change the op's calls, override them "
            "with __torch_function__ or a TorchFunctionMode, or define an op of your own"
        )
    if op.kernel_kind == "composite":
        return "it is written in other ops, which need the kernels: call it on the device, and it says which"
    if op.is_view_op:
        return "its result shares memory with its argument: it changes sizes and strides only, and needs no kernel"
    if "any_device" in (op.record.tags or "").split():
        return "it goes by the device's memory, which reads and writes, and needs no kernel"
    return None


def _set(op, device_type, fn):
    rows = {**(op.rows or {}), device_type: fn}
    op.set_rows({key: value for key, value in rows.items() if value is not None})
