"""Annotations as types of graph values."""

import builtins
import dataclasses
import enum
import inspect
import numbers
import types
import typing
import warnings

from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.futures import Future
from tinygrad_ext.graph.primitives.objects import class_of, word_of
from tinygrad_ext.graph.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    DTYPE,
    FLOAT,
    FORMAT,
    GENERATOR,
    INT,
    LAYOUT,
    NONE,
    SCALAR,
    STR,
    TENSOR,
    Type,
    accepts,
    list_of,
    optional,
)
from tinygrad_ext.nn.module import Module

_PLAIN = {
    None: NONE, type(None): NONE, int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX, str: STR,
    dtypes.device: DEVICE, dtypes.dtype: DTYPE, dtypes.layout: LAYOUT, dtypes.memory_format: FORMAT,
    Generator: GENERATOR, typing.Generator: GENERATOR, typing.Any: ANY, numbers.Number: SCALAR,
    dtypes.Size: list_of(INT),
}  # fmt: skip
NO_USER_CLASS = ("builtins", "tinygrad_ext", "torch", "functools", "types", "typing", "collections", "numpy")
NUMBERS = (INT, FLOAT, BOOL, COMPLEX, SCALAR)
_BARE = {list: "List[int]", dict: "Dict[int, int]", tuple: "Tuple[int]", typing.Optional: "Optional[int]"}


class NoType(Exception):
    """An annotation that stands for no type; args: what is wrong."""


def type_from(annotation, evaluate):
    """The type that an annotation stands for; evaluate(text) gives what a text as annotation names. Raises NoType."""
    if isinstance(annotation, str):
        return type_from(evaluate(annotation), evaluate)
    if isinstance(annotation, typing.ForwardRef):
        return type_from(evaluate(annotation.__forward_arg__), evaluate)
    try:
        found = _PLAIN.get(annotation)
    except TypeError:
        found = None
    if found is not None:
        return found
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    bare = origin if origin in _BARE and not args and not str(annotation).endswith("[()]") else annotation
    if hashable(bare) and bare in _BARE:
        raise NoType(without_contained(_BARE[bare]))
    if isinstance(annotation, dataclasses.InitVar):
        return type_from(annotation.type, evaluate)
    if origin is not None:
        return _generic(annotation, origin, args, lambda a: type_from(a, evaluate))
    if inspect.isclass(annotation) and issubclass(annotation, Tensor):
        return TENSOR
    if inspect.isclass(annotation) and _is_tensor_type(annotation):
        warnings.warn(f"script takes the annotation {annotation.__name__} for Tensor, whatever its dtype", stacklevel=2)
        return TENSOR
    if _is_class_of_script(annotation):
        return Type(word_of(annotation))
    raise NoType(_unknown(annotation))


def without_contained(example):
    """What is told of a type that does not say what it holds; example: one that does."""
    word = example.partition("[")[0]
    inner, more = ("contained types", "contained type") if word == "Dict" else ("a contained type",) * 2
    return f"Attempted to use {word} without {inner}. Please add {more}, e.g. {example}"


_OF_PYTHON = 1 << 9  # the flag of a class that Python code has made


def _is_class_of_script(cls):
    """Whether objects of a class may be values: one that Python code defines, and no module."""
    if not inspect.isclass(cls) or cls.__module__ == "builtins" or not cls.__flags__ & _OF_PYTHON:
        return False
    return not issubclass(cls, Module) or hasattr(cls, "_tgx_script_interface")


def _unknown(annotation):
    told = f"Unknown type annotation: '{_told(annotation)}' is no type that script knows"
    if inspect.isclass(annotation) and issubclass(annotation, Module):
        return f"{told}; modules are attributes of modules, and no arguments, items or results"
    return told


