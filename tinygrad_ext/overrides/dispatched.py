"""`__torch_dispatch__`: what tensors of a class, or a mode, do with the operations below autograd.

The names are those of `torch.utils._python_dispatch`. The handing over is compiled (core/call/dispatched.pyx).
"""

import contextlib
import functools

from tinygrad_ext import ops
from tinygrad_ext.core.call import dispatched as _core
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.overrides.opened import FUNCTIONS
from tinygrad_ext.registry.op_namespace import out_name

# Operations that carry another name of PyTorch's.
_NAMES = {"aten::item": "_local_scalar_dense.default"}


@boundary
class TorchDispatchMode:
    """Sees each operation inside `with mode:`, below autograd: one overload, with arguments as its schema has them.

    The mode entered last is asked first, before the types of the arguments; while its handler runs it is off, so a call
    there goes to the mode around it, and then to the types. Modes belong to one thread.

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(
            f"{type(self).__qualname__} must define __torch_dispatch__(self, func, types, args, kwargs)"
        )

    def __enter__(self):
        self.__dict__.setdefault("_levels", []).append(_core.Dispatch(self).enter_mode())
        return self

    def __exit__(self, *exc):
        self._levels.pop().__exit__(*exc)

    @classmethod
    def push(cls, *args, **kwargs):
        """A mode made with these arguments, to be entered by `with`."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        """False: all modes are the program's."""
        return False


def mode_by(handler):
    """A mode that calls ``handler(func, args, kwargs)``."""

    def ask(self, func, types, args=(), kwargs=None):
        return handler(func, args, kwargs or {})

    return type("ModeBy", (TorchDispatchMode,), {"__torch_dispatch__": ask})()


class _DisableTorchDispatch:
    """`with _DisableTorchDispatch():` no handler of `__torch_dispatch__` is asked inside, in this thread."""

    __slots__ = ("_was",)

    def __enter__(self):
        self._was = _core.set_dispatch(False)

    def __exit__(self, *exc):
        _core.set_dispatch(self._was)


def _disabled_torch_dispatch_impl(func, types, args=(), kwargs=None):
    """The `__torch_dispatch__` of Tensor: the operation runs as on plain tensors."""
    with _DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode():
    """The innermost mode of this thread, or None."""
    stack = _get_current_dispatch_mode_stack()
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack():
    """The modes of this thread that are on, outermost first."""
    return [level.mode for level in _core.mode_levels()]


@contextlib.contextmanager
def _pop_mode_temporarily():
    """`with` that switches the innermost mode off, and gives it."""
    levels = _core.mode_levels()
    if not levels:
        raise RuntimeError("there is no mode of operations to switch off")
    with levels[-1].without():
        yield levels[-1].mode


@contextlib.contextmanager
def _disable_current_modes():
    """`with` that switches all modes off, and gives them, the outermost first."""
    with contextlib.ExitStack() as stack:
        levels = _core.mode_levels()
        for level in reversed(levels):
            stack.enter_context(level.without())
        yield [level.mode for level in levels]


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode of this thread is on."""
    return bool(_core.mode_levels())


def is_traceable_wrapper_subclass(t):
    """Whether t, a tensor or a type, says what it wraps: by `__tensor_flatten__` and `__tensor_unflatten__`."""
    is_subclass = t is not Tensor and issubclass(t, Tensor) if isinstance(t, type) else isinstance(t, Tensor)
    return is_subclass and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t):
    """The same for a type."""
    return is_traceable_wrapper_subclass(t)


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """A wrapper like t around callback(name, inner) of each tensor that t wraps."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    return type(t).__tensor_unflatten__(inner, context, size, t.stride() if outer_stride is None else outer_stride)


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a handler returns for `out`, which it computed: the tensor that func writes to, where func writes to one.

    Wrappers have no memory here, so that there is none to be shared with what a view was taken of.
    """
    schema = func._schema
    kwargs = kwargs or {}
    if func.__name__ != schema.name:
        return args[0]
    if "out" in kwargs:
        return kwargs["out"]
    written = [i for i, a in enumerate(schema.args) if a.is_write]
    return args[written[0]] if written and schema.returns else out


# ---- what the compiled part asks -------------------------------------------------------------------------------------


@functools.cache
def _overload(op, kind):
    """`ops.aten.add_.Tensor`: the public function for one overload of an op, in one of its forms."""
    name, overload = op.schema.name, op.schema.overload or "default"
    if op.name in _NAMES and kind == "functional":
        name, overload = _NAMES[op.name].split(".")
    packet = getattr(getattr(ops, op.schema.namespace), f"{name}_" if kind == "inplace" else name)
    return getattr(packet, out_name(packet, op) if kind == "out" else overload)


@boundary
def install():
    """Give Tensor the `__torch_dispatch__` that its subclasses inherit, and the compiled part what it asks."""
    Tensor.__torch_dispatch__ = staticmethod(_disabled_torch_dispatch_impl)
    _core.set_public(_overload, FUNCTIONS)
