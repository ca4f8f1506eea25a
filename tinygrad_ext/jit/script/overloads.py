"""Several signatures of one function: declarations marked `jit._overload`, and behind them the function itself.

A call takes the first declaration that its arguments fit, and compiles the function's body with its types.
"""

import ast
import inspect

from tinygrad_ext.graph.types import accepts

from .errors import Error, FrontendError
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
    if not _is_declaration(func):
        raise RuntimeError(
            f"Only `pass` statement or `...` can be the body of an overload declaration, which {func.__qualname__} is: "
            "the function itself follows, without the mark"
        )
    _DECLARED.setdefault(_key(func), []).append(func)
    return func


def _is_declaration(function):
    """Whether the body of a function does nothing, as far as its source can be read."""
    try:
        body = source_of(function).body
    except FrontendError:
        return True
    told = (node.value for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    texts = [value for value in told if value.value is Ellipsis or isinstance(value.value, str)]
    return len(texts) + sum(isinstance(node, ast.Pass) for node in body) == len(body)


def _overload_method(func):
    """The same for a method."""
    return _overload(func)


def check_implemented(c, function, bound):
    """Refuse a function of which there are declarations alone."""
    if function in _DECLARED.get(_key(function), ()):
        c.fault(
            f'Implementation for the {"method" if bound else "function"} "{function.__qualname__}" is missing.',
            "Behind its declarations stands the function itself, without the mark.",
        )


def parameters_of(c, function, make, bound, args, kwargs):
    """The parameters for a call of a function, with the types of the declaration that the arguments fit.

    make: parameters as a function has them, of (function, its source).
    """
    declared = [d for d in _DECLARED.get(_key(function), ()) if d is not function]
    check_implemented(c, function, bound)
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
