"""Types of attributes of modules, as annotations tell them, in the body of the class or in its __init__."""

import ast
import collections.abc
import inspect
import types as python_types
import typing

from tinygrad_ext import nn

from .errors import FrontendError
from .markers import annotate
from .source import source_of
from .types import NoType, annotations_of, type_from


def attribute_type(c, cls, name, by_init=True):
    """(the type that the class annotates an attribute with or None, whether it is Final). by_init: __init__ counts."""
    for base in cls.__mro__:
        annotation = annotations_of(base).get(name)
        if annotation is None or base.__module__.startswith("tinygrad_ext."):
            continue
        space = {**vars(typing), **_globals_of(base)}
        if isinstance(annotation, str):
            annotation = eval(annotation, space)
        if annotation is typing.Final or typing.get_origin(annotation) is typing.Final:
            return None, True
        try:
            return type_from(annotation, lambda text, space=space: eval(text, space)), False
        except NoType as error:
            c.fault(f"attribute '{name}' of {cls.__name__}: {error}")
    return _type_in_init(c, cls, name) if by_init else None, False


def _type_in_init(c, cls, name):
    """The type that `self.name: T = ...` in an __init__ gives, or None."""
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if base.__module__.startswith("tinygrad_ext.") or not isinstance(init, python_types.FunctionType):
            continue
        try:
            tree = source_of(init).tree
        except FrontendError:
            continue
        space = {**vars(typing), **init.__globals__, **inspect.getclosurevars(init).nonlocals}
        for node in ast.walk(tree):
            annotation = _annotation_of(node, name, space)
            if annotation is None:
                continue
            try:
                return type_from(ast.unparse(annotation), lambda text, space=space: eval(text, space))
            except (NoType, NameError) as error:
                if isinstance(error, NoType) and _is_of_no_value(_evaluated(annotation, space)):
                    return None
                c.fault(f"attribute '{name}' of {cls.__name__}: {error}")
    return None


def _evaluated(annotation, space):
    found = eval(ast.unparse(annotation), space)
    return eval(found, space) if isinstance(found, str) else found


def _is_of_no_value(annotation):
    """Whether a type is one of modules or functions, or None, which are told by what the attribute is."""
    kind = typing.get_origin(annotation) or annotation
    if kind in (typing.Union, getattr(python_types, "UnionType", typing.Union)):
        return all(part is type(None) or _is_of_no_value(part) for part in typing.get_args(annotation))
    return (
        kind is collections.abc.Callable
        or kind is typing.Callable
        or (inspect.isclass(kind) and issubclass(kind, nn.Module))
    )


def _annotation_of(node, name, space):
    """The type in `self.name: T = ...` or in `self.name = jit.annotate(T, ...)`, or None."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not any(isinstance(target, ast.Attribute) and target.attr == name for target in targets):
        return None
    if isinstance(node, ast.AnnAssign):
        return node.annotation
    made = getattr(node, "value", None)
    annotates = isinstance(made, ast.Call) and len(made.args) == 2 and _named(made.func, space) is annotate
    return made.args[0] if annotates else None


def _named(node, space):
    """What a name, or a name in a module, stands for; None for anything else, which is not run."""
    if isinstance(node, ast.Name):
        return space.get(node.id)
    owner = _named(node.value, space) if isinstance(node, ast.Attribute) else None
    return getattr(owner, node.attr, None) if isinstance(owner, python_types.ModuleType) else None


def _globals_of(cls):
    for value in vars(cls).values():
        if isinstance(value, python_types.FunctionType):
            return value.__globals__
    return vars(inspect.getmodule(cls) or typing)
