"""Broadcast shapes and the targets of writes."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.call.places cimport note_mutation
from tinygrad_ext.core.data.tensor cimport Tensor, bump
from tinygrad_ext.core.data.types cimport int64_t, uint64_t

cdef int broadcast_shape(Tensor t, int64_t *shape, int *ndim) except -1

cdef inline bint has_sizes(Tensor t, const int64_t *sizes, int rank) noexcept:
    cdef int i
    if t.rank != rank:
        return False
    for i in range(rank):
        if t.sizes[i] != sizes[i]:
            return False
    return True

# Before the kernel runs
cdef int refuse_cast(int src, int dst) except -1
cdef int check_target(Op op, Tensor out, int device, const int64_t *sizes, int rank, int dtype, bint inplace) except -1
cdef int check_inputs(Op op, PyObject **args, Tensor out, int64_t count, bint inplace) except -1
cdef int refuse_shared(Op op) except -1
cdef int check_apart(Op op, PyObject **targets, int count, const unsigned char *fit) except -1
# After it
cdef int deliver(Op op, Tensor out, Tensor made, bint own, bint inplace) except -1
cdef int deliver_all(Op op, PyObject **targets, int count, list made, bint own) except -1

cdef inline int note_write(Tensor t) except -1:
    """t was written to: its version counts it, and the line is remembered."""
    bump(t)
    return note_mutation(t) if t.storage is not None and t.storage.watched else 0

# What a tensor allows
cdef int check_readonly(Tensor out, str op) except -1
cdef int check_writable(Tensor out, str op) except -1
cdef int require_grad(Tensor t) except -1       # requires_grad=True of what makes tensors
cdef int refuse_grad(int dtype) except -1
cdef bint shows_history(Tensor t) noexcept
cdef int check_inference(Tensor t) except -1
