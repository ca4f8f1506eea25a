# cython: language_level=3
"""One index vector along one dimension: index_select, index_add, index_copy, index_fill; and take over all elements."""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport clone, contiguous, zero
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core.tensor cimport Tensor, alias, dtype_title, empty, shape_text, view, wrap_dim_c
from tinygrad_ext.core.types cimport TGX_I32, TGX_I64, TGX_MAX_DIMS, int64_t, is_integral
from tinygrad_ext.native.advanced cimport (
    OUT_COPY, OUT_INDEX, OUT_RUNTIME, OUT_SELECT, OUT_TAKE, TGX_ADD, TGX_WRITE, Target, aim_along, delivered, filling,
    like_result,
    read_into, target_of, write_from,
)


cdef Tensor _at_least_1d(Tensor t):
    """A 0-dim tensor as a vector of one element, sharing its memory."""
    cdef int64_t one = 1
    return view(t, &one, &one, 1, 0) if t.rank == 0 else t


cdef Tensor _vector(Tensor index, str title):
    if index.rank > 1:
        raise IndexError(f"{title}(): Index is supposed to be a vector, but got dim: {index.rank} with type: "
                         f"{dtype_title(index.tid)} and size: {shape_text(index)}")
    return _at_least_1d(index)


# ---- reading -------------------------------------------------------------------------------------------------------

cdef Tensor _checked(Tensor index, str title):
    if index.tid != TGX_I32 and index.tid != TGX_I64:
        raise RuntimeError(f"{title}(): Expected dtype int32 or int64 for index, got {dtype_title(index.tid)}")
    return _vector(index, title)


cdef object k_index_select(PyObject **a):
    """index_select(self, dim, index)."""
    cdef Tensor self = <Tensor><object>a[0], index = _checked(<Tensor><object>a[2], "index_select"), out
    cdef Target t
    cdef int dim = wrap_dim_c(as_int(a[1]), self.rank)
    if self.rank == 0 and index.count != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.count} value(s)")
    _kept = aim_along(&t, _at_least_1d(self), dim, index, False, OUT_SELECT, "index_select")
    out = empty(t.shape, t.ndim if self.rank else 0, self.tid)
    read_into(&t, out)
    return out


cdef object k_index_select_backward(PyObject **a):
    """_index_select_backward(grad, size, dim, index): zeros with grad added where it was read."""
    cdef Tensor grad = <Tensor><object>a[0], index = _checked(<Tensor><object>a[3], "_index_select_backward"), out
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef Target t
    cdef int ndim = as_ints(a[1], shape, TGX_MAX_DIMS, 1)
    out = empty(shape, ndim, grad.tid)
    zero(out)
    _kept = aim_along(&t, _at_least_1d(out), wrap_dim_c(as_int(a[2]), ndim), index, False, OUT_SELECT, "index_select")
    write_from(&t, like_result(&t, grad), TGX_ADD)
    return out


# ---- writing -------------------------------------------------------------------------------------------------------

cdef Tensor _own(Tensor source, Tensor target):
    """Source, copied when it lies in the memory that is written to."""
    return clone(source) if source.storage is target.storage and source.storage is not None else source


cdef int _check_source(Tensor self, int dim, Tensor index, Tensor source, str title) except -1:
    """source has the shape of self but for `dim`, where it is as long as the index."""
    cdef int i, rank = self.rank if self.rank else 1
    cdef Tensor s = _at_least_1d(source), x = _at_least_1d(self)
    if s.sizes[dim if dim < s.rank else 0] != index.count:
        raise RuntimeError(f"{title}(): Number of indices ({index.count}) should be equal to source.size(dim): "
                           f"({s.sizes[dim if dim < s.rank else 0]}), for dim: {dim}")
    for i in range(rank):
        if s.rank != rank or (i != dim and s.sizes[i] != x.sizes[i]):
            raise RuntimeError(f"{title}(): source tensor shape must match self tensor shape, excluding the specified "
                               "dimension. "
                               f"Got self.shape = {shape_text(self)} source.shape = {shape_text(source)}")
    return 0


cdef Tensor _scaled(Tensor source, object alpha):
    """source * alpha in source's dtype."""
    if type(alpha) is int and alpha == 1:
        return source
    if is_integral(source.tid) and isinstance(alpha, (float, complex)):
        raise RuntimeError("index_add_(): For integral input tensors, argument alpha must not be a floating point "
                           f"number, got {alpha}")
    return alias(source) * filling(alpha, source)


