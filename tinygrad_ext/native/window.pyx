# cython: language_level=3
"""Parts of a tensor as views, for other compiled kernels. The ops are kernels/window.c."""
from cpython.object cimport PyObject
from tinygrad_ext.core.dispatch cimport as_int
from tinygrad_ext.core.tensor cimport Tensor, shape_text, view, wrap_dim_c
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


cdef int64_t clamped(PyObject *bound, int64_t size, int64_t missing) except? -1:
    """A slice bound as Python reads it: negative counts from the end, outside means up to the end."""
    cdef int64_t v
    if bound == <PyObject *>None:
        return missing
    v = as_int(bound)
    if v < 0:
        v += size
    return 0 if v < 0 else size if v > size else v


cdef Tensor diagonal(Tensor t, int64_t offset, int64_t dim1, int64_t dim2):
    """The elements whose index in dim2 is that in dim1 plus offset, along a new last dimension."""
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i, n = 0, d1 = wrap_dim_c(dim1, t.rank), d2 = wrap_dim_c(dim2, t.rank)
    cdef int64_t length, other, start
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    for i in range(t.rank):
        if i != d1 and i != d2:
            sizes[n], strides[n] = t.sizes[i], t.strides[i]
            n += 1
    length, other = (t.sizes[d1], t.sizes[d2] - offset) if offset >= 0 else (t.sizes[d1] + offset, t.sizes[d2])
    length = max(min(length, other), 0)
    sizes[n], strides[n] = length, t.strides[d1] + t.strides[d2]
    start = 0 if length == 0 or t.count == 0 else offset * t.strides[d2] if offset >= 0 else -offset * t.strides[d1]
    return view(t, sizes, strides, n + 1, start)


cdef Tensor windows(Tensor t, int64_t dimension, int64_t size, int64_t step):
    """All windows of `size` elements along a dimension, `step` apart; the window is the last dimension."""
    cdef int64_t sizes[TGX_MAX_DIMS + 1]
    cdef int64_t strides[TGX_MAX_DIMS + 1]
    cdef int i, dim = wrap_dim_c(dimension, t.rank)
    cdef int64_t room = t.sizes[dim] if t.rank else 1, stride = t.strides[dim] if t.rank else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > room:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {room} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    for i in range(t.rank):
        sizes[i], strides[i] = t.sizes[i], t.strides[i]
    if t.rank:
        sizes[dim] = (room - size) // step + 1
        strides[dim] = stride * step
    sizes[t.rank], strides[t.rank] = size, stride
    return view(t, sizes, strides, t.rank + 1, 0)
