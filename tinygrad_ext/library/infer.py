"""infer_schema: the schema of a function, from its type hints.

    def scale(x: Tensor, factor: float = 2.0, *, sizes: list[int] | None = None) -> Tensor
    (Tensor x, float factor=2.0, *, SymInt[]? sizes=None) -> Tensor

All spellings of a hint mean the same: Optional[T] and T | None, List, list and Sequence, a hint and its string.
"""

import collections.abc
import enum
import functools
import inspect
import numbers
import types
import typing

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.dtype import device, dtype, layout, memory_format
from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.ops.schema import Arg, Schema
from tinygrad_ext.registry.tags import Tag, words

_BASES = {
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    numbers.Number: "Scalar",
    dtype: "ScalarType",
    device: "Device",
    layout: "Layout",
    memory_format: "MemoryFormat",
    Generator: "Generator",
    typing.Any: "Any",
}
_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable)
_NUMBERS = {int, float, bool, complex}
_KNOWN = (
    "Tensor, int, float, bool, str, complex, int | float (a Scalar), torch.dtype, torch.device, torch.layout, "
    "torch.memory_format, torch.Generator, Literal, an Enum of str or int, list and Sequence of these, dict[str, T], "
    "and T | None"
)


@boundary
def infer_schema(prototype_function, /, *, mutates_args, op_name=None, tags=()):
    """Return the schema of a function with type hints, as text.

    Args:
        prototype_function: every parameter, and the return, has a type hint.
        mutates_args: names of the tensor arguments that the function writes to; "unknown" for all tensors.
        op_name: put before the arguments, "ns::name".
        tags: `Tag.inplace` or `Tag.out` for an op that returns what it writes to.

    Raises ValueError that names the parameter and what to write instead.

        >>> from tinygrad_ext import Tensor, library
        >>> def scale(x: Tensor, factor: float = 2.0, *, sizes: list[int] | None = None) -> Tensor: ...
        >>> library.infer_schema(scale, mutates_args=())
        '(Tensor x, float factor=2.0, *, SymInt[]? sizes=None) -> Tensor'
    """
    return _Reader(prototype_function, mutates_args, (words(tags) or "").split()).read(op_name)


def plain_function(fn):
    """The function behind wrappers, partials and objects that are called."""
    fn = inspect.unwrap(fn)
    while isinstance(fn, functools.partial):
        fn = inspect.unwrap(fn.func)
    if hasattr(fn, "__code__") or isinstance(fn, types.MethodType) or not hasattr(type(fn).__call__, "__code__"):
        return fn
    return type(fn).__call__


