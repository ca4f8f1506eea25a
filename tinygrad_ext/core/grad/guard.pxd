from cpython.object cimport PyObject
from tinygrad_ext.core.grad.custom cimport Custom
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.data.tensor cimport REQUIRES_GRAD, Tensor

cdef list convert(Custom c, PyObject **args)
cdef int check_hidden(Op op, PyObject **args) except -1
cdef object run_guarded(Custom c, PyObject **args)
cdef object checked(Custom c, PyObject **args, object result)       # what the kernel returned, judged by the schema
cdef int check_alias(Custom c, PyObject **args, Tensor t) except -1     # RuntimeError for a return in an argument's memory
cdef bint trusted() noexcept                                        # whether kernels are not checked now

cdef inline bint is_new(object o) noexcept:
    """Whether a tensor was just made and nobody else has it or its memory, so that nothing in it can be an argument's."""
    if type(o) is not Tensor or (<PyObject *>o).ob_refcnt != 1:
        return False
    if (<Tensor>o).node is not None or (<Tensor>o).bits & REQUIRES_GRAD or (<Tensor>o).storage is None:
        return False
    return (<PyObject *>(<Tensor>o).storage).ob_refcnt == 1 and (<Tensor>o).storage.block != 0
