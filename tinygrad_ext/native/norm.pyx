# cython: language_level=3
"""Kernels of layer norm and batch norm with their derivatives; the loops are in kernels/norm_layer.h, norm_batch.h."""
from cpython.object cimport PyObject
from libc.math cimport sqrt
from libc.stdlib cimport calloc, free, malloc
from tinygrad_ext.core.copy cimport cast, contiguous, zero
from tinygrad_ext.core.dispatch cimport as_float, as_ints, register_kernel
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.places cimport note_mutation
from tinygrad_ext.core.parallel cimport parallel_for, range_fn
from tinygrad_ext.core.tensor cimport READONLY, Tensor, bump, dtype_title, empty, shape_text
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_F32, TGX_F64, TGX_MAX_DIMS, int64_t
from tinygrad_ext.native.softmax cimport require_float

cdef extern from *:
    """
    #include "isa.h"
    #include "norm.h"
    static const tgx_norm_table *tgx_norm_loops;
    static void tgx_norm_choose(void) { tgx_norm_loops = TGX_PICK(tgx_norm); }
    """
    enum:
        TGX_NORM_COLUMNS
    ctypedef struct tgx_layer_norm_job:
        char *out
        const char *x
        const char *grad
        const char *weight
        const char *bias
        char *sums
        int64_t rows, n, parts
        double eps
    ctypedef struct tgx_batch_norm_job:
        char *out
        const char *x
        const char *grad
        double *a
        double *b
        const char *scale
        const char *shift
        const char *slope
        const char *mean
        int64_t outer, channels, inner
    ctypedef struct tgx_norm_table:
        range_fn *layer
        range_fn *layer_backward
        range_fn *moments
        range_fn *products
        range_fn *apply
        range_fn *apply_backward
    const tgx_norm_table *tgx_norm_loops
    void tgx_norm_choose()

ctypedef fused real:
    float
    double

tgx_norm_choose()


cdef int run(range_fn fn, void *job, int64_t units, int64_t count) except -1:
    """All units of a job on `count` elements."""
    cdef int code
    if count <= GRAIN or units <= 1:
        code = fn(job, 0, units) if units else 0
    else:
        with nogil:
            code = parallel_for(fn, job, units, 1 + GRAIN // (1 + count // units))
    if code:
        raise MemoryError("norm: no memory for partial sums")
    return 0


cdef void put(Tensor t, int64_t i, double value) noexcept:
    if t.tid == TGX_F32:
        (<float *>t.data)[i] = <float>value
    else:
        (<double *>t.data)[i] = value


cdef double at(Tensor t, int64_t i) noexcept:
    return (<float *>t.data)[i] if t.tid == TGX_F32 else (<double *>t.data)[i]


cdef Tensor parameter(object o, int dtype):
    """A weight or bias, contiguous and of the input's dtype; None stays None."""
    cdef Tensor t
    if o is None:
        return None
    t = <Tensor>o
    if t.tid != dtype:
        raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of {dtype_title(dtype)}, but got "
                           f"{dtype_title(t.tid)}. Convert the layer or the input.")
    return contiguous(t)


# ---- layer norm ----------------------------------------------------------------------------------------------------

cdef int check_shape(Tensor t, const int64_t *shape, int n, str name) except -1:
    cdef int i
    cdef bint fits
    if t is None:
        return 0
    fits = t.rank == n
    for i in range(n):
        fits = fits and t.sizes[i] == shape[i]
    if not fits:
        raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                           f"{shape_text(t)} and normalized_shape = {[shape[i] for i in range(n)]}")
    return 0


cdef int open_layer(tgx_layer_norm_job *job, Tensor x, PyObject *shape, Tensor weight, Tensor bias) except -1:
    """Fill rows and n; compare the shapes."""
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int i, n = as_ints(shape, sizes, TGX_MAX_DIMS, 1)
    cdef bint fits = n <= x.rank
    if n == 0:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                           "element, but got normalized_shape = []")
    check_shape(weight, sizes, n, "weight")
    check_shape(bias, sizes, n, "bias")
    job.n = 1
    for i in range(n):
        fits = fits and x.sizes[x.rank - n + i] == sizes[i]
        job.n *= sizes[i]
    if not fits:
        text = ", ".join([str(sizes[i]) for i in range(n)])
        raise RuntimeError(f"Given normalized_shape=[{text}], expected input with shape [*, {text}], but got input of "
                           "size"
                           f"{shape_text(x)}")
    job.rows = x.count // job.n if job.n else 0
    return 0


