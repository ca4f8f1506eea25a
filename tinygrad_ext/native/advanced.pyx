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
from tinygrad_ext.core.dispatch cimport as_ints, as_scalar, register_kernel
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.outputs cimport broadcast_shape, prepare_out
from tinygrad_ext.core.tensor cimport CONTIGUOUS, Tensor, dtype_title, empty, shape_text, view, write_scalar
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_BOOL, TGX_I32, TGX_I64, is_complex, is_mask, tgx_scalar
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


cdef int _add_offsets(int64_t *into, Tensor table, int dim, Tensor index, int flags, Outside outside,
                      str title) except -1:
    """Bytes from the table's start to the entry each index names, set in or added to `into`."""
    cdef int64_t bad, size = table.sizes[dim]
    cdef ptrdiff_t stride = table.strides[dim] * ITEMSIZE[table.tid]
    if index.count <= GRAIN:
        bad = tgx_index_offsets(into, <int64_t *>index.data, index.count, size, stride, flags)
    else:
        with nogil:
            bad = tgx_index_offsets(into, <int64_t *>index.data, index.count, size, stride, flags)
    if bad >= 0:
        raise _outside(outside, into[bad], dim, size, title)
    return 0


cdef object _room(Target *t, const int64_t *shape, int ndim, int64_t points):
    """Memory for the offsets: in the target itself when they are few."""
    cdef Tensor room
    t.p.points = points
    if points <= FEW:
        t.p.offset = t.few
        return None
    room = empty(shape, ndim, TGX_I64)
    t.p.offset = <int64_t *>room.data
    return room


cdef int _lay_table(Target *t, Tensor table, const int *dims, int n, const int64_t *common, int rank) except -1:
    """Shape of the result, and the table's side of the plan."""
    cdef tgx_picks *p = &t.p
    cdef int i, j, k = 0, first = dims[0]
    cdef bint adjacent = dims[n - 1] - dims[0] == n - 1
    if not adjacent:
        first = 0
    if table.rank - n + rank > TGX_MAX_DIMS:
        raise RuntimeError(f"an indexed tensor would have more than {TGX_MAX_DIMS} dimensions")
    p.table, p.width, p.dtype = table.data, ITEMSIZE[table.tid], table.tid
    p.nouter = p.ninner = t.ndim = 0
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
    return 0


cdef object aim(Target *t, Tensor table, const int *dims, list indices, bint negative, Outside outside, str title):
    """Fill `t`; returns what must stay alive while it is used."""
    cdef int64_t[TGX_MAX_DIMS] common
    cdef int64_t points = 1
    cdef int i, n = len(indices), rank = _common_shape(indices, common), flags = TGX_NEGATIVE if negative else 0
    cdef object room
    for i in range(rank):
        points *= common[i]
    room = _room(t, common, rank, points)
    for i in range(n):
        _add_offsets(<int64_t *>t.p.offset, table, dims[i], _common(<Tensor>indices[i], common, rank),
                     flags | (TGX_FIRST if i == 0 else 0), outside, title)
    _lay_table(t, table, dims, n, common, rank)
    return room


cdef object aim_along(Target *t, Tensor table, int dim, Tensor index, bint negative, Outside outside, str title):
    """aim for one index tensor of any rank."""
    cdef object room = _room(t, index.sizes, index.rank, index.count)
    _add_offsets(<int64_t *>t.p.offset, table, dim, _common(index, index.sizes, index.rank),
                 TGX_FIRST | (TGX_NEGATIVE if negative else 0), outside, title)
    _lay_table(t, table, &dim, 1, index.sizes, index.rank)
    return room


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
    if units <= GRAIN and values.count <= GRAIN:
        tgx_picks_run(&t.p, move, 0, units)
        return 0
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
            raise RuntimeError(f"shape mismatch: value tensor of shape {shape_text(values)} cannot be broadcast to "
                               "indexing result "
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


cdef Tensor filling(object value, Tensor like):
    cdef Tensor t
    cdef tgx_scalar s = as_scalar(value)
    if s.im != 0 and not is_complex(like.tid):
        raise RuntimeError(f"value cannot be converted to type {dtype_title(like.tid)} without overflow: {value} is "
                           "complex")
    if like.tid == TGX_BOOL:
        s.i = s.f != 0 or s.i != 0
    t = empty(NULL, 0, like.tid)
    write_scalar(t.data, like.tid, s.f, s.im, s.i)
    return t


# ---- index, index_put ----------------------------------------------------------------------------------------------

cdef int _check_mask(Tensor table, Tensor mask, int at) except -1:
    cdef int i
    for i in range(mask.rank):
        if mask.sizes[i] != table.sizes[at + i]:
            raise IndexError(f"The shape of the mask {shape_text(mask)} at index {i} does not match the shape of the "
                             "indexed tensor "
                             f"{shape_text(table)} at index {at + i}")
    return 0


cdef list _by_dimension(Tensor table, object indices, int *dims):
    """The index tensors, masks turned into coordinates; dims[k] is the dimension of the k-th."""
    cdef list out = []
    cdef Tensor t, c
    cdef int at = 0, i, total = 0
    for o in indices:
        total += (<Tensor>o).rank if o is not None and is_mask((<Tensor>o).tid) else 1
    if total > table.rank:
        raise IndexError(f"too many indices for tensor of dimension {table.rank} (got {total})")
    for o in indices:
        if o is None:
            at += 1
            continue
        t = <Tensor>o
        if is_mask(t.tid):
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
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors, got "
                             f"{dtype_title(t.tid)}. Convert "
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
    if not is_mask(m.tid) or m.rank != table.rank or m.rank == 0:
        return None
    _check_mask(table, m, 0)
    return m


cdef object _not_alone = object()


cdef object _aim_first(Target *t, Tensor table, object indices, str title):
    """aim_along the first dimension when that is all the index asks for, which is what most do."""
    cdef Tensor i
    if table.rank and len(indices) == 1 and indices[0] is not None:
        i = <Tensor>indices[0]
        if i.tid == TGX_I64 or i.tid == TGX_I32:
            return aim_along(t, table, 0, i, True, OUT_INDEX, title)
    return _not_alone


cdef object k_index(PyObject **a):
    """index(self, indices)."""
    cdef Tensor self = <Tensor><object>a[0], out, mask = _lone_mask(self, <object>a[1])
    cdef int[TGX_MAX_DIMS] dims
    cdef Target t
    if mask is not None:
        return selected(self, mask)
    kept = _aim_first(&t, self, <object>a[1], "index")
    if kept is _not_alone:
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
    if values.storage is table.storage and values.storage is not None:
        values = clone(values)
    kept = _aim_first(&t, table, index, "index_put")
    if kept is _not_alone:
        indices = _by_dimension(table, index, dims)
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
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {dtype_title(self.tid)} "
                           "for the "
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
