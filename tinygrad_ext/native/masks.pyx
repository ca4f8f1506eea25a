# cython: language_level=3
"""Masks: nonzero, masked_select, masked_fill, masked_scatter."""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport contiguous, copy_into, zero
from tinygrad_ext.core.dispatch cimport as_ints, as_scalar, register_kernel
from tinygrad_ext.core.dtype cimport dtype_of
from tinygrad_ext.core.iterate cimport GRAIN, iter_add, iter_begin, iter_run, tgx_iter
from tinygrad_ext.core.outputs cimport broadcast_shape
from tinygrad_ext.core.tensor cimport (
    CONTIGUOUS, Tensor, dtype_title, empty, empty_like, shape_text, view, write_scalar,
)
from tinygrad_ext.core.types cimport (
    ITEMSIZE, TGX_BOOL, TGX_I64, TGX_MAX_DIMS, int64_t, is_complex, tgx_loop, tgx_scalar, uint8_t,
)

cdef extern from "masks.h" nogil:
    ctypedef struct tgx_mask_table:
        int64_t (*count_true)(const char *p, int dtype, int64_t n) noexcept nogil
        void (*true_coordinates)(const char *p, int dtype, const int64_t *sizes, int ndim, int64_t count,
                                 int64_t *out) noexcept nogil
        void (*compress)(char *out, const char *x, const uint8_t *mask, int64_t n, int64_t count, int width) noexcept nogil
        void (*expand)(char *x, const char *src, const uint8_t *mask, int64_t n, int64_t have, int width) noexcept nogil
        tgx_loop *fill
    const tgx_mask_table *tgx_mask_loops()

cdef const tgx_mask_table *_loops = tgx_mask_loops()


cdef int64_t _count(Tensor mask) noexcept:
    cdef int64_t n
    if mask.count <= GRAIN:
        return _loops.count_true(mask.data, mask.tid, mask.count)
    with nogil:
        n = _loops.count_true(mask.data, mask.tid, mask.count)
    return n


cdef Tensor coordinates(Tensor mask):
    cdef Tensor m = contiguous(mask), out
    cdef int64_t[2] shape
    shape[0], shape[1] = m.rank, _count(m)
    out = empty(shape, 2, TGX_I64)
    if m.count <= GRAIN:
        _loops.true_coordinates(m.data, m.tid, m.sizes, m.rank, shape[1], <int64_t *>out.data)
        return out
    with nogil:
        _loops.true_coordinates(m.data, m.tid, m.sizes, m.rank, shape[1], <int64_t *>out.data)
    return out


cdef Tensor repeated(Tensor t, const int64_t *shape, int ndim):
    """t in a larger shape, contiguous."""
    cdef Tensor out
    cdef int i
    if t.rank == ndim and t.bits & CONTIGUOUS:
        for i in range(ndim):
            if t.sizes[i] != shape[i]:
                break
        else:
            return t
    out = empty(shape, ndim, t.tid, t.device_id)
    copy_into(out, t)
    return out


cdef Tensor selected(Tensor t, Tensor mask):
    cdef Tensor x = contiguous(t), m = contiguous(mask), out
    cdef int64_t n = _count(m)
    out = empty(&n, 1, x.tid)
    if m.count <= GRAIN:
        _loops.compress(out.data, x.data, <const uint8_t *>m.data, m.count, n, ITEMSIZE[x.tid])
        return out
    with nogil:
        _loops.compress(out.data, x.data, <const uint8_t *>m.data, m.count, n, ITEMSIZE[x.tid])
    return out


cdef int common_shape(Tensor a, Tensor b, str title, int64_t *shape, int *ndim) except -1:
    """The shape two tensors broadcast to."""
    cdef int at
    ndim[0] = 0
    for t in (a, b):
        at = broadcast_shape(<Tensor>t, shape, ndim)
        if at:
            raise RuntimeError(f"The size of tensor a ({shape[at - 1]}) must match the size of tensor b "
                               f"({b.sizes[at - 1 - (ndim[0] - b.rank)]}) at non-singleton dimension {at - 1}: "
                               f"{title}() got self "
                               f"{shape_text(a)} and mask {shape_text(b)}, which do not broadcast")
    return 0


# ---- kernels -------------------------------------------------------------------------------------------------------

cdef object k_nonzero(PyObject **a):
    """nonzero(self): n x rank."""
    cdef Tensor out = coordinates(<Tensor><object>a[0])
    cdef int64_t[2] shape
    cdef int64_t[2] strides
    shape[0], shape[1] = out.sizes[1], out.sizes[0]
    strides[0], strides[1] = 1, max(shape[0], 1)
    return view(out, shape, strides, 2, 0)


cdef object k_masked_select(PyObject **a):
    cdef Tensor self = <Tensor><object>a[0], mask = <Tensor><object>a[1]
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int ndim
    if mask.tid != TGX_BOOL:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {dtype_title(mask.tid)}: compare first, "
                           "as in x > 0")
    common_shape(self, mask, "masked_select", shape, &ndim)
    return selected(repeated(self, shape, ndim), repeated(mask, shape, ndim))


