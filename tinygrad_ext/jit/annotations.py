"""Annotations of compiled functions that typing does not have."""

from typing import Annotated, Any

__all__ = ["Any", *(f"BroadcastingList{count}" for count in range(1, 7))]


class Broadcasting:
    """`BroadcastingList2[int]`: a list of ints, for which a call may give one int that stands for both."""

    def __init__(self, count):
        self.count = count

    def __getitem__(self, item):
        return Annotated[list[item], self]

    def __repr__(self):
        return f"BroadcastingList{self.count}"


LISTS = {f"BroadcastingList{count}": Broadcasting(count) for count in range(1, 7)}
globals().update(LISTS)


def broadcast_of(annotation):
    """How often one item is repeated for a parameter with this annotation; 0: it is not."""
    found = [m.count for m in getattr(annotation, "__metadata__", ()) if isinstance(m, Broadcasting)]
    return found[0] if found else 0
