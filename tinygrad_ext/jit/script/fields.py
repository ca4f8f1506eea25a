"""What a call gives to the fields of a named tuple or a dataclass."""

import enum
import inspect

from tinygrad_ext.graph.primitives.objects import word_of
from tinygrad_ext.graph.types import BOOL, FLOAT, INT, STR, Type

from .types import annotations_of, fields_of
from .values import type_of


def named_tuple(c, cls, args, kwargs):
    values = fields_given(c, cls, args, kwargs)
    return c.emit("prim::named_tuple", (word_of(cls), " ".join(cls._fields), *values), Type(word_of(cls)))


def fields_given(c, cls, args, kwargs):
    """Values of the fields of a named tuple or dataclass, from the arguments of a call."""
    fields = fields_of(cls)
    if len(args) > len(fields):
        c.fault(f"{cls.__name__}() takes {len(fields)} arguments, got {len(args)}")
    given = dict(zip((f[0] for f in fields), args))
    for name, operand in kwargs.items():
        if name in given or name not in {f[0] for f in fields}:
            c.fault(f"{cls.__name__}() takes no argument '{name}', or it is given twice")
        given[name] = operand
    values, hints = [], {name for base in cls.__mro__ for name in annotations_of(base)}
    for name, type, default in fields:
        if name not in given:
            if default is inspect.Parameter.empty:
                c.fault(f"{cls.__name__}() is missing value for argument '{name}'")
            made = default() if callable(default) and not isinstance(default, enum.Enum) else default
            given[name] = c.default(made, name)
        if name not in hints and type_of(given[name]) in (INT, FLOAT, BOOL, STR):
            c.fault(
                f"Expected a value of type '{type} (inferred)' for argument '{name}' but instead found type "
                f"'{type_of(given[name])}'. Without an annotation a field of {cls.__name__} is a Tensor"
            )
        values.append(c.value(given[name], type, f"argument '{name}'"))
    return values
