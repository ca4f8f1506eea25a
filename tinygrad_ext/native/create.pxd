"""What the factories share: the tail of options, memory for a result, and the refusals of a target."""
from cpython.object cimport PyObject
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport int64_t

cdef struct Options:
    int dtype           # -1: not given
    int device          # -1: not given
    bint requires_grad

cdef Options options(PyObject **args) except *                  # dtype, layout, device, pin_memory, requires_grad
cdef Tensor finished(Tensor t, Options *o)                      # with the requires_grad asked for
cdef Tensor shaped(const int64_t *shape, int ndim, int dtype, Options *o, PyObject *out)
cdef Tensor sized(PyObject *size, int dtype, Options *o, PyObject *out)
cdef Tensor like_format(Tensor t, int dtype, int device, PyObject *format)      # device -1: t's
cdef int kind_of_number(object value) noexcept
