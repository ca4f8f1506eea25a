# cython: language_level=3
"""Kernels of pooling in one and two dimensions, with regular and adaptive windows, and their derivatives.

A signal is an image of height one. The windows go into tables (kernels/pool.h), so one loop serves them all.
Planes are dealt out to the threads.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport contiguous, zero
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.storage cimport Storage, new_storage
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text
from tinygrad_ext.core.types cimport TGX_I64, TGX_MAX_DIMS, int64_t, is_integer, is_native_float
from tinygrad_ext.native.pool_window cimport (
    Window, check_window, read_adaptive, read_input, read_out_sizes, read_pair, read_window,
)

cdef extern from "pool.h" nogil:
    ctypedef struct tgx_pool:
        ptrdiff_t height, width, rows, cols
        const ptrdiff_t *y_lo
        const ptrdiff_t *y_hi
        const ptrdiff_t *y_count
        const ptrdiff_t *x_lo
        const ptrdiff_t *x_hi
        const ptrdiff_t *x_count
        ptrdiff_t step_y, step_x
        int64_t divisor
    void tgx_pool_max(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out, int64_t *at)
    void tgx_pool_mean(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out)
    void tgx_pool_spread(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out)
    int tgx_pool_scatter(int dtype, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n, ptrdiff_t m, const void *src, const int64_t *at,
                         void *out)
    int tgx_pool_gather(int dtype, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n, ptrdiff_t m, const void *src, const int64_t *at,
                        void *out)

cdef enum:
    GRAIN = 16384               # elements of work that pay for a second thread


# ---- tables of windows -----------------------------------------------------------------------------------------------

cdef Storage _tables(tgx_pool *p, Window *w, bint adaptive, bint count_pad):
    """Fill in the plan; keep the result as long as it is used."""
    cdef int64_t most = w.out[0] + w.out[1]
    cdef Storage s = new_storage(3 * most * sizeof(ptrdiff_t))
    cdef ptrdiff_t *room = <ptrdiff_t *>s.data
    p.height, p.width, p.rows, p.cols = w.size[0], w.size[1], w.out[0], w.out[1]
    p.step_y, p.step_x, p.divisor = w.dilation[0], w.dilation[1], 0
    p.y_lo, p.y_hi, p.y_count = room, room + w.out[0], room + 2 * w.out[0]
    _table(w, 0, adaptive, count_pad, room)
    room += 3 * w.out[0]
    p.x_lo, p.x_hi, p.x_count = room, room + w.out[1], room + 2 * w.out[1]
    _table(w, 1, adaptive, count_pad, room)
    return s


cdef void _table(Window *w, int d, bint adaptive, bint count_pad, ptrdiff_t *lo) noexcept:
    """Bounds of the windows along one dimension. An adaptive window spreads the input evenly over the outputs."""
    cdef int64_t i, start, stop, n = w.out[d], size = w.size[d]
    cdef ptrdiff_t *hi = lo + n
    cdef ptrdiff_t *count = hi + n
    for i in range(n):
        if adaptive:
            lo[i], hi[i] = i * size // n, ((i + 1) * size + n - 1) // n
            count[i] = hi[i] - lo[i]
            continue
        start = i * w.stride[d] - w.pad[d]
        stop = start + w.dilation[d] * (w.kernel[d] - 1) + 1
        count[i] = min(stop, size + w.pad[d]) - start
        if start < 0:
            start = start % w.dilation[d] if w.dilation[d] > 1 else 0
            if start < 0:
                start += w.dilation[d]
        lo[i], hi[i] = start, min(stop, size)
        if not count_pad:
            count[i] = max(hi[i] - lo[i], 0)


# ---- running -------------------------------------------------------------------------------------------------------

cdef struct Job:
    tgx_pool p
    int what
    int tid
    char *src
    char *out
    int64_t *at
    int64_t n
    int64_t m

cdef enum What:
    MAX, MEAN, SPREAD, SCATTER, GATHER


cdef int _planes(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    cdef Job *j = <Job *>ctx
    if j.what == MAX:
        tgx_pool_max(&j.p, j.tid, lo, hi, j.src, j.out, j.at)
    elif j.what == MEAN:
        tgx_pool_mean(&j.p, j.tid, lo, hi, j.src, j.out)
    elif j.what == SPREAD:
        tgx_pool_spread(&j.p, j.tid, lo, hi, j.src, j.out)
    elif j.what == SCATTER:
        return tgx_pool_scatter(j.tid, lo, hi, j.n, j.m, j.src, j.at, j.out)
    else:
        return tgx_pool_gather(j.tid, lo, hi, j.n, j.m, j.src, j.at, j.out)
    return 0


cdef int _run(Job *j, int what, Tensor src, Tensor out, int64_t planes, int64_t work) except -1:
    """All planes; `work` is the size of one."""
    cdef int code = 0
    cdef Storage _src_memory = src.storage, _out_memory = out.storage      # stay while other threads run
    if src.device_id != 0 or planes == 0:
        return 0
    j.what, j.tid, j.src, j.out = what, src.tid, src.data, out.data
    if planes * work < GRAIN:
        code = _planes(j, 0, planes)
    else:
        with nogil:
            code = parallel_for(_planes, j, planes, GRAIN // (work + 1) + 1)
    if code:
        raise RuntimeError("found an invalid max index: indices must lie inside the plane of the pooled input")
    return 0


cdef Tensor _images(Tensor like, const int64_t *image, int dims, int tid):
    """A tensor with like's batch and channels and other planes."""
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int i
    for i in range(like.rank - dims):
        sizes[i] = like.sizes[i]
    for i in range(dims):
        sizes[like.rank - dims + i] = image[2 - dims + i]
    return empty(sizes, like.rank, tid, like.device_id)


