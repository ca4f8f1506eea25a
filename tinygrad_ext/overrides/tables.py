"""What can be overridden, and what cannot and why: tables read off the records and the package's namespaces.

Every function and method that a record brings asks the types of its arguments, so these tables need no list of them.
What is not made from a record is overridable when it says so, or it is named in `_NOT_OVERRIDABLE` with a reason.
"""

import functools
import importlib
import inspect
import sys

from tinygrad_ext import registry
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpFunction
from tinygrad_ext.core.call.operators import Declining
from tinygrad_ext.core.call.overridable import Overridable, OverridableProperty
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.overrides import protocol

_PACKAGE = "tinygrad_ext"
_NO_TENSOR = "takes no tensor, so that no type can be asked; a TorchFunctionMode sees the call"
_CLASS = "a class: derive from it"
_OBJECT = "what every object of Python has"
_PRIVATE_PLACES = {"_fused"}

# path of a callable that no record brings -> why no type is asked
_NOT_OVERRIDABLE = {
    f"{_PACKAGE}.{name}": reason
    for reason, names in {
        "sets or reads a state of the process": "set_default_dtype set_default_tensor_type "
        "get_default_dtype set_num_threads get_num_threads manual_seed initial_seed seed get_rng_state set_rng_state "
        "set_printoptions get_printoptions show_config "
        "memory_stats reset_peak_memory_stats empty_cache use_deterministic_algorithms "
        "are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled "
        "set_float32_matmul_precision get_float32_matmul_precision set_deterministic_debug_mode "
        "get_deterministic_debug_mode set_num_interop_threads get_num_interop_threads set_flush_denormal "
        "set_warn_always is_warn_always_enabled",
        "takes a module or a function": "compile cond vmap while_loop",
        "takes sizes": "broadcast_shapes sym_float sym_int sym_max sym_min sym_not sym_sqrt sym_sum",
        "converts data, whose `__torch_function__` is not asked; modes and registered handlers see the call": "tensor "
        "as_tensor asarray",
        "sets or reads where factories make tensors": "set_default_device get_default_device",
        "sets or reads a mode of autograd": "is_grad_enabled is_inference_mode_enabled is_anomaly_enabled "
        "is_anomaly_check_nan_enabled",
        "sets or reads what autocast does": "autocast_decrement_nesting autocast_increment_nesting "
        "clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
        "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled "
        "set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled "
        "set_autocast_gpu_dtype",
        "is about dtypes": "can_cast promote_types",
        "asks about the object itself, as isinstance does": "is_tensor is_storage typename",
        "makes a tensor over memory that is not a tensor's": "from_numpy from_dlpack from_file frombuffer",
        "is a function of `sparse`, for its layout alone": "dsmm spmm sparse_coo_tensor sparse_compressed_tensor "
        "sparse_csc_tensor sparse_csr_tensor",
        "reads or writes a file": "save load",
        "marks the hooks of a plugin": "hookimpl",
    }.items()
    for name in names.split()
}


def namespaces():
    """What holds public functions: the package, the modules that records name, `ops.<namespace>` of plugins, Tensor."""
    places = {path.rpartition(".")[0] for path in registry.functions} - _PRIVATE_PLACES - {"", "nn.functional"}
    found = [sys.modules[_PACKAGE], importlib.import_module(f"{_PACKAGE}.nn.functional")]
    for place in sorted(places):
        of_plugin = place.removeprefix("ops.")
        found.append(
            registry.namespaces[of_plugin] if of_plugin != place else importlib.import_module(f"{_PACKAGE}.{place}")
        )
    return [*found, Tensor]


def public_callables(namespace):
    """Sorted (name, callable) of a namespace; an attribute of Tensor gives "shape.__get__" and so on."""
    found = []
    if namespace is Tensor:
        for name in dir(Tensor):
            found += _members(name, inspect.getattr_static(Tensor, name))
    else:
        names = getattr(namespace, "__all__", None) or dir(namespace)
        for name in names:
            value = getattr(namespace, name)
            if not name.startswith("_") and callable(value) and not inspect.ismodule(value) and not _is_value(value):
                found.append((name, value))
    return sorted(found, key=lambda pair: pair[0])


def _is_value(value):
    """dtypes and the like are values, though some can be called."""
    return type(value).__module__ == f"{_PACKAGE}.core.data.dtype" and not isinstance(value, type)


