"""Overriding for functions that are written in Python."""

import functools

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.overloaded import has_torch_function
from tinygrad_ext.core.call.overrides import handle_torch_function


@boundary
def wrap_torch_function(dispatcher):
    """Make a function overridable by the arguments that a dispatcher picks; `overridable` asks all of them.

    Arguments:
        dispatcher: takes what the function takes and returns the arguments whose types are asked.

    Returns a decorator.

        >>> import tinygrad_ext as tg
        >>> @tg.overrides.wrap_torch_function(lambda a: (a,))
        ... def double(a):
        ...     return a + a
        >>> double(tg.ones(2))
        tensor([2., 2.])
    """

    def decorate(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        wrapped.__torch_function_dispatcher__ = dispatcher
        return wrapped

    return decorate


@boundary
def is_tensor_like(inp):
    """Whether inp is a Tensor, or an object with a `__torch_function__`."""
    return hasattr(inp, "__torch_function__")
