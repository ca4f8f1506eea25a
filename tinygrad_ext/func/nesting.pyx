# cython: language_level=3, boundscheck=True
"""Values of several levels inside each other.

Reverse mode needs no level: a backward pass runs on the tensors at the bottom, by the engine of eager mode, and each
level says what its values are made of. What a pass starts from may be carried by a level that was entered later (the
rows of a Jacobian are a vmap of its own), so a level has to find its own values inside those of others.
"""

from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.data.tensor cimport Carried, Tensor

from tinygrad_ext.registry import functions


def above(level, *values):
    """The highest level above `level` that carries one of the values; None where there is none."""
    found = None
    for v in values:
        if type(v) is Carried and (<Carried>v).level is not level:
            if (<Carried>v).level.place > (level if found is None else found).place:
                found = (<Carried>v).level
    return found


def bottoms(value):
    """The tensors at the bottom of a value, those of observers as they are."""
    cdef list found = []
    _collect(value, found)
    return found


cdef int _collect(value, list found) except -1:
    if type(value) is Carried and hasattr((<Carried>value).level, "parts"):
        for part in (<Carried>value).level.parts(value):
            _collect(part, found)
    elif isinstance(value, Tensor):
        found.append(value)
    return 0


def carriers(value):
    """The levels that carry a value, one inside the other."""
    if type(value) is not Carried or not hasattr(value.level, "parts"):
        return frozenset()
    return frozenset([value.level]).union(*[carriers(part) for part in value.level.parts(value)])


def before_write(level, target, args):
    """Arguments of an op whose result is written to the memory of one of them; autograd keeps a copy of that one."""
    if state().no_grad or isinstance(target, (list, tuple)) or not target.requires_grad:
        return args
    copy = level.resume(functions["clone"], target)
    return [copy if a is target else a for a in args]


def severed(value):
    """A value without history, of all levels that it had."""
    if type(value) is Carried and hasattr(value.level, "over"):
        return value.level.over(severed, (value,))
    return value.detach()
