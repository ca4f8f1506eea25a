"""`__torch_dispatch__`: who carries out operations below autograd."""
from cpython.object cimport PyObject
from tinygrad_ext.core.data.tensor cimport Tensor

cdef int must_dispatch(PyObject **args, Py_ssize_t n) except -1     # an operation on these is to be handed to a type
cdef object enter_types()                                           # let the types among the arguments be asked
cdef Tensor alike(Tensor t)                                         # an alias that is of the same class, if that dispatches
cdef int leave_types(object level) except -1
