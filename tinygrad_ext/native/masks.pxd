from tinygrad_ext.core.tensor cimport Tensor

cdef Tensor coordinates(Tensor mask)                    # rank x n: where the elements are that are not zero
cdef Tensor selected(Tensor t, Tensor mask)             # t's elements under a bool mask of t's shape
