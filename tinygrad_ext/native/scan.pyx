# cython: language_level=3
"""Kernels of scans: running sums, products and extremes along a dimension. See kernels/scan.h."""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport cast, contiguous
from tinygrad_ext.core.dispatch cimport as_int, register_kernel
from tinygrad_ext.core.dtype cimport dtype_id
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text, wrap_dim_c
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_F32, TGX_F64, TGX_I64, int64_t, is_integral

cdef extern from *:
    """
    #include "isa.h"
    #include "scan.h"
    extern const tgx_scan_table tgx_scans_base, tgx_scans_avx2, tgx_scans_avx512;
    static tgx_scan tgx_scan_of(int op, int dtype) {
        static const tgx_scan_table *chosen;
        if (!chosen) chosen = TGX_PICK(tgx_scans);
        return (*chosen)[op][dtype];
    }
    """
    enum:
        TGX_CUMSUM, TGX_CUMPROD, TGX_CUMMAX, TGX_CUMMIN
    ctypedef void (*tgx_scan)(const void *, int, int64_t) noexcept nogil
    ctypedef struct tgx_scan_plan:
        tgx_scan scan
        const char *x
        char *out
        char *out2
        int osize
        int64_t ntiles
    tgx_scan tgx_scan_of(int op, int dtype) nogil
    void tgx_plan_scan(tgx_scan_plan *p, const int64_t *sizes, const int64_t *strides, int ndim, int dim, int itemsize) nogil
    void tgx_linear_scan(const char *x, const char *decay, char *h, int64_t n, int64_t inner, int64_t lo, int64_t hi,
                         int dtype) nogil
    void tgx_scan_tiles(const tgx_scan_plan *p, int64_t lo, int64_t hi) nogil


cdef int _tiles(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    tgx_scan_tiles(<tgx_scan_plan *>ctx, lo, hi)
    return 0


cdef int _run(str title, int op, Tensor t, int dim, Tensor out, Tensor indices) except -1:
    cdef tgx_scan_plan plan
    plan.scan = tgx_scan_of(op, t.tid)
    if plan.scan == NULL:
        raise NotImplementedError(f'"{title}" not implemented for \'{dtype_title(t.tid)}\': convert the argument first, '
                                  "for example with .float()")
    plan.x, plan.out, plan.out2, plan.osize = t.data, out.data, NULL, ITEMSIZE[out.tid]
    if indices is not None:
        plan.out2 = indices.data
    if t.count == 0:
        return 0
    tgx_plan_scan(&plan, t.sizes, t.strides, t.rank, dim, ITEMSIZE[t.tid])
    if t.count <= GRAIN:
        tgx_scan_tiles(&plan, 0, plan.ntiles)
    else:
        with nogil:
            parallel_for(_tiles, &plan, plan.ntiles, 1 + GRAIN * plan.ntiles // t.count)
    return 0


cdef Tensor _running(str title, int op, PyObject **a):
    """cumsum, cumprod (self, dim, dtype): integers run in int64."""
    cdef Tensor t = <Tensor><object>a[0], out
    cdef int dim = wrap_dim_c(as_int(a[1]), t.rank)
    cdef int want = t.tid if a[2] == <PyObject *>None else dtype_id(<object>a[2])
    if want != t.tid and not (is_integral(want) and is_integral(t.tid)):
        t = cast(t, want)
    out = empty(t.sizes, t.rank, TGX_I64 if is_integral(t.tid) else t.tid)
    _run(title, op, t, dim, out, None)
    return out if a[2] == <PyObject *>None else cast(out, want)


cdef tuple _extreme(str title, int op, PyObject **a):
    """cummax, cummin (self, dim): values and indices."""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int dim = wrap_dim_c(as_int(a[1]), t.rank)
    cdef Tensor values = empty(t.sizes, t.rank, t.tid), indices = empty(t.sizes, t.rank, TGX_I64)
    _run(title, op, t, dim, values, indices)
    return values, indices


cdef object k_linear_scan(PyObject **a):
    """_linear_scan(self, decay, dim): h[k] = self[k] + decay[k] * h[k - 1]."""
    cdef Tensor t = contiguous(<Tensor><object>a[0]), decay = contiguous(<Tensor><object>a[1]), out
    cdef int i, dim = wrap_dim_c(as_int(a[2]), t.rank)
    cdef int64_t outer = 1, inner = 1, n = t.sizes[dim] if t.rank else 1
    if t.tid != TGX_F32 and t.tid != TGX_F64:
        raise NotImplementedError(f'"_linear_scan" not implemented for \'{dtype_title(t.tid)}\': convert the argument first, '
                                  "for example with .float()")
    if decay.tid != t.tid or shape_text(decay) != shape_text(t):
        raise RuntimeError(f"_linear_scan(): decay must have self's shape {shape_text(t)} and dtype, got {shape_text(decay)} "
                           f"of {dtype_title(decay.tid)}")
    for i in range(t.rank):
        if i < dim:
            outer *= t.sizes[i]
        elif i > dim:
            inner *= t.sizes[i]
    out = empty(t.sizes, t.rank, t.tid)
    if t.count <= GRAIN:
        tgx_linear_scan(t.data, decay.data, out.data, n, inner, 0, outer, t.tid)
        return out
    with nogil:
        tgx_linear_scan(t.data, decay.data, out.data, n, inner, 0, outer, t.tid)
    return out


cdef object k_cumsum(PyObject **a):
    return _running("cumsum", TGX_CUMSUM, a)


cdef object k_cumprod(PyObject **a):
    return _running("cumprod", TGX_CUMPROD, a)


cdef object k_cummax(PyObject **a):
    return _extreme("cummax", TGX_CUMMAX, a)


cdef object k_cummin(PyObject **a):
    return _extreme("cummin", TGX_CUMMIN, a)


register_kernel("linear_scan", k_linear_scan)
register_kernel("cumsum", k_cumsum)
register_kernel("cumprod", k_cumprod)
register_kernel("cummax", k_cummax)
register_kernel("cummin", k_cummin)
