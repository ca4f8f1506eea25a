"""Modes: handlers that see every call of a thread inside a `with`."""

import contextlib

from tinygrad_ext.core.call import mode_stack as _core
from tinygrad_ext.core.call.boundary import boundary


@boundary
class TorchFunctionMode:
    """Sees each public call inside `with mode:`, calls without any tensor among the arguments included.

    Modes are asked innermost first, before the types of the arguments. While a mode's handler runs it is off, so a
    call there goes to the mode around it, and then to the types. A handler that returns NotImplemented passes the call
    on. The same mode may be entered more than once; it is then asked that often. Modes belong to one thread.

    class Count(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(
            f"{type(self).__qualname__} must define __torch_function__(self, func, types, args, kwargs)"
        )

    def __enter__(self):
        _core.push_mode(self)
        return self

    def __exit__(self, *exc):
        _core.pop_mode(self)

    @classmethod
    def push(cls, *args, **kwargs):
        """A mode made with these arguments, to be entered by `with`."""
        return cls(*args, **kwargs)


@boundary
class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


_push_mode = _core.push_mode
_pop_mode = _core.pop_mode


@contextlib.contextmanager
def _pop_mode_temporarily():
    """`with` that takes the innermost mode off, gives it, and puts it back."""
    mode = _core.pop_mode()
    try:
        yield mode
    finally:
        _core.push_mode(mode)


def _get_current_function_mode_stack():
    """The modes of this thread, outermost first."""
    return _core.mode_stack()


def _get_current_function_mode():
    """The innermost mode of this thread, or None."""
    stack = _core.mode_stack()
    return stack[-1] if stack else None
