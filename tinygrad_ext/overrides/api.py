"""Overriding for functions that are written in Python: `handle_torch_function` and what goes with it."""

import functools

from tinygrad_ext.core.callables import has_torch_function, set_handler
from tinygrad_ext.overrides.protocol import ask, overloaded


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Let a mode, or the types of relevant_args, carry out public_api(*args, **kwargs).

    Arguments:
        public_api: the function that was called, which the handlers get as `func`.
        relevant_args: the values whose types are asked; lists and tuples of values count by their members.

    Raises TypeError when all of them decline.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.overrides import handle_torch_function, has_torch_function_unary
        >>> def double(a):
        ...     if has_torch_function_unary(a):
        ...         return handle_torch_function(double, (a,), a)
        ...     return a + a
    """
    mode = set_handler("override", None)
    if mode is None:
        return ask(public_api, overloaded(relevant_args), args, kwargs)
    try:
        return mode(public_api, (), args, kwargs)
    finally:
        set_handler("override", mode)


def wrap_torch_function(dispatcher):
    """Make a function in Python overridable.

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


def is_tensor_like(inp):
    """Whether inp is a Tensor, or an object with a `__torch_function__`."""
    return hasattr(inp, "__torch_function__")
