"""Nested plain values, tensors and arrays as JSON, and back.

None, booleans, strings, integers and finite floats stand for themselves, a list for a list. Everything else is an
object of one entry, its key the kind: {"tuple": [...]}, {"dict": [[key, value], ...]}, {"tensor": number of a row}.
"""

import json
import math
import sys
from collections import OrderedDict

from tinygrad_ext.archive import sparse_parts
from tinygrad_ext.archive.budget import MOST_OBJECTS
from tinygrad_ext.core.data.dtype import Size, by_name, device, dtype
from tinygrad_ext.core.data.tensor import Parameter, Tensor

DEEPEST = 300  # levels of nesting; the JSON reader recurses


def read_json(text, budget):
    """The value of a JSON text. What it may hold is charged before it is read: that is done in C, in one go."""
    budget.spend(text.count(",") + text.count("[") + text.count("{"))
    return json.loads(text, parse_int=_integer, object_pairs_hook=_unique)


def _unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a name twice among {sorted(name for name, _ in pairs)[:10]}")
    return found


def _integer(digits):
    if len(digits) > 4300:  # as Python's own limit, which the oldest versions lack
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


class Encoder:
    """Turns an object into JSON values; tensors (each once) and arrays are collected as (path, tensor)."""

    def __init__(self):
        self.tensors, self.arrays = [], []
        self._count = 0
        self._rows, self._sparse = {}, {}
        self._told = set()  # tensors whose attributes stand in the file
        self._open = set()

    def encode(self, obj, path=()):
        """The JSON value of obj. TypeError, ValueError for what cannot be saved, with its place."""
        kind = type(obj)
        self._count += 1
        if self._count > MOST_OBJECTS:
            raise ValueError(
                f"save: the object holds more than {MOST_OBJECTS:,} values, counting what is shared each time that it "
                "is met; numbers in such a quantity belong in tensors"
            )
        if obj is None or kind in (bool, int, str):
            return obj
        if kind is float:
            return obj if math.isfinite(obj) else {"float": str(obj)}
        if kind in _PLAIN:
            return {kind.__name__: _PLAIN[kind](obj)}
        if isinstance(obj, Tensor):
            return self._tensor(obj, path)
        if kind in (list, tuple, dict, OrderedDict):
            return self._container(obj, kind, path)
        if kind.__module__ == "numpy" and kind.__name__ != "ndarray" and getattr(obj, "ndim", 1) == 0:
            return self.encode(obj.item(), path)
        if "numpy" in sys.modules and kind is sys.modules["numpy"].ndarray:
            self.arrays.append((path, obj))
            return {"ndarray": len(self.arrays) - 1}
        raise TypeError(
            f"save: {place(path)} is a {kind.__module__}.{kind.__qualname__}, which cannot be saved. "
            f"Tensors, arrays, numbers, str, "
            "None, Size, dtypes and devices can, in dicts, lists and tuples: save an object's "
            "state_dict() and not the object."
        )

    def _tensor(self, t, path):
        if id(t) in self._open:
            raise ValueError(f"save: {place(path)} is a tensor among its own attributes; a file cannot say that")
        if id(t) in self._sparse:
            return {"same": self._sparse[id(t)]}
        found, told = sparse_parts.parts(t), sparse_parts.attributes(t)
        if found:
            self._sparse[id(t)] = len(self._sparse)
            out = {"sparse": [str(found[0]), *(self.encode(part, path) for part in found[1])]}
        else:
            out = {"tensor": self._row(t, path)}
        if told and id(t) not in self._told:
            self._told.add(id(t))
            self._open.add(id(t))
            out["attributes"] = self.encode(told, (*path, "__dict__"))
            self._open.discard(id(t))
        return out

    def _row(self, t, path):
        if type(t) not in (Tensor, Parameter):
            raise TypeError(
                f"save: {place(path)} is a {type(t).__qualname__}, a subclass of Tensor, which a file "
                f"cannot name: save "
                "t.as_subclass(Tensor)"
            )
        row = self._rows.get(id(t))
        if row is None:
            row = self._rows[id(t)] = len(self.tensors)
            self.tensors.append((path, t))
        return row

    def _container(self, obj, kind, path):
        if id(obj) in self._open:
            raise ValueError(f"save: {place(path)} contains itself; a file cannot say that")
        if len(path) >= DEEPEST:
            raise ValueError(f"save: {place(path[:4])} is nested more than {DEEPEST} levels deep")
        self._open.add(id(obj))
        if kind in (list, tuple):
            out = [self.encode(x, (*path, i)) for i, x in enumerate(obj)]
            out = out if kind is list else {"tuple": out}
        else:
            out = {kind.__name__: [[self._key(k, path), self.encode(v, (*path, k))] for k, v in obj.items()]}
            if getattr(obj, "__dict__", None):  # a state_dict's _metadata
                out["attributes"] = self.encode(dict(vars(obj)), (*path, "__dict__"))
        self._open.discard(id(obj))
        return out

    def _key(self, key, path):
        if isinstance(key, Tensor):
            raise TypeError(
                f"save: a key of {place(path)} is a Tensor, which does not compare as keys do after loading"
            )
        return self.encode(key, (*path, key))


