"""What a node keeps for backward."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from tinygrad_ext.core.node cimport Node, follow_tensor
from tinygrad_ext.core.places cimport WATCHED
from tinygrad_ext.core.tensor cimport INFERENCE, Tensor, version_of
from tinygrad_ext.core.tracking cimport tgx_is_gc

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

cdef int save_rare(Node n, int k, object value, int output) except -1
cdef object unpack(Node n, int k, int output, bint with_history)
cdef object raw(Node n, int k, int output)
cdef object freed_error(Node n)


cdef inline void save_number(Node n, int k, object value) noexcept:
    """Keep numbers, or a tuple of numbers that nobody else knows."""
    Py_INCREF(value)
    n.saved[k] = <PyObject *>value
    n.versions[k] = 0

cdef inline int save(Node n, int k, object value, int output) except -1:
    """Keep an argument, or output number `output` (-1: none), at place k of n."""
    cdef Tensor t
    if n.counts == NULL and not isinstance(value, Tensor) and not tgx_is_gc(value):     # a number
        save_number(n, k, value)
        return 0
    if output < 0 and not hooked and isinstance(value, Tensor) and not (<Tensor>value).bits & INFERENCE:
        t = <Tensor>value
        Py_INCREF(t)
        n.saved[k] = <PyObject *>t
        n.versions[k] = version_of(t)
        follow_tensor(n, t)
        if t.storage is not None:
            t.storage.watched |= WATCHED
        return 0
    return save_rare(n, k, value, output)
