# cython: language_level=3
"""Index tensors: self[i, j, ...] with tensors in place of ints, read and written.

`aim` turns index tensors into byte offsets into the table, checks them against the bounds once, and lays out the
result: dimensions before the index, the common shape of the index tensors, dimensions behind it; or that
shape in front, when the index tensors do not stand side by side. The C loops then move blocks.
Reading runs in several threads. Writing does not: of two writes to one place the later one wins, and sums add up in
the order of the index, whatever the number of threads.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport clone, copy_into, zero
from tinygrad_ext.core.dispatch cimport as_ints, register_kernel
from tinygrad_ext.core.dtype cimport ITEMSIZE
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.pointwise cimport broadcast_shape, prepare_out
from tinygrad_ext.core.tensor cimport CONTIGUOUS, Tensor, dtype_title, empty, shape_text, view
from tinygrad_ext.core.types cimport TGX_I32, TGX_I64, TGX_U8
from tinygrad_ext.native.masks cimport coordinates, selected


# ---- where the points lie ------------------------------------------------------------------------------------------

cdef object _outside(Outside how, int64_t index, int dim, int64_t size, str title):
    text = f"index {index} is out of bounds for dimension {dim} with size {size}"
    if how == OUT_RUNTIME:
        return RuntimeError(f"{text} ({title})")
    if how == OUT_SELECT:
        return IndexError(f"index out of range in self: {title}(): {text}; the index must lie between 0 and {size - 1}")
    if how == OUT_COPY:
        return IndexError(f"{title}(): {text}")
    if how == OUT_TAKE:
        return IndexError(f"out of range: tried to access index {index} on a tensor of {size} elements.")
    return IndexError(text)


cdef Tensor _common(Tensor t, const int64_t *shape, int ndim):
    """An int32 or int64 index tensor repeated to the common shape, as contiguous int64."""
    cdef Tensor out
    cdef int i
    cdef bint ready = t.rank == ndim and t.tid == TGX_I64 and t.bits & CONTIGUOUS
    for i in range(ndim):
        if ready and t.sizes[i] != shape[i]:
            ready = False
    if ready:
        return t
    out = empty(shape, ndim, TGX_I64)
    copy_into(out, t)
    return out


cdef int _common_shape(list indices, int64_t *shape) except -1:
    cdef int ndim = 0
    for t in indices:
        if broadcast_shape(<Tensor>t, shape, &ndim):
            raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                             + ", ".join([shape_text(<Tensor>i) for i in indices]))
    return ndim


cdef Tensor _offsets(Tensor table, const int *dims, list indices, const int64_t *shape, int ndim, bint negative,
                     Outside outside, str title):
    """Byte offset of each point in the table."""
    cdef Tensor out = empty(shape, ndim, TGX_I64), t
    cdef int64_t bad = -1
    cdef int k
    zero(out)
    for k in range(len(indices)):
        t = _common(<Tensor>indices[k], shape, ndim)
        with nogil:
            bad = tgx_index_offsets(<int64_t *>out.data, <int64_t *>t.data, t.count, table.sizes[dims[k]],
                                    table.strides[dims[k]] * ITEMSIZE[table.tid], negative)
        if bad >= 0:
            raise _outside(outside, (<int64_t *>t.data)[bad], dims[k], table.sizes[dims[k]], title)
    return out


cdef object aim(Target *t, Tensor table, const int *dims, list indices, bint negative, Outside outside, str title):
    """Fill `t`; returns what must stay alive while it is used."""
    cdef int64_t[TGX_MAX_DIMS] common
    cdef int i, j, k, n = len(indices), rank = _common_shape(indices, common)
    cdef int first = dims[0] if n else 0
    cdef bint adjacent = True
    cdef tgx_picks *p = &t.p
    cdef Tensor offsets
    for k in range(1, n):
        if dims[k] != dims[k - 1] + 1:
            adjacent = False
    if table.rank - n + rank > TGX_MAX_DIMS:
        raise RuntimeError(f"{title}(): the result would have more than {TGX_MAX_DIMS} dimensions")
    offsets = _offsets(table, dims, indices, common, rank, negative, outside, title)
    p.table, p.points, p.offset = table.data, offsets.count, <int64_t *>offsets.data
    p.nouter = p.ninner = 0
    p.width, p.dtype = ITEMSIZE[table.tid], table.tid
    t.ndim = 0
    k = 0
    if not adjacent:
        first = 0
    for i in range(table.rank + 1):
        if i == first:
            for j in range(rank):
                t.shape[t.ndim] = common[j]
                t.ndim += 1
        if i == table.rank:
            break
        if k < n and dims[k] == i:
            k += 1
            continue
        if adjacent and i < first:
            p.outer[p.nouter], p.outer_table[p.nouter] = table.sizes[i], table.strides[i] * p.width
            p.nouter += 1
        else:
            p.inner[p.ninner], p.inner_table[p.ninner] = table.sizes[i], table.strides[i] * p.width
            p.ninner += 1
        t.shape[t.ndim] = table.sizes[i]
        t.ndim += 1
    return offsets


# ---- moving --------------------------------------------------------------------------------------------------------

cdef int _lay_dense(tgx_picks *p, Tensor dense) noexcept:
    """Strides of the dense side: those of contiguous memory, or none for a single repeated element."""
    cdef ptrdiff_t at = 0 if dense.count == 1 else p.width
    cdef int i
    p.dense = dense.data
    for i in range(p.ninner - 1, -1, -1):
        p.inner_dense[i] = at
        at *= p.inner[i]
    p.point_dense = at
    at *= p.points
    for i in range(p.nouter - 1, -1, -1):
        p.outer_dense[i] = at
        at *= p.outer[i]
    tgx_picks_plan(p)
    return 0


cdef int _read(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    tgx_picks_run(<tgx_picks *>ctx, TGX_READ, lo, hi)
    return 0


cdef int64_t _units(tgx_picks *p) noexcept:
    cdef int64_t n = p.points
    cdef int i
    for i in range(p.nouter):
        n *= p.outer[i]
    return n


cdef int read_into(Target *t, Tensor out) except -1:
    cdef int64_t units = _units(&t.p)
    if out.count == 0:
        return 0
    _lay_dense(&t.p, out)
    if out.count <= GRAIN:
        tgx_picks_run(&t.p, TGX_READ, 0, units)
        return 0
    with nogil:
        parallel_for(_read, &t.p, units, 1 + GRAIN * units // out.count)
    return 0


cdef int write_from(Target *t, Tensor values, int move) except -1:
    cdef int64_t units = _units(&t.p)
    if units == 0 or values.count == 0:
        return 0
    _lay_dense(&t.p, values)
    with nogil:
        tgx_picks_run(&t.p, move, 0, units)
    return 0


cdef Tensor like_result(Target *t, Tensor values):
    """Values repeated to the result's shape; RuntimeError when they do not broadcast to it."""
    cdef Tensor out
    cdef int i, k
    cdef bint same = values.rank == t.ndim
    if values.count == 1:
        return values
    for i in range(values.rank):
        k = t.ndim - values.rank + i
        if (k < 0 and values.sizes[i] != 1) or (k >= 0 and values.sizes[i] != t.shape[k] and values.sizes[i] != 1):
            raise RuntimeError(f"shape mismatch: value tensor of shape {shape_text(values)} cannot be broadcast to indexing result "
                               f"of shape {[t.shape[j] for j in range(t.ndim)]}")
        if same and values.sizes[i] != t.shape[i]:
            same = False
    if same and values.bits & CONTIGUOUS:
        return values
    out = empty(t.shape, t.ndim, values.tid)
    copy_into(out, values)
    return out


