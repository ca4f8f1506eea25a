from cpython.object cimport PyObject
from tinygrad_ext.core.grad.custom cimport Custom
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.data.tensor cimport Tensor

cdef list convert(Custom c, PyObject **args)
cdef int check_hidden(Op op, PyObject **args) except -1
cdef object run_guarded(Custom c, PyObject **args)
cdef object checked(Custom c, PyObject **args, object result)       # what the kernel returned, judged by the schema
cdef int check_alias(Custom c, PyObject **args, Tensor t) except -1     # RuntimeError for a return in an argument's memory
cdef bint trusted() noexcept                                        # whether kernels are not checked now
