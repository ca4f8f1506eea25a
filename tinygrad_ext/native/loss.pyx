# cython: language_level=3
"""Squared error and its derivative; the loops are in kernels/loss_squares.h."""
from cpython.object cimport PyObject
from libc.stdlib cimport free, malloc
from tinygrad_ext.core.copy cimport contiguous, copy_into
from tinygrad_ext.core.dispatch cimport Op, call_op, register_kernel
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport parallel_for, range_fn
from tinygrad_ext.core.outputs cimport broadcast_shape
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text
from tinygrad_ext.core.types cimport TGX_F32, TGX_F64, TGX_MAX_DIMS, int64_t, promote
from tinygrad_ext.core.op_tables import ops
from tinygrad_ext.ops.loss import mse_loss

cdef extern from *:
    """
    #include "isa.h"
    #include "loss.h"
    static const tgx_loss_table *tgx_loss_loops;
    static void tgx_loss_choose(void) { tgx_loss_loops = TGX_PICK(tgx_loss); }
    """
    enum:
        TGX_LOSS_CHUNK
    ctypedef struct tgx_loss_job:
        char *out
        const char *x
        const char *y
        const char *grad
        double scale
        double *partial
        ptrdiff_t n
    ctypedef struct tgx_loss_table:
        range_fn *square
        range_fn *sum
        range_fn *slope
    const tgx_loss_table *tgx_loss_loops
    void tgx_loss_choose()

cdef Op _mse_loss = None

tgx_loss_choose()


cdef int reduction_of(PyObject *o) except -1:
    cdef object name = <object>o
    if name == "mean":
        return MEAN
    if name == "sum":
        return SUM
    if name == "none":
        return NONE
    raise ValueError(f"{name} is not a valid value for reduction: it must be 'mean', 'sum' or 'none'")


# ---- squared error -------------------------------------------------------------------------------------------------

cdef bint same_shape(Tensor a, Tensor b) noexcept:
    cdef int i
    if a.rank != b.rank:
        return False
    for i in range(a.rank):
        if a.sizes[i] != b.sizes[i]:
            return False
    return True


cdef str meeting(Tensor a, Tensor b):
    """Says where two shapes do not broadcast."""
    cdef int i, at
    for i in range(1, min(a.rank, b.rank) + 1):
        if a.sizes[a.rank - i] != b.sizes[b.rank - i] and a.sizes[a.rank - i] != 1 and b.sizes[b.rank - i] != 1:
            at = max(a.rank, b.rank) - i
            return (f"The size of tensor a ({a.sizes[a.rank - i]}) must match the size of tensor b "
                    f"({b.sizes[b.rank - i]}) at "
                    f"non-singleton dimension {at}: input has shape {shape_text(a)}, target {shape_text(b)}")
    return "shapes fit"


cdef Tensor spread(Tensor t, Tensor other, int dtype, str op):
    """t contiguous, in `dtype` and in the shape it has together with `other`."""
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int ndim = 0
    cdef Tensor out
    if t.tid == dtype and same_shape(t, other):
        return contiguous(t)
    if broadcast_shape(t, shape, &ndim) or broadcast_shape(other, shape, &ndim):
        raise RuntimeError(f"{op}: {meeting(t, other)}")
    out = empty(shape, ndim, dtype)
    copy_into(out, t)
    return out


cdef int run(range_fn fn, tgx_loss_job *job, int64_t count) except -1:
    if count <= GRAIN:
        fn(job, 0, count)
        return 0
    with nogil:
        parallel_for(fn, job, count, GRAIN)
    return 0


cdef double summed(range_fn fn, tgx_loss_job *job) except? -1:
    """Sum over all chunks."""
    cdef double one, total = 0
    cdef int64_t i, chunks = (job.n + TGX_LOSS_CHUNK - 1) // TGX_LOSS_CHUNK
    if chunks <= 1:
        job.partial = &one
        one = 0
        fn(job, 0, chunks)
        return one
    job.partial = <double *>malloc(chunks * sizeof(double))
    if job.partial == NULL:
        raise MemoryError
    with nogil:
        parallel_for(fn, job, chunks, 1)
    for i in range(chunks):
        total += job.partial[i]
    free(job.partial)
    return total