cdef object k_masked_select_backward(PyObject **a):
    """_masked_select_backward(grad, size, mask): zeros with grad's elements under the mask, in the common shape."""
    cdef Tensor grad = contiguous(<Tensor><object>a[0]), mask = <Tensor><object>a[2]
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int ndim = as_ints(a[1], shape, TGX_MAX_DIMS, 1)
    if mask.tid != TGX_BOOL:
        raise RuntimeError(f"_masked_select_backward: expected BoolTensor for mask, got {dtype_title(mask.tid)}")
    if broadcast_shape(mask, shape, &ndim):
        raise RuntimeError(f"_masked_select_backward: mask of shape {shape_text(mask)} and size "
                           f"{[shape[i] for i in range(ndim)]} do not broadcast")
    return _scattered(_zeros(shape, ndim, grad), repeated(mask, shape, ndim), grad)


cdef Tensor _zeros(const int64_t *shape, int ndim, Tensor like):
    cdef Tensor out = empty(shape, ndim, like.tid)
    zero(out)
    return out


cdef Tensor _scattered(Tensor out, Tensor mask, Tensor source):
    """Write source's elements in order to the places of out (contiguous) that the mask names."""
    if _count(mask) > source.count:
        raise RuntimeError(f"masked_scatter: Number of elements of source < number of ones in mask: {source.count} < "
                           f"{_count(mask)}")
    if out.count <= GRAIN:
        _loops.expand(out.data, source.data, <const uint8_t *>mask.data, out.count, source.count, ITEMSIZE[out.tid])
        return out
    with nogil:
        _loops.expand(out.data, source.data, <const uint8_t *>mask.data, out.count, source.count, ITEMSIZE[out.tid])
    return out


cdef object k_masked_scatter(PyObject **a):
    """masked_scatter(self, mask, source)."""
    cdef Tensor self = <Tensor><object>a[0], mask = <Tensor><object>a[1], source = <Tensor><object>a[2], out
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int ndim
    if mask.tid != TGX_BOOL:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {dtype_of(mask.tid)}")
    if self.tid != source.tid:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got "
                           f"{dtype_title(self.tid)} and "
                           f"{dtype_title(source.tid)}")
    common_shape(self, mask, "masked_scatter", shape, &ndim)
    out = empty(shape, ndim, self.tid)
    copy_into(out, self)
    return _scattered(out, repeated(mask, shape, ndim), contiguous(source))


cdef object k_masked_fill(PyObject **a):
    """masked_fill(self, mask, value): value is a number or a 0-dim tensor, converted to self's dtype."""
    cdef Tensor self = <Tensor><object>a[0], mask = <Tensor><object>a[1], out
    cdef int64_t[TGX_MAX_DIMS] shape
    cdef int ndim, i
    cdef char[16] value
    cdef bint given = a[3] != <PyObject *>None
    if mask.tid != TGX_BOOL:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {dtype_of(mask.tid)}: "
                           "compare "
                           "first, as in x > 0")
    common_shape(self, mask, "masked_fill", shape, &ndim)
    _value_bytes(value, <object>a[2], self.tid)
    if given:
        out = <Tensor><object>a[3]
        if ndim != self.rank or any([shape[i] != self.sizes[i] for i in range(ndim)]):
            raise RuntimeError(f"output with shape {shape_text(self)} doesn't match the broadcast shape "
                               f"{[shape[i] for i in range(ndim)]}")
        if out.storage is mask.storage and out.storage is not None:
            mask = repeated(mask, shape, ndim)
    else:
        out = empty_like(self, self.tid) if self.rank == ndim and _same(self, shape) else empty(shape, ndim, self.tid)
    _fill(out, self, mask, value)
    return out


cdef bint _same(Tensor t, const int64_t *shape) noexcept:
    cdef int i
    for i in range(t.rank):
        if t.sizes[i] != shape[i]:
            return False
    return True


cdef int _value_bytes(char *into, object value, int tid) except -1:
    """A number in the bytes of a dtype."""
    cdef tgx_scalar s
    if isinstance(value, Tensor):
        if (<Tensor>value).rank:
            raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{(<Tensor>value).rank} dimension(s). where() takes values of any shape.")
        value = (<Tensor>value)._only_element()
    s = as_scalar(value)
    if s.im != 0 and not is_complex(tid):
        raise RuntimeError(f"value cannot be converted to type {dtype_title(tid)} without overflow: {value} is complex")
    if tid == TGX_BOOL:
        s.i = s.f != 0 or s.i != 0
    write_scalar(into, tid, s.f, s.im, s.i)
    return 0


cdef inline int _log2(int width) noexcept:
    return 0 if width == 1 else 1 if width == 2 else 2 if width == 4 else 3 if width == 8 else 4


cdef int _fill(Tensor out, Tensor self, Tensor mask, char *value) except -1:
    cdef tgx_iter it
    cdef tgx_loop loop = _loops.fill[_log2(ITEMSIZE[out.tid])]
    cdef int64_t one = 1, still = 0
    iter_begin(&it, out.sizes, out.rank)
    iter_add(&it, out.data, out.sizes, out.strides, out.rank, ITEMSIZE[out.tid])
    iter_add(&it, self.data, self.sizes, self.strides, self.rank, ITEMSIZE[out.tid])
    iter_add(&it, mask.data, mask.sizes, mask.strides, mask.rank, 1)
    iter_add(&it, value, &one, &still, 1, ITEMSIZE[out.tid])
    if it.numel > GRAIN:
        with nogil:
            iter_run(&it, loop, NULL)
    else:
        iter_run(&it, loop, NULL)
    return 0


register_kernel("nonzero", k_nonzero)
register_kernel("masked_select", k_masked_select)
register_kernel("masked_select_backward", k_masked_select_backward)
register_kernel("masked_scatter", k_masked_scatter)
register_kernel("masked_fill", k_masked_fill)
