"""Objects of classes in the state of a program, as rows that a file can hold, and back.

Everything that an object leads to stands in one table, so what is shared, or leads back to itself, is so after loading:

    ["list", [ref, ...]]                        ["tuple", [ref, ...]]
    ["dict", [[ref, ref], ...]]                 ["named", word, "fields", [ref, ...]]
    ["object", word, [[attribute, ref], ...]]   ["enum", word, name, value]

A ref is a plain value or a tensor itself, or the tuple (row,). A tuple stands behind the tuples that it holds. Loading
calls nothing of a class: an object gets its attributes, where the class is not there it is a plain one.
"""

import enum

from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.tensor import Tensor

from .primitives.objects import Member, made_member, made_named, plain_object, word_of

NAME = "$objects"  # of the state that holds the table; no attribute has such a name
_SCALARS = (bool, int, float, complex, str, dtypes.Size, dtypes.dtype, dtypes.device)
_SHELLS = ("list", "dict", "object")


def told(state):
    """The state for a file: values that hold objects are told in one table, under `NAME`."""
    table, refs, plain = _Table(), {}, {}
    for name, value in state.items():
        if _holds_objects(value):
            refs[name] = table.ref(value, f"state['{name}']")
        else:
            plain[name] = value
    table.finish()
    return {**plain, NAME: [table.rows, refs]} if refs else plain


def _is_plain(value):
    return value is None or type(value) in _SCALARS or isinstance(value, Tensor)


def _holds_objects(value):
    """Whether a list, tuple or dict, at any depth, or the value itself, is more than a file of plain values takes."""
    seen, waiting = set(), [value]
    while waiting:
        each = waiting.pop()
        if _is_plain(each) or id(each) in seen:
            continue
        seen.add(id(each))
        if type(each) in (list, tuple):
            waiting += each
        elif type(each) is dict:
            waiting += [*each, *each.values()]
        else:
            return isinstance(each, enum.Enum) or hasattr(each, "_fields") or hasattr(each, "__dict__")
    return False


class _Table:
    def __init__(self):
        self.rows, self.at, self.kept, self.waiting = [], {}, [], []

    def ref(self, value, where):
        """A ref of a value; what a list, dict or object holds is told later."""
        if _is_plain(value):
            return value
        at = self.at.get(id(value))
        if at is None:
            if isinstance(value, enum.Enum):
                row = ["enum", word_of(type(value)), value.name, value.value if _is_plain(value.value) else None]
            elif isinstance(value, Member):
                row = ["enum", *value]
            elif hasattr(value, "_fields"):
                inner = self._refs(value, where)
                row = ["named", word_of(type(value)), " ".join(value._fields), inner]
            elif type(value) is tuple:
                row = ["tuple", self._refs(value, where)]
            else:
                row = self._shell(value, where)
            at = self.at[id(value)] = len(self.rows)
            self.kept.append(value)
            self.rows.append(row)
        return (at,)

    def _refs(self, values, where):
        return [self.ref(v, f"{where}[{i}]") for i, v in enumerate(values)]

    def _shell(self, value, where):
        kind = type(value)
        if kind is list or kind is dict:
            row = [kind.__name__, []]
        elif hasattr(value, "__dict__") and not hasattr(kind, "__slots__"):
            row = ["object", word_of(kind), []]
        else:
            raise TypeError(
                f"save: {where} is a {kind.__module__}.{kind.__qualname__}; a file holds objects by their attributes, "
                "which this has not"
            )
        self.waiting.append((row, value, where))
        return row

    def finish(self):
        """Tell what the lists, dicts and objects hold."""
        while self.waiting:
            row, value, where = self.waiting.pop()
            if row[0] == "list":
                row[1] += self._refs(value, where)
            elif row[0] == "dict":
                row[1] += [[self.ref(k, where), self.ref(v, f"{where}[{k!r}]")] for k, v in value.items()]
            else:
                row[2] += [[name, self.ref(v, f"{where}.{name}")] for name, v in vars(value).items()]


# ---- back ----------------------------------------------------------------------------------------------------------


def made(state):
    """The state of a file with its objects. ValueError, TypeError for a table that `told` did not write."""
    if NAME not in state:
        return state
    state = dict(state)
    rows, refs = state.pop(NAME)
    if type(rows) is not list or type(refs) is not dict or not all(map(_is_row, rows)):
        raise ValueError("its objects are no table")
    found = _Found(rows)
    for name, ref in refs.items():
        if name in state:
            raise ValueError(f"it has the state '{name[:100]}' twice")
        state[name] = found.value(ref)
    return state


_FORMS = {
    "list": [str, list],
    "tuple": [str, list],
    "dict": [str, list],
    "object": [str, str, list],
    "named": [str, str, str, list],
}


def _is_row(row):
    if type(row) is not list or not row:
        return False
    if row[0] == "enum":
        return len(row) == 4 and type(row[1]) is type(row[2]) is str and (_is_plain(row[3]))
    return list(map(type, row)) == _FORMS.get(row[0])


# what Python computes itself: loading asks no class of the user for a hash
_HASHES = [kind.__hash__ for kind in (int, float, complex, str, tuple, enum.Enum)]


class _Found:
    """The values of a table."""

    def __init__(self, rows):
        shells = {"list": lambda row: [], "dict": lambda row: {}, "object": lambda row: plain_object(row[1])}
        self.values = {i: shells[row[0]](row) for i, row in enumerate(rows) if row[0] in _SHELLS}
        for i, row in enumerate(rows):
            if row[0] == "enum":
                self.values[i] = made_member(*row[1:3], *([] if row[3] is None else [row[3]]))
            elif row[0] == "tuple":
                self.values[i] = tuple(map(self.value, row[1]))
            elif row[0] == "named":
                value = self.values[i] = made_named(row[1], row[2], *map(self.value, row[3]))
                if row[2] != " ".join(value._fields) or len(value) != len(value._fields):
                    raise ValueError(f"the fields of {row[1][:100]} are others")
        for i, row in enumerate(rows):
            self._fill(self.values[i], row)

    def value(self, ref):
        if type(ref) is not tuple:
            if not _is_plain(ref):
                raise ValueError("an object holds what is no plain value")
            return ref
        (at,) = ref
        return self.values[at]

    def _fill(self, value, row):
        if row[0] == "list":
            value.extend(map(self.value, row[1]))
        elif row[0] == "dict":
            for key, item in row[1]:
                key = self.value(key)
                if type(key).__hash__ not in _HASHES:
                    raise ValueError("a key of a dict is no number, text or member of an enum")
                value[key] = self.value(item)
        elif row[0] == "object":
            for name, item in row[2]:
                if type(name) is not str or name.startswith("__"):
                    raise ValueError("an object has an attribute of Python's own")
                vars(value)[name] = self.value(item)


def named(state):
    """The state as `info` shows it: the word of its class, or its kind, for each object."""
    if NAME not in state:
        return state
    rows, refs = state[NAME]
    words = {
        name: rows[ref[0]][1] if rows[ref[0]][0] in ("object", "named", "enum") else rows[ref[0]][0]
        for name, ref in refs.items()
    }
    return {**{name: value for name, value in state.items() if name != NAME}, **words}
