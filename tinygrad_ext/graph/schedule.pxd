"""Groups of steps, as the maker of plans lays them out."""
from tinygrad_ext.graph.lowering cimport Step

cdef class Group:
    cdef readonly object key        # sizes and strides; None: steps with numbers
    cdef public list steps
    cdef readonly set values        # their ids
    cdef public list runs           # (begin, end) of steps that become machine code

    cdef bint fits(self, Step step)
    cdef int add(self, Step step) except -1
