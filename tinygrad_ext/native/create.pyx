# cython: language_level=3
"""Kernels that make tensors: empty, filled, like others, from data, and the in-place fills.

The options dtype, layout, device, pin_memory, requires_grad stand in every factory's schema in this order;
`options` reads them.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.construct cimport read_shape, tensor_of, warn_of_copy
from tinygrad_ext.core.copy cimport broadcasts, clone, copy_into, fill, zero
from tinygrad_ext.core.dispatch cimport as_ints, register_kernel
from tinygrad_ext.core.dtype cimport META, default_id, device_id, dtype_id, dtype_of
from tinygrad_ext.core.outputs cimport check_readonly, check_writable, prepare_out
from tinygrad_ext.core.tensor cimport (
    REQUIRES_GRAD, Tensor, alias, checked_numel, empty, empty_like, empty_strided, shape_text,
)
from tinygrad_ext.core.types cimport TGX_BOOL, TGX_C128, TGX_C64, TGX_F64, TGX_I64, TGX_MAX_DIMS, int64_t, is_inexact

from tinygrad_ext.core.dtype import (
    channels_last as _channels_last, contiguous_format as _contiguous_format, preserve_format as _preserve_format,
)


cdef Options options(PyObject **args) except *:
    cdef Options o
    o.dtype = dtype_id(<object>args[0]) if args[0] != <PyObject *>None else -1
    o.device = device_id(<object>args[2]) if args[2] != <PyObject *>None else -1
    if <object>args[3] is True:
        raise RuntimeError("pin_memory=True needs a device to pin memory for; this build has the cpu only")
    o.requires_grad = <object>args[4] is True
    if o.requires_grad and o.dtype >= 0 and not is_inexact(o.dtype):
        _refuse_grad(o.dtype)
    return o


cdef int _refuse_grad(int dtype) except -1:
    raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients, got "
                       f"{dtype_of(dtype)}: "
                       "give a floating dtype, or leave requires_grad out")


cdef Tensor finished(Tensor t, Options *o):
    if o.requires_grad:
        if not is_inexact(t.tid):
            _refuse_grad(t.tid)
        t.bits |= REQUIRES_GRAD
    return t


cdef Tensor shaped(const int64_t *shape, int ndim, int dtype, Options *o, PyObject *out):
    """Memory for a factory's result: fresh, or `out` resized. The dtype is o's, else out's, else `dtype`."""
    cdef Tensor t
    if out == NULL or out == <PyObject *>None:
        return empty(shape, ndim, o.dtype if o.dtype >= 0 else dtype, o.device if o.device > 0 else 0)
    t = <Tensor><object>out
    if 0 <= o.dtype != t.tid:
        raise RuntimeError(f"dtype {dtype_of(o.dtype)} does not match dtype of out parameter ({dtype_of(t.tid)}): "
                           "leave dtype out, or pass an out of that dtype")
    checked_numel(shape, ndim, "out=")
    prepare_out(t, shape, ndim, t.tid)
    check_writable(t, "out=")
    return t


cdef Tensor sized(PyObject *size, int dtype, Options *o, PyObject *out):
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int ndim = read_shape(<object>size, shape)
    return shaped(shape, ndim, dtype, o, out)


cdef int kind_of_number(object value) noexcept:
    """dtype that a Python number gives a tensor."""
    if isinstance(value, bool):
        return TGX_BOOL
    if isinstance(value, int):
        return TGX_I64
    if isinstance(value, complex):
        return TGX_C128 if default_id() == TGX_F64 else TGX_C64
    return default_id()


# ---- by size -------------------------------------------------------------------------------------------------------

cdef object k_empty(PyObject **a):
    """empty(size, dtype, layout, device, pin_memory, requires_grad, memory_format)."""
    cdef Options o = options(a + 1)
    cdef Tensor t = sized(a[0], default_id(), &o, a[7])
    if a[6] != <PyObject *>None:
        t = _formatted(t, <object>a[6])
    return finished(t, &o)


cdef object k_zeros(PyObject **a):
    cdef Options o = options(a + 1)
    cdef Tensor t = sized(a[0], default_id(), &o, a[6])
    zero(t)
    return finished(t, &o)


cdef object k_ones(PyObject **a):
    cdef Options o = options(a + 1)
    cdef Tensor t = sized(a[0], default_id(), &o, a[6])
    fill(t, 1)
    return finished(t, &o)


cdef object k_full(PyObject **a):
    """full(size, fill_value): the value's kind of number gives the dtype."""
    cdef Options o = options(a + 2)
    cdef object value = <object>a[1]
    cdef Tensor t
    if isinstance(value, Tensor) or hasattr(value, "item"):
        value = value.item()
    t = sized(a[0], kind_of_number(value), &o, a[7])
    fill(t, value)
    return finished(t, &o)


