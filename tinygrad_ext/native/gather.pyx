# cython: language_level=3
"""gather, and the scatter family: an index tensor as large as the result names places along one dimension.

Gathering runs in the threads of the iterator. Scattering is cut along another dimension than the indexed one, so that
no two threads write to one place and sums add up in the order of the index whatever the number of threads.
All indices are checked before the first write.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport cast, clone, fill, zero
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core.iterate cimport GRAIN, iter_add, iter_begin, iter_run, iter_run_serial, tgx_iter
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text, view, wrap_dim_c
from tinygrad_ext.core.types cimport (
    ITEMSIZE, TGX_BOOL, TGX_I32, TGX_I64, TGX_MAX_DIMS, TGX_U8, int64_t, is_complex, is_inexact, tgx_loop, tgx_scalar,
)
from tinygrad_ext.native.advanced cimport delivered, target_of

cdef extern from "gather.h" nogil:
    enum:
        TGX_SCATTER_SET
        TGX_SCATTER_ADD
        TGX_SCATTER_MUL
        TGX_SCATTER_MAX
        TGX_SCATTER_MIN
    tgx_loop tgx_check_index()
    tgx_loop tgx_gather_loop(int width)
    tgx_loop tgx_scatter_loop(int kind, int dtype)
    tgx_loop tgx_mean_loop(int dtype)

cdef struct Walk:               # the index's shape, walked with one addressed tensor
    int ndim
    int dim
    int cut                     # dimension that threads share
    int width
    int64_t[TGX_MAX_DIMS] shape
    int64_t[TGX_MAX_DIMS] table_strides         # 0 along dim
    const int64_t *index_strides
    const int64_t *source_strides
    char *table
    char *index
    char *source
    tgx_loop loop
    tgx_scalar[2] aux


# ---- checks --------------------------------------------------------------------------------------------------------

cdef Tensor _at_least_1d(Tensor t):
    cdef int64_t one = 1
    return view(t, &one, &one, 1, 0) if t.rank == 0 else t


cdef Tensor _checked_index(Tensor index, int rank, str title, str what):
    if index.tid != TGX_I32 and index.tid != TGX_I64:
        raise RuntimeError(f"{title}(): Expected dtype int32/int64 for index, got {dtype_title(index.tid)}")
    if (index.rank if index.rank else 1) != (rank if rank else 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {what} tensor: {title}() got "
                           f"{index.rank} and {rank}")
    return _at_least_1d(cast(index, TGX_I64))


cdef int _check_sizes(Tensor table, Tensor index, int dim, str title) except -1:
    cdef int i
    for i in range(index.rank):
        if i != dim and index.sizes[i] > table.sizes[i]:
            if title == "gather":
                raise RuntimeError(f"Size does not match at dimension {i} expected index {shape_text(index)} to be no "
                                   "larger than self "
                                   f"{shape_text(table)} apart from dimension {dim}")
            raise RuntimeError(f"Expected index {shape_text(index)} to be no larger than self {shape_text(table)} "
                               "apart from "
                               f"dimension {dim}")
    return 0


cdef int _check_source(Tensor table, Tensor index, Tensor source, int dim) except -1:
    cdef int i
    if source.rank != index.rank:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor: scatter() got "
                           f"{index.rank} and {source.rank}")
    for i in range(index.rank):
        if index.sizes[i] > source.sizes[i]:
            raise RuntimeError(f"Expected index {shape_text(index)} to be no larger than self {shape_text(table)} "
                               "apart from "
                               f"dimension {dim} and to be no larger size than src {shape_text(source)}")
    return 0


cdef int _check_bounds(Tensor index, int dim, int64_t size) except -1:
    """RuntimeError naming the first index outside the bounds."""
    cdef tgx_iter it
    cdef tgx_scalar aux
    cdef int code
    if index.count == 0:
        return 0
    aux.i = size
    iter_begin(&it, index.sizes, index.rank)
    iter_add(&it, index.data, index.sizes, index.strides, index.rank, 8)
    if it.numel <= GRAIN:
        code = iter_run_serial(&it, tgx_check_index(), &aux)
    else:
        with nogil:
            code = iter_run_serial(&it, tgx_check_index(), &aux)
    if code:
        raise _outside(index, dim, size)
    return 0


cdef object _outside(Tensor index, int dim, int64_t size):
    cdef Tensor c = clone(index)
    cdef int64_t i, at
    for i in range(c.count):
        at = (<int64_t *>c.data)[i]
        if at < 0 or at >= size:
            return RuntimeError(f"index {at} is out of bounds for dimension {dim} with size {size}")
    return RuntimeError(f"an index is out of bounds for dimension {dim} with size {size}")


# ---- gather --------------------------------------------------------------------------------------------------------

cdef object k_gather(PyObject **a):
    """gather(self, dim, index, sparse_grad)."""
    cdef Tensor given = <Tensor><object>a[0], self = _at_least_1d(given), out, o
    cdef int dim = wrap_dim_c(as_int(a[1]), given.rank), i, code
    cdef Tensor index = <Tensor><object>a[2]
    cdef int64_t[TGX_MAX_DIMS] strides
    cdef tgx_scalar[2] aux
    cdef tgx_iter it
    cdef tgx_loop loop = tgx_gather_loop(ITEMSIZE[self.tid])
    if index.count == 0:
        return empty(index.sizes, index.rank, self.tid)     # of any dtype and rank, as PyTorch takes it
    index = _checked_index(index, given.rank, "gather", "input")
    _check_sizes(self, index, dim, "gather")
    out = empty(index.sizes, (<Tensor><object>a[2]).rank, self.tid)
    o = _at_least_1d(out)
    for i in range(self.rank):
        strides[i] = 0 if i == dim else self.strides[i]
    aux[0].i, aux[1].i = self.sizes[dim], self.strides[dim] * ITEMSIZE[self.tid]
    iter_begin(&it, o.sizes, o.rank)
    iter_add(&it, o.data, o.sizes, o.strides, o.rank, ITEMSIZE[o.tid])
    iter_add(&it, self.data, o.sizes, strides, o.rank, ITEMSIZE[o.tid])
    iter_add(&it, index.data, index.sizes, index.strides, index.rank, 8)
    if it.numel > GRAIN:
        with nogil:
            code = iter_run(&it, loop, aux)
    else:
        code = iter_run(&it, loop, aux)
    if code:
        raise _outside(index, dim, self.sizes[dim])
    return out


# ---- scatter -------------------------------------------------------------------------------------------------------

cdef int _part(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    """The walk over [lo, hi) of the cut dimension."""
    cdef Walk *w = <Walk *>ctx
    cdef tgx_iter it
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int i
    for i in range(w.ndim):
        shape[i] = w.shape[i]
    if w.cut >= 0:
        shape[w.cut] = hi - lo
    else:
        lo = 0
    iter_begin(&it, shape, w.ndim)
    i = w.cut if w.cut >= 0 else 0
    iter_add(&it, w.index + lo * w.index_strides[i] * 8, shape, w.index_strides, w.ndim, 8)
    iter_add(&it, w.table + lo * w.table_strides[i] * w.width, shape, w.table_strides, w.ndim, w.width)
    iter_add(&it, w.source + lo * w.source_strides[i] * w.width, shape, w.source_strides, w.ndim, w.width)
    return iter_run_serial(&it, w.loop, w.aux)


cdef int scatter_into(Tensor table, int dim, Tensor index, Tensor source, int kind, str title) except -1:
    """Write source (of the index's rank, or one element for all) into table; all have at least one dimension."""
    cdef Walk w
    cdef int64_t[TGX_MAX_DIMS] still
    cdef int i, code
    w.loop = tgx_scatter_loop(kind, table.tid)
    if w.loop == NULL:
        raise NotImplementedError(f'"{title}" not implemented for \'{dtype_title(table.tid)}\': convert self and src '
                                  'first, for '
                                  "example with .float()")
    _check_sizes(table, index, dim, title)
    _check_bounds(index, dim, table.sizes[dim])
    if index.count == 0:
        return 0
    w.ndim, w.dim, w.cut, w.width = index.rank, dim, -1, ITEMSIZE[table.tid]
    for i in range(index.rank):
        w.shape[i] = index.sizes[i]
        w.table_strides[i] = 0 if i == dim else table.strides[i]
        still[i] = 0
        if i != dim and (w.cut < 0 or index.sizes[i] > index.sizes[w.cut]):
            w.cut = i
    w.index_strides = index.strides
    w.source_strides = source.strides if source.rank == index.rank else still
    w.table, w.index, w.source = table.data, index.data, source.data
    w.aux[0].i, w.aux[1].i = table.sizes[dim], table.strides[dim] * w.width
    if index.count <= GRAIN:
        code = _part(&w, 0, 1 if w.cut < 0 else w.shape[w.cut])
    else:
        with nogil:
            code = _all_parts(&w, index.count)
    if code:        # the indices were right a moment ago: another thread writes to them
        raise _outside(index, dim, table.sizes[dim])
    return 0


cdef int _all_parts(Walk *w, int64_t count) noexcept nogil:
    if w.cut < 0:
        return _part(w, 0, 1)
    return parallel_for(_part, w, w.shape[w.cut], 1 + GRAIN * w.shape[w.cut] // count)


cdef Tensor _source(object src, Tensor self, str title):
    """A source tensor of self's dtype, or a number as a 0-dim tensor."""
    cdef Tensor t
    if not isinstance(src, Tensor):
        t = empty(NULL, 0, self.tid)
        fill(t, src)
        return t
    t = <Tensor>src
    if t.tid != self.tid:
        raise RuntimeError(f"{title}(): Expected self.dtype to be equal to src.dtype, got {dtype_title(self.tid)} and "
                           f"{dtype_title(t.tid)}")
    return _at_least_1d(t)


cdef Tensor _scattered(PyObject **a, object src, int kind, PyObject *into, str title):
    """self with src scattered into it, as the four scatter overloads and scatter_add share it."""
    cdef Tensor self = <Tensor><object>a[0], out, source = _source(src, self, title)
    cdef int dim = wrap_dim_c(as_int(a[1]), self.rank)
    cdef Tensor index = _checked_index(<Tensor><object>a[2], self.rank, title, "self")
    if source.rank:
        _check_source(_at_least_1d(self), index, source, dim)
    out = target_of(into, self)
    _scattered_into(out, dim, index, source, kind, title)
    return out


cdef int _scattered_into(Tensor out, int dim, Tensor index, Tensor source, int kind, str title) except -1:
    """scatter_into after operands that share out's memory are copied."""
    if source.storage is out.storage:
        source = clone(source)
    if index.storage is out.storage:
        index = clone(index)
    return scatter_into(_at_least_1d(out), dim, index, source, kind, title)


cdef object k_scatter(PyObject **a):
    """scatter(self, dim, index, src or value)."""
    return delivered(_scattered(a, <object>a[3], TGX_SCATTER_SET, a[4], "scatter"), a[4])


cdef object k_scatter_with(PyObject **a):
    """scatter(self, dim, index, src or value, *, reduce)."""
    cdef object how = <object>a[4]
    if how != "add" and how != "multiply":
        raise RuntimeError(f"reduce argument must be either add or multiply, got '{how}'. scatter_reduce() has sum, "
                           "prod, mean, amax and "
                           "amin.")
    return delivered(_scattered(a, <object>a[3], TGX_SCATTER_ADD if how == "add" else TGX_SCATTER_MUL, a[5],
                                "scatter"), a[5])


cdef object k_scatter_add(PyObject **a):
    """scatter_add(self, dim, index, src)."""
    return delivered(_scattered(a, <object>a[3], TGX_SCATTER_ADD, a[4], "scatter"), a[4])


cdef object k_gather_backward(PyObject **a):
    """_gather_backward(grad, size, dim, index): zeros of a size with grad added where gather read it."""
    cdef Tensor grad = <Tensor><object>a[0], index, out
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int ndim = as_ints(a[1], shape, TGX_MAX_DIMS, 1), dim = wrap_dim_c(as_int(a[2]), ndim)
    out = empty(shape, ndim, grad.tid)
    zero(out)
    if grad.count == 0:
        return out
    index, grad = _checked_index(<Tensor><object>a[3], ndim, "gather", "input"), _at_least_1d(grad)
    _check_source(_at_least_1d(out), index, grad, dim)
    scatter_into(_at_least_1d(out), dim, index, grad, TGX_SCATTER_ADD, "gather")
    return out


# ---- scatter_reduce ------------------------------------------------------------------------------------------------

_REDUCTIONS = {"sum": TGX_SCATTER_ADD, "prod": TGX_SCATTER_MUL, "mean": TGX_SCATTER_ADD, "amax": TGX_SCATTER_MAX,
               "amin": TGX_SCATTER_MIN}


cdef object _neutral(str how, int tid):
    """What changes nothing in a reduction."""
    if how == "sum" or how == "mean":
        return 0
    if how == "prod":
        return 1
    low = how == "amax"
    if tid == TGX_BOOL:
        return not low
    if is_inexact(tid):
        return float("-inf") if low else float("inf")
    bits = 8 * ITEMSIZE[tid]
    if tid == TGX_U8:
        return 0 if low else 255
    return -(1 << (bits - 1)) if low else (1 << (bits - 1)) - 1


cdef int _divide(Tensor out, int dim, Tensor index, bint include_self) except -1:
    """Sums become means: divide by the number of elements that went into each."""
    cdef Tensor counts = empty(out.sizes, out.rank, TGX_I64), one = empty(NULL, 0, TGX_I64)
    cdef tgx_iter it
    cdef tgx_loop loop = tgx_mean_loop(out.tid)
    if loop == NULL:
        raise NotImplementedError(f'"scatter_reduce" mean not implemented for \'{dtype_title(out.tid)}\': convert self '
                                  'and src '
                                  "first, for example with .float()")
    fill(counts, 1 if include_self else 0)
    fill(one, 1)
    scatter_into(counts, dim, index, one, TGX_SCATTER_ADD, "scatter_reduce")
    iter_begin(&it, out.sizes, out.rank)
    iter_add(&it, out.data, out.sizes, out.strides, out.rank, ITEMSIZE[out.tid])
    iter_add(&it, counts.data, counts.sizes, counts.strides, counts.rank, 8)
    if it.numel <= GRAIN:
        iter_run(&it, loop, NULL)
        return 0
    with nogil:
        iter_run(&it, loop, NULL)
    return 0


cdef object k_scatter_reduce(PyObject **a):
    """scatter_reduce(self, dim, index, src, reduce, *, include_self)."""
    cdef Tensor self = <Tensor><object>a[0], out, neutral
    cdef str how = <object>a[4]
    cdef bint include_self = <object>a[5]
    cdef int dim = wrap_dim_c(as_int(a[1]), self.rank)
    cdef Tensor index
    if how not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {how}")
    if is_complex(self.tid):
        raise NotImplementedError(f'"scatter_reduce" not implemented for \'{dtype_title(self.tid)}\': scatter_add '
                                  'takes complex '
                                  "numbers")
    if not include_self:
        index = _at_least_1d(cast(_checked_index(<Tensor><object>a[2], self.rank, "scatter", "self"), TGX_I64))
        _check_source(_at_least_1d(self), index, _source(<object>a[3], self, "scatter"), dim)
        out = target_of(a[6], self)
        neutral = _source(_neutral(how, self.tid), self, "scatter")
        scatter_into(_at_least_1d(out), dim, index, neutral, TGX_SCATTER_SET, "scatter_reduce")
        _scattered_into(out, dim, index, _source(<object>a[3], self, "scatter"), _REDUCTIONS[how], "scatter_reduce")
    else:
        out = _scattered(a, <object>a[3], _REDUCTIONS[how], a[6], "scatter")
    if how == "mean":
        index = _checked_index(<Tensor><object>a[2], self.rank, "scatter", "self")
        _divide(_at_least_1d(out), dim, index, include_self)
    return delivered(out, a[6])


register_kernel("gather", k_gather)
register_kernel("gather_backward", k_gather_backward)
register_kernel("scatter", k_scatter)
register_kernel("scatter_with", k_scatter_with)
register_kernel("scatter_add", k_scatter_add)
register_kernel("scatter_reduce", k_scatter_reduce)
