from cpython.object cimport PyObject
from tinygrad_ext.core.grad.custom cimport Custom
from tinygrad_ext.core.call.dispatch cimport Op

cdef list convert(Custom c, PyObject **args)
cdef int check_hidden(Op op, PyObject **args) except -1
cdef object run_guarded(Custom c, PyObject **args)
