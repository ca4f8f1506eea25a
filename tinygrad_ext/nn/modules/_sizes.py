"""Sizes given as one number or as one per dimension."""


def n_tuple(value, n):
    """Return ``value`` as a tuple of ``n``: repeated if it is one number, else its entries."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,) * n
