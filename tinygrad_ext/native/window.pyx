# cython: language_level=3
"""Kernels of views that show a part of a tensor, and of their derivatives, which put a gradient back in its place."""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport copy_into, zero
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core.tensor cimport Tensor, empty, shape_text, view, wrap_dim_c
from tinygrad_ext.core.types cimport TGX_MAX_DIMS, int64_t


cdef Tensor part(Tensor t, int dim, int64_t start, int64_t length, int64_t step):
    """`length` elements along dim, from `start` on; bounds are the caller's business."""
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i
    for i in range(t.rank):
        sizes[i], strides[i] = t.sizes[i], t.strides[i]
    sizes[dim] = length
    strides[dim] = t.strides[dim] * step
    return view(t, sizes, strides, t.rank, start * t.strides[dim] if length else 0)


cdef Tensor without(Tensor t, int dim, int64_t index):
    """Element `index` of dim."""
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i, n = 0
    for i in range(t.rank):
        if i != dim:
            sizes[n], strides[n] = t.sizes[i], t.strides[i]
            n += 1
    return view(t, sizes, strides, n, index * t.strides[dim] if t.count else 0)


cdef int64_t wrap_index(int64_t index, int64_t size, Tensor t, int dim) except? -1:
    if index < -size or index >= size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {shape_text(t)} at dimension {dim}")
    return index + size if index < 0 else index


cdef object k_select(PyObject **a):
    """select(self, dim, index)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int dim
    if t.rank == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor: it has no dimension to take an index of")
    dim = wrap_dim_c(as_int(a[1]), t.rank)
    return without(t, dim, wrap_index(as_int(a[2]), t.sizes[dim], t, dim))


cdef object k_narrow(PyObject **a):
    """narrow(self, dim, start, length)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int dim
    cdef int64_t start, length, size
    if t.rank == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim_c(as_int(a[1]), t.rank)
    start, length, size = as_int(a[2]), as_int(a[3]), t.sizes[dim]
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative. Got {length}.")
    if start < -size or start > size:
        raise IndexError(f"narrow(): start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    if start < 0:
        start += size
    if length > size - start:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return part(t, dim, start, length, 1)


cdef int64_t clamped(PyObject *bound, int64_t size, int64_t missing) except? -1:
    """A slice bound as Python reads it: negative counts from the end, outside means up to the end."""
    cdef int64_t v
    if bound == <PyObject *>None:
        return missing
    v = as_int(bound)
    if v < 0:
        v += size
    return 0 if v < 0 else size if v > size else v


cdef object k_slice(PyObject **a):
    """slice(self, dim, start, end, step)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int dim
    cdef int64_t start, end, step = as_int(a[4])
    if t.rank == 0:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise ValueError("step must be greater than zero")
    dim = wrap_dim_c(as_int(a[1]), t.rank)
    start = clamped(a[2], t.sizes[dim], 0)
    end = clamped(a[3], t.sizes[dim], t.sizes[dim])
    # not (end - start + step - 1): that could overflow
    return part(t, dim, start, (end - start - 1) // step + 1 if end > start else 0, step)


# ---- derivatives ---------------------------------------------------------------------------------------------------

cdef Tensor zeros_of(PyObject *sizes, Tensor grad):
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef Tensor out = empty(shape, as_ints(sizes, shape, TGX_MAX_DIMS, 1), grad.tid)
    zero(out)
    return out


cdef object k_select_backward(PyObject **a):
    """_select_backward(grad_output, input_sizes, dim, index)"""
    cdef Tensor grad = <Tensor><object>a[0], out = zeros_of(a[1], grad)
    cdef int dim = wrap_dim_c(as_int(a[2]), out.rank)
    copy_into(without(out, dim, wrap_index(as_int(a[3]), out.sizes[dim], out, dim)), grad)
    return out


cdef object k_slice_backward(PyObject **a):
    """_slice_backward(grad_output, input_sizes, dim, start, step)"""
    cdef Tensor grad = <Tensor><object>a[0], out = zeros_of(a[1], grad)
    cdef int dim = wrap_dim_c(as_int(a[2]), out.rank)
    cdef int64_t n = grad.sizes[dim], step = as_int(a[4]), start = clamped(a[3], out.sizes[dim], 0)
    if step <= 0 or n and (n - 1) > (out.sizes[dim] - 1 - start) // step:
        raise RuntimeError(f"_slice_backward(): {n} elements from {start} on in steps of {step} do not fit in {shape_text(out)}")
    copy_into(part(out, dim, start, n, step), grad)
    return out


register_kernel("select", k_select)
register_kernel("narrow", k_narrow)
register_kernel("slice", k_slice)
register_kernel("select_backward", k_select_backward)
register_kernel("slice_backward", k_slice_backward)
