"""Handlers for types that somebody else owns, and that therefore bring no `__torch_function__`.

A handler is found for a type by the most derived class of its `__mro__` that has one: registered for that class, or for
the longest prefix of the module it stands in. What was found is kept for each type until a registration comes or goes.
The core asks `handler_of` for arguments that are neither tensors nor Python's own values. Before it gives up, the
plugin loader is asked: an installed plugin may declare the type's module.
"""

import sys
import weakref

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import set_readers
from tinygrad_ext.core.call.overloaded import set_handler_of
from tinygrad_ext.core.data.tensor import Tensor

_registered = {}  # type or module prefix -> Registration
_load = None  # loads what may handle a type
_SETTLED = ("builtins", "numpy")  # modules whose types are ours to take or refuse
_found = weakref.WeakKeyDictionary()  # type -> handler or None


class Registration:
    """Handle of a handler: `remove()`, or the end of a `with`, takes it away."""

    __slots__ = ("__weakref__", "call", "owner", "target")

    def __init__(self, target, call, owner):
        self.target, self.call, self.owner = target, call, owner
        known = _registered.setdefault(target, self)
        if known is not self:
            raise RuntimeError(
                f"{_shown(target)} is taken by {known.owner} already; {owner} cannot have it too. Remove the first "
                "with its handle, or register for a more derived type or a longer module prefix."
            )
        refresh()

    def remove(self):
        """Undo; again is harmless."""
        if _registered.get(self.target) is self:
            del _registered[self.target]
            refresh()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()

    def __repr__(self):
        state = "" if _registered.get(self.target) is self else ", removed"
        return f"<registration for {_shown(self.target)} by {self.owner}{state}>"


@boundary
def register(target, handler, *, owner=None):
    """Let handler carry out our functions for arguments of a type that one does not own.

    Arguments:
        target: a class, which stands for its subclasses too; or the prefix of the modules in which the classes are
            defined: "scipy.sparse" stands for those of `scipy.sparse` and of `scipy.sparse._csr`.
        handler: called as `handler(func, types, args, kwargs)`, as a `__torch_function__` is; it may return
            NotImplemented.
        owner: who is named in messages; the module of the handler unless given.

    Returns a handle: `remove()` or the end of a `with` takes the handler away.
    Raises TypeError for a type that needs no handler, RuntimeError when the target has one.

        >>> import fractions
        >>> import tinygrad_ext as tg
        >>> def as_floats(func, types, args, kwargs):
        ...     return func(*[float(a) if isinstance(a, fractions.Fraction) else a for a in args], **kwargs)
        >>> with tg.overrides.register(fractions.Fraction, as_floats):
        ...     tg.mul(tg.ones(2), fractions.Fraction(1, 2))
        tensor([0.5000, 0.5000])
    """
    _check_target(target)
    if not callable(handler):
        raise TypeError(
            f"register(): argument 'handler' must be callable as handler(func, types, args, kwargs), "
            f"not {type(handler).__name__}"
        )
    return Registration(target, handler, owner or getattr(handler, "__module__", None) or type(handler).__module__)


def set_loader(load):
    """The function that is asked about a type without a handler: load(type) may bring and register one.

    It is asked once for each type until a registration comes or goes.
    """
    global _load
    _load = load
    refresh()


def handler_of(t):
    """The handler for arguments of type t, or None."""
    try:
        return _found[t]
    except KeyError:
        pass
    except TypeError:  # a class that cannot be hashed
        return None
    entry = _lookup(t)
    if entry is None and _load is not None and t.__module__ not in _SETTLED:
        _load(t)
        entry = _lookup(t)
    _found[t] = handler = entry.call if entry is not None else None
    return handler


def registrations():
    """The registrations that hold."""
    return list(_registered.values())


def owner_of_handler(t):
    """Who registered the handler for type t."""
    return _lookup(t).owner


def who_declined(types):
    """Sentences for the TypeError of a call that nobody could carry out: whose handlers were asked about it."""
    asked = {t: _lookup(t) for t in types}
    return "".join(
        f". The handler of {r.owner} for {_named(t)} declined; convert the argument to a Tensor first"
        for t, r in asked.items()
        if r
    )


def _named(t):
    return f"{t.__module__}.{t.__qualname__}"


def _lookup(t):
    if issubclass(t, Tensor):  # one that has switched its __torch_function__ off
        return None
    for base in t.__mro__[:-1]:
        if base in _registered:
            return _registered[base]
        prefix = base.__module__
        while isinstance(prefix, str) and prefix:
            if prefix in _registered:
                return _registered[prefix]
            prefix = prefix.rpartition(".")[0]
    return None


def refresh():
    """Ask anew about every type."""
    _found.clear()
    set_handler_of(handler_of if _registered or _load is not None else None)


def _shown(target):
    return f"the module prefix '{target}'" if isinstance(target, str) else f"the type {target.__qualname__}"


def _check_target(target):
    if isinstance(target, str):
        if not all(part.isidentifier() for part in target.split(".")):
            raise TypeError(f"register(): {target!r} is no module prefix; one looks like 'scipy.sparse'")
        if target.partition(".")[0] in ("builtins", "tinygrad_ext"):
            raise TypeError(f"register(): the types of {target.partition('.')[0]} are taken by the ops themselves")
        return
    if not isinstance(target, type):
        raise TypeError(
            f"register(): argument 'target' must be a type or the prefix of a module, not {type(target).__name__}"
        )
    if target.__module__ == "builtins" or issubclass(target, Tensor):
        raise TypeError(
            f"register(): {_shown(target)} is taken by the ops themselves. "
            "A subclass of Tensor defines __torch_function__."
        )
    if hasattr(target, "__torch_function__") and not _is_pytorchs(target):
        raise TypeError(f"register(): {_shown(target)} has a __torch_function__ of its own, which is what is asked")


def _is_pytorchs(t):
    """Whether t's `__torch_function__` is PyTorch's: it knows nothing of our functions."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(t, getattr(torch, "Tensor", ()))


set_readers(who_declined=who_declined)
