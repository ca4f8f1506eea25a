# cython: language_level=3
"""Functions of higher rooms that the core needs, by name; whoever brings one fills its slot at import.

One table for all of them. Rejected: a C function pointer for each, which is quicker by a dict look-up (20 ns) and takes a
setter, a type and a check that it was filled for each of some thirty; what is called per op has such a pointer where it
is called (call/dispatch_slots.pxi, and `record_op` and `check_written` in call/dispatch.pxd).
"""

cdef dict _slots = {}


def set_slot(str name, fn):
    """Fill a slot: "grad_fn", "zeros", "clone", ..."""
    _slots[name] = fn


def get_slot(str name):
    """The function in a slot."""
    return _slots[name]


cdef object slot(str name):
    return _slots[name]


cdef object slot_or_none(str name):
    """The same, None where nobody has filled it."""
    return _slots.get(name)