def hashable(value):
    """Whether it may be looked up in a table."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_tensor_type(cls):
    """Whether it is one of the old names that tell a dtype: torch.LongTensor."""
    return cls.__module__ in ("tinygrad_ext", "torch") and cls.__name__.endswith("Tensor")


def _told(annotation):
    return getattr(annotation, "__name__", None) or str(annotation)


def _generic(annotation, origin, args, inner):
    if origin is list:
        return list_of(inner(args[0]))
    if origin is dict:
        key = inner(args[0])
        if key not in (INT, FLOAT, BOOL, STR, TENSOR, COMPLEX) and not is_enum(key):
            raise NoType(
                "only int, float, complex, Tensor, device and string keys are supported: keys of a dict are int, "
                "float, "
                f"complex, bool, str, Tensor or an enum, not {key}"
            )
        return Type("Dict", (key, inner(args[1])))
    if origin is tuple:
        if Ellipsis in args:
            raise NoType("a tuple has a fixed number of items; write List[...], or each type: Tuple[int, int]")
        return Type("Tuple", () if args == ((),) else map(inner, args))
    if origin is Future:  # see forked.py
        return Type("Tuple", (inner(args[0]),))
    if origin in (typing.Union, getattr(types, "UnionType", typing.Union)):
        return union(list(map(inner, args)))
    if origin is typing.Final or origin is typing.ClassVar or origin is typing.Annotated:
        return inner(args[0])
    raise NoType(_unknown(annotation))


def union(parts):
    """The smallest type that takes all of these."""
    flat = []
    for part in parts:
        inner = (NONE, part.args[0]) if part.word == "Optional" else part.args if part.word == "Union" else (part,)
        flat += [t for t in inner if t not in flat]
    flat = [t for t in flat if not any(t is not o and accepts(o, t) for o in flat)]
    rest = [t for t in flat if t is not NONE]
    if len(rest) < len(flat):
        return NONE if not rest else optional(rest[0]) if len(rest) == 1 else Type("Union", (*rest, NONE))
    return rest[0] if len(rest) == 1 else Type("Union", rest)


def parts_of(type):
    """What a value of a type may be: Optional[int] -> (int, None)."""
    if type.word == "Optional":
        return (type.args[0], NONE)
    return type.args if type.word == "Union" else (type,)


def unify(a, b):
    """The type of a value that is one or the other, or None: they do not go together."""
    if accepts(a, b):
        return a
    if accepts(b, a):
        return b
    if NONE in parts_of(a) or NONE in parts_of(b):
        inner = [union([p for p in parts_of(t) if p is not NONE]) for t in (a, b) if t is not NONE]
        if len(inner) == 1 or (len(inner) == 2 and unify(*inner) is not None):
            return optional(inner[0] if len(inner) == 1 else unify(*inner))
    if a.word == b.word == "Tuple" and len(a.args) == len(b.args):
        items = [unify(x, y) for x, y in zip(a.args, b.args)]
        return None if None in items else Type("Tuple", items)
    return None


_ORDER = ("Tensor", "Tuple", "List", "Dict", "float", "complex", "int", "NoneType", "str")


def not_a_member(type, given):
    """What is told of a value that is of none of a Union's types, which stand in PyTorch's order."""
    parts = sorted(type.args, key=lambda t: _ORDER.index(t.word) if t.word in _ORDER else -1)
    return f"Expected a member of Union[{', '.join(map(str, parts))}] but instead found type {given}"


def is_number(type):
    """Whether a value of a type is a number, of one kind or one of several."""
    return type is not None and all(part in NUMBERS for part in parts_of(type))


def without_none(type):
    return union([p for p in parts_of(type) if p is not NONE] or [NONE])


def annotations_of(cls):
    """The annotations in the body of one class, not of its bases."""
    return inspect.get_annotations(cls)


def is_enum(type):
    cls = class_of(type.word)
    return cls is not None and issubclass(cls, enum.Enum)


def is_named_tuple(cls):
    return inspect.isclass(cls) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def fields_of(cls):
    """[(name, type, default or inspect.Parameter.empty)] of a named tuple, or of what a dataclass' __init__ takes."""
    if is_named_tuple(cls):
        defaults = cls._field_defaults
        types = _types_of_fields(cls, {name: Tensor for name in cls._fields})
        return [(name, types[name], defaults.get(name, inspect.Parameter.empty)) for name in cls._fields]
    kept, taken = dataclasses.fields(cls), inspect.signature(cls.__init__).parameters
    types = _types_of_fields(cls)
    found = [f for f in cls.__dataclass_fields__.values() if (f.init if f in kept else f.name in taken)]
    return [(f.name, types[f.name], _default(f)) for f in found]


def rest_of_fields(cls):
    """[(name, type, default)] of the fields of a dataclass that its __init__ does not take."""
    types = _types_of_fields(cls)
    return [(f.name, types[f.name], _default(f)) for f in dataclasses.fields(cls) if not f.init]


def is_kept(cls, name):
    """Whether a field of a dataclass is an attribute; an InitVar is an argument only."""
    return name in {f.name for f in dataclasses.fields(cls)}


def _types_of_fields(cls, hints=()):
    """The types of fields when they are asked for: a class may have annotations that script knows nothing of."""
    space, hints = {**vars(typing), **vars(inspect.getmodule(cls) or types)}, dict(hints)
    for base in reversed(cls.__mro__):
        hints.update(annotations_of(base))

    class Found(dict):
        def __missing__(self, name):
            return type_from(hints[name], lambda text: eval(text, space))

    return Found()


def _default(field):
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def type_of_python(value):
    """The type of a Python value that comes from outside, or None: script has none for it."""
    if isinstance(value, Tensor):
        return TENSOR
    if isinstance(value, enum.Enum):
        return Type(word_of(type(value)))
    found = _PLAIN.get(type(value))
    if found is not None:
        return found
    if isinstance(value, (list, dict)) and isinstance(getattr(value, "type", None), Type):
        return value.type  # of a ScriptList or ScriptDict
    if isinstance(value, list):
        inner = _common(value)
        return None if inner is None else list_of(inner)
    if isinstance(value, dict):
        key, item = _common(value), _common(value.values())
        return None if key is None or item is None else Type("Dict", (key if value else STR, item))
    if is_named_tuple(type(value)):
        return Type(word_of(type(value)))
    if isinstance(value, tuple):
        inner = [type_of_python(v) for v in value]
        return None if None in inner else Type("Tuple", inner)
    if isinstance(value, type) or type(value).__module__.partition(".")[0] in NO_USER_CLASS:
        return None
    return Type(word_of(type(value)))


def _common(values):
    found = None
    for value in values:
        inner = type_of_python(value)
        found = inner if found is None else unify(found, inner) if inner is not None else None
        if found is None:
            return None
    return found or TENSOR


TYPING = {name: getattr(typing, name) for name in typing.__all__}
BUILTINS = vars(builtins)
