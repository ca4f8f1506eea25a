"""Notes who is asked during a call, for `explain` and `check`. Costs nothing while nobody watches."""

import sys
import threading

from tinygrad_ext.core.call.overrides import set_lookups
from tinygrad_ext.registry import foreign

_local = threading.local()
_lock = threading.Lock()
_watching = 0  # over all threads
NOT_ASKED = object()


class Rung:
    """One handler of a call.

    Attributes:
        kind: "mode", "type", "registered handler", "common type", or "engine" for our own implementation.
        who: the mode, or the type; None for the engine. owner: who registered the handler of a type.
        func: what it was asked to do. depth: number of rungs it was called from.
        returned: its answer, or NOT_ASKED. error: the exception it raised.
    """

    __slots__ = ("depth", "error", "func", "kind", "owner", "returned", "who")

    def __init__(self, kind, who, func, depth, returned=NOT_ASKED):
        self.kind, self.who, self.func, self.depth = kind, who, func, depth
        self.owner = foreign.owner_of_handler(who) if kind == "registered handler" else None
        self.returned, self.error = returned, None


class Watch:
    """`with Watch() as watch:` collects in `watch.rungs` the handlers of all calls of this thread."""

    def __init__(self):
        self.rungs, self.depth = [], 0

    def __enter__(self):
        self.outer = getattr(_local, "watch", None)
        _local.watch = self
        _count(1)
        return self

    def __exit__(self, *exc):
        _count(-1)
        _local.watch = self.outer

    def note(self, kind, who, func, call, *args):
        """call(*args), noted."""
        rung = Rung(kind, who, func, self.depth)
        self.rungs.append(rung)
        self.depth += 1
        try:
            rung.returned = call(*args)
        except BaseException as error:
            rung.error = error
            raise
        finally:
            self.depth -= 1
        return rung.returned


def _count(step):
    global _watching
    with _lock:
        _watching += step
        set_lookups(watch=sys.modules[__name__] if _watching else False)


# ---- what the core calls -------------------------------------------------------------------------------------------


def ask(kind, who, func, handler, types, args, kwargs):
    """handler(func, types, args, kwargs), noted if this thread watches."""
    watch = getattr(_local, "watch", None)
    if watch is None:
        return handler(func, types, args, kwargs)
    return watch.note(kind, who, func, handler, func, types, args, kwargs)


def unasked(func, pairs):
    """Note the (kind, type) of handlers that were not needed."""
    watch = getattr(_local, "watch", None)
    if watch is not None:
        watch.rungs += [Rung(kind, who, func, watch.depth) for kind, who in pairs]
