from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport int64_t

cdef Tensor tensor_of(object data, int dtype, int device)      # dtype -1: inferred
cpdef int warn_of_copy(object data, str call) except -1
cdef Tensor scalar_tensor(object value, int dtype)
cdef Tensor from_buffer(object data, bint copy)
cdef int read_shape(object size, int64_t *shape) except -1
