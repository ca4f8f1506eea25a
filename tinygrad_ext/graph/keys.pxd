"""What a graph is looked up by, for the call of a traced program (jit/calls.pyx)."""
from tinygrad_ext.core.data.tensor cimport Tensor, needs_grad


cdef inline long kind_of_tensor(Tensor t) noexcept:
    return ((((<long>t.tid << 8) | t.rank) << 8) | t.device_id) << 1 | needs_grad(t)

cdef object kind_of(object o, int depth=*)                  # the kind of one argument
cdef bint same_kind(object o, object kind) except -1        # whether an argument is of a kind
