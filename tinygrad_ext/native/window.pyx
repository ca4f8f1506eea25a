# cython: language_level=3
"""Kernels of views that show parts of a tensor: one index, a range, a diagonal, windows, all pieces of a split.

Their derivatives stand in native/putback.pyx, which shares `part`, `without`, `diagonal` and `windows`.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core.geometry cimport ANY_ROOM, reach
from tinygrad_ext.core.tensor cimport Tensor, shape_text, view, wrap_dim_c
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_MAX_DIMS, int64_t


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
        raise IndexError(f"narrow(): start out of range (expected to be in range of [{-size}, {size}], but got "
                         f"{start})")
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


# ---- several parts -------------------------------------------------------------------------------------------------

cdef int split_dim(Tensor t, PyObject *dim, str name) except -1:
    if t.rank == 0:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor. A 0-dim tensor has nothing to cut; "
                           f"unsqueeze it first.")
    return wrap_dim_c(as_int(dim), t.rank)


cdef object pieces(Tensor t, int dim, int64_t each, int64_t count):
    """Tuple of `count` parts of `each` elements; what is left over makes the last ones shorter."""
    cdef object out = PyTuple_New(count)
    cdef int64_t i, start = 0, size = t.sizes[dim], length
    for i in range(count):
        length = each if size - start > each else size - start
        p = part(t, dim, start, length, 1)
        Py_INCREF(p)
        PyTuple_SET_ITEM(out, i, p)
        start += length
    return out


cdef object k_split(PyObject **a):
    """split(self, split_size, dim)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int dim = split_dim(t, a[2], "split")
    cdef int64_t each = as_int(a[1]), size = t.sizes[dim]
    if each < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={each}")
    if each == 0 and size:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    return pieces(t, dim, each, (size - 1) // each + 1 if size else 1)


cdef object k_chunk(PyObject **a):
    """chunk(self, chunks, dim)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int dim = split_dim(t, a[2], "chunk")
    cdef int64_t chunks = as_int(a[1]), size = t.sizes[dim], each
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if size == 0:
        return pieces(t, dim, 0, chunks)
    each = (size - 1) // chunks + 1
    return pieces(t, dim, each, (size - 1) // each + 1)


cdef object k_split_sizes(PyObject **a):
    """split_with_sizes(self, split_sizes, dim)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int dim = split_dim(t, a[2], "split_with_sizes")
    cdef int64_t start = 0, size = t.sizes[dim], length
    cdef object sizes = <object>a[1]
    cdef list out = []
    for length in sizes:
        if length < 0:
            raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got "
                               f"split_sizes={list(sizes)}")
        if length > size - start:
            start = -1
            break
        out.append(part(t, dim, start, length, 1))
        start += length
    if start != size:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at "
                           f"dimension {dim}), "
                           f"but got split_sizes={list(sizes)}")
    return tuple(out)


cdef object k_unbind(PyObject **a):
    """unbind(self, dim)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int dim
    cdef int64_t i
    cdef object out
    if t.rank == 0:
        raise IndexError(f"Dimension specified as {as_int(a[1])} but tensor has no dimensions")
    dim = wrap_dim_c(as_int(a[1]), t.rank)
    out = PyTuple_New(t.sizes[dim])
    for i in range(t.sizes[dim]):
        p = without(t, dim, i)
        Py_INCREF(p)
        PyTuple_SET_ITEM(out, i, p)
    return out


# ---- diagonals and windows -----------------------------------------------------------------------------------------

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


cdef object k_diagonal(PyObject **a):
    """diagonal(self, offset, dim1, dim2)"""
    return diagonal(<Tensor><object>a[0], as_int(a[1]), as_int(a[2]), as_int(a[3]))


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


cdef object k_unfold(PyObject **a):
    """unfold(self, dimension, size, step)"""
    return windows(<Tensor><object>a[0], as_int(a[1]), as_int(a[2]), as_int(a[3]))


# ---- any window ----------------------------------------------------------------------------------------------------

cdef object k_as_strided(PyObject **a):
    """as_strided(self, size, stride, storage_offset)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int64_t start = t.storage_offset(), offset = start
    cdef int64_t room = ANY_ROOM if t.device_id else 0 if t.storage is None else <int64_t>t.storage.nbytes
    cdef int i, ndim = as_ints(a[1], sizes, TGX_MAX_DIMS, 1)
    if as_ints(a[2], strides, TGX_MAX_DIMS, 1) != ndim:
        raise RuntimeError(f"mismatch in length of strides and shape: as_strided() got {ndim} sizes and "
                           f"{len(<object>a[2])} strides")
    if a[3] != <PyObject *>None:
        offset = as_int(a[3])
    for i in range(ndim):
        if sizes[i] == 0:
            offset, room = min(offset, start), ANY_ROOM         # no element, so nothing points outside
    reach(sizes, strides, ndim, offset, ITEMSIZE[t.tid], room, "as_strided")
    return view(t, sizes, strides, ndim, offset - start)


register_kernel("select", k_select)
register_kernel("narrow", k_narrow)
register_kernel("slice", k_slice)
register_kernel("split", k_split)
register_kernel("chunk", k_chunk)
register_kernel("split_sizes", k_split_sizes)
register_kernel("unbind", k_unbind)
register_kernel("diagonal", k_diagonal)
register_kernel("unfold", k_unfold)
register_kernel("as_strided", k_as_strided)