cdef int64_t _count_planes(Tensor t, int dims) noexcept:
    cdef int64_t n = 1
    cdef int i
    for i in range(t.rank - dims):
        n *= t.sizes[i]
    return n


cdef int _expect_dtype(Tensor x, str op, bint floating) except -1:
    if is_native_float(x.tid) or (not floating and is_integer(x.tid)):
        return 0
    raise NotImplementedError(f"\"{op}\" not implemented for '{dtype_title(x.tid)}': convert the input first, for example with "
                              ".float()")


cdef object _max(Tensor x, Window *w, bint adaptive):
    cdef Tensor out = _images(x, w.out, w.dims, x.tid), at = _images(x, w.out, w.dims, TGX_I64)
    cdef Job j
    cdef Storage _owner
    if out.count == 0 or out.device_id:
        return out, at
    _owner = _tables(&j.p, w, adaptive, False)
    x = contiguous(x)
    j.at = <int64_t *>at.data
    _run(&j, MAX, x, out, _count_planes(x, w.dims), w.size[0] * w.size[1])
    return out, at


cdef object _max_pool(PyObject **a, int dims):
    """max_pool(self, kernel_size, stride, padding, dilation, ceil_mode) -> (values, indices)."""
    cdef Tensor x = <Tensor><object>a[0]
    cdef Window w
    op = f"max_pool{dims}d"
    read_window(&w, a + 1, dims, op)
    read_pair(a[4], dims, op, "dilation", w.dilation, 1)
    read_input(&w, x, op)
    check_window(&w, op)
    _expect_dtype(x, op, False)
    read_out_sizes(&w, <object>a[5], x, op)
    return _max(x, &w, False)


cdef object k_max_pool1d(PyObject **a):
    return _max_pool(a, 1)


cdef object k_max_pool2d(PyObject **a):
    return _max_pool(a, 2)


cdef Tensor _mean(Tensor x, Window *w, int64_t divisor, bint adaptive, bint count_pad):
    cdef Tensor out = _images(x, w.out, w.dims, x.tid)
    cdef Job j
    cdef Storage _owner
    if out.count == 0 or out.device_id:
        return out
    _owner = _tables(&j.p, w, adaptive, count_pad)
    j.p.divisor = divisor
    x = contiguous(x)
    _run(&j, MEAN, x, out, _count_planes(x, w.dims), w.size[0] * w.size[1])
    return out


cdef int64_t _divisor(PyObject *arg) except? -1:
    cdef int64_t d
    if arg == <PyObject *>None:
        return 0
    d = as_int(arg)
    if d == 0:
        raise RuntimeError("divisor must be not zero: leave divisor_override away to divide by the window's size")
    return d