cdef object k_layer_norm(PyObject **a):
    """layer_norm(input, normalized_shape, weight, bias, eps)."""
    cdef Tensor x = <Tensor><object>a[0], w, b, out
    cdef tgx_layer_norm_job job
    cdef int double_ = require_float(x, "layer_norm")
    w, b = parameter(<object>a[2], x.tid), parameter(<object>a[3], x.tid)
    open_layer(&job, x, a[1], w, b)
    x = contiguous(x)
    out = empty(x.sizes, x.rank, x.tid)
    job.out, job.x, job.eps = out.data, x.data, as_float(a[4])
    job.weight, job.bias = NULL if w is None else w.data, NULL if b is None else b.data
    run(tgx_norm_loops.layer[double_], &job, job.rows, x.count)
    return out


cdef char *data_of(Tensor t) noexcept:
    return NULL if t is None else t.data


cdef void add_parts(const tgx_layer_norm_job *job, const real *sums, real *gain, real *shift) noexcept:
    """Sums of the parts, in their order."""
    cdef int64_t i, _part
    if gain == NULL:
        return
    for i in range(job.n):
        gain[i], shift[i] = sums[i], sums[job.n + i]
    for _part in range(1, job.parts):
        sums += 2 * job.n
        for i in range(job.n):
            gain[i] += sums[i]
            shift[i] += sums[job.n + i]


