"""The functions of the table on tensors, by address."""
from cpython.object cimport PyObject
from tinygrad_ext.core.data.types cimport int32_t, int64_t, uint64_t
from tinygrad_ext.core.loops.parallel cimport range_fn
from tinygrad_ext.extension.public cimport tensor_t, tgx_ctx, tgx_dtype, tgx_release, tgx_view

cdef bint unlocked(tgx_ctx *c) noexcept
cdef int api_view(tgx_ctx *c, PyObject *t, tgx_view *v) noexcept
cdef int api_view_mut(tgx_ctx *c, PyObject *t, tgx_view *v) noexcept
cdef int api_geometry(tgx_ctx *c, PyObject *t, tgx_view *v) noexcept
cdef tensor_t *api_empty(tgx_ctx *c, tgx_dtype dt, int32_t ndim, const int64_t *sizes, tensor_t *beside) except NULL
cdef tensor_t *api_empty_like(tgx_ctx *c, tensor_t *t, tgx_dtype dt) except NULL
cdef tensor_t *api_contiguous(tgx_ctx *c, tensor_t *t) except NULL
cdef tensor_t *api_strided(tgx_ctx *c, tensor_t *t, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                           int64_t offset) except NULL
cdef tensor_t *api_wrap(tgx_ctx *c, const tgx_view *v, tgx_release forget, void *owner) except NULL
cdef PyObject *api_retain(PyObject *t) noexcept
cdef void api_release(PyObject *t) noexcept
cdef void *api_memory(tgx_ctx *c, size_t nbytes) except NULL
cdef int api_parallel_for(tgx_ctx *c, range_fn run, void *arg, int64_t count, int64_t grain) noexcept
cdef int api_interrupted(tgx_ctx *c) except -1
cdef int api_random_bits(tgx_ctx *c, PyObject *g, uint64_t *out, int64_t n) except -1
cdef int api_random_uniform(tgx_ctx *c, PyObject *g, double *out, int64_t n) except -1
cdef int api_random_normal(tgx_ctx *c, PyObject *g, double *out, int64_t n) except -1
