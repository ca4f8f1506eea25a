"""torch._jit_internal: marks and types for scripts."""

import inspect as _inspect
import types as _types
import typing as _typing
from typing import Any, Callable, Dict, Final, List, Optional, Tuple, Union  # noqa: F401, UP035 - names that are imported

from tinygrad_ext import jit as _jit
from tinygrad_ext.jit.annotations import LISTS as _LISTS
from tinygrad_ext.jit.annotations import Broadcasting as _Broadcasting
from tinygrad_ext.jit.script.types import without_contained as _without_contained

export, ignore, unused = _jit.export, _jit.ignore, _jit.unused
is_scripting = _jit.is_scripting


BroadcastingListCls = _Broadcasting
globals().update(_LISTS)


def _overload(function):
    """The function as it is: a script takes the implementation that comes last."""
    return function


_overload_method = _copy_to_script_wrapper = _overload


def is_tracing():
    """Whether a program is traced."""
    return _jit.is_tracing()


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """One of two functions, by a bool argument."""

    def chosen(*args, **kwargs):
        value = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if value else if_false)(*args, **kwargs)

    chosen.__name__ = func_name or chosen.__name__
    chosen.__module__ = module_name or chosen.__module__
    return chosen


def get_callable_argument_names(function):
    """Names of the parameters that may be given by place and by name."""
    try:
        parameters = _inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def _asks(origin, bare):
    def asked(ann):
        if ann is bare:
            raise RuntimeError(_without_contained(_EXAMPLES[origin]))
        return _typing.get_origin(ann) is origin

    asked.__doc__ = f"Whether an annotation is a {_EXAMPLES[origin].partition('[')[0]} of something."
    return asked


_EXAMPLES = {list: "List[int]", dict: "Dict[int, int]", tuple: "Tuple[int]"}
is_list, is_dict, is_tuple = (_asks(kind, vars(_typing)[kind.__name__.title()]) for kind in (list, dict, tuple))


def is_union(ann):
    """Whether an annotation is a Union, an Optional too."""
    return _typing.get_origin(ann) in (Union, getattr(_types, "UnionType", Union))


def is_optional(ann):
    """Whether an annotation is one type or None."""
    return is_union(ann) and len(_typing.get_args(ann)) == 2 and type(None) in _typing.get_args(ann)


def is_final(ann):
    """Whether an annotation is Final."""
    return ann is Final or _typing.get_origin(ann) is Final