_PLAIN = {complex: lambda v: [str(v.real), str(v.imag)], Size: list, dtype: lambda v: v.name, device: str}


def place(path):
    """Where in the object that is saved something stands, for messages."""
    return "state" + "".join(f"[{p!r}]" for p in path)


class Decoder:
    """Turns JSON values back; `tensors` and `arrays` are those of the tables. ValueError for what no Encoder wrote."""

    def __init__(self, tensors, arrays, budget):
        self.tensors, self.arrays, self._budget = tensors, arrays, budget
        self._sparse_ones = []

    def decode(self, value):
        """The object of a JSON value."""
        if isinstance(value, list):
            return [self.decode(v) for v in value]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value), None)
        made = getattr(self, f"_{kind}", None) if kind in _KINDS else None
        if made is None:
            raise ValueError(f"'{kind}' is no kind of value")
        out = made(value[kind])
        if kind == "sparse":
            self._sparse_ones.append(out)
        if "attributes" in value:
            if kind not in ("OrderedDict", "tensor", "sparse"):
                raise ValueError(f"a {kind} has no attributes")
            self.set_attributes(out, self.decode(value["attributes"]))
        return out

    def set_attributes(self, out, found):
        """Give a tensor or OrderedDict what it had of its own."""
        sparse_parts.with_attributes(out, found)

    def _tensor(self, row):
        if not isinstance(row, int) or not 0 <= row < len(self.tensors):
            raise ValueError(f"there is no tensor {row!r}")
        return self.tensors[row]

    def _sparse(self, parts):
        name, *given = (self.decode(v) for v in parts)
        self._budget.spend(sparse_parts.cost(name, given))
        return sparse_parts.made(sparse_parts.LAYOUTS[name], given)

    def _same(self, number):
        if type(number) is not int or not 0 <= number < len(self._sparse_ones):
            raise ValueError(f"there is no sparse tensor {number!r} before")
        return self._sparse_ones[number]

    def _ndarray(self, row):
        if not isinstance(row, int) or not 0 <= row < len(self.arrays):
            raise ValueError(f"there is no array {row!r}")
        return self.arrays[row]

    def _tuple(self, items):
        return tuple(self.decode(v) for v in items)

    def _dict(self, pairs):
        return {self.decode(k): self.decode(v) for k, v in pairs}

    def _OrderedDict(self, pairs):
        return OrderedDict((self.decode(k), self.decode(v)) for k, v in pairs)

    def _Size(self, sizes):
        return Size([int(n) for n in sizes])

    def _dtype(self, name):
        return by_name[name]

    def _device(self, name):
        return device(name)

    def _float(self, text):
        return float(text)

    def _complex(self, parts):
        return complex(float(parts[0]), float(parts[1]))


_KINDS = ("tensor", "sparse", "same", "ndarray", "tuple", "dict", "OrderedDict", "Size", "dtype", "device")
_KINDS += ("float", "complex")
