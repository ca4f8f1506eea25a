"""`__torch_function__`: who gets a call whose arguments are not plain tensors.

The types among the arguments that bring a `__torch_function__` are asked from left to right, subclasses before their
superclasses, each type once; the first answer that is not NotImplemented counts.
"""

from tinygrad_ext.core import callables
from tinygrad_ext.core.arguments import set_disabled_implementation
from tinygrad_ext.core.callables import subclass_dispatch
from tinygrad_ext.core.tensor import Parameter, Tensor


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


def _overloaded(args, kwargs):
    """Arguments (and members of argument lists) whose type overrides, in the order in which they are asked."""
    found = []
    for value in (*args, *kwargs.values()):
        for item in value if type(value) in (list, tuple) else (value,):
            t = type(item)
            if t is Tensor or t is Parameter or not hasattr(item, "__torch_function__") or isinstance(item, type):
                continue
            if any(t is type(known) for known in found) or t.__torch_function__ is _disabled_torch_function_impl:
                continue
            at = next((i for i, known in enumerate(found) if issubclass(t, type(known))), len(found))
            found.insert(at, item)
    return found


def path_of(func):
    """'tinygrad_ext.add' or 'tinygrad_ext.Tensor.add', as messages name a function."""
    return f"{getattr(func, '__module__', None) or 'tinygrad_ext'}.{getattr(func, '__qualname__', repr(func))}"


def dispatch(func, args, kwargs):
    """Ask the argument types to carry out func(*args, **kwargs); TypeError when all decline."""
    found = _overloaded(args, kwargs)
    types = tuple(type(item) for item in found)
    for item in found:
        result = item.__torch_function__(func, types, args, kwargs)
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
