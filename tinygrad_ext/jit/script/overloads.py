"""Several signatures of one function: declarations marked `jit._overload`, and behind them the function itself.

A call takes the first declaration that its arguments fit, and compiles the function's body with its types.
"""

import inspect

from tinygrad_ext.graph.types import accepts

from .errors import Error
from .source import source_of
from .values import Static, type_of

_DECLARED = {}  # (module, qualified name) -> functions


def _key(function):
    return function.__module__, function.__qualname__


def _overload(func):
    """Mark a declaration, whose body is `pass`, as one of the signatures of the function of that name that follows.

    >>> from tinygrad_ext import Tensor, jit
    >>> @jit._overload
    ... def double(x: Tensor) -> Tensor: ...
    >>> @jit._overload
    ... def double(x: int) -> int: ...
    >>> def double(x):
    ...     return x + x
    >>> double(2)
    4
    """
    if not inspect.isfunction(func):
        raise RuntimeError(f"_overload: marks functions that are defined, not a {type(func).__name__}")
    _DECLARED.setdefault(_key(func), []).append(func)
    return func


def _overload_method(func):
    """The same for a method."""
    return _overload(func)


def parameters_of(c, function, make, bound, args, kwargs):
    """The parameters for a call of a function, with the types of the declaration that the arguments fit.

    make: parameters as a function has them, of (function, its source).
    """
    declared = [d for d in _DECLARED.get(_key(function), ()) if d is not function]
    own = make(function, source_of(function))
    told = []
    for declaration in declared:
        found = make(declaration, source_of(declaration))
        found.defaults = {**own.defaults, **found.defaults}
        if _fits(c, found, args, kwargs, len(bound)):
            own.annotations, own.returns, own.defaults = found.annotations, found.returns, found.defaults
            return own
        types = [str(c.type_of_annotation(node)) for node in found.annotations.values() if node is not None]
        told.append(f"({', '.join(types)})")
    if declared:
        given = ", ".join(str(type_of(a)) for a in (*args, *kwargs.values()))
        c.fault(f"none of the signatures of {function.__name__} fits ({given}): {'; '.join(told)}")
    return own


def _fits(c, parameters, args, kwargs, skip):
    try:
        bound = parameters.bind(c, args, kwargs)
    except Error:  # another number of arguments, or other names
        return False
    for name in parameters.names[skip:]:
        node, operand = parameters.annotations.get(name), bound[name]
        given = type_of(operand)
        if node is None or (given is None and isinstance(operand, Static)):
            continue
        if not accepts(c.type_of_annotation(node), given):
            return False
    return True