class _Reader:
    """Reads one function."""

    def __init__(self, fn, mutates, tags):
        self.fn, self.tags = fn, tags
        self.signature = inspect.signature(fn)
        self.hints = self._hints()
        self.mutates = self._mutates(mutates)

    def read(self, op_name):
        args, star = [], False
        for at, p in enumerate(self.signature.parameters.values()):
            if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                self._refuse(
                    f"parameter '{p}' is {p.kind.description}, which a schema has no word for. Make it a plain "
                    "parameter, or a list"
                )
            if p.kind is p.KEYWORD_ONLY and not star:
                star = True
                args.append("*")
            args.append(self._argument(at, p))
        text = f"{op_name or ''}({', '.join(args)}) -> {self._returned()}"
        Schema.parse(text if op_name else "f" + text)  # what cannot be read back is refused here
        return text

    def _hints(self):
        fn = plain_function(self.fn)
        # in PyTorch's words: unqualified names mean its types and those of typing
        local = {t.__name__: t for t in (Tensor, device, dtype)} | {
            n: getattr(typing, n) for n in ("Optional", "List", "Sequence", "Union", "Tuple", "Literal", "Any")
        }
        if not any(isinstance(a, str) for a in getattr(fn, "__annotations__", {}).values()):
            return typing.get_type_hints(fn)
        known = getattr(fn, "__globals__", {})
        try:
            return typing.get_type_hints(fn, known, {n: t for n, t in local.items() if n not in known})
        except NameError as error:
            self._refuse(
                f"a type hint is a string that cannot be read here ({error}). With `from __future__ import "
                "annotations` the types must be names of the module, not of a function"
            )

    def _mutates(self, mutates):
        names = [p.name for p in self.signature.parameters.values()]
        if isinstance(mutates, str):
            if mutates != "unknown":
                raise ValueError(
                    f"infer_schema(): mutates_args={mutates!r} must be a sequence of names, such as ('{mutates}',), or "
                    "the word 'unknown'"
                )
            return [n for n in names if self._type_of(n).startswith("Tensor")]
        missing = [n for n in mutates if n not in names]
        if missing:
            self._refuse(
                f"mutates_args names {', '.join(map(repr, missing))}, but the parameters are "
                f"{', '.join(names) or 'none'}"
            )
        for n in mutates:
            if not self._type_of(n).startswith("Tensor"):
                self._refuse(
                    f"mutates_args names '{n}', a {self._type_of(n)}; only tensors and lists of them are mutated"
                )
        return list(mutates)

    def _type_of(self, name):
        if name not in self.hints:
            self._refuse(f"parameter '{name}' has no type hint. Write '{name}: Tensor', or whatever it is")
        found = _spell(self.hints[name])
        if found is None:
            self._refuse(
                f"parameter '{name}' has the type hint {_show(self.hints[name])}, which has no word in a schema. "
                f"{_nearest(self.hints[name])}Known are {_KNOWN}"
            )
        return found

    def _alias(self, name):
        return f"a{list(self.signature.parameters).index(name)}!"

    def _argument(self, at, p):
        text = self._type_of(p.name)
        if p.name in self.mutates:
            text = text.replace("Tensor", f"Tensor({self._alias(p.name)})", 1)
        if p.default is p.empty:
            return f"{text} {p.name}"
        return f"{text} {p.name}={self._default(p, text)}"

    def _default(self, p, text):
        value = p.default.value if isinstance(p.default, enum.Enum) else p.default
        if isinstance(value, dtype):
            return str(value).rpartition(".")[2]
        if isinstance(value, (device, layout, memory_format)):
            return f'"{value}"' if isinstance(value, device) else str(value).rpartition(".")[2]
        if value is None and not text.endswith("?"):
            self._refuse(
                f"parameter '{p.name}' has the default None, but its type is {text}. Write '{p.name}: ... | None'"
            )
        arg = Schema.parse(f"f({text} {p.name}) -> ()").args[0]
        arg = Arg(arg.name, [getattr(arg, n) for n in Arg.__slots__[1:8]])
        arg.default, arg.has_default = tuple(value) if isinstance(value, list) else value, True
        spelled = str(arg).partition("=")[2]
        try:
            Schema.parse(f"f({text} {p.name}={spelled}) -> ()")
        except RuntimeError:
            self._refuse(f"the default {value!r} of parameter '{p.name}' ({text}) is nothing that a schema can hold")
        return spelled

    def _returned(self):
        if "return" not in self.hints:
            self._refuse("the return has no type hint. Write '-> Tensor', or '-> None' for an op that returns nothing")
        text = _spell_returns(self.hints["return"])
        if text is None:
            self._refuse(
                f"the return has the type hint {_show(self.hints['return'])}. Known are Tensor, list[Tensor], int, "
                "float, bool, str, complex, a tuple or NamedTuple of these, and None"
            )
        return self._returned_by_tag(text)

    def _returned_by_tag(self, text):
        parameters = list(self.signature.parameters.values())
        if Tag.inplace.name in self.tags:
            if not parameters or self.mutates != [parameters[0].name] or text != "Tensor":
                self._refuse(
                    "Tag.inplace is for an op that writes to its first argument, a Tensor, and to nothing else, and "
                    f"returns it: mutates_args=('{parameters[0].name if parameters else 'x'}',) and '-> Tensor'"
                )
            return f"Tensor({self._alias(self.mutates[0])})"
        if Tag.out.name not in self.tags:
            return text
        only = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        own = [f"Tensor({self._alias(n)})" for n in self.mutates]
        plain = "Tensor" if len(own) == 1 else f"({', '.join(['Tensor'] * len(own))})"
        if not own or any(n not in only for n in self.mutates) or text != plain:
            self._refuse(
                "Tag.out is for an op that writes to keyword-only tensors, named in mutates_args, and returns exactly "
                "these"
            )
        return own[0] if len(own) == 1 else f"({', '.join(own)})"

    def _refuse(self, what):
        name = getattr(self.fn, "__qualname__", repr(self.fn))
        raise ValueError(f"infer_schema({name}): {what}. Its signature is {self.signature}")


