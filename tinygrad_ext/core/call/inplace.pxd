from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport uint64_t

cdef object call_inplace(Op op, PyObject **args)
cdef object inplace_below(Op op, PyObject **args)                        # without levels
cdef object call_out(Op op, PyObject **args, object out)
cdef object forward_into(Op op, PyObject **args, Tensor out, bint inplace)
cdef uint64_t moves() noexcept
