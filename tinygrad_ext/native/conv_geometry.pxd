"""Sizes of a convolution, read from its arguments and checked as PyTorch does."""
from cpython.object cimport PyObject
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport int64_t

cdef struct Geometry:
    int dims                            # 1 or 2
    bint batched
    int64_t n, channels, outputs, groups
    int64_t[2] size                     # of the input: height, width
    int64_t[2] kernel
    int64_t[2] out
    int64_t[2] stride
    int64_t[2] pad                      # in front; what is needed behind follows from `out`
    int64_t[2] dilation

cdef int read_pair(PyObject *arg, int dims, str name, int64_t *into) except -1
cdef int read_window(Geometry *g, PyObject *stride, PyObject *dilation, PyObject *groups) except -1
cdef int read_planes(Geometry *g, const int64_t *sizes, int rank) except -1
cdef int read_operands(Geometry *g, Tensor x, Tensor w, PyObject *stride, PyObject *dilation, PyObject *groups) except -1
cdef int read_padding(Geometry *g, PyObject *padding) except -1
cdef int check_operands(Tensor x, Tensor w, Tensor bias, int dims) except -1
cdef int check_sizes(Geometry *g, Tensor x, Tensor w, Tensor bias) except -1
cdef Tensor new_images(Geometry *g, int64_t channels, const int64_t *image, Tensor like)
