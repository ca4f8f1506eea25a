"""`jit.script` and what belongs to it."""

import functools
import inspect
import re
import sys
import types as python_types
import weakref

from tinygrad_ext import nn
from tinygrad_ext.autograd.function import Function
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpFunction
from tinygrad_ext.graph.types import of_schema

from .. import _state
from .checking import check_class
from .errors import NotSupportedError
from .script_function import ScriptFunction
from .script_module import ScriptMethod, ScriptModule, script_module
from .source import functions_of
from .typed import typed
from .types import NO_USER_CLASS, type_of_python


@boundary
def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compile Python source to a graph.

    Args:
        obj: a function or op, a module, a class, whose methods are checked, or an autograd.Function (which is compiled
            where it is called). Of a list or dict a `ScriptList` or `ScriptDict` is made, which keeps its type; an
            object comes back as it is: compiled programs change the one that they get.
        example_inputs: for a function, a list of tuples of arguments, of which the types of parameters without an
            annotation are taken. Without it they are tensors.

    Returns: a `ScriptFunction`; for a module a `ScriptModule`; a class as it is.

    Raises:
        jit.Error: the program does not type, or uses what script does not take; the message shows the place.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext import jit
        >>> def relu_or_double(x, double: bool = False):
        ...     if double:
        ...         return x * 2
        ...     return x.relu()
        >>> jit.script(relu_or_double)(tg.tensor([-1.0, 1.0]), double=True).tolist()
        [-2.0, 2.0]
    """
    if isinstance(obj, (ScriptFunction, ScriptModule, ScriptMethod)) or not _state.enabled():
        return obj
    if isinstance(obj, nn.Module):
        return script_module(obj)
    if inspect.isclass(obj):
        if issubclass(obj, nn.Module):
            raise RuntimeError(
                f"Type '{obj.__name__}' cannot be compiled since it inherits from nn.Module, consider passing an "
                "instance instead"
            )
        if not issubclass(obj, Function):
            check_class(obj, _names_around())
        return obj
    if isinstance(obj, python_types.MethodType) and isinstance(obj.__self__, nn.Module):
        return getattr(script_module(obj.__self__), obj.__name__)
    if callable(obj) and hasattr(inspect.unwrap(obj), "__code__"):
        return _function(obj, _examples(example_inputs))
    if isinstance(obj, OpFunction):
        return ScriptFunction(_caller(obj))
    if isinstance(obj, (list, dict)):
        return typed(obj)
    if type(obj).__module__.partition(".")[0] not in NO_USER_CLASS:
        return obj  # compiled programs share objects with Python as they are
    raise NotSupportedError(
        f"jit.script(): {type(obj).__name__} cannot be compiled; it takes functions, modules and classes"
    )


def _names_around():
    """The local names where the program calls this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tinygrad_ext.jit"):
        frame = frame.f_back
    return frame.f_locals


_functions = weakref.WeakKeyDictionary()  # function -> its ScriptFunction, as long as somebody has that


def _function(obj, examples):
    """The ScriptFunction of a function, the same one for whoever asks while it is in use."""
    if examples is not None or not isinstance(obj, python_types.FunctionType):
        return ScriptFunction(obj, examples)
    made = _functions.get(obj, lambda: None)()
    if made is None:
        made = ScriptFunction(obj)
        _functions[obj] = weakref.ref(made)
    return made


def _examples(example_inputs):
    if example_inputs is None:
        return None
    rows = example_inputs if isinstance(example_inputs, list) else list(example_inputs)
    return [type_of_python(value) for value in rows[0]] if rows else None


_WRITTEN = {"Scalar": "Union[int, float, complex]", "ScalarType": "torch.dtype", "Device": "torch.device"}


def _caller(op):
    """A function that calls an op with what its first schema declares and annotations can say."""
    parts, row, star, left_out = [], [], False, False
    for arg in op.candidates[0].schema.args:
        if arg.has_default and (arg.type in ("Layout", "MemoryFormat", "Generator") or arg.name == "return_indices"):
            left_out = True
            continue
        if arg.kwarg_only and not star:
            parts.append("*")
            star = True
        told = re.sub(r"\b(Scalar|ScalarType|Device)\b", lambda found: _WRITTEN[found[0]], str(of_schema(arg)))
        default = list(arg.default) if isinstance(arg.default, tuple) else arg.default
        parts.append(f"{arg.name}: {told}" + (f" = {default!r}" if arg.has_default else ""))
        row.append(f"{arg.name}={arg.name}" if arg.kwarg_only or left_out else arg.name)
    text = f"def {op.__name__}({', '.join(parts)}):\n    return _op({', '.join(row)})"
    made = functions_of(text, {"_op": op})[op.__name__]
    made.__module__ = __name__  # a function of the package, whose defaults nobody writes to
    return made


class CompilationUnit:
    """Functions compiled from a text: ``CompilationUnit("def f(x): return x + 1").f(x)``."""

    def __init__(self, lang=None, _frames_up=0):
        self._functions = {}
        if lang is not None:
            frame = sys._getframe(_frames_up + 1)
            self._define(lang, {**frame.f_globals, **frame.f_locals})

    @boundary
    def define(self, lang, rcb=None, _frames_up=0):
        """Add the functions of a text; they see each other, `torch`, the names of typing, and those of the caller."""
        frame = sys._getframe(_frames_up + 1)
        self._define(lang, {**frame.f_globals, **frame.f_locals})

    def _define(self, lang, around):
        for name, function in functions_of(lang, {**around, **self._functions}).items():
            self._functions[name] = ScriptFunction(function)

    def __getattr__(self, name):
        try:
            return self.__dict__["_functions"][name]
        except KeyError:
            raise AttributeError(f"'CompilationUnit' object has no function '{name}'") from None

    def find_function(self, name):
        """The function of this name, or None."""
        return self._functions.get(name)

    def get_functions(self):
        """All of them, as a list."""
        return list(self._functions.values())


def script_if_tracing(fn):
    """Decorator: compile the function when it is first called while something is traced; else it stays Python."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if not _is_tracing():
            return fn(*args, **kwargs)
        if wrapper._compiled is None:
            wrapper._compiled = script(fn)
        return wrapper._compiled(*args, **kwargs)

    wrapper._compiled = None
    wrapper.__script_if_tracing_wrapper = True
    return wrapper


def _is_tracing():
    tracing = sys.modules.get("tinygrad_ext.jit.tracing")  # who has not loaded it does not trace
    return tracing is not None and tracing.is_tracing()
