"""The walk over strided operands (kernels/iterate.h), in one thread or several."""
from tinygrad_ext.core.data.types cimport TGX_MAX_DIMS, TGX_MAX_OPERANDS, int64_t, tgx_loop, tgx_scalar

cdef extern from "casts.h" nogil:
    ctypedef struct tgx_casts:
        pass

cdef extern from "iterate.h" nogil:
    ctypedef void (*tgx_plane)(char **data, const ptrdiff_t *inner, const ptrdiff_t *outer, int64_t n0, int64_t n1) noexcept nogil
    ctypedef struct tgx_iter:
        int nop
        int ndim
        int pure
        int64_t numel
        int64_t[TGX_MAX_DIMS] shape
        char *data[TGX_MAX_OPERANDS]
        tgx_plane plane

cdef enum:
    GRAIN = 32768          # elements below which a second thread, or letting go of the GIL, costs more than it gives

cdef void use_casts(const tgx_casts *casts) noexcept        # before the first walk
cdef void iter_begin(tgx_iter *it, const int64_t *shape, int ndim) noexcept nogil
cdef void iter_add(tgx_iter *it, char *data, const int64_t *shape, const int64_t *strides, int ndim, int itemsize) noexcept nogil
cdef int iter_run(tgx_iter *it, tgx_loop loop, const tgx_scalar *aux) noexcept nogil
cdef int iter_run_serial(tgx_iter *it, tgx_loop loop, const tgx_scalar *aux) noexcept nogil     # in the caller's thread
