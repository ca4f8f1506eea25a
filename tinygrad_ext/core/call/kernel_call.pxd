"""Calls of kernels that are run later, by a plan."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.call.kernel cimport tgx_call, tgx_services

cdef tgx_services services

# A call whose shape was asked, of arguments that are tensors of the cpu; what it points to lasts until end_call.
cdef tgx_call *begin_call(Op op, PyObject **args) except NULL
cdef void end_call(tgx_call *call) noexcept
