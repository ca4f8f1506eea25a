"""`__torch_function__`: who gets a call whose arguments are not plain tensors.

The types among the arguments that bring a `__torch_function__` are asked from left to right, subclasses before their
superclasses, each type once; the first answer that is not NotImplemented counts.
"""

import functools

from tinygrad_ext.core import callables
from tinygrad_ext.core.arguments import brings_override, set_disabled_implementation
from tinygrad_ext.core.callables import subclass_dispatch
from tinygrad_ext.core.tensor import Parameter, Tensor
from tinygrad_ext.overrides import foreign, watch
from tinygrad_ext.overrides.common import common_type


def _disabled_torch_function_impl(cls, func, types, args=(), kwargs=None):
    """The `__torch_function__` of a subclass that does not override: calls run as on plain tensors."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass:
    """`with DisableTorchFunctionSubclass():` argument types are not asked inside."""

    __slots__ = ("_was",)

    def __enter__(self):
        self._was = subclass_dispatch(False)

    def __exit__(self, *exc):
        subclass_dispatch(self._was)


def overloaded(values):
    """Those of the values (and of the members of lists) whose type overrides, in the order in which they are asked."""
    found = []
    for value in values:
        for item in value if type(value) in (list, tuple) else (value,):
            t = type(item)
            if brings_override(item) and all(t is not type(known) for known in found):
                at = next((i for i, known in enumerate(found) if issubclass(t, type(known))), len(found))
                found.insert(at, item)
    return found


def path_of(func):
    """'tinygrad_ext.add' or 'tinygrad_ext.Tensor.add', as messages name a function."""
    return f"{getattr(func, '__module__', None) or 'tinygrad_ext'}.{getattr(func, '__qualname__', repr(func))}"


def dispatch(func, args, kwargs):
    """Ask the argument types to carry out func(*args, **kwargs); TypeError when all decline."""
    return ask(func, overloaded((*args, *kwargs.values())), args, kwargs)


def ask(func, found, args, kwargs):
    """Ask the types of `found`, in this order."""
    types = tuple(type(item) for item in found)
    watched = watch.current() if watch.active else None
    for i, item in enumerate(found):
        kind, handler = _handler(item)
        if watched is None:
            result = handler(func, types, args, kwargs)
        else:
            result = watched.ask(kind, types[i], func, functools.partial(handler, func, types, args, kwargs))
        if result is not NotImplemented:
            if watched is not None:
                watched.rungs += [watch.Rung(_handler(x)[0], type(x), func, watched.depth) for x in found[i + 1 :]]
            return result
    return _nobody(func, types, args, kwargs, watched)


def _handler(item):
    """(kind, callable) of who answers for an argument."""
    handler = getattr(item, "__torch_function__", None)
    if handler is None or foreign.is_pytorchs(type(item)):
        return "registered handler", foreign.handler_of(type(item))
    return "type", handler


def _nobody(func, types, args, kwargs, watched):
    """All have declined: the common type of sibling subclasses is asked, if there is one."""
    to = common_type(types)
    if to is not None:
        call = functools.partial(to.__torch_function__, func, (to,), args, kwargs)
        result = call() if watched is None else watched.ask("common type", to, func, call)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{path_of(func)}' on types that implement __torch_function__: "
        f"{list(types)}. Each of them returned NotImplemented."
    )


def _as_subclass(result, cls):
    """Plain tensors of a result (one level of tuples and lists) as instances of cls."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        converted = [_as_subclass(r, cls) for r in result]
        return type(result)(*converted) if hasattr(result, "_fields") else type(result)(converted)
    return result


def _tensor_torch_function(cls, func, types, args=(), kwargs=None):
    """How subclasses of Tensor that define nothing behave: run the op and keep the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if cls is Tensor or cls is Parameter else _as_subclass(result, cls)


def install():
    """Fill the override slot of the core."""
    callables.set_type_override(dispatch)
    set_disabled_implementation(_disabled_torch_function_impl)
    Tensor.__torch_function__ = classmethod(_tensor_torch_function)
