"""Running a reduction, for the kernels of reductions and scans."""
from cpython.object cimport PyObject
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport int64_t, tgx_scalar, uint64_t

cdef extern from "reduce.h" nogil:
    enum:
        TGX_SUM, TGX_MEAN, TGX_NANSUM, TGX_PROD, TGX_VAR, TGX_MAX, TGX_MIN, TGX_ARGMAX, TGX_ARGMIN, TGX_ANY, TGX_ALL
        TGX_COUNT, TGX_NORM0, TGX_NORM1, TGX_NORM2, TGX_NORMP, TGX_ABSMAX, TGX_ABSMIN

cdef uint64_t dim_mask(PyObject *dim, Tensor t) except? 1234567890123
cdef Tensor reduced(Tensor t, uint64_t mask, bint keepdim, int dtype)
cdef int reduce_into(str title, int op, Tensor t, uint64_t mask, Tensor out, Tensor out2, const tgx_scalar *aux) except -1