cdef int _read_mean(Window *w, Tensor x, PyObject **a, int dims, str op) except -1:
    """kernel_size, stride, padding, ceil_mode for an input x."""
    read_window(w, a, dims, op)
    read_input(w, x, op)
    check_window(w, op)
    _expect_dtype(x, op, False)
    return read_out_sizes(w, <object>a[3], x, op)


cdef object k_avg_pool1d(PyObject **a):
    """avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad)."""
    cdef Window w
    _read_mean(&w, <Tensor><object>a[0], a + 1, 1, "avg_pool1d")
    return _mean(<Tensor><object>a[0], &w, 0, False, <object>a[5])


cdef object k_avg_pool2d(PyObject **a):
    """avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)."""
    cdef Window w
    _read_mean(&w, <Tensor><object>a[0], a + 1, 2, "avg_pool2d")
    return _mean(<Tensor><object>a[0], &w, _divisor(a[6]), False, <object>a[5])


cdef Tensor _spread(Tensor grad, PyObject *input_size, Window *w, int64_t divisor, bint adaptive, bint count_pad):
    """Gradient of a mean: each window's share to its elements."""
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int rank = as_ints(input_size, sizes, TGX_MAX_DIMS, 1)
    cdef Tensor out = empty(sizes, rank, grad.tid, grad.device_id)
    cdef Job j
    cdef Storage _owner
    if rank != grad.rank or _count_planes(out, w.dims) != _count_planes(grad, w.dims) or (
            grad.sizes[rank - 1] != w.out[1] or (w.dims == 2 and grad.sizes[rank - 2] != w.out[0])):
        raise RuntimeError(f"gradient of shape {shape_text(grad)} does not fit the pooling of an input of shape {shape_text(out)}")
    _expect_dtype(grad, "avg_pool_backward", True)
    if out.count == 0 or out.device_id:
        return out
    if grad.count == 0:
        zero(out)
        return out
    _owner = _tables(&j.p, w, adaptive, count_pad)
    j.p.divisor = divisor
    grad = contiguous(grad)
    _run(&j, SPREAD, grad, out, _count_planes(out, w.dims), w.size[0] * w.size[1])
    return out


cdef int _sizes_of(Window *w, PyObject *input_size) except -1:
    """Planes of an input of which only the shape is known."""
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int rank = as_ints(input_size, sizes, TGX_MAX_DIMS, 1)
    if rank < w.dims:
        raise RuntimeError(f"input_size must have at least {w.dims} dimensions, got {rank}")
    w.size[0] = sizes[rank - 2] if w.dims == 2 else 1
    w.size[1] = sizes[rank - 1]
    return 0


cdef object k_avg_pool_backward(PyObject **a):
    """_avg_pool_backward(grad, input_size, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, dims)."""
    cdef Window w
    cdef Tensor grad = <Tensor><object>a[0]
    cdef int dims = 1 if as_int(a[8]) == 1 else 2
    if grad.rank <= dims:
        raise RuntimeError(f"gradient of shape {shape_text(grad)} has too few dimensions")
    read_window(&w, a + 2, dims, "avg_pool_backward")
    _sizes_of(&w, a[1])
    check_window(&w, "avg_pool_backward")
    read_out_sizes(&w, <object>a[5], grad, "avg_pool_backward")
    return _spread(grad, a[1], &w, _divisor(a[7]), False, <object>a[6])


# ---- adaptive windows --------------------------------------------------------------------------------------------------

cdef object _adaptive_mean(PyObject **a, int dims):
    cdef Window w
    op = f"adaptive_avg_pool{dims}d"
    read_adaptive(&w, <Tensor><object>a[0], a[1], dims, op)
    _expect_dtype(<Tensor><object>a[0], op, True)
    return _mean(<Tensor><object>a[0], &w, 0, True, False)


cdef object k_adaptive_avg_pool1d(PyObject **a):
    return _adaptive_mean(a, 1)


cdef object k_adaptive_avg_pool2d(PyObject **a):
    return _adaptive_mean(a, 2)


