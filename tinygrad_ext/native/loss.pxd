from cpython.object cimport PyObject
from tinygrad_ext.core.tensor cimport Tensor

cdef enum Reduction:
    NONE, MEAN, SUM

cdef int reduction_of(PyObject *o) except -1
cdef Tensor number(double value, int dtype)
