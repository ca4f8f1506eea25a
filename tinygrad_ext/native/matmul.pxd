from tinygrad_ext.core.tensor cimport Tensor

cdef Tensor multiply(Tensor a, Tensor b, Tensor bias, str op)    # matmul; bias, if any, is added to the rows