cdef object _adaptive_max(PyObject **a, int dims):
    cdef Window w
    op = f"adaptive_max_pool{dims}d"
    read_adaptive(&w, <Tensor><object>a[0], a[1], dims, op)
    _expect_dtype(<Tensor><object>a[0], op, True)
    return _max(<Tensor><object>a[0], &w, True)


cdef object k_adaptive_max_pool1d(PyObject **a):
    return _adaptive_max(a, 1)


cdef object k_adaptive_max_pool2d(PyObject **a):
    return _adaptive_max(a, 2)


cdef object k_adaptive_avg_pool_backward(PyObject **a):
    """_adaptive_avg_pool_backward(grad, input_size, dims)."""
    cdef Window w
    cdef Tensor grad = <Tensor><object>a[0]
    w.dims = 1 if as_int(a[2]) == 1 else 2
    w.dilation[0] = w.dilation[1] = 1
    _sizes_of(&w, a[1])
    if grad.rank < w.dims:
        raise RuntimeError(f"gradient of shape {shape_text(grad)} has too few dimensions")
    w.out[0] = grad.sizes[grad.rank - 2] if w.dims == 2 else 1
    w.out[1] = grad.sizes[grad.rank - 1]
    return _spread(grad, a[1], &w, 0, True, False)


# ---- places of the largest -----------------------------------------------------------------------------------------

cdef Tensor _places(PyObject **a, Tensor values, const int64_t *sizes, int rank, int dims, bint scatter):
    """Planes of the input and of the result differ in their last `dims` sizes; `at` has the result's shape."""
    cdef Tensor at = <Tensor><object>a[1], out = empty(sizes, rank, values.tid, values.device_id)
    cdef Tensor wide = out if scatter else values, narrow = values if scatter else out
    cdef Job j
    _expect_dtype(values, "max_pool_backward", True)
    if at.device_id != values.device_id:
        raise RuntimeError("Expected all tensors to be on the same device, but the indices and the values are on cpu and on meta")
    if at.tid != TGX_I64 or shape_text(at) != shape_text(narrow) or wide.rank != narrow.rank or rank < dims or (
            _count_planes(wide, dims) != _count_planes(narrow, dims)):
        raise RuntimeError(f"indices of shape {shape_text(at)} and dtype {dtype_title(at.tid)} do not fit planes of {shape_text(wide)}")
    values, at = contiguous(values), contiguous(at)
    j.at = <int64_t *>at.data
    j.n = wide.count // max(_count_planes(wide, dims), 1)
    j.m = narrow.count // max(_count_planes(wide, dims), 1)
    _run(&j, SCATTER if scatter else GATHER, values, out, _count_planes(wide, dims), j.n + j.m)
    return out


cdef object k_max_pool_backward(PyObject **a):
    """_max_pool_backward(grad, indices, input_size, dims)."""
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int rank = as_ints(a[2], sizes, TGX_MAX_DIMS, 1)
    return _places(a, <Tensor><object>a[0], sizes, rank, 1 if as_int(a[3]) == 1 else 2, True)


cdef object k_max_pool_gather(PyObject **a):
    """_max_pool_gather(self, indices, dims): the elements at the places."""
    cdef Tensor at = <Tensor><object>a[1]
    return _places(a, <Tensor><object>a[0], at.sizes, at.rank, 1 if as_int(a[2]) == 1 else 2, False)


register_kernel("max_pool1d", k_max_pool1d)
register_kernel("max_pool2d", k_max_pool2d)
register_kernel("avg_pool1d", k_avg_pool1d)
register_kernel("avg_pool2d", k_avg_pool2d)
register_kernel("avg_pool_backward", k_avg_pool_backward)
register_kernel("adaptive_avg_pool1d", k_adaptive_avg_pool1d)
register_kernel("adaptive_avg_pool2d", k_adaptive_avg_pool2d)
register_kernel("adaptive_max_pool1d", k_adaptive_max_pool1d)
register_kernel("adaptive_max_pool2d", k_adaptive_max_pool2d)
register_kernel("adaptive_avg_pool_backward", k_adaptive_avg_pool_backward)
register_kernel("max_pool_backward", k_max_pool_backward)
register_kernel("max_pool_gather", k_max_pool_gather)
