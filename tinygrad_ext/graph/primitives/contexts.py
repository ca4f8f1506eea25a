"""Contexts of a `with` that are entered, so that whoever runs a graph leaves those that an error would skip.

The graph itself leaves them where the block ends, and before what it raises. An op that fails tells no one: the
contexts that are entered by then stand in a row of the thread, and are left from there, the innermost first.
"""

import inspect
import threading

from tinygrad_ext.core.call.modes import get_modes, set_modes

from .objects import call_method_of
from .table import primitive


class _Entered(threading.local):
    def __init__(self):
        self.rows = []  # (what was entered, function that leaves it, modes at that time)


_entered = _Entered()


def count():
    """How many contexts are entered in this thread."""
    return len(_entered.rows)


def leave_to(number):
    """Leave contexts until this many are entered: an error has ended the run that entered them."""
    rows, modes = _entered.rows, get_modes()
    if len(rows) <= number:
        return
    owner, leave, within = rows.pop()
    try:
        set_modes(*within)
        leave(owner)
    finally:
        set_modes(*modes)
        leave_to(number)


def _begin(owner, leave):
    """Enter; how many were entered before. A number says nothing of the object, which may be a graph's alone."""
    _entered.rows.append((owner, leave, get_modes()))
    return len(_entered.rows) - 1


def _end(number):
    del _entered.rows[number:]


def _exit(owner):
    """Leave an object; one whose class is not there has no Python to run."""
    if inspect.isfunction(inspect.getattr_static(type(owner), "__exit__", None)):
        call_method_of(owner, "__exit__", (None, None, None))


class _Range:
    """A range that is recorded. Attributes: part; number, of contexts entered before."""

    def __init__(self, name):
        from tinygrad_ext.autograd.profiler import record_function  # lazy: few programs name their parts

        self.part = record_function(name)
        self.part.__enter__()
        self.number = _begin(self, _Range.leave)

    def end(self):
        _end(self.number)
        self.leave()

    def leave(self):
        self.part.__exit__(None, None, None)


primitive("context_begin", "Any", "int", lambda owner: _begin(owner, _exit), effect="order")
primitive("context_end", "int", "", _end, effect="order")
primitive("record_begin", "str", "Any", _Range, effect="order")
primitive("record_end", "Any", "", _Range.end, effect="order")
