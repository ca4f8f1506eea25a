"""What PyTorch does with sizes that may be symbols; here sizes are numbers, which a graph may carry."""

import math

from tinygrad_ext.core.call.boundary import boundary as _boundary

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_float",
    "sym_int",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


class _None:
    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__name__}: sizes are numbers here, and no symbols")


class SymInt(_None):
    """A whole number that is a symbol; there is none."""


class SymFloat(_None):
    """A number that is a symbol; there is none."""


class SymBool(_None):
    """A truth that is a symbol; there is none."""


@_boundary
def sym_int(a):
    """The number without what stands behind its point."""
    return math.trunc(a)


@_boundary
def sym_float(a):
    """The number as a float."""
    return float(a)


@_boundary
def sym_max(a, b):
    """The greater of two numbers; a float where one is."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


@_boundary
def sym_min(a, b):
    """The lesser of two numbers; a float where one is."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


@_boundary
def sym_not(a):
    """What is true, turned around."""
    return not a


@_boundary
def sym_sqrt(a):
    """The square root of a number."""
    return math.sqrt(a)


@_boundary
def sym_sum(args):
    """The sum of numbers."""
    return sum(args)
