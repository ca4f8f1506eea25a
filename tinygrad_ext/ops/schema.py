"""Operator schemas: ``aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor``.

`Schema.parse` reads one, ``str`` writes it back, and the text written parses to an equal schema.
Every op is declared by such a line, so some hundreds are read at import. Hence lines in the common form, with single
spaces, are cut up by the methods of str, and arguments and types remembered by their spelling.
All other lines, wrong ones too, are read by schema_grammar.py, whose patterns would cost more than all the lines.

    schema  := [namespace "::"] name ["." overload] "(" [args] ")" "->" returns
    args    := arg ("," arg)*, with "*" before the keyword-only ones and "..." as the last
    arg     := type name ["=" default]
    type    := base [alias] ["?"] | base [alias] ["?"] "[" [size] "]" ["?"]
    base    := Tensor int float ... Any | "Dict(" type "," type ")"
    alias   := "(" set ["!"] ["->" set] ")", a set being names joined by "|", or "*"
    returns := "()" | type [name] | "(" type [name] ("," type [name])* ")"
    default := number | string | True | False | None | "[" numbers "]"
"""

from .schema_default import Fault, read_default
from .schema_parts import TYPES, Alias, Arg

_types = {}  # spelling -> the seven fields of an Arg that tell its type
_args = {}, {}  # spelling with name and default -> Arg; the second of those by keyword only
_returns = {}  # what stands behind the arrow -> the returns


class Schema:
    """The declaration of an op.

    Attributes: namespace ("" where none was given), name, overload ("" for the default one),
    args and returns (tuples of `Arg`), varargs (whether "..." takes any further arguments).

    >>> from tinygrad_ext.ops.schema import Schema
    >>> schema = Schema.parse("aten::sum.dim(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor")
    >>> schema.qualname, schema.args[1].size, schema.args[2].default
    ('aten::sum.dim', 1, False)
    """

    __slots__ = ("args", "name", "namespace", "overload", "returns", "varargs")

    def __init__(self, namespace, name, overload, args, returns, varargs=False):
        self.namespace, self.name, self.overload = namespace, name, overload
        self.args, self.returns, self.varargs = args, returns, varargs

    @classmethod
    def parse(cls, text):
        """Return the schema that text declares.

        Raises:
            RuntimeError: text is no schema; the message shows the line, the place, and what to write.
        """
        if not isinstance(text, str):
            raise TypeError(f"Schema.parse(): argument 'text' must be a str, not {type(text).__name__}.")
        fields = _read_common(text)
        if fields is None:
            from . import schema_grammar  # lazy: it compiles patterns

            try:
                fields = schema_grammar.read(text)
            except Fault as fault:
                raise RuntimeError(schema_grammar.message(text, *fault.args)) from None
        return cls(*fields)

    @property
    def qualname(self):
        """The identity of the op: "aten::add.Tensor"."""
        name = f"{self.namespace}::{self.name}" if self.namespace else self.name
        return f"{name}.{self.overload}" if self.overload else name

    def __str__(self):
        args = [str(arg) for arg in self.args if not arg.kwarg_only]
        keywords = [str(arg) for arg in self.args if arg.kwarg_only]
        parts = [*args, *(["*", *keywords] if keywords else []), *(["..."] if self.varargs else [])]
        returns = ", ".join(map(str, self.returns))
        return f"{self.qualname}({', '.join(parts)}) -> {returns if len(self.returns) == 1 else f'({returns})'}"

    def __repr__(self):
        return f"<Schema {self}>"

    def __eq__(self, other):
        return str(self) == str(other) if isinstance(other, Schema) else NotImplemented

    def __hash__(self):
        return hash(str(self))


# Reading the common form. None stands for whatever is not in it.


