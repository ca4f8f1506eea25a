"""Modules that hold other modules."""

import operator
import warnings
from collections.abc import Iterable, Mapping

from tinygrad_ext.core.call.boundary import boundary

from ..module import Module, described

__all__ = ["Container", "ModuleDict", "ModuleList", "Sequential"]


@boundary
class Container(Module):
    """Module with the children given as keywords, from times when Module had none; gives a FutureWarning."""

    def __init__(self, **kwargs):
        warnings.warn(
            "nn.Container is deprecated: nn.Module does all it did; subclass nn.Module instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


@boundary
class _ModuleSequence(Module):
    """List behaviour over children that are named "0", "1", ..."""

    def _place(self, index):
        """Return ``index`` as a place from 0."""
        size = len(self._modules)
        place = operator.index(index)
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of range")
        return place + size if place < 0 else place

    def _renumber(self, modules):
        self._modules = {str(place): module for place, module in enumerate(modules)}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        return list(self._modules.values())[self._place(index)]

    def __setitem__(self, index, module):
        name = list(self._modules)[self._place(index)]
        setattr(self, name, module)

    def __delitem__(self, index):
        modules = list(self._modules.values())
        del modules[index if isinstance(index, slice) else self._place(index)]
        self._renumber(modules)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module):
        """Add a module at the end and return this container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Put a module before place ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, got {type(module)}")
        size = len(self._modules)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key):
        """Remove and return the module at place ``key``."""
        module = self[key]
        del self[key]
        return module


@boundary
class Sequential(_ModuleSequence):
    """Call modules one after the other, each with the result of the one before.

    Args:
        *args: modules, or one ordered dict from name to module.

    Supports index, slice, ``insert``, ``append``, ``extend``, ``pop``, ``+`` and ``*``.

        >>> import tinygrad_ext as tg
        >>> model = tg.nn.Sequential(tg.nn.Linear(2, 3), tg.nn.ReLU())
        >>> model(tg.zeros(4, 2)).shape
        torch.Size([4, 3])
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            named = args[0].items()
        else:
            named = ((str(place), module) for place, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index):
        if isinstance(index, slice):
            # A slice keeps the names, and so the keys of a state dict.
            return type(self)(dict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def extend(self, sequential):
        """Add all modules of an iterable at the end and return this container."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other):
        return type(self)(*self, *self._same_kind(other))

    def __iadd__(self, other):
        return self.extend(list(self._same_kind(other)))

    def _same_kind(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return other

    def __mul__(self, count):
        return type(self)(*(list(self) * self._times(count)))

    __rmul__ = __mul__

    def __imul__(self, count):
        return self.extend(list(self) * (self._times(count) - 1))

    def _times(self, count):
        if not isinstance(count, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(count)}")
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return count


@boundary
class ModuleList(_ModuleSequence):
    """A list of modules that registers each of them. It has no ``forward``.

    Args:
        modules: an iterable of modules.
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return super().__getitem__(index)

    def extend(self, modules):
        """Add all modules of an iterable at the end and return this list."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList([*self, *other])

    def __repr__(self):
        return described(self, _grouped([repr(module) for module in self]))


def _grouped(texts):
    """Return one line per run of equal texts: ``(0-2): 3 x Linear(...)``."""
    runs = []
    for place, text in enumerate(texts):
        if runs and runs[-1][2] == text:
            runs[-1][1] = place
        else:
            runs.append([place, place, text])
    return [
        f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
        for first, last, text in runs
    ]


@boundary
class ModuleDict(Module):
    """A dict from name to module that registers each of them. It has no ``forward``.

    Args:
        modules: a mapping, or an iterable of pairs.
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key):
        """Remove and return the module called ``key``."""
        return self._modules.pop(key)

    def keys(self):
        """Return the names."""
        return self._modules.keys()

    def items(self):
        """Return pairs of name and module."""
        return self._modules.items()

    def values(self):
        """Return the modules."""
        return self._modules.values()

    def update(self, modules):
        """Add or replace the modules of a mapping or of an iterable of pairs."""
        for key, module in pairs_of(modules, "ModuleDict"):
            self[key] = module


def pairs_of(entries, owner):
    """Return the key/value pairs of a mapping or an iterable of pairs; TypeError or ValueError otherwise."""
    if not isinstance(entries, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got {type(entries).__name__}"
        )
    if isinstance(entries, Mapping) or hasattr(entries, "items"):
        return list(entries.items())
    pairs = list(entries)
    for place, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{owner} update sequence element #{place} should be Iterable; is {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{place} has length {len(pair)}; 2 is required")
    return pairs