cdef object k_scalar_tensor(PyObject **a):
    cdef Options o = options(a + 1)
    cdef Tensor t = empty(NULL, 0, o.dtype if o.dtype >= 0 else default_id(), o.device if o.device > 0 else 0)
    fill(t, <object>a[0])
    return finished(t, &o)


cdef object k_empty_strided(PyObject **a):
    cdef Options o = options(a + 2)
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i, ndim = read_shape(<object>a[0], shape)
    cdef int n = as_ints(a[1], strides, TGX_MAX_DIMS, 1)
    if n != ndim:
        raise RuntimeError(f"empty_strided: dimensionality of sizes ({ndim}) must match dimensionality of strides "
                           f"({n})")
    for i in range(ndim):
        if strides[i] < 0:
            raise RuntimeError(f"empty_strided: negative strides are not supported, got strides {<object>a[1]}; "
                               f"flip() a tensor "
                               "instead")
    return finished(empty_strided(shape, strides, ndim, o.dtype if o.dtype >= 0 else default_id(),
                                  o.device if o.device > 0 else 0), &o)


# ---- memory formats ------------------------------------------------------------------------------------------------

cdef Tensor _channels_last_empty(const int64_t *shape, int ndim, int dtype, int device):
    """Fresh memory of an image batch N C H W whose channels lie side by side."""
    cdef int64_t strides[4]
    if ndim != 4:
        raise RuntimeError(f"required rank 4 tensor to use channels_last format, got {ndim} dimensions")
    strides[1] = 1
    strides[3] = shape[1] if shape[1] > 1 else 1
    strides[2] = strides[3] * (shape[3] if shape[3] > 1 else 1)
    strides[0] = strides[2] * (shape[2] if shape[2] > 1 else 1)
    return empty_strided(shape, strides, ndim, dtype, device)


cdef Tensor _formatted(Tensor t, object format):
    """An empty tensor in the memory format asked for."""
    if format is _channels_last:
        return _channels_last_empty(t.sizes, t.rank, t.tid, t.device_id)
    if format is _preserve_format:
        raise RuntimeError("unsupported memory format Preserve: empty() cannot keep an order, there is no tensor "
                           "whose order could be kept. "
                           "Use contiguous_format, or empty_like().")
    return t


cdef Tensor like_format(Tensor t, int dtype, int device, PyObject *format):
    """Fresh memory of t's shape; t's order of dimensions is kept unless `format` says otherwise."""
    cdef object f = <object>format
    if device < 0:
        device = t.device_id
    if f is _channels_last:
        return _channels_last_empty(t.sizes, t.rank, dtype, device)
    if f is _contiguous_format:
        return empty(t.sizes, t.rank, dtype, device)
    if device == t.device_id:
        return empty_like(t, dtype)
    t = empty_like(_on_meta(t), dtype)
    return empty_strided(t.sizes, t.strides, t.rank, dtype, device)


cdef Tensor _on_meta(Tensor t):
    t = alias(t)
    t.device_id = META
    return t


# ---- like another --------------------------------------------------------------------------------------------------

cdef Tensor _like(PyObject **a, Options *o, PyObject *format):
    cdef Tensor t = <Tensor><object>a[0]
    return like_format(t, o.dtype if o.dtype >= 0 else t.tid, o.device, format)


cdef object k_empty_like(PyObject **a):
    cdef Options o = options(a + 1)
    return finished(_like(a, &o, a[6]), &o)


cdef object k_zeros_like(PyObject **a):
    cdef Options o = options(a + 1)
    cdef Tensor t = _like(a, &o, a[6])
    zero(t)
    return finished(t, &o)


cdef object k_ones_like(PyObject **a):
    cdef Options o = options(a + 1)
    cdef Tensor t = _like(a, &o, a[6])
    fill(t, 1)
    return finished(t, &o)


cdef object k_full_like(PyObject **a):
    cdef Options o = options(a + 2)
    cdef Tensor t = _like(a, &o, a[7])
    fill(t, <object>a[1])
    return finished(t, &o)


cdef Tensor _new(PyObject **a, Options *o):
    """Memory of a[1]'s size with a[0]'s dtype and device, where the options name no other."""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int ndim = read_shape(<object>a[1], shape)
    return empty(shape, ndim, o.dtype if o.dtype >= 0 else t.tid, o.device if o.device >= 0 else t.device_id)


cdef object k_new_empty(PyObject **a):
    cdef Options o = options(a + 2)
    return finished(_new(a, &o), &o)


cdef object k_new_zeros(PyObject **a):
    cdef Options o = options(a + 2)
    cdef Tensor t = _new(a, &o)
    zero(t)
    return finished(t, &o)


