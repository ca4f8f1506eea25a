"""A common type for sibling subclasses of Tensor, each of which refuses a call that has the other in it."""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.overrides import set_lookups
from tinygrad_ext.core.data.tensor import Tensor

_common = {}  # frozenset of two types -> CommonType


class CommonType:
    """Handle of a registration; `remove()` or the end of a `with` undoes it."""

    __slots__ = ("pairs", "to", "types")

    def __init__(self, types, to):
        self.types, self.to = types, to
        # `to` meets the others as well, so that (a + b) + a has a type
        members = types if to in types or to is Tensor else (*types, to)
        self.pairs = [frozenset((a, b)) for i, a in enumerate(members) for b in members[i + 1 :]]

    def remove(self):
        """Undo; again is harmless."""
        for pair in self.pairs:
            if _common.get(pair) is self:
                del _common[pair]
        _refresh()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()

    def __repr__(self):
        return f"<common type of {', '.join(t.__qualname__ for t in self.types)}: {self.to.__qualname__}>"


@boundary
def register_common_type(*types, to):
    """Say in which type subclasses of Tensor meet that do not derive from each other.

    A call in which all of them decline is made once more as if all were instances of `to`:
    `to.__torch_function__(func, (to,), args, kwargs)`. The standard one computes as on plain tensors and makes its
    results instances of `to`.

    Arguments:
        types: two or more subclasses of Tensor. Their own subclasses meet there as well.
        to: a subclass of Tensor, one of the types among them, or Tensor itself for plain results.

    Returns a handle: `remove()` or the end of a `with` undoes it.
    Raises TypeError for what is no subclass of Tensor, RuntimeError when a pair has a common type already.

        >>> import tinygrad_ext as tg
        >>> class Metres(tg.Tensor):
        ...     pass
        >>> class Feet(tg.Tensor):
        ...     pass
        >>> with tg.overrides.register_common_type(Metres, Feet, to=tg.Tensor):
        ...     type(tg.ones(2).as_subclass(Metres) + tg.ones(2).as_subclass(Feet)).__name__
        'Tensor'
    """
    for t in (*types, to):
        if not (isinstance(t, type) and issubclass(t, Tensor)):
            raise TypeError(f"register_common_type(): {t!r} is no subclass of Tensor")
    if len(set(types)) != len(types) or len(types) < 2:
        raise TypeError(f"register_common_type() takes two or more different types, got {list(types)}")
    handle = CommonType(types, to)
    for pair in handle.pairs:
        if pair in _common:
            raise RuntimeError(f"there is a {_common[pair]!r} already; remove it with its handle")
    _common.update(dict.fromkeys(handle.pairs, handle))
    _refresh()
    return handle


def _refresh():
    set_lookups(common_type=common_type if _common else False)


def common_type(types):
    """The type in which all of them meet by registration, or None.

    Three types meet if two of them do, and the third meets their common type.
    """
    if len(types) < 2:
        return None
    found, registered = types[0], False
    for t in types[1:]:
        if issubclass(found, t):
            continue
        if issubclass(t, found):
            found = t
            continue
        found, registered = _meet(found, t), True
        if found is None:
            return None
    return found if registered else None


def _meet(a, b):
    """What is registered for the most derived bases of both."""
    for x in a.__mro__:
        for y in b.__mro__:
            handle = _common.get(frozenset((x, y)))
            if handle is not None:
                return handle.to
    return None
