"""Ranges of a program that observers hear of."""

import contextlib

from tinygrad_ext.core.call.levels import mark_range

__all__ = ["record_function"]


class record_function(contextlib.ContextDecorator):
    """Name what runs inside a `with`, or a function, for the observers of this thread.

    Args:
        name: the range's name. args: a further text that belongs to it, or None.

    Costs a call and nothing else while nobody observes.
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def __enter__(self):
        mark_range(self.name, True)
        return self

    def __exit__(self, *exc):
        mark_range(self.name, False)
