"""What a graph is looked up by, for the call of a traced program (jit/calls.pyx)."""

cdef object kind_of(object o)                               # the kind of one argument
cdef bint same_kind(object o, object kind) except -1        # whether an argument is of a kind
