from cpython.object cimport PyObject
from tinygrad_ext.core.custom cimport Custom

cdef object run_guarded(Custom c, PyObject **args)
