# cython: language_level=3
"""Row sums of exponentials for cross entropy; the loops are in kernels/softmax_rows.h."""
from tinygrad_ext.core.copy cimport fill
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport parallel_for, range_fn
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty
from tinygrad_ext.core.types cimport TGX_F32, TGX_F64, TGX_MAX_DIMS, int64_t

cdef extern from *:
    """
    #include "isa.h"
    #include "softmax.h"
    static const tgx_softmax_table *tgx_softmax_loops;
    static void tgx_softmax_choose(void) { tgx_softmax_loops = TGX_PICK(tgx_softmax); }
    """
    enum:
        TGX_SOFTMAX_COLUMNS
    ctypedef struct tgx_softmax_job:
        char *out
        const char *a
        const char *b
        const char *c
        int64_t n, inner
        int log
    ctypedef struct tgx_softmax_table:
        range_fn *forward
        range_fn *backward
        range_fn *lse
        range_fn *scaled
    const tgx_softmax_table *tgx_softmax_loops
    void tgx_softmax_choose()

tgx_softmax_choose()


cdef int require_float(Tensor t, str op) except -1:
    """0 for float32, 1 for float64; NotImplementedError for other dtypes."""
    if t.tid == TGX_F32:
        return 0
    if t.tid == TGX_F64:
        return 1
    raise NotImplementedError(f"\"{op}\" not implemented for '{dtype_title(t.tid)}': convert the input to float32 or "
                              "float64 first")


cdef int run(range_fn fn, tgx_softmax_job *job, int64_t count) except -1:
    """All rows or blocks of columns of a tensor of `count` elements."""
    cdef int64_t units, rows
    if count == 0:
        return 0
    rows = count // (job.n * job.inner)
    units = rows if job.inner == 1 else rows * ((job.inner + TGX_SOFTMAX_COLUMNS - 1) // TGX_SOFTMAX_COLUMNS)
    if count <= GRAIN:
        fn(job, 0, units)
        return 0
    with nogil:
        parallel_for(fn, job, units, 1 + GRAIN // (1 + count // units))
    return 0


cdef int split(Tensor t, int dim, tgx_softmax_job *job) except -1:
    """See t as (outer, n, inner) with dim in the middle."""
    cdef int i
    job.inner = 1
    job.n = t.sizes[dim] if t.rank else 1
    for i in range(dim + 1, t.rank):
        job.inner *= t.sizes[i]
    return 0


# ---- for cross entropy, native/loss.pyx -----------------------------------------------------------------------------

cdef Tensor row_lse(Tensor x, int dim):
    """log(sum(exp(x))) over dim, which goes; x contiguous float32 or float64."""
    cdef tgx_softmax_job job
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int i, k = 0
    cdef Tensor out
    for i in range(x.rank):
        if i != dim:
            shape[k] = x.sizes[i]
            k += 1
    out = empty(shape, k, x.tid)
    split(x, dim, &job)
    if x.count == 0:
        fill(out, float("-inf"))
    job.out, job.a = out.data, x.data
    run(tgx_softmax_loops.lse[x.tid == TGX_F64], &job, x.count)
    return out


cdef Tensor scaled_softmax(Tensor x, Tensor lse, Tensor scale, int dim):
    """scale * exp(x - lse): the softmax over dim times a number for each row; all contiguous and of one dtype."""
    cdef tgx_softmax_job job
    cdef Tensor out = empty(x.sizes, x.rank, x.tid)
    split(x, dim, &job)
    job.out, job.a, job.b, job.c = out.data, x.data, lse.data, scale.data
    run(tgx_softmax_loops.scaled[x.tid == TGX_F64], &job, x.count)
    return out
