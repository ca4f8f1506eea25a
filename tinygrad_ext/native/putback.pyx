# cython: language_level=3
"""Derivatives of the views in native/window.pyx: a gradient is put back where its elements were read, among zeros.

Where windows overlap, an element that was read several times gets the sum (kernels/putback.c).
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport contiguous, copy_into, zero
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core cimport geometry
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text, view, wrap_dim_c
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_I64, TGX_MAX_DIMS, int64_t, is_inexact
from tinygrad_ext.native.window cimport clamped, diagonal, part, windows, without, wrap_index

cdef extern from "putback.h" nogil:
    int tgx_window_add(int dtype, char *dst, const ptrdiff_t *dst_strides, const char *src,
                       const ptrdiff_t *src_strides,
                       const int64_t *sizes, int ndim)
    void tgx_window_count(int64_t *counts, const int64_t *strides, const int64_t *sizes, int ndim)
    int tgx_window_share(int dtype, char *data, const int64_t *counts, int64_t n)


cdef Tensor zeros_of(PyObject *sizes, Tensor grad):
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef Tensor out = empty(shape, as_ints(sizes, shape, TGX_MAX_DIMS, 1), grad.tid)
    zero(out)
    return out


cdef int dim_of(PyObject *dim, Tensor out, str op) except -1:
    if out.rank == 0:
        raise IndexError(f"{op}(): input_sizes must have at least one dimension, got []")
    return wrap_dim_c(as_int(dim), out.rank)


cdef object k_select_backward(PyObject **a):
    """_select_backward(grad_output, input_sizes, dim, index)"""
    cdef Tensor grad = <Tensor><object>a[0], out = zeros_of(a[1], grad)
    cdef int dim = dim_of(a[2], out, "_select_backward")
    copy_into(without(out, dim, wrap_index(as_int(a[3]), out.sizes[dim], out, dim)), grad)
    return out


cdef object k_slice_backward(PyObject **a):
    """_slice_backward(grad_output, input_sizes, dim, start, step)"""
    cdef Tensor grad = <Tensor><object>a[0], out = zeros_of(a[1], grad)
    cdef int dim = dim_of(a[2], out, "_slice_backward")
    cdef int64_t n, step = as_int(a[4]), start = clamped(a[3], out.sizes[dim], 0)
    if grad.rank != out.rank:
        raise RuntimeError(f"_slice_backward(): grad_output of shape {shape_text(grad)} is no slice of {shape_text(out)}")
    n = grad.sizes[dim]
    # C division: a start behind the last element would pass as 0 // step
    if step <= 0 or n and (start >= out.sizes[dim] or n - 1 > (out.sizes[dim] - 1 - start) // step):
        raise RuntimeError(f"_slice_backward(): {n} elements from {start} on in steps of {step} do not fit in "
                           f"{shape_text(out)}")
    copy_into(part(out, dim, start, n, step), grad)
    return out


cdef object k_diagonal_backward(PyObject **a):
    """_diagonal_backward(grad_output, input_sizes, offset, dim1, dim2)"""
    cdef Tensor grad = <Tensor><object>a[0], out = zeros_of(a[1], grad)
    copy_into(diagonal(out, as_int(a[2]), as_int(a[3]), as_int(a[4])), grad)
    return out


# ---- windows that may overlap --------------------------------------------------------------------------------------

cdef int add_into(Tensor window, Tensor grad) except -1:
    """window[i] += grad[i], where several i may be the same memory."""
    cdef ptrdiff_t to[TGX_MAX_DIMS]
    cdef ptrdiff_t step[TGX_MAX_DIMS]
    cdef int i, code
    for i in range(window.rank):
        if grad.rank != window.rank or grad.sizes[i] != window.sizes[i]:
            raise RuntimeError(f"gradient of shape {shape_text(grad)} does not fit windows of shape "
                               f"{shape_text(window)}")
        to[i], step[i] = window.strides[i] * ITEMSIZE[window.tid], grad.strides[i] * ITEMSIZE[grad.tid]
    if grad.count <= GRAIN:
        code = tgx_window_add(grad.tid, window.data, to, grad.data, step, window.sizes, window.rank)
    else:
        with nogil:
            code = tgx_window_add(grad.tid, window.data, to, grad.data, step, window.sizes, window.rank)
    if code:
        raise NotImplementedError(f'"as_strided_backward" not implemented for \'{dtype_title(grad.tid)}\'')
    return 0


cdef object k_unfold_backward(PyObject **a):
    """_unfold_backward(grad_in, input_sizes, dim, size, step)"""
    cdef Tensor grad = <Tensor><object>a[0], out = zeros_of(a[1], grad)
    cdef Tensor window = windows(out, as_int(a[2]), as_int(a[3]), as_int(a[4]))
    if as_int(a[4]) >= as_int(a[3]):
        copy_into(window, grad)
    else:
        add_into(window, grad)
    return out


cdef int64_t extent(const int64_t *sizes, const int64_t *strides, int ndim) noexcept:
    """Elements from the first to the last of a window; 0 when it is empty."""
    cdef int64_t n = 1
    cdef int i
    for i in range(ndim):
        if sizes[i] == 0:
            return 0
        n += (sizes[i] - 1) * strides[i]
    return n


cdef bint overlaps(const int64_t *sizes, const int64_t *strides, int ndim) noexcept:
    """False when surely no two indices share memory: each stride steps over all that the smaller ones reach."""
    cdef int64_t reach = 0, last = -1, best
    cdef int i, k, at, _step
    for _step in range(ndim):
        at = -1
        for i in range(ndim):
            # strictly rising strides: two equal ones overlap anyway
            if sizes[i] > 1 and strides[i] > last and (at < 0 or strides[i] < best):
                at, best = i, strides[i]
        if at < 0:
            break
        if best <= reach:
            return True
        reach += (sizes[at] - 1) * best
        last = best
    at = 0
    for i in range(ndim):
        if sizes[i] > 1:
            for k in range(i):
                if sizes[k] > 1 and strides[k] == strides[i]:
                    return True
    return False


cdef int share(Tensor memory, int64_t start, const int64_t *sizes, const int64_t *strides, int ndim) except -1:
    """Divide each place of memory by the number of times that the window addresses it."""
    cdef Tensor counts
    if not overlaps(sizes, strides, ndim):
        return 0
    counts = empty(memory.sizes, 1, TGX_I64)
    zero(counts)
    tgx_window_count(<int64_t *>counts.data + start, strides, sizes, ndim)
    tgx_window_share(memory.tid, memory.data, <int64_t *>counts.data, memory.count)
    return 0


cdef object k_rewindow(PyObject **a):
    """_rewindow(self, stride, offset, into_size, into_stride, into_offset, by_source)"""
    cdef Tensor t = <Tensor><object>a[0], memory
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int64_t sizes2[TGX_MAX_DIMS]
    cdef int64_t strides2[TGX_MAX_DIMS]
    cdef int64_t from_ = as_int(a[2]), to = as_int(a[5]), low, n
    cdef int n1 = as_ints(a[1], strides, TGX_MAX_DIMS, 1), n2 = as_ints(a[3], sizes2, TGX_MAX_DIMS, 1)
    if n1 != t.rank or as_ints(a[4], strides2, TGX_MAX_DIMS, 1) != n2:
        raise RuntimeError("_rewindow(): sizes and strides differ in number")
    if not is_inexact(t.tid):
        raise NotImplementedError(f'"as_strided_backward" not implemented for \'{dtype_title(t.tid)}\'')
    geometry.reach(t.sizes, strides, n1, from_, ITEMSIZE[t.tid], geometry.LARGEST_MEMORY, "_rewindow")
    geometry.reach(sizes2, strides2, n2, to, ITEMSIZE[t.tid], geometry.LARGEST_MEMORY, "_rewindow")
    low = min(from_, to)
    n = max(from_ - low + extent(t.sizes, strides, n1), to - low + extent(sizes2, strides2, n2))
    memory = empty(&n, 1, t.tid)
    zero(memory)
    add_into(view(memory, t.sizes, strides, n1, from_ - low), t)
    if <object>a[6] is True:
        share(memory, from_ - low, t.sizes, strides, n1)
    else:
        share(memory, to - low, sizes2, strides2, n2)
    return contiguous(view(memory, sizes2, strides2, n2, to - low))


register_kernel("select_backward", k_select_backward)
register_kernel("slice_backward", k_slice_backward)
register_kernel("diagonal_backward", k_diagonal_backward)
register_kernel("unfold_backward", k_unfold_backward)
register_kernel("rewindow", k_rewindow)
