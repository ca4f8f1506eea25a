"""Lists and dicts that keep their types: what `jit.script([1, 2])` and `jit.script({"a": 1})` give.

They are Python's own, so compiled programs change the one that they are given, as they change any list. Only what
Python writes to them is checked here.
"""

from tinygrad_ext.graph.primitives.objects import fits
from tinygrad_ext.graph.types import Type

from .types import TYPING, type_from, type_of_python

__all__ = ["ScriptDict", "ScriptList", "typed"]


class ScriptList(list):
    """A list of one type, which Python and compiled programs share. Attributes: type."""

    __slots__ = ("type",)

    def __init__(self, values=(), type=None):
        super().__init__(values)
        self.type = _type_of(self, type)

    def plain(self):
        """A list of Python's own, as archives hold it."""
        return list(self)

    def _item(self, value):
        return _checked(value, self.type.args[0], "an item of a list")

    def _items(self, values):
        return [self._item(value) for value in values]

    def __setitem__(self, index, value):
        super().__setitem__(index, self._items(value) if isinstance(index, slice) else self._item(value))

    def __contains__(self, value):
        return super().__contains__(self._item(value))

    def __iadd__(self, values):
        self.extend(values)
        return self

    def append(self, value):
        super().append(self._item(value))

    def count(self, value):
        return super().count(self._item(value))

    def extend(self, values):
        super().extend(self._items(values))

    def index(self, value, *places):
        return super().index(self._item(value), *places)

    def insert(self, index, value):
        super().insert(index, self._item(value))

    def remove(self, value):
        super().remove(self._item(value))

    def __reduce__(self):
        return ScriptList, (list(self), str(self.type))


class ScriptDict(dict):
    """A dict of one type, which Python and compiled programs share. Attributes: type."""

    __slots__ = ("type",)

    def __init__(self, values=(), type=None):
        super().__init__(values)
        self.type = _type_of(self, type)

    def plain(self):
        """A dict of Python's own, as archives hold it."""
        return dict(self)

    def _key(self, key):
        return _checked(key, self.type.args[0], "a key of a dict")

    def _value(self, value):
        return _checked(value, self.type.args[1], "a value of a dict")

    def __setitem__(self, key, value):
        super().__setitem__(self._key(key), self._value(value))

    def __delitem__(self, key):
        super().__delitem__(self._key(key))

    def __contains__(self, key):
        if not fits(key, self.type.args[0]):
            raise KeyError(f"{key!r}: keys of this dict are {self.type.args[0]}")
        return super().__contains__(key)

    def __ior__(self, values):
        self.update(values)
        return self

    def setdefault(self, key, default=None):
        return super().setdefault(self._key(key), self._value(default))

    def update(self, values=(), **more):
        for key, value in dict(values, **more).items():
            self[key] = value

    def __reduce__(self):
        return ScriptDict, (dict(self), str(self.type))


def _checked(value, type, what):
    if not fits(value, type):
        raise TypeError(f"{what} of type {type} was expected, not {value!r:.100} of type {value.__class__.__name__}")
    return value


def _type_of(values, told):
    if isinstance(told, str):
        return Type.parse(told)
    found = type_of_python(values) if told is None else type_from(told, lambda text: eval(text, dict(TYPING)))
    if found is None or not fits(values, found):
        raise RuntimeError(
            f"jit.script(): Could not infer type of the items of {values!r:.100}; a list and a dict hold values of "
            "one type"
            if found is None
            else f"jit.script(): {values!r:.100} is no {found}"
        )
    return found


def typed(values, told=None):
    """The list or dict of one type with these values."""
    if isinstance(values, (ScriptList, ScriptDict)):
        return values
    return (ScriptList if isinstance(values, list) else ScriptDict)(values, told)
