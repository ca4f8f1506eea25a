# cython: language_level=3
"""searchsorted: where values would go in sorted rows."""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport cast, contiguous, copy_into
from tinygrad_ext.core.dispatch cimport register_kernel
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_I64, int64_t, is_complex, is_half, promote

cdef extern from "search.h" nogil:
    void tgx_search_row(int dtype, const char *row, const int64_t *order, int64_t n, const char *values,
                        int64_t count, int right,
                        int64_t *out)

cdef struct Search:
    const char *x
    const char *values
    const int64_t *order
    int64_t *out
    int64_t n           # elements of a sorted row
    int64_t per_row     # values searched in each
    bint one_row
    bint right
    int dtype
    int width


cdef int _search(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    """Values lo..hi, counted over all rows."""
    cdef Search *s = <Search *>ctx
    cdef int64_t row, end, at
    while lo < hi:
        row = 0 if s.one_row else lo // s.per_row
        end = hi if s.one_row else min(hi, (row + 1) * s.per_row)
        at = row * s.n
        tgx_search_row(s.dtype, s.x + at * s.width, s.order + at if s.order != NULL else NULL, s.n,
                       s.values + lo * s.width,
                       end - lo, s.right, s.out + lo)
        lo = end
    return 0


cdef int _check_rows(Tensor x, Tensor values) except -1:
    cdef int i
    cdef bint fits = x.rank == values.rank
    if x.rank == 1:
        return 0
    if x.rank == 0:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
                           "dimension")
    for i in range(x.rank - 1):
        if fits and x.sizes[i] != values.sizes[i]:
            fits = False
    if not fits:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions "
                           "of boundaries "
                           f"tensor and input value tensor must match, but we got boundaries tensor {shape_text(x)} "
                           "and input "
                           f"value tensor {shape_text(values)}")
    return 0


cdef Tensor _order(Tensor sorter, Tensor x):
    """The sorter, copied and checked: every number in it must lie inside the row, whoever writes to the sorter."""
    cdef Tensor t = empty(sorter.sizes, sorter.rank, sorter.tid)
    cdef int64_t i, n = x.sizes[x.rank - 1]
    copy_into(t, sorter)
    if t.tid != TGX_I64:
        raise RuntimeError("torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                           f"{dtype_title(t.tid)}")
    if t.rank != x.rank or any([t.sizes[k] != x.sizes[k] for k in range(x.rank)]):
        raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
                           f"tensor {shape_text(x)} "
                           f"and got sorter tensor {shape_text(t)}")
    for i in range(t.count):
        if not 0 <= (<int64_t *>t.data)[i] < n:
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return t


cdef object k_searchsorted(PyObject **a):
    """_searchsorted(sorted_sequence, self, right, sorter)."""
    cdef Tensor x = contiguous(<Tensor><object>a[0]), values = contiguous(<Tensor><object>a[1]), out, order
    cdef int dtype = promote(x.tid, values.tid)
    cdef Search s
    if is_complex(dtype) or is_half(dtype):
        raise NotImplementedError(f'"searchsorted" not implemented for \'{dtype_title(dtype)}\': convert both tensors '
                                  'first, for '
                                  "example with .float()")
    _check_rows(x, values)
    order = _order(<object>a[3], x) if a[3] != <PyObject *>None else None
    x, values = cast(x, dtype), cast(values, dtype)
    out = empty(values.sizes, values.rank, TGX_I64)
    s.x, s.values, s.out = x.data, values.data, <int64_t *>out.data
    s.order = <int64_t *>order.data if order is not None else NULL
    s.n, s.one_row, s.right = x.sizes[x.rank - 1], x.rank == 1, <object>a[2]
    s.dtype, s.width = dtype, ITEMSIZE[dtype]
    s.per_row = values.sizes[values.rank - 1] if values.rank else 1
    if out.count <= 4096:
        _search(&s, 0, out.count)
    else:
        with nogil:
            parallel_for(_search, &s, out.count, 4096)
    return out


register_kernel("searchsorted", k_searchsorted)
