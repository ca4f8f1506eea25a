"""Type stubs of op functions and methods, from their records.

`stub(fn)` gives the text of one function for a .pyi file: a line for each overload, with the first sentence of the
record's doc. Types are written with the underscored names that every generated file defines (PREAMBLE), because
`float`, `int`, `bool`, `dtype` are names of ops, dtypes and properties in the places where these lines stand.
"""

import keyword

from tinygrad_ext.core.call.callables import OpMethod
from tinygrad_ext.registry import variants

PREAMBLE = """\
import builtins as _b
from collections.abc import Sequence as _Sequence
from typing import Any as _Any, NamedTuple as _NamedTuple, TypeAlias as _TypeAlias, overload as _overload

_int: _TypeAlias = _b.int
_float: _TypeAlias = _b.float
_bool: _TypeAlias = _b.bool
_complex: _TypeAlias = _b.complex
_Number: _TypeAlias = _b.int | _b.float | _b.bool
_Scalar: _TypeAlias = _b.int | _b.float | _b.bool | _b.complex
"""

DTYPES = (
    "from tinygrad_ext.core.data.dtype import Size as _Size, device as _device, dtype as _dtype, layout as _layout, "
    "memory_format as _memory_format\n"
)
GENERATOR = "from tinygrad_ext.core.data.random import Generator as _Generator\n"
TENSOR = "from tinygrad_ext.core.data.tensor import Tensor\n"

_PLAIN = {
    "Tensor": "Tensor",
    "int": "_int",
    "SymInt": "_int",
    "float": "_float",
    "bool": "_bool",
    "str": "_b.str",
    "Scalar": "_Scalar",
    "number": "_Scalar",
    "complex": "_complex",
    "ScalarType": "_dtype | _b.type",
    "Layout": "_layout",
    "Device": "_device | _b.str",
    "MemoryFormat": "_memory_format",
    "Generator": "_Generator",
    "Any": "_Any",
}


def argument_type(arg, numbers=()):
    """Type of what a caller may pass for an argument of a schema."""
    plain = _PLAIN.get(arg.type, "_Any")
    if arg.type == "Scalar":
        plain = "_Scalar | Tensor"  # a 0-d tensor is a number too
    if arg.name in numbers:
        plain += " | _Scalar"
    if arg.elem_optional:
        plain += " | None"
    if arg.is_list:
        lone = f"{plain} | " if arg.size else ""
        plain = f"{lone}_Sequence[{plain}]"
    return plain + (" | None" if arg.optional and not plain.endswith("| None") else "")


def return_type(schema):
    """Type of an op's result; several named results are a tuple class of their own, see `result_class`."""
    returns = schema.returns
    if not returns:
        return "None"
    if len(returns) > 1:
        return (
            f"_{schema.name}_result" if all(r.name for r in returns) else f"tuple[{', '.join(map(_returned, returns))}]"
        )
    return _returned(returns[0])


def _returned(r):
    plain = "_Number" if r.type in ("Scalar", "number") else _PLAIN.get(r.type, "_Any")
    return f"tuple[{plain}, ...]" if r.is_list else plain


def result_class(schema):
    """Text of the named tuple an op returns, or None."""
    if len(schema.returns) < 2 or not all(r.name for r in schema.returns):
        return None
    rows = "".join(f"    {r.name}: {_returned(r)}\n" for r in schema.returns)
    return f"class _{schema.name}_result(_NamedTuple):\n{rows}"


def _default(arg):
    value = arg.default
    return repr(value) if value is None or (isinstance(value, (bool, int, float, str)) and value == value) else "..."


def _parameters(op, method, inplace, has_out):
    """Texts of the parameters of one overload."""
    record, schema = op.record, op.schema
    numbers = (record.numbers or "").split()
    texts, star = [], False
    for i, a in enumerate(schema.args):
        if method and i == 0:
            texts.append("self")
            continue
        if a.kwarg_only and not star:
            star = True
            texts.append("*")
        name = "input" if a.name == "self" else a.name + "_" * keyword.iskeyword(a.name)
        texts.append(f"{name}: {argument_type(a, numbers)}" + (f" = {_default(a)}" if a.has_default else ""))
    if has_out and not method and not inplace:
        texts += [*([] if star else ["*"]), f"out: {_out_type(schema)} | None = None"]
    return texts


def _out_type(schema):
    if schema.returns and schema.returns[0].is_list:
        return "tuple[Tensor, ...] | list[Tensor]"
    return "Tensor" if len(schema.returns) < 2 else f"tuple[{', '.join(['Tensor'] * len(schema.returns))}]"


def _one_by_one(op, texts):
    """The parameters of the other way to call an op, with its list given item by item; or None."""
    if name := unpacked(op):
        given = f"*{name}: _int"
    elif name := varargs(op):
        given = f"*{name}: {_PLAIN[next(a for a in op.schema.args if a.name == name).type]}"
    else:
        return None
    k = next(i for i, text in enumerate(texts) if text.startswith(f"{name}: "))
    return [*texts[:k], given, *(t for t in texts[k + 1 :] if t != "*")]


def unpacked(op):
    """Name of the last positional list of ints, where it may be given one by one: `zeros(2, 3)`; or None."""
    positional = [a for a in op.schema.args if not a.kwarg_only]
    last = positional[-1] if positional else None
    if last is None or not last.is_list or last.type not in ("int", "SymInt") or last.size or len(positional) > 2:
        return None
    return None if len(positional) == 2 and op.schema.args[0].type != "Tensor" else last.name


def varargs(op):
    """Name of the list that is written out in a call, `einsum("ij,jk", x, y)`; or None."""
    if "varargs" not in (op.record.tags or "").split():
        return None
    return next(a.name for a in op.schema.args if a.is_list and not a.kwarg_only)


def is_inplace(fn):
    """Whether a function or method is the in-place form of its op."""
    return fn.__name__.endswith("_") and not fn.candidates[0].schema.name.endswith("_")


def _lines(name, op, method, inplace, has_out):
    returns = "Tensor" if inplace else return_type(op.schema)
    texts = _parameters(op, method, inplace, has_out)
    variants = [texts, _one_by_one(op, texts)]
    return [f"def {name}({', '.join(t)}) -> {returns}: ..." for t in variants if t is not None]


def op_lines(op):
    """Lines of one op: as a function where it is one, else as a method."""
    kinds = variants(op.record)
    return _lines(op.schema.name, op, "function" not in kinds, False, "out" in kinds)


def first_sentence(doc):
    """The doc up to its first full stop that ends a sentence."""
    doc = " ".join((doc or "").split())
    for i, c in enumerate(doc):
        if c == "." and doc[i + 1 : i + 2] in ("", " ") and not doc[:i].endswith(("e.g", "i.e")):
            return doc[: i + 1]
    return doc


def stub(fn, name=None):
    """Text of an op function or method for a .pyi file, without indentation; `name` for an alias.

    Arguments: fn, an OpFunction or OpMethod.
    """
    name = name or fn.name
    method = isinstance(fn, OpMethod)
    inplace, lines = is_inplace(fn), []
    for op in fn.candidates:
        lines += _lines(name, op, method, inplace, "out" in variants(op.record))
    lines = list(dict.fromkeys(lines))
    if len(lines) > 1:
        lines = [f"@_overload\n{line}" for line in lines]
    doc = first_sentence(fn.candidates[0].record.doc).replace("\\", "\\\\").replace('"""', "'''")
    if doc:
        lines[0] = lines[0].removesuffix(" ...") + f'\n    """{doc}"""\n    ...' if name.isidentifier() else lines[0]
    return "\n".join(lines)
