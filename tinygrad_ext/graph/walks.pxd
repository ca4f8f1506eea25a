"""What passes and the checker ask of graphs, for those that are compiled."""

cdef class Facts:       # about the ops of the nodes that a walk sees
    cdef dict found
    cdef object of(self, str op)                # its Signature; None of a primitive
    cdef bint has_effect(self, node) except -1
    cdef bint is_random(self, node) except -1
    cdef bint may_share(self, node) except -1
