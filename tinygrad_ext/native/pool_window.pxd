"""Windows of a pooling, read from its arguments and checked as PyTorch does."""
from cpython.object cimport PyObject
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport int64_t

cdef struct Window:
    int dims
    int64_t[2] size             # of the input
    int64_t[2] out
    int64_t[2] kernel
    int64_t[2] stride
    int64_t[2] pad
    int64_t[2] dilation

cdef int read_pair(PyObject *arg, int dims, str op, str name, int64_t *into, int64_t neutral) except -1
cdef int read_window(Window *w, PyObject **a, int dims, str op) except -1       # kernel_size, stride, padding
cdef int read_input(Window *w, Tensor x, str op) except -1
cdef int check_window(Window *w, str op) except -1
cdef int read_out_sizes(Window *w, bint ceil_mode, Tensor x, str op) except -1
cdef int read_adaptive(Window *w, Tensor x, PyObject *size, int dims, str op) except -1
