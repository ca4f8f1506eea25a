"""The dtypes that plugins brought, by number."""
from tinygrad_ext.core.data.types cimport int64_t, tgx_scalar, uint16_t

cdef extern from "coded.h" nogil:
    ctypedef void (*tgx_widen_fn)(const void *codes, float *to, int64_t n) noexcept nogil
    ctypedef void (*tgx_narrow_fn)(const float *source, void *codes, int64_t n) noexcept nogil
    ctypedef struct tgx_coded:
        int itemsize
        tgx_widen_fn widen
        tgx_narrow_fn narrow
        const float *values
        const float *steps[2]
        const uint16_t *codes[2]
        int64_t[2] nsteps
        uint16_t[2] nan

cdef class Row:                     # how one dtype converts
    cdef tgx_coded c
    cdef readonly object owner      # who brought it
    cdef object kept                # the memory behind c

cdef Row row_of(int dtype)                                      # RuntimeError when what brought it is gone
cdef bint is_here(int dtype) noexcept                           # somebody brings it now
cdef object coded_get(const char *p, int dtype)
cdef int coded_put(char *p, int dtype, double f, double im) noexcept

cdef inline tgx_scalar aux_of(Row row) noexcept:
    """What the two loops are given."""
    cdef tgx_scalar s
    s.f, s.im, s.i, s.given = 0, 0, <int64_t><size_t>&row.c, 0
    return s
