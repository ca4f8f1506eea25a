"""The dicts in which a module keeps its parts.

A small model spends a noticeable share of its time looking up ``self.weight``. A lookup
that fails in the instance and comes back through ``__getattr__`` is an order of magnitude
slower than a plain attribute, so a Registry shows each entry in the owner's ``__dict__``
as well. Writing through the dict (``module._parameters["w"] = p``) keeps both in step;
that is why this is a dict subclass and not a second write in ``Module.__setattr__``.

The owner is held weakly: a strong reference would make each module a cycle, and a dropped
model would keep its memory until the garbage collector happens to run.
"""

import weakref
from collections import OrderedDict


def _nobody():
    """Stand in for the owner's weak reference while a copy is being built."""
    return None


class settled(property):
    """A property of the package's own layers, behind which no attribute is looked for: an error in it is the program's.

    So a class that has no others is asked for attributes as quickly as one without properties.
    """


class Registry(dict):
    """Named parts of one module, each also an attribute of that module."""

    __slots__ = ("__weakref__", "_owner")

    def __init__(self, owner=(), entries=()):
        super().__init__()
        if isinstance(owner, (dict, list, tuple)):  # of entries alone, as in HookTable
            self._owner, entries = _nobody, owner
        else:
            self._owner = weakref.ref(owner)
        self.update(entries)

    @classmethod
    def _blank(cls):
        registry = cls.__new__(cls)
        registry._owner = _nobody
        return registry

    def belongs_to(self, module):
        """Whether ``module`` is the one whose attributes follow this dict."""
        return self._owner() is module

    def _forget(self, name):
        owner = self._owner()
        if owner is not None:
            owner.__dict__.pop(name, None)

    def __setitem__(self, name, part):
        dict.__setitem__(self, name, part)
        owner = self._owner()
        if owner is not None:
            owner.__dict__[name] = part

    def __delitem__(self, name):
        dict.__delitem__(self, name)
        self._forget(name)

    def pop(self, name, *default):
        self_had_it = name in self
        part = dict.pop(self, name, *default)
        if self_had_it:
            self._forget(name)
        return part

    def popitem(self):
        name, part = dict.popitem(self)
        self._forget(name)
        return name, part

    def clear(self):
        for name in self:
            self._forget(name)
        dict.clear(self)

    def update(self, *entries, **named):
        for name, part in dict(*entries, **named).items():
            self[name] = part

    def setdefault(self, name, default=None):
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, entries):
        self.update(entries)
        return self

    def __copy__(self):
        return dict(self)

    def __reduce_ex__(self, protocol):
        # The owner travels as state, so pickle and deepcopy bind the copy to the copied module.
        return Registry._blank, (), self._owner(), None, iter(self.items())

    def __setstate__(self, owner):
        self._owner = weakref.ref(owner)


def own(module, name):
    """One of a module's registries, which follow it from now on where they came with the `__dict__` of another."""
    entries = getattr(module, name)
    if isinstance(entries, Registry) and not entries.belongs_to(module):
        found = {n: e for n, e in module.__dict__.items() if isinstance(e, Registry)}
        module.__dict__.update({n: Registry(module, e) for n, e in found.items()})
        entries = module.__dict__[name]
    return entries


class HookTable(OrderedDict):
    """Hooks of one kind by handle id; keeps the shared set ``live`` true.

    ``live`` holds the names of the tables that are not empty. A call of a module tests
    that one set instead of every table.
    """

    def __init__(self, live, name=None, entries=()):
        super().__init__()
        if name is None:  # of entries alone, as programs that walk a module's dicts make another of a dict's class
            live, entries = set(), live
        self._live = live
        self._name = name
        for key, hook in dict(entries).items():
            self[key] = hook

    def _refresh(self):
        if not self:
            self._live.discard(self._name)

    def __setitem__(self, key, hook):
        super().__setitem__(key, hook)
        self._live.add(self._name)

    def __delitem__(self, key):
        super().__delitem__(key)
        self._refresh()

    def pop(self, *key_and_default):
        hook = super().pop(*key_and_default)
        self._refresh()
        return hook

    def popitem(self, last=True):
        item = super().popitem(last)
        self._refresh()
        return item

    def clear(self):
        super().clear()
        self._refresh()

    def copy(self):
        return OrderedDict(self)

    def __reduce__(self):
        return HookTable, (self._live, self._name), None, None, iter(self.items())