cdef Tensor number(double value, int dtype):
    """0-dim tensor."""
    cdef Tensor t = empty(NULL, 0, dtype)
    if dtype == TGX_F32:
        (<float *>t.data)[0] = <float>value
    else:
        (<double *>t.data)[0] = value
    return t


cdef object k_mse_loss(PyObject **a):
    """_mse_loss(self, target, reduction)."""
    cdef Tensor x = <Tensor><object>a[0], y = <Tensor><object>a[1], out
    cdef tgx_loss_job job
    cdef int how = reduction_of(a[2]), dtype = promote(x.tid, y.tid), double_
    cdef double total
    if dtype != TGX_F32 and dtype != TGX_F64:
        raise NotImplementedError(f"\"mse_loss\" not implemented for '{dtype_title(dtype)}': give floating tensors")
    x, y = spread(x, y, dtype, "mse_loss"), spread(y, x, dtype, "mse_loss")
    job.x, job.y, job.n = x.data, y.data, x.count
    double_ = dtype == TGX_F64
    if how == NONE:
        out = empty(x.sizes, x.rank, dtype)
        job.out = out.data
        run(tgx_loss_loops.square[double_], &job, x.count)
        return out
    total = summed(tgx_loss_loops.sum[double_], &job)
    if how == MEAN:
        total = total / <double>x.count if x.count else float("nan")
    return number(total, dtype)


cdef object k_mse_loss_backward(PyObject **a):
    """_mse_loss_backward(grad_output, self, target, reduction): 2 (self - target) grad_output, spread over the mean."""
    cdef Tensor g = <Tensor><object>a[0], x = <Tensor><object>a[1], y = <Tensor><object>a[2], out
    cdef tgx_loss_job job
    cdef int how = reduction_of(a[3]), dtype = promote(promote(x.tid, y.tid), g.tid)
    if dtype != TGX_F32 and dtype != TGX_F64:
        raise NotImplementedError(f"\"_mse_loss_backward\" not implemented for '{dtype_title(dtype)}': give floating "
                                  "tensors")
    x, y = spread(x, y, dtype, "_mse_loss_backward"), spread(y, x, dtype, "_mse_loss_backward")
    out = empty(x.sizes, x.rank, dtype)
    job.out, job.x, job.y, job.grad, job.scale = out.data, x.data, y.data, NULL, 2
    if how == NONE:
        g = spread(g, x, dtype, "_mse_loss_backward")
        if not same_shape(g, x):
            raise RuntimeError(f"_mse_loss_backward: grad_output of shape {shape_text(g)} does not fit {shape_text(x)}")
        job.grad = g.data
    else:
        job.scale *= <double>g._only_element() / (x.count if how == MEAN and x.count else 1)
    run(tgx_loss_loops.slope[dtype == TGX_F64], &job, x.count)
    return out


cdef object k_mse_loss_public(PyObject **a):
    """mse_loss(self, target, size_average, reduce, reduction, weight): the common case without a detour."""
    global _mse_loss
    cdef PyObject *args[3]
    cdef PyObject *none = <PyObject *>None
    if a[2] != none or a[3] != none or a[5] != none or not same_shape(<Tensor><object>a[0], <Tensor><object>a[1]):
        return mse_loss(<object>a[0], <object>a[1], <object>a[2], <object>a[3], <object>a[4], <object>a[5])
    if _mse_loss is None:
        _mse_loss = ops["aten::_mse_loss"]
    args[0], args[1], args[2] = a[0], a[1], a[4]
    return call_op(_mse_loss, args)


register_kernel("mse_loss", k_mse_loss)
register_kernel("mse_loss_backward", k_mse_loss_backward)
register_kernel("mse_loss_public", k_mse_loss_public)
