"""Notes who is asked during a call, for `explain` and `check`. Costs one test while nobody watches."""

import threading

from tinygrad_ext.overrides import foreign

active = 0  # how many threads watch
_local = threading.local()
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

    def __init__(self, kind, who, func, depth):
        self.kind, self.who, self.func, self.depth = kind, who, func, depth
        self.owner = foreign.owner_of_handler(who) if kind == "registered handler" else None
        self.returned, self.error = NOT_ASKED, None


class Watch:
    """`with Watch() as watch:` collects in `watch.rungs` the handlers of all calls of this thread."""

    def __init__(self):
        self.rungs, self.depth = [], 0

    def __enter__(self):
        global active
        self.outer = getattr(_local, "watch", None)
        _local.watch = self
        active += 1
        return self

    def __exit__(self, *exc):
        global active
        active -= 1
        _local.watch = self.outer

    def ask(self, kind, who, func, call):
        """call(), noted."""
        rung = Rung(kind, who, func, self.depth)
        self.rungs.append(rung)
        self.depth += 1
        try:
            rung.returned = call()
        except BaseException as error:
            rung.error = error
            raise
        finally:
            self.depth -= 1
        return rung.returned


def current():
    """The watch of this thread, or None."""
    return getattr(_local, "watch", None)
