"""Defaults in operator schemas: from the text after "=" to the Python value, and back.

Each value is checked against the type of its argument where it is declared, not where it is first
used: ``int n=None`` and ``float x=True`` are refused. No pattern is compiled at import for it: a literal
is a word, a quoted string, or what `int`, `float` or `complex` accept.
"""

from tinygrad_ext.core.data.table import NAMED

_UNESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "\\": "\\", '"': '"', "'": "'"}
_ESCAPED = str.maketrans({char: f"\\{letter}" for letter, char in _UNESCAPED.items() if char != "'"})
_WORDS = {"None": None, "True": True, "False": False}
# What a default may be, by type: the Python types it may have, and the one it is stored as.
_INT, _FLOAT = (int, bool), (int, float)
_DEFAULTS = {
    "int": (_INT, None),
    "SymInt": (_INT, None),
    "float": (_FLOAT, float),
    "bool": ((bool,), None),
    "complex": ((int, float, complex), complex),
    "Scalar": ((bool, int, float, complex), None),
    "str": ((str,), None),
    "Device": ((str,), None),
    # enumerations are written as their number, as PyTorch prints them
    "ScalarType": ((int,), None),
    "Layout": ((int,), None),
    "MemoryFormat": ((int,), None),
    "Any": ((bool, int, float, complex, str, type(None)), None),
}
# enumerations may be spelled by name too; the number is PyTorch's
_NUMBERS = {
    "ScalarType": {name: row.number for row in NAMED for name in (row.name, *row.aliases)},
    "Layout": {"strided": 0},
    "MemoryFormat": {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3},
}


class Fault(Exception):
    """Carries (message, position, length) up to `Schema.parse`, which has the whole line."""


def read_default(arg, literal, pos):
    """Return the value of a default as arg's type stores it."""
    if literal == "None":
        if arg.optional or arg.type == "Any":
            return None
        raise Fault(
            f"argument '{arg.name}' has the default None, but {arg.spelling} is not optional. "
            f"Write '{arg.spelling}? {arg.name}=None'",
            pos,
            len(literal),
        )
    if literal in _NUMBERS.get(arg.type, ()) and not arg.is_list:
        return _NUMBERS[arg.type][literal]
    if not arg.is_list:
        return _fit(arg, _value(literal, pos), literal, pos)
    if "'" in literal or '"' in literal:
        raise Fault(
            f"the default of the list {arg.spelling} cannot hold strings. Write {arg.spelling}? {arg.name}=None, "
            "and put the strings in within the op",
            pos,
            len(literal),
        )
    if literal[0] != "[":  # int[2] x=0 means [0, 0]
        if arg.size is None:
            raise Fault(f"the default of {arg.spelling} must be a list. Write [{literal}]", pos, len(literal))
        return (_fit(arg, _value(literal, pos), literal, pos),) * arg.size
    # Other lengths than size are PyTorch's way to say "as some other argument": int[2] stride=[]
    inside = literal[1:-1].strip()
    parts = inside.split(",") if inside else []
    return tuple(_fit(arg, _value(part.strip(), pos, literal), literal, pos) for part in parts)


def _value(literal, pos, whole=None):
    """Return the Python value of one literal, which is a part of the text whole at pos."""
    if literal in _WORDS:
        return _WORDS[literal]
    if literal[:1] in ("'", '"'):
        return _unquote(literal, pos)
    value = _number("".join(literal.split()))
    if value is None:
        raise Fault(
            f"default {literal!r} is no value that a schema can hold. Write a number of 64 bits, "
            "a quoted string, True, False, None or a list of numbers",
            pos,
            len(whole or literal),
        )
    return value


def _unquote(literal, pos):
    if "\\" not in literal:
        return literal[1:-1]

    import re

    def char(match):
        if match[1] not in _UNESCAPED:
            raise Fault(f"unknown escape {match[0]} in a string. Write two backslashes for one", pos, len(literal))
        return _UNESCAPED[match[1]]

    return re.sub(r"\\(.)", char, literal[1:-1])


def _number(text):
    """Return the number that text spells; None if it spells none or one that does not fit 64 bits."""
    first = text[1:2] if text[:1] == "-" else text[:1]
    if not (first.isdigit() or first == ".") or "_" in text or not text.isascii():
        return None  # int and float would take "1_000", "inf" and digits of any script
    for kind in (int, float, complex):
        try:
            value = kind(text)
        except ValueError:
            continue
        if kind is int:
            return value if -(2**63) <= value < 2**63 else None
        return value if value - value == 0 else None  # an infinity is what overflow leaves
    return None


def _fit(arg, value, literal, pos):
    """Return value as arg's base type stores it, or refuse it."""
    allowed, store = _DEFAULTS.get(arg.type, ((), None))
    if type(value) not in allowed:
        raise Fault(
            f"argument '{arg.name}' of type {arg.spelling} cannot have the default {literal}.{_remedy(arg, allowed)}",
            pos,
            len(literal),
        )
    return store(value) if store else value


def _remedy(arg, allowed):
    if allowed:
        return f" Write a value of type {' or '.join(kind.__name__ for kind in allowed)}"
    return f" Leave it out, or write '{arg.spelling.rstrip('?')}? {arg.name}=None'"


def write_default(arg):
    """Return the text of arg's default as a schema spells it."""
    value = arg.default
    if not isinstance(value, tuple):
        return _write_value(value)
    texts = [_write_value(item) for item in value]
    if arg.type == "int" and len(texts) == arg.size and len(set(texts)) == 1 < len(texts):
        return texts[0]  # as PyTorch does, and for int alone
    return f"[{', '.join(texts)}]"


def _write_value(value):
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPED)}"'
    return repr(value).strip("()")  # complex numbers come in parentheses


def name_of_number(kind, number):
    """The name of an enumeration's number: "float32" for 6 of a ScalarType."""
    return next((name for name, known in _NUMBERS[kind].items() if known == number), None)