cdef Tensor target_of(PyObject *out, Tensor self):
    """self for the in-place form, else a copy of it."""
    return self if out == <PyObject *>self else clone(self)


cdef Tensor delivered(Tensor result, PyObject *out):
    """The result, copied to the tensor of an out= form."""
    if out == <PyObject *>None or out == <PyObject *>result:
        return result
    prepare_out(<Tensor>out, result.sizes, result.rank, result.tid)
    copy_into(<Tensor>out, result)
    return <Tensor>out


# ---- index, index_put ----------------------------------------------------------------------------------------------

cdef int _check_mask(Tensor table, Tensor mask, int at) except -1:
    cdef int i
    for i in range(mask.rank):
        if mask.sizes[i] != table.sizes[at + i]:
            raise IndexError(f"The shape of the mask {shape_text(mask)} at index {i} does not match the shape of the indexed tensor "
                             f"{shape_text(table)} at index {at + i}")
    return 0


cdef list _by_dimension(Tensor table, object indices, int *dims):
    """The index tensors, masks turned into coordinates; dims[k] is the dimension of the k-th."""
    cdef list out = []
    cdef Tensor t, c
    cdef int at = 0, i, total = 0
    for o in indices:
        total += (<Tensor>o).rank if o is not None and (<Tensor>o).tid <= TGX_U8 else 1
    if total > table.rank:
        raise IndexError(f"too many indices for tensor of dimension {table.rank} (got {total})")
    for o in indices:
        if o is None:
            at += 1
            continue
        t = <Tensor>o
        if t.tid <= TGX_U8:
            _check_mask(table, t, at)
            c = coordinates(t)
            for i in range(t.rank):
                dims[len(out)] = at + i
                out.append(_row(c, i))
            at += t.rank
        elif t.tid == TGX_I32 or t.tid == TGX_I64:
            dims[len(out)] = at
            out.append(t)
            at += 1
        else:
            raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {dtype_title(t.tid)}. Convert "
                             "it with .long().")
    return out


