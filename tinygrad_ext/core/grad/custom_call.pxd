"""The call of an op whose kernel is a Python function from elsewhere."""
from cpython.object cimport PyObject
from tinygrad_ext.core.grad.custom cimport Custom
from tinygrad_ext.core.grad.function cimport FunctionNode

cdef class CustomCall(Custom):
    pass

cdef class OpNode(FunctionNode):
    cdef Custom custom
    cdef tuple input_counts         # tensors in each argument that is a list, -1 for another; None without lists
    cdef tuple output_counts

cdef list keep_lists(Custom c, PyObject **args)     # replaces lists of tensors by tuples; the owners