def _spell(hint):
    """The schema's word for a parameter's hint, or None."""
    inner, optional = _without_none(hint)
    text = _spell_plain(inner)
    return None if text is None else text + "?" * (optional and text != "Any")


def _without_none(hint):
    """(hint, False), or what stands beside None, and True."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    parts = typing.get_args(hint)
    rest = tuple(p for p in parts if p is not type(None))
    return (rest[0] if len(rest) == 1 else typing.Union[rest]), len(rest) < len(parts)  # noqa: UP007  (a tuple)


def _spell_plain(hint):
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and origin is None:
        return _spell_class(hint)
    if hint is typing.Any:
        return "Any"
    if origin in (typing.Union, types.UnionType):
        return "Scalar" if set(parts) <= _NUMBERS else None
    if origin is typing.Annotated:
        return _spell(parts[0])
    if origin is typing.Literal:
        kinds = {type(value) for value in parts}
        return _BASES.get(kinds.pop()) if len(kinds) == 1 else None
    if origin is dict and len(parts) == 2:
        key, value = map(_spell, parts)
        return f"Dict({key}, {value})" if key and value and "Dict" not in value else None
    if origin in _LISTS and parts:
        return _spell_list(origin, parts)
    return None


def _spell_class(hint):
    if issubclass(hint, Tensor):
        return "Tensor"
    if issubclass(hint, enum.Enum):
        return "str" if issubclass(hint, str) else "SymInt" if issubclass(hint, int) else None
    return _BASES.get(hint)


def _spell_list(origin, parts):
    if origin is tuple and parts[-1] is not Ellipsis:
        if len(set(parts)) > 1:
            return None
        element = _spell(parts[0])
        return None if element is None or "[" in element or "(" in element else f"{element}[{len(parts)}]"
    element = _spell(parts[0])
    if element is None or "[" in element or "(" in element:
        return None
    return f"{element}[]"


def _spell_returns(hint):
    if hint is type(None) or hint is None:
        return "()"
    fields = getattr(hint, "_fields", None)
    if fields is not None and isinstance(hint, type):
        hints = typing.get_type_hints(hint)
        row = [(_spell(hints[n]), n) for n in fields if n in hints]
        return (
            None if len(row) < len(fields) or any(t is None for t, _ in row) else f"({', '.join(map(' '.join, row))})"
        )
    if typing.get_origin(hint) is tuple and typing.get_args(hint)[-1:] != (Ellipsis,):
        row = [_spell(p) for p in typing.get_args(hint)]
        if not row or None in row:
            return None
        return row[0] if len(row) == 1 else f"({', '.join(row)})"
    return _spell(hint)


def _show(hint):
    return hint.__name__ if isinstance(hint, type) and typing.get_origin(hint) is None else str(hint)


def _nearest(hint):
    """A sentence on what to write in the place of some hints."""
    origin = typing.get_origin(hint)
    if hint in (list, tuple, dict, collections.abc.Sequence):
        return f"Say what is in it: {hint.__name__}[{'str, Tensor' if hint is dict else 'int'}]. "
    if origin is tuple:
        return "Write a list of one type, or one parameter for each. "
    if origin in (list, collections.abc.Sequence):
        return "Lists do not nest. "
    if getattr(hint, "__module__", "").startswith("numpy"):
        return "Arrays come as Tensor; use x.numpy() inside. "
    if callable(hint) and not isinstance(hint, type):
        return "Functions cannot be passed to an op. "
    return ""
