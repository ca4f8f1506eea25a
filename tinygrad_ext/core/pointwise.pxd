from cpython.object cimport PyObject
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport TGX_MAX_DIMS, int64_t

cdef struct Promotion:          # dtypes seen so far among tensors with dims, 0-d tensors, Python numbers; -1 none
    int dims
    int zero
    int number

cdef void promotion_begin(Promotion *p) noexcept
cdef int promotion_add(Promotion *p, object operand) except -1
cdef int promotion_result(Promotion *p) noexcept
cdef int broadcast_shape(Tensor t, int64_t *shape, int *ndim) except -1
cdef int refuse_cast(int src, int dst) except -1
cdef int prepare_out(Tensor out, const int64_t *shape, int ndim, int dtype) except -1
