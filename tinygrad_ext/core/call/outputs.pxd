"""Broadcast shapes and the targets of writes."""
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport int64_t

cdef int broadcast_shape(Tensor t, int64_t *shape, int *ndim) except -1
cdef int refuse_cast(int src, int dst) except -1
cdef int prepare_out(Tensor out, const int64_t *shape, int ndim, int dtype) except -1
cdef int warn_resized(Tensor out, const int64_t *shape, int ndim) except -1
cdef int check_readonly(Tensor out, str op) except -1
cdef int check_writable(Tensor out, str op) except -1
cdef int require_grad(Tensor t) except -1       # requires_grad=True of what makes tensors
cdef int refuse_grad(int dtype) except -1
cdef bint shows_history(Tensor t) noexcept
cdef int check_inference(Tensor t) except -1
