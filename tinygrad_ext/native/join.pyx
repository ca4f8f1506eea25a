# cython: language_level=3
"""Kernels that put tensors together: cat and stack. A small contiguous piece goes row by row through memcpy, any other
through the general copy."""
from cpython.object cimport PyObject
from libc.string cimport memcpy
from tinygrad_ext.core.copy cimport copy_into
from tinygrad_ext.core.dispatch cimport as_int, register_kernel
from tinygrad_ext.core.dtype cimport dtype_of
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.outputs cimport check_writable, prepare_out
from tinygrad_ext.core.promotion cimport Promotion, promotion_add, promotion_begin, promotion_result
from tinygrad_ext.core.tensor cimport (
    CONTIGUOUS, Tensor, checked_numel, dtype_title, empty, shape_text, view, wrap_dim_c,
)
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_MAX_DIMS, int64_t

from tinygrad_ext.core.dtype import can_cast


cdef int put(Tensor out, Tensor t, int dim, int64_t start, int64_t width) except -1:
    """Copy t to the places start .. start + width of out's dimension dim; t may lack that dimension (stack)."""
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t row, inner = out.strides[dim] * ITEMSIZE[out.tid], pitch, k
    cdef char *to
    cdef int i
    if t.count == 0:
        return 0
    if t.bits & out.bits & CONTIGUOUS and t.tid == out.tid and t.count <= GRAIN and out.device_id == 0:
        row, pitch, to = inner * width, inner * out.sizes[dim], out.data + start * inner
        for k in range(t.count * ITEMSIZE[t.tid] // row):
            memcpy(to + k * pitch, t.data + k * row, row)
        return 0
    for i in range(out.rank):
        sizes[i] = out.sizes[i]
    sizes[dim] = width
    if t.rank < out.rank:
        t = inserted(t, dim)
    copy_into(view(out, sizes, out.strides, out.rank, start * out.strides[dim]), t)
    return 0


cdef Tensor inserted(Tensor t, int dim):
    """t with a dimension of size 1 at dim."""
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i
    for i in range(t.rank):
        sizes[i + (i >= dim)], strides[i + (i >= dim)] = t.sizes[i], t.strides[i]
    sizes[dim], strides[dim] = 1, 0
    return view(t, sizes, strides, t.rank + 1, 0)


cdef int common_dtype(object tensors) except -1:
    cdef Promotion p
    promotion_begin(&p)
    for t in tensors:
        promotion_add(&p, t)
    return promotion_result(&p)


cdef Tensor target(object out, object tensors, const int64_t *shape, int ndim, int device, str name):
    """The tensor to fill: fresh, or the caller's `out` brought into shape."""
    cdef int dtype = common_dtype(tensors)
    cdef Tensor o, t
    checked_numel(shape, ndim, name)
    if out is None:
        return empty(shape, ndim, dtype, device)
    o = <Tensor>out
    for t in tensors:
        if t.storage is o.storage and t.count and o.count:
            raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor "
                               "refer to a "
                               f"single memory location. {name}() cannot write to its own input; clone() it first.")
    if not can_cast(dtype_of(dtype), dtype_of(o.tid)):
        raise TypeError(f"torch.{name}(): input types can't be cast to the desired output type {dtype_title(o.tid)}: "
                        f"together "
                        f"they make {dtype_title(dtype)}")
    prepare_out(o, shape, ndim, dtype)
    check_writable(o, name)
    return o


cdef bint skipped(Tensor t) noexcept:
    """cat passes over tensors of shape (0,), whatever the shape of the others."""
    return t.rank == 1 and t.sizes[0] == 0


cdef int check_cat(Tensor first, Tensor t, int dim, int at) except -1:
    cdef int i
    if t.rank != first.rank:
        raise RuntimeError(f"Tensors must have same number of dimensions: got {first.rank} and {t.rank}. cat(): "
                           f"tensor number "
                           f"{at} in the list has shape {shape_text(t)}, the first {shape_text(first)}")
    for i in range(t.rank):
        if i != dim and t.sizes[i] != first.sizes[i]:
            raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected size "
                               f"{first.sizes[i]} but got "
                               f"size {t.sizes[i]} for tensor number {at} in the list.")
    return 0


cdef object k_cat(PyObject **a):
    """cat(tensors, dim, out)"""
    cdef object tensors = <object>a[0]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t total = 0, start = 0
    cdef Tensor t, out, first = None
    cdef int i, dim
    if type(tensors) is not list and type(tensors) is not tuple:
        tensors = list(tensors)         # a subclass may lie about its length and items
    if not len(tensors):
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, t in enumerate(tensors):
        if t.rank == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated. Use stack() or "
                               f"unsqueeze it.")
        if first is None and not skipped(t):
            first = t
    if first is None:
        first, dim = <Tensor>tensors[0], 0      # nothing but passed-over tensors: any dim will do
    else:
        dim = wrap_dim_c(as_int(a[1]), first.rank)
        for i, t in enumerate(tensors):
            if not skipped(t):
                check_cat(first, t, dim, i)
                total += t.sizes[dim]
    for i in range(first.rank):
        shape[i] = first.sizes[i]
    shape[dim] = total
    out = target(<object>a[2], tensors, shape, first.rank, first.device_id, "cat")
    for t in tensors:
        if not skipped(t):
            put(out, t, dim, start, t.sizes[dim])
            start += t.sizes[dim]
    return out


cdef object k_stack(PyObject **a):
    """stack(tensors, dim, out)"""
    cdef object tensors = <object>a[0]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef Tensor t, out, first
    cdef int i, k, dim
    if type(tensors) is not list and type(tensors) is not tuple:
        tensors = list(tensors)         # a subclass may lie about its length and items
    if not len(tensors):
        raise RuntimeError("stack expects a non-empty TensorList")
    first = <Tensor>tensors[0]
    dim = wrap_dim_c(as_int(a[1]), first.rank + 1)
    if first.rank == TGX_MAX_DIMS:
        raise RuntimeError(f"stack(): a tensor has at most {TGX_MAX_DIMS} dimensions, and the entries have them all")
    for k, t in enumerate(tensors):
        if not same_shape(t, first):
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {shape_text(first)} at entry 0 "
                               f"and "
                               f"{shape_text(t)} at entry {k}")
    for i in range(first.rank):
        shape[i + (i >= dim)] = first.sizes[i]
    shape[dim] = len(tensors)
    out = target(<object>a[2], tensors, shape, first.rank + 1, first.device_id, "stack")
    for k, t in enumerate(tensors):
        put(out, t, dim, k, 1)
    return out


cdef bint same_shape(Tensor a, Tensor b) noexcept:
    cdef int i
    if a.rank != b.rank:
        return False
    for i in range(a.rank):
        if a.sizes[i] != b.sizes[i]:
            return False
    return True


register_kernel("cat", k_cat)
register_kernel("stack", k_stack)
