"""What the garbage collector must know: each object of ours from which something that is not ours can be reached."""

import gc
import weakref

from tinygrad_ext.core.data.tracking import untracked_objects
from tinygrad_ext.core.grad.node import Hooks, Node

import tinygrad_ext as tg
from tinygrad_ext.core.data.dtype import Size

HAVE_GC = 1 << 14  # Py_TPFLAGS_HAVE_GC


def _holds_only_ours(o):
    """Whether it is enough to look at what o holds now: nothing can be hung on it without our knowing."""
    if isinstance(o, tg.Tensor):
        return type(o) in (tg.Tensor, tg.nn.Parameter) and not gc.get_referents(o).count({})
    if isinstance(o, Node):
        return not hasattr(o, "__dict__")
    if type(o) is dict:  # of retained gradients
        return all(type(value) is weakref.ref for value in o.values())
    return type(o) in (tuple, Size, slice, Hooks)


def faults():
    """(object, what it leads to) for each that the collector does not know and that may stand in a circle."""
    found = []
    seen = set()
    for start in untracked_objects():
        waiting = [start]
        while waiting:
            o = waiting.pop()
            if id(o) in seen:
                continue
            seen.add(id(o))
            if not type(o).__flags__ & HAVE_GC or type(o).__name__ == "Op" or isinstance(o, (type, weakref.ref)):
                continue  # (a registered op lives on)
            if _holds_only_ours(o):
                waiting += gc.get_referents(o)
            else:
                found.append((start, o))
                break
    return found