cdef Tensor _row(Tensor t, int i):
    return view(t, t.sizes + 1, t.strides + 1, 1, i * t.strides[0])


cdef Tensor _lone_mask(Tensor table, object indices):
    """The mask when it is the only index and as large as the table, else None."""
    cdef Tensor m
    if len(indices) != 1 or indices[0] is None:
        return None
    m = <Tensor>indices[0]
    if m.tid > TGX_U8 or m.rank != table.rank or m.rank == 0:
        return None
    _check_mask(table, m, 0)
    return m


cdef object k_index(PyObject **a):
    """index(self, indices)."""
    cdef Tensor self = <Tensor><object>a[0], out, mask = _lone_mask(self, <object>a[1])
    cdef int[TGX_MAX_DIMS] dims
    cdef Target t
    if mask is not None:
        return selected(self, mask)
    indices = _by_dimension(self, <object>a[1], dims)
    if not indices:
        return clone(self)
    kept = aim(&t, self, dims, indices, True, OUT_INDEX, "index")
    out = empty(t.shape, t.ndim, self.tid)
    read_into(&t, out)
    return out


cdef int _put(Tensor table, object index, Tensor values, bint accumulate) except -1:
    """table[index] = values or += values."""
    cdef int[TGX_MAX_DIMS] dims
    cdef Target t
    indices = _by_dimension(table, index, dims)
    if values.storage is table.storage and values.storage is not None:
        values = clone(values)
    if not indices:
        copy_into(table, values)
        return 0
    kept = aim(&t, table, dims, indices, True, OUT_INDEX, "index_put")
    write_from(&t, like_result(&t, values), TGX_ADD if accumulate else TGX_WRITE)
    return 0


cdef object k_index_put(PyObject **a):
    """index_put(self, indices, values, accumulate)."""
    cdef Tensor self = <Tensor><object>a[0], values = <Tensor><object>a[2]
    cdef Tensor out
    if self.tid != values.tid:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {dtype_title(self.tid)} for the "
                           f"destination and {dtype_title(values.tid)} for the source.")
    out = target_of(a[4], self)
    _put(out, <object>a[1], values, <object>a[3])
    return out


cdef object k_index_backward(PyObject **a):
    """_index_backward(grad, size, indices): zeros of a size with grad added where the indices read it."""
    cdef Tensor grad = <Tensor><object>a[0], out
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int ndim = as_ints(a[1], shape, TGX_MAX_DIMS, 1)
    out = empty(shape, ndim, grad.tid)
    zero(out)
    _put(out, <object>a[2], grad, True)
    return out


register_kernel("index", k_index)
register_kernel("index_put", k_index_put)
register_kernel("index_backward", k_index_backward)
