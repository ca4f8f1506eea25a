from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op

cdef object record(Op op, PyObject **args, PyObject *out, bint inplace)
