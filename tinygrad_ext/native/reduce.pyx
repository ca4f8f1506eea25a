# cython: language_level=3
"""Kernels of reductions. The walk and the folds are in kernels/reduce.c and reduce_isa.h; here: dims, dtypes, outputs.

A reduction's result does not depend on layout or threads, see kernels/reduce.h.
"""
from cpython.object cimport PyObject
from libc.stdlib cimport free, malloc
from tinygrad_ext.core.copy cimport cast, contiguous
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core.dtype cimport dtype_id
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport num_threads, parallel_for
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text, wrap_dim_c
from tinygrad_ext.core.types cimport (
    ITEMSIZE, TGX_BOOL, TGX_I64, TGX_MAX_DIMS, TGX_U8, int64_t, is_integral, tgx_scalar, uint64_t,
)

cdef extern from *:
    """
    #include "isa.h"
    #include "reduce.h"
    extern const tgx_reducer_table tgx_reducers_base, tgx_reducers_avx2, tgx_reducers_avx512;
    static const tgx_reducer_table *tgx_reducers(void) {
        static const tgx_reducer_table *chosen;
        if (!chosen) chosen = TGX_PICK(tgx_reducers);
        return chosen;
    }
    static const tgx_reducer *tgx_reducer_of(int op, int dtype) {
        const tgx_reducer *r = &(*tgx_reducers())[op][dtype];
        return r->block ? r : NULL;
    }
    """
    ctypedef struct tgx_acc:
        pass
    ctypedef struct tgx_reducer:
        pass
    ctypedef struct tgx_reduction:
        const tgx_reducer *reducer
        const tgx_scalar *aux
        char *out
        char *out2
        int osize
        int osize2
        int64_t count
        int64_t ntiles
        int64_t nspans
    const tgx_reducer *tgx_reducer_of(int op, int dtype) nogil
    void tgx_reduction_plan(tgx_reduction *p, const char *x, const int64_t *sizes, const int64_t *strides, int ndim,
                            uint64_t mask, int itemsize) nogil
    bint tgx_reduction_scattered(const tgx_reduction *p) nogil
    void tgx_reduction_tiles(const tgx_reduction *p, int64_t lo, int64_t hi) nogil
    void tgx_reduction_spans(const tgx_reduction *p, int64_t tile, int64_t lo, int64_t hi, tgx_acc *parts) nogil
    void tgx_reduction_fold(const tgx_reduction *p, int64_t tile, tgx_acc *parts) nogil

cdef uint64_t ALL = 0xffffffffffffffff


# ---- which dimensions, which shape ---------------------------------------------------------------------------------

cdef uint64_t dim_mask(PyObject *dim, Tensor t) except? 1234567890123:
    """Bits of the dimensions to reduce: an int, a list of ints, or None and the empty list for all."""
    cdef int64_t[TGX_MAX_DIMS] dims
    cdef uint64_t mask = 0
    cdef int i, d, n
    if dim == <PyObject *>None:
        return ALL
    n = as_ints(dim, dims, TGX_MAX_DIMS, 1)
    if n == 0:
        return ALL
    for i in range(n):
        d = wrap_dim_c(dims[i], t.rank)
        if mask >> d & 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims: name each dimension once, got "
                               f"{[dims[k] for k in range(n)]} for a tensor of shape {shape_text(t)}")
        mask |= <uint64_t>1 << d
    return mask


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


# ---- running -------------------------------------------------------------------------------------------------------

cdef struct Job:
    tgx_reduction *plan
    tgx_acc *parts
    int64_t tile


