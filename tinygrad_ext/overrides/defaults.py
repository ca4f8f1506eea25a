"""Contexts that change what factories assume: the device, by a mode, and the dtype of what they make."""

import functools

from tinygrad_ext import registry
from tinygrad_ext.core.call import mode_stack as _core
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpFunction
from tinygrad_ext.core.data import dtype as _dtype
from tinygrad_ext.overrides.modes import TorchFunctionMode
from tinygrad_ext.tensor import interop


@functools.cache
def _takes_device(func):
    """Whether func makes tensors where its `device=` says, and takes none to follow."""
    if func in (interop.as_tensor, interop.asarray):
        return True
    if registry.functions.get(getattr(func, "__name__", None)) is not func:
        return False
    args = func.candidates[0].schema.args
    return any(a.name == "device" for a in args) and not any(a.type == "Tensor" for a in args)


@boundary
class DeviceContext(TorchFunctionMode):
    """Factories called without `device=` make their tensors on this device; what `with device(...)` enters."""

    def __init__(self, device):
        self.device = _dtype.device(device)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = {} if kwargs is None else kwargs
        named = kwargs.get("device") is not None or (len(args) > 2 and func is interop.as_tensor)
        if not named and isinstance(func, _CALLABLES) and _takes_device(func):
            kwargs["device"] = self.device
        return func(*args, **kwargs)

    def __repr__(self):
        return f"DeviceContext(device='{self.device}')"


_CALLABLES = (type(interop.as_tensor), OpFunction)


class _Default(DeviceContext):
    """What set_default_device puts around all other modes."""


def _contexts():
    """The device contexts of this thread, innermost first."""
    return [m for m in reversed(_core.mode_stack()) if isinstance(m, DeviceContext)]


def _leave(device):
    _core.pop_mode(next(m for m in _contexts() if m.device == device))


@boundary
def set_default_device(device):
    """Let factories of this thread make tensors on a device unless told otherwise; None for the cpu again.

    `with device(...)` does so for a block, and counts more.
    """
    context = None if device is None else _Default(device)
    for mode in _contexts():
        if type(mode) is _Default:
            _core.pop_mode(mode)
    if context is not None:
        _core.push_mode(context, outermost=True)


@boundary
def get_default_device():
    """The device on which a factory called without `device=` makes its tensor."""
    inside = _contexts()
    return inside[0].device if inside else _dtype.device("cpu")


@boundary
class default_dtype:
    """`with default_dtype(float64):` Python floats become this dtype in this thread; other threads are not touched.

    Raises TypeError for a dtype that is not floating.
    """

    def __init__(self, dtype):
        self.dtype = dtype
        self._before = []
        _dtype.set_thread_default(_dtype.set_thread_default(dtype))  # refuses now, not on entering

    def __enter__(self):
        self._before.append(_dtype.set_thread_default(self.dtype))
        return self

    def __exit__(self, *exc):
        _dtype.set_thread_default(self._before.pop())


def install():
    """Let a device be a context manager."""
    _dtype.set_device_context(lambda device: DeviceContext(device).__enter__(), _leave)
