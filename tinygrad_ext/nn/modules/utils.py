"""Sizes given as one number or as one per dimension; the names with an underscore are those of PyTorch."""

import functools


def n_tuple(value, n):
    """Return ``value`` as a tuple of ``n``: repeated if it is one number, else its entries."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,) * n


_single, _pair, _triple, _quadruple = (functools.partial(n_tuple, n=n) for n in (1, 2, 3, 4))
