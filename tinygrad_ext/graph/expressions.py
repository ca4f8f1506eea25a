"""Nodes and constants as Python expressions: the vocabulary of `Graph.code`."""

import keyword
import math

from tinygrad_ext import ops
from tinygrad_ext.core.data import dtype as dtypes

from .text import write_arg

_PATTERNS = {
    "size": "{0}.shape[{1}]",
    "shape": "list({0}.shape)",
    "rank": "{0}.dim()",
    "numel": "{0}.numel()",
    "dtype": "{0}.dtype",
    "device": "{0}.device",
    "item": "{0}.item()",
    "getitem": "{0}[{1}]",
    "not": "not {0}",
    "neg": "-{0}",
    "invert": "~{0}",
    "cast": "{0}",
    "unpack": "{0}",
}
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
_OPERATORS |= {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_OPERATORS |= {"bitand": "&", "bitor": "|", "bitxor": "^", "lshift": "<<", "rshift": ">>"}
_PATTERNS |= {name: f"{{0}} {sign} {{1}}" for name, sign in _OPERATORS.items()}
_CALLS = {"max", "min", "abs", "round", "int", "float", "bool", "complex", "str", "len"}


def constant(a):
    """A constant of a graph as Python text."""
    if type(a) is float and not math.isfinite(a):
        return f'float("{a!r}")'
    if type(a) is complex:
        return f"complex({constant(a.real)}, {constant(a.imag)})"
    if type(a) is str:
        return repr(a)
    if type(a) is dtypes.device:
        return f"tg.device({str(a)!r})"
    if type(a) in (dtypes.dtype, dtypes.layout, dtypes.memory_format):
        return f"tg.{write_arg(a)}"
    return write_arg(a)


def primitive(op, args, given):
    """A primitive of arguments, as texts in `args`. One that has no short form is looked up in the table."""
    name = op.removeprefix("prim::")
    if name in ("is", "isnot") and given[1] is None:
        return f"{_firm(args[0])} {'is' if name == 'is' else 'is not'} None"
    if name in _PATTERNS:
        return _PATTERNS[name].format(*args if name in ("cast", "unpack") else map(_firm, args))
    if name == "list":
        return f"[{', '.join(args)}]"
    if name == "tuple":
        return f"({', '.join(args)}{',' * (len(args) == 1)})"
    if name == "dict":
        return f"{{{', '.join(f'{k}: {v}' for k, v in zip(args[::2], args[1::2]))}}}"
    if name in _CALLS or name.startswith("math."):
        return f"{name}({', '.join(args)})"
    return f"TABLE[{op!r}].run({', '.join(args)})"


def _firm(text):
    """An operand that an operator beside it cannot take apart: -1 ** 2 is not (-1) ** 2."""
    return f"({text})" if text[:1] == "-" else text


def function(name):
    """The callable of an overload: `ops.aten.add.Tensor`, and `ops.aten.exp` where there is only one."""
    namespace, _, name = name.partition("::")
    base, _, overload = name.partition(".")
    text = f"ops.{namespace}.{base}"
    if keyword.iskeyword(overload):
        return f'getattr({text}, "{overload}")'
    alone = len(getattr(getattr(ops, namespace), base).overloads()) == 1
    return text if alone else f"{text}.{overload or 'default'}"


def call_args(schema, given, args):
    """The arguments of a call as text; what the schema has as a default is left out."""
    said = [not (a.has_default and _same(g, a.default)) for a, g in zip(schema.args, given)]
    ordered = [i for i, a in enumerate(schema.args) if not a.kwarg_only]
    # those with a keyword of Python for a name can only be given by their place
    placed = max((i + 1 for i in ordered if said[i] and keyword.iskeyword(schema.args[i].name)), default=0)
    texts, gap = [], False
    for i, arg in enumerate(schema.args):
        if not (said[i] or i < placed):
            gap = True
        elif arg.kwarg_only or gap:
            texts.append(f"{arg.name}={args[i]}")
        else:
            texts.append(args[i])
    return ", ".join(texts)


def _same(a, b):
    """Whether a constant is a default, to the type and the sign of zero."""
    return type(a) is type(b) and repr(a) == repr(b)
