# cython: language_level=3
"""Kernels of median and nanmedian: each row is copied together and its lower median selected."""
from cpython.object cimport PyObject
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from tinygrad_ext.core.copy cimport contiguous
from tinygrad_ext.core.dispatch cimport as_int, register_kernel
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text, view, wrap_dim_c, write_scalar
from tinygrad_ext.core.types cimport (
    ITEMSIZE, TGX_I64, TGX_MAX_DIMS, TGX_NO_MEMORY, int64_t, is_integer, is_native_float, uint64_t,
)

cdef extern from "median.h" nogil:
    int64_t tgx_median(const char *row, int64_t n, int dtype, int skip_nan, void *room)

cdef extern from "math.h":
    double NAN

cdef struct Rows:
    const char *x
    char *values
    int64_t *indices            # NULL: not wanted
    int64_t n
    int dtype
    int itemsize
    int skip_nan


cdef Tensor reduced(Tensor t, uint64_t mask, bint keepdim, int dtype):
    """Fresh tensor of t's shape without the dimensions in mask, or with size 1 in their place."""
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int i, ndim = 0
    for i in range(t.rank):
        if mask >> i & 1:
            if not keepdim:
                continue
            shape[ndim] = 1
        else:
            shape[ndim] = t.sizes[i]
        ndim += 1
    return empty(shape, ndim, dtype)


cdef int _rows(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    cdef Rows *job = <Rows *>ctx
    cdef void *room = malloc(job.n * job.itemsize)
    cdef int64_t i, at
    cdef const char *row
    if room == NULL:
        return TGX_NO_MEMORY
    for i in range(lo, hi):
        row = job.x + i * job.n * job.itemsize
        at = tgx_median(row, job.n, job.dtype, job.skip_nan, room)
        memcpy(job.values + i * job.itemsize, row + at * job.itemsize, job.itemsize)
        if job.indices != NULL:
            job.indices[i] = at
    free(room)
    return 0


cdef int _medians(str title, Tensor rows, int64_t n, Tensor values, Tensor indices, bint skip_nan) except -1:
    """Lower medians of the contiguous rows of n elements."""
    cdef Rows job
    cdef int code
    job.x, job.values, job.n, job.dtype, job.itemsize = rows.data, values.data, n, rows.tid, ITEMSIZE[rows.tid]
    job.indices = <int64_t *>indices.data if indices is not None else NULL
    job.skip_nan = skip_nan
    if rows.count <= 4096:
        code = _rows(&job, 0, values.count)
    else:
        with nogil:
            code = parallel_for(_rows, &job, values.count, 1 + 4096 // n)
    if code:
        raise MemoryError(f"{title}(): no memory for a copy of {n} elements")
    return 0


cdef int _check_dtype(str title, Tensor t) except -1:
    if not is_integer(t.tid) and not is_native_float(t.tid):
        raise NotImplementedError(f'"{title}" not implemented for \'{dtype_title(t.tid)}\': convert the argument first, '
                                  "for example with .float()")
    return 0


cdef Tensor _whole(str title, Tensor t, bint skip_nan):
    cdef Tensor out = empty(NULL, 0, t.tid)
    _check_dtype(title, t)
    if t.count == 0:
        write_scalar(out.data, t.tid, NAN, 0, (<int64_t>1) << 63)
    else:
        _medians(title, contiguous(t), t.count, out, None, skip_nan)
    return out


cdef tuple _along(str title, Tensor t, PyObject *dim, bint keepdim, bint skip_nan):
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int64_t[TGX_MAX_DIMS] strides
    cdef int d = wrap_dim_c(as_int(dim), t.rank), i, k = 0
    cdef Tensor values = reduced(t, <uint64_t>1 << d, keepdim, t.tid), indices = reduced(t, <uint64_t>1 << d, keepdim, TGX_I64)
    if t.rank and t.sizes[d] == 0:
        raise IndexError(f"{title}(): Expected reduction dim {d} to have non-zero size: self has shape {shape_text(t)}")
    _check_dtype(title, t)
    if values.count == 0:
        return values, indices
    for i in range(t.rank):         # the dimension goes last, so that rows lie together
        if i != d:
            shape[k], strides[k] = t.sizes[i], t.strides[i]
            k += 1
    if t.rank:
        shape[k], strides[k] = t.sizes[d], t.strides[d]
    _medians(title, contiguous(view(t, shape, strides, t.rank, 0)), t.sizes[d] if t.rank else 1, values, indices, skip_nan)
    return values, indices


cdef object k_median(PyObject **a):
    return _whole("median", <Tensor><object>a[0], False)


cdef object k_median_dim(PyObject **a):
    return _along("median", <Tensor><object>a[0], a[1], <object>a[2] is True, False)


cdef object k_nanmedian(PyObject **a):
    return _whole("nanmedian", <Tensor><object>a[0], True)


cdef object k_nanmedian_dim(PyObject **a):
    return _along("nanmedian", <Tensor><object>a[0], a[1], <object>a[2] is True, True)


register_kernel("median", k_median)
register_kernel("median_dim", k_median_dim)
register_kernel("nanmedian", k_nanmedian)
register_kernel("nanmedian_dim", k_nanmedian_dim)
