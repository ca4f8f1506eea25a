"""What can be overridden, and what cannot and why: tables read off the records and the package's namespaces.

Every function and method that a record brings asks the types of its arguments, so these tables need no list of them.
What is not made from a record is overridable when it says so (`overridable`), or it is named in `_NOT_OVERRIDABLE`.
"""

import importlib
import inspect
import sys

from tinygrad_ext import registry
from tinygrad_ext.core.callables import OpFunction
from tinygrad_ext.core.tensor import Tensor
from tinygrad_ext.overrides.protocol import path_of

_PACKAGE = "tinygrad_ext"
_NO_TENSOR = "takes no tensor, so that no type can be asked; a TorchFunctionMode sees the call"
_CLASS = "a class: derive from it"
_PRIVATE_PLACES = {"_fused"}

# path of a callable that no record brings -> why no type is asked
_NOT_OVERRIDABLE = {
    f"{_PACKAGE}.{name}": reason
    for reason, names in {
        "sets or reads a state of the process": "set_default_dtype get_default_dtype set_num_threads get_num_threads "
        "manual_seed initial_seed seed get_rng_state set_rng_state set_printoptions get_printoptions show_config "
        "memory_stats reset_peak_memory_stats empty_cache",
        "sets or reads a mode of autograd": "is_grad_enabled is_inference_mode_enabled is_anomaly_enabled "
        "is_anomaly_check_nan_enabled",
        "is about dtypes": "can_cast promote_types",
        "asks about the object itself, as isinstance does": "is_tensor",
        "makes a tensor over memory that is not a tensor's": "from_numpy from_dlpack frombuffer",
        "reads or writes a file": "save load",
    }.items()
    for name in names.split()
}


def namespaces():
    """The modules that hold public functions, and Tensor; those of the records come first."""
    places = {path.rpartition(".")[0] for path in registry.functions} - _PRIVATE_PLACES - {""}
    found = [sys.modules[_PACKAGE]]
    for place in ["nn.functional", *sorted(places - {"nn.functional"})]:
        try:
            found.append(importlib.import_module(f"{_PACKAGE}.{place}"))
        except ModuleNotFoundError:  # a place that only a plugin's own names stand in
            continue
    return [*found, Tensor]


def public_callables(namespace):
    """Sorted (name, callable) of a module or of Tensor; an attribute of Tensor gives "shape.__get__" and so on."""
    found = []
    for name in dir(namespace):
        if namespace is Tensor:
            found += _members(name, inspect.getattr_static(Tensor, name))
        elif not name.startswith("_"):
            value = getattr(namespace, name)
            if callable(value) and not inspect.ismodule(value) and not _is_value(value):
                found.append((name, value))
    return sorted(found, key=lambda pair: pair[0])


def _is_value(value):
    """dtypes and the like are values, though some can be called."""
    return type(value).__module__ == f"{_PACKAGE}.core.dtype" and not isinstance(value, type)


def _members(name, value):
    if name.startswith("_") and not name.endswith("__") and isinstance(value, OpFunction):
        return []  # helpers of derivative rules
    if inspect.isdatadescriptor(value) and not callable(value):
        return [(f"{name}.{way}", getattr(value, way)) for way in ("__get__", "__set__") if _has_way(value, way)]
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    return [(name, value)] if callable(value) else []


def _has_way(descriptor, way):
    return way == "__get__" or not isinstance(descriptor, property) or descriptor.fset is not None


# ---- who is asked --------------------------------------------------------------------------------------------------


def takes_tensors(fn):
    """Whether some overload of a record's function has an argument that may be a tensor."""
    return any(a.type in ("Tensor", "Any") for o in fn.overloads for a in o.schema.args)


def reason_not_overridable(namespace, name, value):
    """Why no type is asked when this is called, or None when one is."""
    if isinstance(value, OpFunction):
        return None if takes_tensors(value) else _NO_TENSOR
    if isinstance(value, type):
        return _CLASS
    return None if is_marked(value) else _NOT_OVERRIDABLE.get(_path(namespace, name), "")


