"""Parts of a tensor as views, for other kernels. Bounds of `part` and `without` are the caller's business."""
from cpython.object cimport PyObject
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport int64_t

cdef Tensor part(Tensor t, int dim, int64_t start, int64_t length, int64_t step)
cdef Tensor without(Tensor t, int dim, int64_t index)
cdef int64_t wrap_index(int64_t index, int64_t size, Tensor t, int dim) except? -1
cdef int64_t clamped(PyObject *bound, int64_t size, int64_t missing) except? -1
cdef Tensor diagonal(Tensor t, int64_t offset, int64_t dim1, int64_t dim2)
cdef Tensor windows(Tensor t, int64_t dimension, int64_t size, int64_t step)
