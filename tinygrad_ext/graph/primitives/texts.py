"""Strings. The methods of str stand here under their own names: `prim::str.upper`."""

import re
import string
import warnings

from .table import primitive

# method -> (types of its required and optional arguments, type of its result)
METHODS = {
    **{name: ("", "", "str") for name in ("upper", "lower", "capitalize", "title", "swapcase", "casefold")},
    **{
        name: ("", "", "bool")
        for name in (
            "isalnum",
            "isalpha",
            "isascii",
            "isdecimal",
            "isdigit",
            "isidentifier",
            "islower",
            "isnumeric",
            "isprintable",
            "isspace",
            "istitle",
            "isupper",
        )
    },
    **{name: ("", "str", "str") for name in ("strip", "lstrip", "rstrip")},
    **{name: ("", "str int", "List[str]") for name in ("split", "rsplit")},
    "splitlines": ("", "bool", "List[str]"),
    **{name: ("str", "int int", "int") for name in ("find", "rfind", "index", "rindex", "count")},
    **{name: ("str", "int int", "bool") for name in ("startswith", "endswith")},
    "replace": ("str str", "int", "str"),
    **{name: ("int", "str", "str") for name in ("center", "ljust", "rjust")},
    "zfill": ("int", "", "str"),
    "expandtabs": ("", "int", "str"),
    **{name: ("str", "", "Tuple[str, str, str]") for name in ("partition", "rpartition")},
    **{name: ("str", "", "str") for name in ("removeprefix", "removesuffix")},
    "join": ("List[str]", "", "str"),
}
for _name, (_required, _optional, _result) in METHODS.items():
    primitive(f"str.{_name}", "...", None, getattr(str, _name))


def _format(text, *values):
    """`text.format(*values)`. A graph may come from a file: its texts reach no attributes of Python's own."""
    if "__" in text:
        for _, field, spec, _ in string.Formatter().parse(text):
            if "__" in (field or "") or "__" in (spec or ""):
                raise AttributeError(f"a graph has no access to the attributes in '{{{field}}}'")
    return text.format(*values)


_WORDS = {
    "not enough arguments": "Too few arguments for format string",
    "not all arguments converted": "Too many arguments for format string",
    "incomplete format": "Incomplete format specifier",
    "unsupported format": "The specifier is not supported in TorchScript format strings",
}


_SPECIFIER = re.compile(r"%[^a-zA-Z%]*([a-zA-Z%])")


def _misfit(text, values):
    """Which specifier of a text got a text in the place of a number."""
    kinds = [k for k in _SPECIFIER.findall(text) if k != "%"]
    for kind, value in zip(kinds, values):
        if type(value) is str and kind not in "sra" and not (kind == "c" and len(value) == 1):
            return f"%{kind} requires {'an int or char' if kind == 'c' else 'a number'} for formatting, but got String"
    return ""


def _percent(text, *values):
    """`text % values`. What Python refuses is told in TorchScript's words too."""
    try:
        return text % values
    except (TypeError, ValueError) as error:
        said = str(error)
        words = next((more for part, more in _WORDS.items() if part in said), "") or _misfit(text, values)
        raise type(error)(f"{words}: {said}" if words else said) from None


primitive("format", "str ...", "str", _format)
primitive("percent", "str ...", "str", _percent)
primitive("ord", "str", "int", ord)
primitive("chr", "int", "str", chr)
primitive("hex", "int", "str", hex)
primitive("oct", "int", "str", oct)
primitive("bin", "int", "str", bin)
primitive("print", "...", "", print, effect="order")
_warned = {}  # file -> the warnings that were shown of it, as Python keeps them for a module


def _warn(text, where=""):
    """A warning of the program's line, "file.py:12 in f", where that is known."""
    file, _, line = where.partition(" in ")[0].rpartition(":")
    if not line.isdigit():
        warnings.warn(text, stacklevel=2)
        return
    warnings.warn_explicit(text, UserWarning, file, int(line), registry=_warned.setdefault(file, {}))


primitive("warn", "str ...", "", _warn, effect="order")