cdef object k_new_ones(PyObject **a):
    cdef Options o = options(a + 2)
    cdef Tensor t = _new(a, &o)
    fill(t, 1)
    return finished(t, &o)


cdef object k_new_full(PyObject **a):
    cdef Options o = options(a + 3)
    cdef Tensor t = _new(a, &o)
    fill(t, <object>a[2])
    return finished(t, &o)


# ---- from data -----------------------------------------------------------------------------------------------------

cdef object k_tensor(PyObject **a):
    """tensor(data, dtype, device, requires_grad, pin_memory)."""
    cdef int dtype = dtype_id(<object>a[1]) if a[1] != <PyObject *>None else -1
    cdef int device = device_id(<object>a[2]) if a[2] != <PyObject *>None else 0
    cdef Options o
    o.requires_grad = <object>a[3] is True
    warn_of_copy(<object>a[0], "tensor(t)")
    return finished(tensor_of(<object>a[0], dtype, device), &o)


cdef object k_clone(PyObject **a):
    """clone(self, memory_format): preserve_format unless another is asked for."""
    cdef Tensor t = <Tensor><object>a[0], out
    if a[1] == <PyObject *>None:
        return clone(t)
    out = like_format(t, t.tid, -1, a[1])
    copy_into(out, t)
    return out


cdef object k_detach(PyObject **a):
    return alias(<Tensor><object>a[0])


# ---- writing in place: the last argument is the target ------------------------------------------------------------

cdef int _refuse_sizes(Tensor t, Tensor src) except -1:
    """The error of a source that does not broadcast to its target."""
    cdef int i, k
    for i in range(src.rank):
        k = t.rank - src.rank + i
        if k >= 0 and src.sizes[i] != 1 and src.sizes[i] != t.sizes[k]:
            raise RuntimeError(f"The size of tensor a ({t.sizes[k]}) must match the size of tensor b ({src.sizes[i]}) "
                               f"at non-singleton "
                               f"dimension {k}: copy_() got self {shape_text(t)} and src {shape_text(src)}")
    raise RuntimeError(f"output with shape {shape_text(t)} doesn't match the broadcast shape {shape_text(src)}: "
                       f"copy_()")


cdef object k_copy(PyObject **a):
    """copy_(self, src)."""
    cdef Tensor self = <Tensor><object>a[0], src
    cdef Tensor out = empty_like(self, self.tid) if a[3] == <PyObject *>None else <Tensor><object>a[3]
    check_writable(out, "copy_")
    if not isinstance(<object>a[1], Tensor):
        fill(out, <object>a[1])
        return out
    src = <Tensor><object>a[1]
    if src.device_id == META and out.device_id != META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data! copy_() needs a source with data: make it "
                                  "on the cpu")
    if src.rank > out.rank or not broadcasts(src, out):
        _refuse_sizes(out, src)
    copy_into(out, src)
    return out


cdef object k_fill(PyObject **a):
    """fill(self, value), value a number or a 0-d tensor."""
    cdef Tensor self = <Tensor><object>a[0], value
    cdef Tensor out = empty_like(self, self.tid) if a[2] == <PyObject *>None else <Tensor><object>a[2]
    check_readonly(out, "fill_")
    if isinstance(<object>a[1], Tensor):
        value = <Tensor><object>a[1]
        if value.rank != 0:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.rank} "
                               f"dimensions. "
                               "Use copy_() for a tensor that broadcasts.")
        copy_into(out, value)
    else:
        fill(out, <object>a[1])
    return out


cdef object k_zero(PyObject **a):
    cdef Tensor self = <Tensor><object>a[0]
    cdef Tensor out = empty_like(self, self.tid) if a[1] == <PyObject *>None else <Tensor><object>a[1]
    check_readonly(out, "zero_")
    zero(out)
    return out


register_kernel("empty", k_empty)
register_kernel("zeros", k_zeros)
register_kernel("ones", k_ones)
register_kernel("full", k_full)
register_kernel("scalar_tensor", k_scalar_tensor)
register_kernel("empty_strided", k_empty_strided)
register_kernel("empty_like", k_empty_like)
register_kernel("zeros_like", k_zeros_like)
register_kernel("ones_like", k_ones_like)
register_kernel("full_like", k_full_like)
register_kernel("new_empty", k_new_empty)
register_kernel("new_zeros", k_new_zeros)
register_kernel("new_ones", k_new_ones)
register_kernel("new_full", k_new_full)
register_kernel("tensor", k_tensor)
register_kernel("clone", k_clone)
register_kernel("detach", k_detach)
register_kernel("copy", k_copy)
register_kernel("fill", k_fill)
register_kernel("zero", k_zero)
