"""What is asked of a class or module as a whole, before anything of it runs: errors come where it is made."""

import contextlib
import enum
import inspect
import types as python_types

from tinygrad_ext import nn
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.primitives.objects import word_of
from tinygrad_ext.graph.types import TENSOR, Type
from tinygrad_ext.nn.parameter import refuse_lazy

from .classes import attributes_of, has_source
from .compiler import Compiler, Frame
from .errors import ConstantError
from .functions import DEFINING, Parameters, lookup_of, remember_around
from .interfaces import is_interface
from .markers import MODIFIER
from .modules import class_of_module
from .source import source_of
from .types import is_named_tuple

# ---- classes -------------------------------------------------------------------------------------------------------


def check_class(cls, around):
    """Compile the methods of a class: what they get wrong is told where the class is defined.

    around: the names of the function that defines it, of which annotations in comments may name the classes.
    """
    if is_named_tuple(cls) or is_interface(cls) or MODIFIER in vars(cls):
        return
    if issubclass(cls, (enum.Enum, BaseException, Tensor)) or cls.__module__.startswith("tinygrad_ext."):
        return
    for function in filter(inspect.isfunction, vars(cls).values()):
        remember_around(function, around)
    with _defining(cls):
        attributes_of(None, cls)
        for name in dir(cls):
            found = inspect.getattr_static(cls, name)
            if isinstance(found, property):
                _compile(cls, found.fget, bound=True)
                _compile(cls, found.fset, bound=True)
            elif isinstance(found, staticmethod):
                _compile(cls, found.__func__, bound=False)
            elif name != "__init__":
                _compile(cls, found, bound=True)


@contextlib.contextmanager
def _defining(cls):
    """Within, the name of a class stands for it: that of a decorated class is bound behind its decorators."""
    DEFINING.append(cls)
    try:
        yield
    finally:
        DEFINING.remove(cls)


def _compile(cls, function, bound):
    if not has_source(function) or getattr(function, MODIFIER, None) in ("ignore", "unused"):
        return
    if function.__module__.startswith("tinygrad_ext.") or hasattr(function, "__wrapped__"):
        return
    c = Compiler(function.__name__)
    source = source_of(function)
    c.frames.append(Frame(source, lookup_of(function)))
    with c.at(source.tree):
        spec = Parameters(c, function, source, int(bound))
        made = (c.emit("prim::new", (word_of(cls),), Type(word_of(cls))),) if bound else ()
        args = []
        for name in spec.names[len(made) :]:
            told = spec.annotations[name]
            args.append(c.emit("prim::undefined", (), TENSOR if told is None else c.type_of_annotation(told)))
        count = spec.positional - len(made)
        named = dict(zip(spec.names[spec.positional :], args[count:]))
    c.frames.pop()
    c.inline(function, args[:count], named, made)


# ---- modules -------------------------------------------------------------------------------------------------------


def check_made(module):
    """Raise where the __init__ of a module has not called that of nn.Module, or a parameter has no shape yet."""
    if "_parameters" not in module.__dict__:
        name = f"{type(module).__module__}.{type(module).__qualname__}"
        raise RuntimeError(f"'{name}' has not been initialized, did you forget to call 'super().__init__()'?")
    refuse_lazy(module)


_VALID = (bool, int, float, complex, str, type(None), dtypes.dtype, dtypes.device, dtypes.layout, dtypes.memory_format)


def check_constants(module):
    """Raise where a class tells of a constant that no graph can hold."""
    cls = class_of_module(module)
    told = [name for base in cls.__mro__ for name in getattr(base, "__constants__", ())]
    if cls.__module__.startswith("tinygrad_ext."):
        return
    for name in dict.fromkeys(told):
        if name in module.__dict__:
            _check_constant(cls, name, module.__dict__[name])


def _check_constant(cls, name, value, more=(nn.Module,)):
    """more: kinds that are taken by themselves, and not as items; modules are put together by nn.ModuleList."""
    if isinstance(value, (tuple, list)):
        for item in value:
            _check_constant(cls, name, item, ())
    elif not isinstance(value, (*_VALID, enum.Enum, Tensor, python_types.FunctionType, *more)):
        given = type(value)
        raise ConstantError(
            f"'{given.__module__}.{given.__qualname__}' object in attribute '{cls.__name__}.{name}' is not a valid "
            "constant. Constants are bool, int, float, complex, str, None, dtypes, devices, members of enums, lists "
            "or tuples of them; for others leave the name out of __constants__."
        )