def _members(name, value):
    if name.startswith("_") and not name.endswith("__") and isinstance(value, OpFunction):
        return []  # helpers of derivative rules
    if isinstance(value, OverridableProperty):
        ways = ("__get__", "__set__") if _is_writable(name) else ("__get__",)
        return [(f"{name}.{way}", getattr(value, way)) for way in ways]
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, Declining):
        value = value.method
    return [(name, value)] if callable(value) or inspect.isdatadescriptor(value) else []


@functools.cache
def _is_writable(name):
    """Whether an attribute of tensors can be set; what it is set to here does not matter."""
    scratch = registry.functions["zeros"](1)
    try:
        with protocol.DisableTorchFunction():
            setattr(scratch, name, None)
    except AttributeError:
        return False
    except (TypeError, ValueError, RuntimeError, NotImplementedError):
        return True
    return True


# ---- who is asked --------------------------------------------------------------------------------------------------


def takes_tensors(fn):
    """Whether some overload of a record's function has an argument that may be a tensor."""
    return any(a.type in ("Tensor", "Any") for o in fn.candidates for a in o.schema.args)


def reason_not_overridable(namespace, name, value):
    """Why no type is asked when this is called, or None when one is."""
    if isinstance(value, OpFunction) and value is not registry.functions["tensor"]:
        return None if takes_tensors(value) else _NO_TENSOR
    if isinstance(value, type):
        return _CLASS
    if asks(value) and (namespace is Tensor or not getattr(value, "converts", False)):
        return None
    if namespace is Tensor:
        return protocol.NOT_OVERRIDABLE.get(name) or (_OBJECT if name in vars(object) else "")
    return _NOT_OVERRIDABLE.get(_path(namespace, name), "")


def asks(value):
    """Whether a callable that no record brings asks the types of its arguments."""
    return (
        isinstance(value, Overridable)
        or isinstance(getattr(value, "__self__", None), OverridableProperty)
        or hasattr(value, "__torch_function_dispatcher__")
    )


def _path(namespace, name):
    if namespace is Tensor:
        return f"{_PACKAGE}.Tensor.{name}"
    if namespace is sys.modules[_PACKAGE]:  # called torch under the alias
        return f"{_PACKAGE}.{name}"
    place = getattr(namespace, "__name__", None) or next(
        f"{_PACKAGE}.ops.{key}" for key, value in registry.namespaces.items() if value is namespace
    )
    return f"{place}.{name}"


def _walk():
    for namespace in namespaces():
        for name, value in public_callables(namespace):
            yield namespace, name, value


@boundary
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


@boundary
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


@boundary
def get_ignored_functions():
    """The set of public callables that `__torch_function__` cannot take over; `ignored_functions` says why."""
    return set(ignored_functions())


# ---- names and signatures ------------------------------------------------------------------------------------------


@boundary
def resolve_name(f):
    """The full name of a public function, method, getter or setter; None for anything else.

    The name begins with "tinygrad_ext", also where the package was imported as something else.

        >>> import tinygrad_ext as tg
        >>> tg.overrides.resolve_name(tg.Tensor.add), tg.overrides.resolve_name(tg.Tensor.shape.__get__)
        ('tinygrad_ext.Tensor.add', 'tinygrad_ext.Tensor.shape.__get__')
    """
    if isinstance(f, OpFunction):
        return protocol.path_of(f)
    try:
        return _paths(len(registry.functions)).get(f)
    except TypeError:  # not hashable
        return None


@functools.lru_cache(maxsize=1)
def _paths(count):
    """{callable: path}; made anew when the number of functions has changed."""
    paths = {}
    for namespace, name, value in _walk():
        if value not in paths or name == getattr(value, "__name__", None):  # not under another name of the same
            paths[value] = _path(namespace, name)
    return paths


@boundary
def is_tensor_method_or_property(func):
    """Whether func is a method of Tensor, or the getter or setter of one of its attributes."""
    return (resolve_name(func) or "").startswith(f"{_PACKAGE}.Tensor.")


@boundary
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
    if isinstance(getattr(f, "__self__", None), OverridableProperty):
        return (lambda self: -1) if f.__name__ == "__get__" else (lambda self, value: -1)
    try:
        parameters = inspect.signature(f).parameters.values()
    except ValueError:  # a method of C, which Python knows no signature of
        return lambda *args, **kwargs: -1
    defaults = {f"_{p.name}": p.default for p in parameters if p.default is not p.empty}
    bare = [
        p.replace(annotation=p.empty, default=_Text(f"_{p.name}") if f"_{p.name}" in defaults else p.empty)
        for p in parameters
    ]
    return eval(f"lambda {str(inspect.Signature(bare))[1:-1]}: -1", defaults)


class _Text:
    """Prints as the name of a default value."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text
