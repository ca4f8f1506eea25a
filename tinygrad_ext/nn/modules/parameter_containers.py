"""Modules that hold parameters. A tensor that is put in becomes a Parameter; other values stay as they are."""

import operator
from collections import OrderedDict
from collections.abc import Iterable

from tinygrad_ext.core.call.boundary import boundary

from ...core.data.tensor import Tensor
from ..module import Module
from ..parameter import Parameter
from .container import pairs_of

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value):
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _lines(named, type_of):
    """Return one line per entry for the printed form."""
    lines = []
    for name, value in named:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            size = "x".join(str(n) for n in value.size())
            lines.append(f"  ({name}): {kind} containing: [{type_of(value)} of size {size}]")
        else:
            lines.append(f"  ({name}): Object of type: {type(value).__name__}")
    return "\n".join(lines)


@boundary
class ParameterList(Module):
    """A list of parameters that registers each of them.

    Args:
        values: an iterable of tensors or other values.
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name(self, index):
        place = operator.index(index)
        if not -self._size <= place < self._size:
            raise IndexError(f"index {place} is out of range")
        return str(place % self._size)

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(self._size))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(self[i] for i in range(*index.indices(self._size)))
        return getattr(self, self._name(index))

    def __setitem__(self, index, value):
        setattr(self, self._name(index), _as_parameter(value))

    def append(self, value):
        """Add a value at the end and return this list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Add all values of an iterable at the end and return this list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values):
        return self.extend(values)

    def extra_repr(self):
        return _lines(enumerate(self), lambda tensor: tensor.dtype)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


@boundary
class ParameterDict(Module):
    """A dict from name to parameter that registers each of them, in the order of insertion.

    Args:
        parameters: a mapping (a plain dict is sorted by key) or an iterable of pairs.
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        return getattr(self, self._name(key))

    def __setitem__(self, key, value):
        name, value = self._name(key), _as_parameter(value)
        self._keys[key] = None
        if name == "training" and isinstance(value, Parameter):  # the flag is hidden from then on, as in PyTorch
            self.__dict__.pop(name, None)
            self._parameters[name] = value
        else:
            setattr(self, name, value)

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._name(key))

    def _name(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'); use str(key)"
            )
        return key

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def keys(self):
        """Return the names."""
        return self._keys.keys()

    def items(self):
        """Iterate over pairs of name and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """Iterate over the values."""
        return (self[key] for key in self._keys)

    def get(self, key, default=None):
        """Return the value called ``key``, else ``default``."""
        if key in self:
            return self[key]
        return default

    def setdefault(self, key, default=None):
        """Return the value called ``key``, which is set to ``default`` if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key):
        """Remove and return the value called ``key``."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Remove and return the pair that was added last."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self):
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def copy(self):
        """Return a new ParameterDict with the same parameters."""
        return type(self)(OrderedDict(self.items()))

    def fromkeys(self, keys, default=None):
        """Return a new ParameterDict with ``default`` under each of ``keys``."""
        return type(self)((key, default) for key in keys)

    def update(self, parameters):
        """Add or replace the values of a mapping or of an iterable of pairs."""
        pairs = pairs_of(parameters, "ParametersDict")
        if isinstance(parameters, dict) and not isinstance(parameters, OrderedDict):
            pairs.sort(key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def __or__(self, other):
        return self.copy().__ior__(other)

    def __ror__(self, other):
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other):
        self.update(other)
        return self

    def extra_repr(self):
        return _lines(self.items(), lambda tensor: tensor.type())

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")
