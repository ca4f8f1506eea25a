"""What a node keeps for backward."""
from tinygrad_ext.core.grad.node cimport Node

cdef int hooked             # saved_tensors_hooks that are entered, in all threads together

cdef class Packed:
    cdef object value       # what the pack hook returned
    cdef object unpack
    cdef object node        # history of the tensor that was packed: its grad_fn or accumulator
    cdef int nr
    cdef int output         # number of the output of the saving node that it is, or -1

cdef class SavedTensor:
    cdef Node node
    cdef int place
    cdef int output

cdef int keep_rare(Node n, int k, object value, int output) except -1       # all cases of history.keep
cdef object unpack(Node n, int k, int output, bint with_history)
cdef object raw(Node n, int k, int output)
cdef object freed_error(Node n)
