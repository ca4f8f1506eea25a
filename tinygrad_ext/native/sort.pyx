# cython: language_level=3
"""sort and topk along one dimension.

The dimension is brought to the end of a contiguous copy (rows lie behind each other), each row is sorted on its own,
rows in several threads, and the results go back to the order of dimensions of the input.
"""
from cpython.object cimport PyObject
from libc.stdlib cimport free, malloc
from tinygrad_ext.core.copy cimport contiguous, copy_into
from tinygrad_ext.core.dispatch cimport as_int, register_kernel
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.tensor cimport CONTIGUOUS, Tensor, dtype_title, empty, empty_like, view, wrap_dim_c
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_I64, TGX_MAX_DIMS, TGX_NO_MEMORY, int64_t, is_complex

cdef extern from "sort.h" nogil:
    size_t tgx_sort_room(int dtype, int64_t n)
    void tgx_sort_row(int dtype, const char *row, int64_t n, int64_t k, int descending, char *values,
                      int64_t *indices, void *room)

cdef struct Rows:
    const char *x
    char *values
    int64_t *indices
    int64_t n
    int64_t k
    int dtype
    int width
    bint descending


cdef int _rows(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    cdef Rows *r = <Rows *>ctx
    cdef char[4096] small
    cdef size_t size = tgx_sort_room(r.dtype, r.n)
    cdef void *room = <void *>small
    cdef ptrdiff_t i
    if size > sizeof(small):
        room = malloc(size)
        if room == NULL:
            return TGX_NO_MEMORY
    for i in range(lo, hi):
        tgx_sort_row(r.dtype, r.x + i * r.n * r.width, r.n, r.k, r.descending, r.values + i * r.k * r.width,
                     r.indices + i * r.k,
                     room)
    if size > sizeof(small):
        free(room)
    return 0


cdef Tensor _swapped(Tensor t, int dim):
    """t with dimension `dim` in the last place and the last one in its place."""
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int64_t[TGX_MAX_DIMS] strides
    cdef int i, last = t.rank - 1
    if t.rank == 0 or dim == last:
        return t
    for i in range(t.rank):
        shape[i], strides[i] = t.sizes[i], t.strides[i]
    shape[dim], strides[dim], shape[last], strides[last] = shape[last], strides[last], shape[dim], strides[dim]
    return view(t, shape, strides, t.rank, 0)


cdef tuple _sorted(Tensor self, int dim, int64_t k, bint descending, Tensor values, Tensor indices):
    """Fill values and indices with the first k of each sorted row."""
    cdef Tensor x = contiguous(_swapped(self, dim)), v = _swapped(values, dim), i = _swapped(indices, dim)
    cdef Rows r
    cdef int64_t count
    cdef int code
    r.n = x.sizes[x.rank - 1] if x.rank else 1
    r.k, r.dtype, r.width, r.descending = k, x.tid, ITEMSIZE[x.tid], descending
    if values.count == 0:
        return values, indices
    if r.n >= (<int64_t>1 << 32) and r.width < 8:
        raise RuntimeError(f"sort: rows of more than 2^32 elements are possible for 64-bit dtypes only, got {r.n}")
    # contiguous results of their own where the wanted ones are laid out otherwise
    v, i = _room_like(v), _room_like(i)
    r.x, r.values, r.indices = x.data, v.data, <int64_t *>i.data
    count = x.count // r.n
    if x.count <= GRAIN // 8:
        code = _rows(&r, 0, count)
    else:
        with nogil:
            code = parallel_for(_rows, &r, count, 1 + GRAIN // 8 // r.n)
    if code:
        raise MemoryError(f"sort: no memory for {tgx_sort_room(r.dtype, r.n)} bytes of scratch space")
    if v.data != values.data:
        copy_into(_swapped(values, dim), v)
        copy_into(_swapped(indices, dim), i)
    return values, indices


cdef Tensor _room_like(Tensor t):
    return t if t.bits & CONTIGUOUS else empty(t.sizes, t.rank, t.tid)


cdef int _check_dtype(Tensor self, str title) except -1:
    if is_complex(self.tid):
        raise RuntimeError(f"{title}() does not support complex dtypes, which have no order: got "
                           f"{dtype_title(self.tid)}. Sort by "
                           "abs() or another real number.")
    return 0


cdef tuple _sort(Tensor self, object dim, bint descending):
    cdef int d = wrap_dim_c(<int64_t>dim, self.rank)
    cdef Tensor values, indices
    _check_dtype(self, "sort")
    values, indices = empty_like(self, self.tid), empty_like(self, TGX_I64)
    return _sorted(self, d, self.sizes[d] if self.rank else 1, descending, values, indices)


cdef object k_sort(PyObject **a):
    """sort(self, dim, descending)."""
    return _sort(<Tensor><object>a[0], <object>a[1], <object>a[2])


cdef object k_sort_stable(PyObject **a):
    """sort.stable(self, stable, dim, descending): every sort here is stable."""
    return _sort(<Tensor><object>a[0], <object>a[2], <object>a[3])


cdef object k_topk(PyObject **a):
    """topk(self, k, dim, largest, sorted): always sorted; of equal elements the first ones."""
    cdef Tensor self = <Tensor><object>a[0]
    cdef int64_t k = as_int(a[1]), n
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int i, dim = wrap_dim_c(as_int(a[2]), self.rank)
    n = self.sizes[dim] if self.rank else 1
    _check_dtype(self, "topk")
    if k < 0 or k > n:
        raise RuntimeError(f"selected index k out of range: topk() got k={k} for dimension {dim} with size {n}")
    for i in range(self.rank):
        shape[i] = k if i == dim else self.sizes[i]
    if self.rank == 0:      # no dimension to shorten: as in PyTorch the one element, for k=0 too
        k = 1
    return _sorted(self, dim, k, <object>a[3], empty(shape, self.rank, self.tid), empty(shape, self.rank, TGX_I64))


register_kernel("sort", k_sort)
register_kernel("sort_stable", k_sort_stable)
register_kernel("topk", k_topk)