cdef object k_index_add(PyObject **a):
    """index_add(self, dim, index, source, alpha)."""
    cdef Tensor self = <Tensor><object>a[0], source = <Tensor><object>a[3], out
    cdef Tensor index = _checked(<Tensor><object>a[2], "index_add_")
    cdef Target t
    cdef int dim = wrap_dim_c(as_int(a[1]), self.rank)
    if self.tid != source.tid:
        raise RuntimeError(f"index_add_(): self ({dtype_title(self.tid)}) and source ({dtype_title(source.tid)}) must "
                           "have the "
                           "same scalar type")
    _check_source(self, dim, index, source, "index_add_")
    out = target_of(a[5], self)
    _kept = aim_along(&t, _at_least_1d(out), dim, index, False, OUT_RUNTIME, "index_add_")
    source = _scaled(source, <object>a[4])
    write_from(&t, like_result(&t, _own(source, out)), TGX_ADD)
    return delivered(out, a[5])


cdef object k_index_copy(PyObject **a):
    """index_copy(self, dim, index, source)."""
    cdef Tensor self = <Tensor><object>a[0], source = <Tensor><object>a[3], out, x, s
    cdef Tensor index = _vector(<Tensor><object>a[2], "index_copy_")
    cdef Target t
    cdef int i, dim = wrap_dim_c(as_int(a[1]), self.rank)
    if index.tid != TGX_I64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {dtype_title(index.tid)}")
    if self.tid != source.tid:
        raise RuntimeError(f"index_copy_(): self and source expected to have the same dtype, but got (self) "
                           f"{dtype_title(self.tid)} and (source) {dtype_title(source.tid)}")
    if source.rank and self.rank and source.rank != self.rank:
        raise IndexError("index_copy_(): When source and destination are not scalars, their dimensionality must match. "
                         "Source "
                         f"dimensionality ({source.rank}), destination dimensionality ({self.rank})")
    out = target_of(a[4], self)
    x, s = _at_least_1d(out), _at_least_1d(source)
    if s.rank != x.rank:
        raise IndexError(f"index_copy_(): source of shape {shape_text(source)} does not fit self of shape "
                         f"{shape_text(self)}")
    if s.sizes[dim] != index.count:
        raise IndexError(f"index_copy_(): Number of indices ({index.count}) should be equal to source.size(dim) "
                         f"({s.sizes[dim]})")
    for i in range(x.rank):
        if i != dim and x.sizes[i] != s.sizes[i]:
            raise RuntimeError("index_copy_(): Source/destination tensor must have same slice shapes. Got destination "
                               f"{shape_text(self)} and source {shape_text(source)}, which differ in dimension {i}.")
    _kept = aim_along(&t, x, dim, index, False, OUT_COPY, "index_copy_")
    write_from(&t, like_result(&t, _own(s, out)), TGX_WRITE)
    return delivered(out, a[4])


cdef object k_index_fill(PyObject **a):
    """index_fill(self, dim, index, value): a number or a 0-dim tensor."""
    cdef Tensor self = <Tensor><object>a[0], out, value
    cdef Tensor index = _vector(<Tensor><object>a[2], "index_fill_")
    cdef Target t
    cdef int dim = wrap_dim_c(as_int(a[1]), self.rank)
    if index.tid != TGX_I64:
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, got {dtype_title(index.tid)}.")
    value = _one_value(<object>a[3], self)
    out = target_of(a[4], self)
    _kept = aim_along(&t, _at_least_1d(out), dim, index, True, OUT_INDEX, "index_fill_")
    write_from(&t, value, TGX_WRITE)
    return delivered(out, a[4])


cdef Tensor _one_value(object value, Tensor like):
    """The value of index_fill in like's dtype."""
    if isinstance(value, Tensor) and (<Tensor>value).rank:
        raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{(<Tensor>value).rank} dimension(s).")
    return filling(value, like)


# ---- over all elements ---------------------------------------------------------------------------------------------

cdef Tensor _flat(Tensor t):
    cdef int64_t one = 1
    cdef Tensor c = contiguous(t)
    return view(c, &c.count, &one, 1, 0)


cdef object k_take(PyObject **a):
    """take(self, index): elements by their number in row-major order."""
    cdef Tensor self = <Tensor><object>a[0], index = <Tensor><object>a[1], out, flat
    cdef Target t
    if index.tid != TGX_I64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {dtype_title(index.tid)}")
    if self.count == 0 and index.count:
        raise IndexError("take(): tried to take from an empty tensor")
    flat = _flat(self)
    _kept = aim_along(&t, flat, 0, index, True, OUT_TAKE, "take")
    out = empty(index.sizes, index.rank, self.tid)
    read_into(&t, out)
    return out


register_kernel("index_select", k_index_select)
register_kernel("index_select_backward", k_index_select_backward)
register_kernel("index_add", k_index_add)
register_kernel("index_copy", k_index_copy)
register_kernel("index_fill", k_index_fill)
register_kernel("take", k_take)
