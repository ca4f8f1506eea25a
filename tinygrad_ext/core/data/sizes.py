"""What a Size is made of, and how many elements it tells of."""

import operator
from math import prod as product

__all__ = ["new_size", "product"]


def new_size(cls, sizes=()):
    """A Size of ints, which a type of its own that is one stays, as does what stands for a size while a program is
    captured; TypeError for anything else."""
    given = tuple(sizes)
    if not all([type(s) is int for s in given]):
        given = [s if isinstance(s, int) and not isinstance(s, bool) else _whole(s, i) for i, s in enumerate(given)]
    return tuple.__new__(cls, given)


def _whole(s, i):
    if getattr(type(s), "stands_for_a_size", False):
        return s
    try:
        return operator.index(s)
    except TypeError:
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(s).__name__}')") from None