cdef int _tiles(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    tgx_reduction_tiles((<Job *>ctx).plan, lo, hi)
    return 0


cdef int _spans(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    cdef Job *job = <Job *>ctx
    tgx_reduction_spans(job.plan, job.tile, lo, hi, job.parts)
    return 0


cdef int _run_large(tgx_reduction *plan, int64_t numel) noexcept nogil:
    """Threads share the outputs, or the spans of each output where there are too few."""
    cdef Job job
    job.plan = plan
    if plan.ntiles >= 4 * num_threads() or plan.nspans < 2 or num_threads() == 1:
        return parallel_for(_tiles, &job, plan.ntiles, 1 + GRAIN * plan.ntiles // numel)
    job.parts = <tgx_acc *>malloc(plan.nspans * sizeof(tgx_acc))
    if job.parts == NULL:
        tgx_reduction_tiles(plan, 0, plan.ntiles)
        return 0
    for tile in range(plan.ntiles):
        job.tile = tile
        parallel_for(_spans, &job, plan.nspans, 1)
        tgx_reduction_fold(plan, tile, job.parts)
    free(job.parts)
    return 0


cdef int reduce_into(str title, int op, Tensor t, uint64_t mask, Tensor out, Tensor out2, const tgx_scalar *aux) except -1:
    """Reduce t into the contiguous tensors out and out2, either of which may be None where the reducer allows."""
    cdef tgx_reduction plan
    plan.reducer = tgx_reducer_of(op, t.tid)
    if plan.reducer == NULL:
        raise NotImplementedError(f'"{title}" not implemented for \'{dtype_title(t.tid)}\': convert the argument first, '
                                  "for example with .float()")
    plan.aux = aux
    plan.out = plan.out2 = NULL
    if out is not None:
        plan.out, plan.osize = out.data, ITEMSIZE[out.tid]
    if out2 is not None:
        plan.out2, plan.osize2 = out2.data, ITEMSIZE[out2.tid]
    tgx_reduction_plan(&plan, t.data, t.sizes, t.strides, t.rank, mask, ITEMSIZE[t.tid])
    if t.count <= GRAIN:
        tgx_reduction_tiles(&plan, 0, plan.ntiles)
    elif tgx_reduction_scattered(&plan):
        reduce_into(title, op, contiguous(t), mask, out, out2, aux)
    else:
        with nogil:
            _run_large(&plan, t.count)
    return 0


# ---- sum, mean, prod -----------------------------------------------------------------------------------------------

cdef Tensor _fold(str title, int op, Tensor t, PyObject *dim, bint keepdim, PyObject *dtype):
    """sum-like: integers become int64 unless a dtype is asked for."""
    cdef int want = t.tid if dtype == <PyObject *>None else dtype_id(<object>dtype)
    cdef uint64_t mask = dim_mask(dim, t)
    cdef Tensor out
    if want != t.tid and not (is_integral(t.tid) and is_integral(want)):
        t = cast(t, want)
    out = reduced(t, mask, keepdim, TGX_I64 if is_integral(t.tid) else t.tid)
    reduce_into(title, op, t, mask, out, None, NULL)
    return out if dtype == <PyObject *>None or want == out.tid else cast(out, want)


cdef object k_sum(PyObject **a):
    return _fold("sum", TGX_SUM, <Tensor><object>a[0], <PyObject *>None, False, a[1])


cdef object k_sum_dim(PyObject **a):
    return _fold("sum", TGX_SUM, <Tensor><object>a[0], a[1], <object>a[2] is True, a[3])


cdef object k_nansum(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    return _fold("nansum", TGX_SUM if is_integral(t.tid) else TGX_NANSUM, t, a[1], <object>a[2] is True, a[3])


cdef object k_prod(PyObject **a):
    return _fold("prod", TGX_PROD, <Tensor><object>a[0], <PyObject *>None, False, a[1])


cdef object k_prod_dim(PyObject **a):
    return _fold("prod", TGX_PROD, <Tensor><object>a[0], a[1], <object>a[2] is True, a[3])


cdef Tensor _mean(Tensor t, PyObject *dim, bint keepdim, PyObject *dtype):
    cdef int want = t.tid if dtype == <PyObject *>None else dtype_id(<object>dtype)
    if is_integral(want):
        what = "Input" if dtype == <PyObject *>None else "Optional"
        raise RuntimeError(f"mean(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. Got: "
                           f"{dtype_title(want)}. Pass dtype=float32, or convert the tensor with .float().")
    cdef uint64_t mask = dim_mask(dim, t)
    t = cast(t, want)
    cdef Tensor out = reduced(t, mask, keepdim, want)
    reduce_into("mean", TGX_MEAN, t, mask, out, None, NULL)
    return out


cdef object k_mean(PyObject **a):
    return _mean(<Tensor><object>a[0], <PyObject *>None, False, a[1])


cdef object k_mean_dim(PyObject **a):
    return _mean(<Tensor><object>a[0], a[1], <object>a[2] is True, a[3])


# ---- any, all, count -----------------------------------------------------------------------------------------------

cdef Tensor _truth(str title, int op, Tensor t, PyObject *dim, bint keepdim):
    """any and all: bool, but uint8 stays uint8. Here, unlike elsewhere, an empty list reduces nothing."""
    cdef uint64_t mask = 0 if isinstance(<object>dim, (tuple, list)) and not <object>dim else dim_mask(dim, t)
    cdef Tensor out = reduced(t, mask, keepdim, TGX_U8 if t.tid == TGX_U8 else TGX_BOOL)
    reduce_into(title, op, t, mask, out, None, NULL)
    return out


cdef object k_any(PyObject **a):
    return _truth("any", TGX_ANY, <Tensor><object>a[0], <PyObject *>None, False)


cdef object k_any_dim(PyObject **a):
    return _truth("any", TGX_ANY, <Tensor><object>a[0], a[1], <object>a[2] is True)


cdef object k_all(PyObject **a):
    return _truth("all", TGX_ALL, <Tensor><object>a[0], <PyObject *>None, False)


cdef object k_all_dim(PyObject **a):
    return _truth("all", TGX_ALL, <Tensor><object>a[0], a[1], <object>a[2] is True)


cdef object k_count(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    cdef uint64_t mask = dim_mask(a[1], t)
    cdef Tensor out = reduced(t, mask, False, TGX_I64)
    reduce_into("count_nonzero", TGX_COUNT, t, mask, out, None, NULL)
    return out


# ---- largest and smallest ------------------------------------------------------------------------------------------

cdef int refuse_empty(str title, Tensor t, uint64_t mask) except -1:
    """IndexError when a reduced dimension has no elements and results are wanted."""
    cdef int i
    for i in range(t.rank):
        if mask >> i & 1 and t.sizes[i] == 0:
            if mask == ALL:
                raise RuntimeError(f"{title}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                                   f"reduction dim with the 'dim' argument. Got a tensor of shape {shape_text(t)}.")
            raise IndexError(f"{title}(): Expected reduction dim {i} to have non-zero size: self has shape {shape_text(t)}, "
                             "and no element to choose. Reduce another dimension.")
    return 0


cdef Tensor _extreme(str title, int op, Tensor t, uint64_t mask, bint keepdim):
    cdef Tensor out
    refuse_empty(title, t, mask)
    out = reduced(t, mask, keepdim, t.tid)
    reduce_into(title, op, t, mask, out, None, NULL)
    return out


cdef tuple _extreme_at(str title, int op, Tensor t, PyObject *dim, bint keepdim):
    """(values, indices) along one dimension."""
    cdef uint64_t mask = <uint64_t>1 << wrap_dim_c(as_int(dim), t.rank)
    cdef Tensor values, indices
    refuse_empty(title, t, mask)
    values, indices = reduced(t, mask, keepdim, t.tid), reduced(t, mask, keepdim, TGX_I64)
    reduce_into(title, op, t, mask, values, indices, NULL)
    return values, indices


cdef Tensor _arg(str title, int op, Tensor t, PyObject *dim, bint keepdim):
    cdef uint64_t mask = ALL if dim == <PyObject *>None else <uint64_t>1 << wrap_dim_c(as_int(dim), t.rank)
    cdef Tensor out
    if t.tid == TGX_BOOL:
        raise RuntimeError(f"{title}(): does not support bool input: convert it with .int()")
    if t.count == 0 and mask == ALL:
        raise IndexError(f"{title}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                         f"with the 'dim' argument. Got a tensor of shape {shape_text(t)}.")
    refuse_empty(title, t, mask)
    out = reduced(t, mask, keepdim, TGX_I64)
    reduce_into(title, op, t, mask, None, out, NULL)
    return out


cdef object k_max(PyObject **a):
    return _extreme("max", TGX_MAX, <Tensor><object>a[0], ALL, False)


cdef object k_min(PyObject **a):
    return _extreme("min", TGX_MIN, <Tensor><object>a[0], ALL, False)


cdef object k_amax(PyObject **a):
    return _extreme("amax", TGX_MAX, <Tensor><object>a[0], dim_mask(a[1], <Tensor><object>a[0]), <object>a[2] is True)


cdef object k_amin(PyObject **a):
    return _extreme("amin", TGX_MIN, <Tensor><object>a[0], dim_mask(a[1], <Tensor><object>a[0]), <object>a[2] is True)


cdef object k_max_dim(PyObject **a):
    return _extreme_at("max", TGX_ARGMAX, <Tensor><object>a[0], a[1], <object>a[2] is True)


cdef object k_min_dim(PyObject **a):
    return _extreme_at("min", TGX_ARGMIN, <Tensor><object>a[0], a[1], <object>a[2] is True)


cdef object k_argmax(PyObject **a):
    return _arg("argmax", TGX_ARGMAX, <Tensor><object>a[0], a[1], <object>a[2] is True)


cdef object k_argmin(PyObject **a):
    return _arg("argmin", TGX_ARGMIN, <Tensor><object>a[0], a[1], <object>a[2] is True)


register_kernel("sum", k_sum)
register_kernel("sum_dim", k_sum_dim)
register_kernel("nansum", k_nansum)
register_kernel("prod", k_prod)
register_kernel("prod_dim", k_prod_dim)
register_kernel("mean", k_mean)
register_kernel("mean_dim", k_mean_dim)
register_kernel("any", k_any)
register_kernel("any_dim", k_any_dim)
register_kernel("all", k_all)
register_kernel("all_dim", k_all_dim)
register_kernel("count_nonzero", k_count)
register_kernel("max", k_max)
register_kernel("min", k_min)
register_kernel("amax", k_amax)
register_kernel("amin", k_amin)
register_kernel("max_dim", k_max_dim)
register_kernel("min_dim", k_min_dim)
register_kernel("argmax", k_argmax)
register_kernel("argmin", k_argmin)