def _read_common(text):
    head, _, rest = text.partition("(")
    inner, arrow, behind = rest.partition(") -> ")
    namespace, colons, name = head.rpartition("::")
    name, dot, overload = name.partition(".")
    names = [name, *([namespace] if colons else ()), *([overload] if dot else ())]
    if not arrow or overload == "default" or not all(map(_is_name, names)):
        return None
    returns = _returns.get(behind)
    if returns is None:
        returns = _read_returns(behind)
        if returns is None:
            return None
        _returns[behind] = returns
    args = _read_args(inner)
    return None if args is None else (namespace, name, overload, args, returns)


def _is_name(text):
    return text.isidentifier() and text.isascii()


def _read_args(inner):
    args, known, kwarg_only, had_default, part = {}, _args[False], False, False, ""
    parts = _split(inner)
    for part in parts:
        if part == "*" and not kwarg_only:
            known, kwarg_only = _args[True], True
            continue
        arg = known.get(part) or _read_arg(part, kwarg_only)
        if arg is None or (had_default and not arg.has_default and not kwarg_only):
            return None
        had_default = arg.has_default
        args[arg.name] = arg
    return tuple(args.values()) if len(args) == len(parts) - kwarg_only and part != "*" else None


def _split(inner):
    """The arguments, those whose default is a list in one piece."""
    parts = inner.split(", ") if inner else []
    if "=[" in inner:
        for i in range(len(parts) - 1, 0, -1):
            if "]" in parts[i] and "[" not in parts[i]:
                parts[i - 1 : i + 1] = [f"{parts[i - 1]}, {parts[i]}"]
    return parts


def _read_arg(part, kwarg_only):
    head, equals, literal = part.partition("=")
    declared, _, name = head.rpartition(" ")
    fields = _types.get(declared) or read_type(declared)
    if fields is None or not _is_name(name):
        return None
    arg = Arg(name, fields, kwarg_only)
    if equals:
        if not _is_literal(literal):
            return None
        try:
            arg.default, arg.has_default = read_default(arg, literal, 0), True
        except Fault:
            return None
    _args[kwarg_only][part] = arg
    return arg


def _is_literal(text):
    inner = text[1:-1]
    if text[:1] in ("'", '"'):
        return len(text) > 1 and text[-1] == text[0] and not any(c in inner for c in "'\"\\\n")
    if text[:1] == "[":
        return text[-1] == "]" and not any(c in inner for c in "[]()'\"=")
    return text != "" and not any(c.isspace() or c in ",()[]'\"=" for c in text)


def _read_returns(text):
    in_list = text.startswith("(") and text.endswith(")")
    parts = text[1:-1].split(", ") if in_list else [text]
    found = []
    for part in parts if parts != [""] else ():
        declared, space, name = part.rpartition(" ")
        fields = read_type(declared if space else part)
        if fields is None or (space and not _is_name(name)):
            return None
        found.append(Arg(name if space else "", fields))
    named = [r.name for r in found if r.name]
    return tuple(found) if len(set(named)) == len(named) and (found or in_list) else None


def read_type(declared):
    """The seven fields of an Arg that tell its type; None for a Dict and for what is no type."""
    base, optional = declared.removesuffix("?"), declared.endswith("?")
    alias, size, elem_optional, is_list = None, None, False, base.endswith("]")
    if is_list:
        base, _, digits = base[:-1].rpartition("[")
        if digits and not (digits.isdecimal() and digits.isascii()):
            return None
        size = int(digits) if digits else None
        base, elem_optional = base.removesuffix("?"), base.endswith("?")
    if base.endswith(")"):
        base, _, group = base[:-1].partition("(")
        before, arrow, after = group.partition(" -> ")
        name = before.removesuffix("!")
        if base not in ("Tensor", "Generator", "Any") or not _is_name(name) or after != "*" * bool(arrow):
            return None
        alias = Alias((name,), before.endswith("!"), ("*",) if arrow else ())
    if base not in TYPES or base == "Dict":
        return None
    brackets = f"{'?' * elem_optional}[{'' if size is None else size}]" if is_list else ""
    spelling = f"{base}{alias or ''}{brackets}{'?' * optional}"
    fields = _types[declared] = (spelling, base, optional, is_list, size, elem_optional, alias)
    return fields
