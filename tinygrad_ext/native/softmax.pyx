# cython: language_level=3
"""Kernels of softmax, log_softmax and their derivatives; the loops are in kernels/softmax_rows.h."""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport cast, contiguous, fill
from tinygrad_ext.core.dispatch cimport as_int, register_kernel
from tinygrad_ext.core.dtype cimport dtype_id
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport parallel_for, range_fn
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text, wrap_dim_c
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

import warnings

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


cdef object forward(Tensor x, int64_t dim, PyObject *dtype, int log):
    cdef tgx_softmax_job job
    cdef int at = wrap_dim_c(dim, x.rank), double
    cdef Tensor out
    if dtype != <PyObject *>None:
        x = cast(x, dtype_id(<object>dtype))
    double = require_float(x, "log_softmax" if log else "softmax")
    x = contiguous(x)
    out = empty(x.sizes, x.rank, x.tid)
    split(x, at, &job)
    job.out, job.a, job.log = out.data, x.data, log
    run(tgx_softmax_loops.forward[double], &job, x.count)
    return out


cdef int64_t implied_dim(Tensor x, PyObject *dim, str name) except? -1:
    """The functional form's dim; None warns and stands for 0, or for 1 with two or four dimensions and more."""
    if dim != <PyObject *>None:
        return as_int(dim)
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
                  "argument.",
                  UserWarning, stacklevel=1)
    return 0 if x.rank in (0, 1, 3) else 1


cdef object k_softmax(PyObject **a):
    return forward(<Tensor><object>a[0], as_int(a[1]), a[2], 0)


cdef object k_log_softmax(PyObject **a):
    return forward(<Tensor><object>a[0], as_int(a[1]), a[2], 1)


cdef object k_softmax_functional(PyObject **a):
    cdef Tensor x = <Tensor><object>a[0]
    return forward(x, implied_dim(x, a[1], "softmax"), a[3], 0)


cdef object k_log_softmax_functional(PyObject **a):
    cdef Tensor x = <Tensor><object>a[0]
    return forward(x, implied_dim(x, a[1], "log_softmax"), a[3], 1)


cdef object backward(PyObject **a, int log):
    """(grad_output, output, dim, input_dtype)."""
    cdef Tensor g = <Tensor><object>a[0], y = <Tensor><object>a[1], out
    cdef tgx_softmax_job job
    cdef str name = "_log_softmax_backward_data" if log else "_softmax_backward_data"
    cdef int i, double = require_float(y, name), at = wrap_dim_c(as_int(a[2]), y.rank)
    if g.rank != y.rank or g.count != y.count or any([g.sizes[i] != y.sizes[i] for i in range(y.rank)]):
        raise RuntimeError(f"{name}: grad_output has shape {shape_text(g)}, output {shape_text(y)}; both must be equal")
    g, y = contiguous(cast(g, y.tid)), contiguous(y)
    out = empty(y.sizes, y.rank, y.tid)
    split(y, at, &job)
    job.out, job.a, job.b, job.log = out.data, g.data, y.data, log
    run(tgx_softmax_loops.backward[double], &job, y.count)
    return cast(out, dtype_id(<object>a[3]))


cdef object k_softmax_backward(PyObject **a):
    return backward(a, 0)


cdef object k_log_softmax_backward(PyObject **a):
    return backward(a, 1)


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


register_kernel("softmax", k_softmax)
register_kernel("log_softmax", k_log_softmax)
register_kernel("softmax_functional", k_softmax_functional)
register_kernel("log_softmax_functional", k_log_softmax_functional)
register_kernel("_softmax_backward", k_softmax_backward)
register_kernel("_log_softmax_backward", k_log_softmax_backward)
