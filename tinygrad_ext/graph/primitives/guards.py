"""What a captured program decided by, which has to be the same when the graph runs."""

from .table import primitive


class GuardFailed(RuntimeError):
    """A graph does not hold for these inputs: what Python decided while it was captured would be decided otherwise."""


def _guard(given, expected, place):
    """What a captured program decided by must be what it was then."""
    if given != expected:
        raise GuardFailed(f"the graph was captured with {expected}, not {given}, where {place} depends on it")


primitive("guard", "Any Any str", "", _guard, effect="order")
