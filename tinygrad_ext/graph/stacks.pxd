"""Stacks that plans have filled (kernels/stacks.h), as Python holds them."""
from tinygrad_ext.graph.plan_h cimport tgx_number, tgx_pile

cdef class Form:
    cdef readonly tuple key         # what is equal in equal forms
    cdef readonly tuple parts
    cdef readonly Py_ssize_t nbytes

cdef class Pile:
    cdef tgx_pile c
    cdef readonly Form form
    cdef readonly list inner        # Piles of the stacks that stand in rows, as the form numbers them
    cdef list memory
    cdef int more(self) except -1

cdef class Stack:
    cdef readonly Pile pile         # None: an empty stack that nothing was ever pushed to
    cdef readonly long long top

cdef Stack stack_of(Pile pile, long long top)
cdef object number_of(const tgx_number *n, int kind)
cdef int grow(tgx_pile *pile) noexcept nogil
