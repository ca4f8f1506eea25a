"""Calls with tensors of the dtypes that plugins brought."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op

cdef bint asks_for_coded(Op op, PyObject **args) except -1          # has such a tensor, or is asked for one
cdef object widened(Op op, PyObject **args)