def is_marked(value):
    """Whether a Python function says that it asks the types of its arguments."""
    return getattr(value, "__torch_function_dispatcher__", None) is not None


def _path(namespace, name):
    return f"{_PACKAGE}.Tensor.{name}" if namespace is Tensor else f"{namespace.__name__}.{name}"


def _walk():
    for namespace in namespaces():
        for name, value in public_callables(namespace):
            yield namespace, name, value


def get_overridable_functions():
    """The functions whose calls `__torch_function__` can take over, by namespace.

    Returns a dict from a module (`tinygrad_ext`, `tinygrad_ext.nn.functional`, ...) or `Tensor` to a list, sorted by
    name. An attribute of tensors is in the list of `Tensor` by its getter and setter.

        >>> from tinygrad_ext import nn, overrides
        >>> [f.__name__ for f in overrides.get_overridable_functions()[nn.functional][:2]]
        ['adaptive_avg_pool1d', 'adaptive_avg_pool2d']
    """
    found = {}
    for namespace, name, value in _walk():
        if reason_not_overridable(namespace, name, value) is None:
            found.setdefault(namespace, {})[value] = None  # a dict: Tensor.add is Tensor.__add__ too
    return {namespace: list(functions) for namespace, functions in found.items()}


def ignored_functions():
    """The public callables that cannot be overridden, each with the reason.

    >>> import tinygrad_ext as tg
    >>> tg.overrides.ignored_functions()[tg.save]
    'reads or writes a file'
    """
    found = {}
    for namespace, name, value in _walk():
        reason = reason_not_overridable(namespace, name, value)
        if reason:
            found[value] = reason
    return found


def get_ignored_functions():
    """The set of public callables that `__torch_function__` cannot take over; `ignored_functions` says why."""
    return set(ignored_functions())


def get_default_nowrap_functions():
    """Getters whose results a subclass of Tensor hands out as they are, not turned into its own type."""
    return {inspect.getattr_static(Tensor, name).__get__ for name in ("_base", "grad", "_grad") if hasattr(Tensor, name)}


# ---- names and signatures ------------------------------------------------------------------------------------------


def resolve_name(f):
    """The full name of an overridable function, or None.

    >>> import tinygrad_ext as tg
    >>> tg.overrides.resolve_name(tg.Tensor.add), tg.overrides.resolve_name(tg.Tensor.shape.__get__)
    ('tinygrad_ext.Tensor.add', 'tinygrad_ext.Tensor.shape.__get__')
    """
    if isinstance(f, OpFunction):
        return path_of(f) if takes_tensors(f) else None
    for namespace, name, value in _walk():
        if value == f and reason_not_overridable(namespace, name, value) is None:
            return _path(namespace, name)
    return None


def is_tensor_method_or_property(func):
    """Whether func is a method of Tensor, or the getter or setter of one of its attributes."""
    return any(value == func for _, value in public_callables(Tensor))


def get_testing_overrides():
    """A dummy for every overridable function: a lambda of the same signature that returns -1.

    With `inspect` it shows what an override has to accept:

        >>> import inspect
        >>> import tinygrad_ext as tg
        >>> inspect.signature(tg.overrides.get_testing_overrides()[tg.add])
        <Signature (input, other, *, alpha=1, out=None)>
    """
    return {f: _dummy(f) for functions in get_overridable_functions().values() for f in functions}


def _dummy(f):
    """lambda <the parameters of f>: -1"""
    if getattr(f, "__name__", "") in ("__get__", "__set__") and inspect.ismethodwrapper(f):
        return (lambda self: -1) if f.__name__ == "__get__" else (lambda self, value: -1)
    parameters = inspect.signature(f).parameters.values()
    defaults = {f"_{p.name}": p.default for p in parameters if p.default is not p.empty}
    bare = [p.replace(annotation=p.empty, default=_Text(f"_{p.name}") if f"_{p.name}" in defaults else p.empty)
            for p in parameters]
    return eval(f"lambda {str(inspect.Signature(bare))[1:-1]}: -1", defaults)


class _Text:
    """Prints as the name of a default value."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text
