"""Handles of registered hooks."""

import itertools

_numbers = itertools.count()


class RemovableHandle:
    """Takes a hook away: by `remove()`, or at the end of a `with`."""

    __slots__ = ("__weakref__", "_hooks", "id")

    def __init__(self, hooks, number):
        self._hooks, self.id = hooks, number

    def remove(self):
        """Take the hook away; again is harmless."""
        self._hooks[:] = [h for h in self._hooks if h[0] != self.id]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def add_hook(hooks, fn):
    """Append fn to a list of (number, function) and return its handle."""
    number = next(_numbers)
    hooks.append((number, fn))
    return RemovableHandle(hooks, number)
