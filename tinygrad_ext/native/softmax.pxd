from tinygrad_ext.core.tensor cimport Tensor

cdef int require_float(Tensor t, str op) except -1
cdef Tensor row_lse(Tensor x, int dim)
cdef Tensor scaled_softmax(Tensor x, Tensor lse, Tensor scale, int dim)