cdef object k_layer_norm_backward(PyObject **a):
    """_layer_norm_backward(grad_output, self, normalized_shape, weight, eps, output_mask)."""
    cdef Tensor g = <Tensor><object>a[0], x = <Tensor><object>a[1], w, dx = None, dw = None, db = None
    cdef tgx_layer_norm_job job
    cdef int double_ = require_float(x, "_layer_norm_backward")
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int n = as_ints(a[2], sizes, TGX_MAX_DIMS, 1)
    want_x, want_w, want_b = <object>a[5]
    w = parameter(<object>a[3], x.tid)
    open_layer(&job, x, a[2], w, None)
    if g.count != x.count:
        raise RuntimeError(f"_layer_norm_backward: grad_output has shape {shape_text(g)}, self {shape_text(x)}; both "
                           "must be equal")
    g, x = contiguous(cast(g, x.tid)), contiguous(x)
    if want_x:
        dx = empty(x.sizes, x.rank, x.tid)
    if want_w or want_b:
        dw, db = empty(sizes, n, x.tid), empty(sizes, n, x.tid)
    job.out, job.x, job.grad, job.eps = NULL if dx is None else dx.data, x.data, g.data, as_float(a[4])
    job.parts = min(max(job.rows // 16, 1), 16)        # by the sizes alone, so that threads change nothing
    job.weight, job.sums = NULL if w is None else w.data, NULL
    if dw is not None:
        job.sums = <char *>calloc(2 * job.n * job.parts + 1, ITEMSIZE[x.tid])
        if job.sums == NULL:
            raise MemoryError("_layer_norm_backward: no memory for partial sums")
    try:
        run(tgx_norm_loops.layer_backward[double_], &job, job.parts if x.count else 0, x.count)
        if x.tid == TGX_F32:
            add_parts(&job, <float *>job.sums, <float *>data_of(dw), <float *>data_of(db))
        else:
            add_parts(&job, <double *>job.sums, <double *>data_of(dw), <double *>data_of(db))
    finally:
        free(job.sums)
    return dx, dw if want_w else None, db if want_b else None


# ---- batch norm ----------------------------------------------------------------------------------------------------

cdef int open_batch(tgx_batch_norm_job *job, Tensor x) except -1:
    cdef int i
    job.outer, job.channels, job.inner = x.sizes[0] if x.rank else 0, x.sizes[1] if x.rank > 1 else 0, 1
    for i in range(2, x.rank):
        job.inner *= x.sizes[i]
    return 0


cdef int check_channels(object o, int64_t channels, str name) except -1:
    cdef Tensor t
    if o is None:
        return 0
    t = <Tensor>o
    if t.count != channels:
        raise RuntimeError(f"{name} should contain {channels} elements not {t.count}: one for each channel, the "
                           "input's dimension 1")
    return 0


cdef int run_sums(range_fn fn, tgx_batch_norm_job *job, int64_t count) except -1:
    """Sums for all channels."""
    cdef int64_t units = job.channels
    if job.inner == 1:
        units = (units + TGX_NORM_COLUMNS - 1) // TGX_NORM_COLUMNS
    return run(fn, job, units, count)


cdef int run_rows(range_fn fn, tgx_batch_norm_job *job, int64_t count) except -1:
    return run(fn, job, job.outer if job.inner == 1 else job.outer * job.channels, count)


cdef int update(Tensor running, int64_t i, double value, double momentum) noexcept:
    """One running statistic, wherever its stride puts it."""
    cdef int64_t k = i * (running.strides[0] if running.rank else 1)
    put(running, k, momentum * value + (1 - momentum) * at(running, k))
    return 0


cdef int wrote(object running) except -1:
    bump(<Tensor>running)
    note_mutation(<Tensor>running)
    return 0


cdef int statistics(tgx_batch_norm_job *job, Tensor x, Tensor mean, Tensor invstd,
                    object running_mean, object running_var,
                    double momentum, double eps) except -1:
    """Mean and 1 / sqrt(variance + eps) of each channel; the running values follow, with the unbiased variance."""
    cdef int64_t c, n = job.outer * job.inner
    cdef double *sums = <double *>malloc((2 * job.channels + 1) * sizeof(double))
    if sums == NULL:
        raise MemoryError("batch_norm: no memory for statistics")
    job.a, job.b = sums, sums + job.channels
    try:
        run_sums(tgx_norm_loops.moments[x.tid == TGX_F64], job, x.count)
        for c in range(job.channels):
            put(mean, c, job.a[c])
            put(invstd, c, 1 / sqrt(job.b[c] / n + eps))
            if running_mean is not None:
                update(<Tensor>running_mean, c, job.a[c], momentum)
            if running_var is not None:
                update(<Tensor>running_var, c, job.b[c] / (n - 1), momentum)
    finally:
        free(sums)
    if running_mean is not None:
        wrote(running_mean)
    if running_var is not None:
        wrote(running_var)
    return 0


cdef int check_running(object o, int dtype, str name) except -1:
    cdef Tensor t
    if o is None:
        return 0
    t = <Tensor>o
    if t.tid != dtype:
        raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of {dtype_title(dtype)}, but "
                           f"{name} is {dtype_title(t.tid)}")
    if t.rank > 1:
        raise RuntimeError(f"{name} should have one dimension, got shape {shape_text(t)}")
    if t.bits & READONLY:
        raise RuntimeError(f"{name} is read-only: its memory was lent by another library that does not allow writing. "
                           "Clone it first.")
    return 0


cdef object k_batch_norm(PyObject **a):
    """native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)."""
    cdef Tensor x = <Tensor><object>a[0], w, b, out, mean, invstd, scale, shift
    cdef tgx_batch_norm_job job
    cdef int64_t c
    cdef int double_ = require_float(x, "batch_norm")
    cdef bint training = <object>a[5]
    cdef double momentum = as_float(a[6]), eps = as_float(a[7])
    running_mean, running_var = <object>a[3], <object>a[4]
    open_batch(&job, x)
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError(f"running_{'mean' if running_mean is None else 'var'} must be defined in evaluation mode")
    for name, o in (("running_mean", running_mean), ("running_var", running_var), ("weight", <object>a[1]),
                    ("bias", <object>a[2])):
        check_channels(o, job.channels, name)
    if x.rank < 2:
        raise RuntimeError(f"batch_norm: the input needs at least 2 dimensions (N, C, ...), got shape {shape_text(x)}")
    check_running(running_mean, x.tid, "running_mean")
    check_running(running_var, x.tid, "running_var")
    w, b = parameter(<object>a[1], x.tid), parameter(<object>a[2], x.tid)
    x = contiguous(x)
    out = empty(x.sizes, x.rank, x.tid)
    mean, invstd = empty(&job.channels, 1, x.tid), empty(&job.channels, 1, x.tid)
    scale, shift = empty(&job.channels, 1, x.tid), empty(&job.channels, 1, x.tid)
    job.out, job.x = out.data, x.data
    if training and x.count:
        statistics(&job, x, mean, invstd, running_mean, running_var, momentum, eps)
    else:
        for c in range(job.channels):
            put(mean, c, 0 if running_mean is None else at(running_mean, c * (<Tensor>running_mean).strides[0]))
            put(invstd, c, 1 if running_var is None else
                1 / sqrt(at(running_var, c * (<Tensor>running_var).strides[0]) + eps))
    for c in range(job.channels):
        put(scale, c, at(invstd, c) * (at(w, c) if w is not None else 1))
        put(shift, c, at(b, c) if b is not None else 0)
    job.mean, job.scale, job.shift = mean.data, scale.data, shift.data
    run_rows(tgx_norm_loops.apply[double_], &job, x.count)
    return out, mean, invstd


cdef object k_batch_norm_backward(PyObject **a):
    """_batch_norm_backward(grad_output, self, weight, mean, invstd, training, eps, output_mask)."""
    cdef Tensor g = <Tensor><object>a[0], x = <Tensor><object>a[1], w, mean, invstd, dx, dw, db, scale, shift, slope
    cdef tgx_batch_norm_job job
    cdef int64_t c, n
    cdef int double_ = require_float(x, "_batch_norm_backward")
    cdef bint training = <object>a[5]
    cdef double k, r
    cdef double *sums
    want_x, want_w, want_b = <object>a[7]
    if x.rank < 2:
        raise RuntimeError(f"_batch_norm_backward: self needs at least 2 dimensions (N, C, ...), got shape {shape_text(x)}")
    w, mean, invstd = parameter(<object>a[2], x.tid), parameter(<object>a[3], x.tid), parameter(<object>a[4], x.tid)
    if g.count != x.count:
        raise RuntimeError(f"_batch_norm_backward: grad_output has shape {shape_text(g)}, self {shape_text(x)}; both "
                           "must be equal")
    g, x = contiguous(cast(g, x.tid)), contiguous(x)
    open_batch(&job, x)
    for name, o in (("weight", w), ("mean", mean), ("invstd", invstd)):
        check_channels(o, job.channels, name)
    n = max(job.outer * job.inner, 1)
    dx, dw, db = empty(x.sizes, x.rank, x.tid), empty(&job.channels, 1, x.tid), empty(&job.channels, 1, x.tid)
    scale, shift, slope = empty(&job.channels, 1, x.tid), empty(&job.channels, 1, x.tid), empty(&job.channels, 1, x.tid)
    sums = <double *>calloc(2 * job.channels + 1, sizeof(double))
    if sums == NULL:
        raise MemoryError("_batch_norm_backward: no memory for sums")
    job.out, job.x, job.grad, job.mean, job.a, job.b = dx.data, x.data, g.data, mean.data, sums, sums + job.channels
    try:
        if x.count and (training or want_w or want_b):
            run_sums(tgx_norm_loops.products[double_], &job, x.count)
        for c in range(job.channels):
            r = at(invstd, c)
            k = r * (at(w, c) if w is not None else 1)
            put(dw, c, job.b[c] * r)
            put(db, c, job.a[c])
            put(slope, c, k)
            put(scale, c, k * r * r * job.b[c] / n)
            put(shift, c, k * job.a[c] / n)
    finally:
        free(sums)
    if want_x and training:
        job.scale, job.shift, job.slope = scale.data, shift.data, slope.data
        run_rows(tgx_norm_loops.apply_backward[double_], &job, x.count)
    elif want_x:
        zero(shift)
        mean = empty(&job.channels, 1, x.tid)
        zero(mean)
        job.x, job.mean, job.scale, job.shift = g.data, mean.data, slope.data, shift.data
        run_rows(tgx_norm_loops.apply[double_], &job, x.count)
    return dx if want_x else None, dw if want_w else None, db if want_b else None


register_kernel("layer_norm", k_layer_norm)
register_kernel("layer_norm_backward", k_layer_norm_backward)
register_kernel("batch_norm", k_batch_norm)
register_kernel("batch_norm_backward", k_batch_norm_backward)
