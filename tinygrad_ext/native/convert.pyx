# cython: language_level=3
"""Conversions: to() and its short forms, numbers and lists out of tensors.

The forms of to() are composites, since they may return the tensor itself, which no derivative rule could tell
from a copy. Where something changes they call `_to_copy`, which autograd records. Numbers and lists are Python objects, so
what makes them stays here; kernels in C have no word for either.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.loops.copy cimport copy_into
from tinygrad_ext.core.call.dispatch cimport Op, call_op, register_kernel
from tinygrad_ext.core.data.dtype cimport META, device as Device, device_for, device_id, device_of, dtype_id, dtype_of
from tinygrad_ext.core.data.tensor cimport Tensor, alias, empty, empty_like, empty_strided, read_scalar, shown_device
from tinygrad_ext.core.data.types cimport (
    ITEMSIZE, TGX_BF16, TGX_BOOL, TGX_C128, TGX_C64, TGX_F16, TGX_F32, TGX_F64, TGX_I16, TGX_I32, TGX_I64, TGX_I8,
    TGX_MAX_DIMS, TGX_U8, int64_t,
)

from tinygrad_ext.core.data.dtype import (
    channels_last as _channels_last, channels_last_3d as _channels_last_3d, contiguous_format as _contiguous_format,
)
from tinygrad_ext.core.call.op_tables import ops

cdef Op _to_copy_op = None


# ---- memory formats ------------------------------------------------------------------------------------------------

cdef Tensor _channels_last_empty(const int64_t *shape, int ndim, int dtype, int device, int rank):
    """Fresh memory of a batch of images N C H W or volumes N C D H W whose channels lie side by side."""
    cdef int64_t strides[5]
    cdef int i
    if ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use channels_last{'_3d' if rank == 5 else ''} format, got "
                           f"{ndim} dimensions")
    strides[1] = 1
    strides[rank - 1] = shape[1] if shape[1] > 1 else 1
    for i in range(rank - 2, 1, -1):
        strides[i] = strides[i + 1] * (shape[i + 1] if shape[i + 1] > 1 else 1)
    strides[0] = strides[2] * (shape[2] if shape[2] > 1 else 1)
    return empty_strided(shape, strides, ndim, dtype, device)


cdef Tensor _like_format(Tensor t, int dtype, int device, PyObject *format):
    """Fresh memory of t's shape; t's order of dimensions is kept unless `format` says otherwise."""
    cdef object f = <object>format
    if device < 0:
        device = t.device_id
    if f is _channels_last or f is _channels_last_3d:
        return _channels_last_empty(t.sizes, t.rank, dtype, device, 5 if f is _channels_last_3d else 4)
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


# ---- to ------------------------------------------------------------------------------------------------------------

cdef object k_to_copy(PyObject **a):
    """_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format): always fresh memory."""
    cdef Tensor t = <Tensor><object>a[0], out
    cdef int dtype = dtype_id(<object>a[1]) if a[1] != <PyObject *>None else t.tid
    cdef int device = device_for(dtype, device_id(<object>a[3]) if a[3] != <PyObject *>None else t.device_id)
    if t.device_id == META and device != META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data! to() can move a tensor to meta, not back: "
                                  "make it on "
                                  "the cpu with empty_like(t, device='cpu')")
    out = _like_format(t, dtype, device, a[6])
    copy_into(out, t)
    return out


cdef bint _has_format(Tensor t, PyObject *format):
    f = <object>format
    if f is _contiguous_format:
        return t.is_contiguous()
    if f is _channels_last or f is _channels_last_3d:
        return t.is_contiguous(memory_format=f)
    return True


cdef object _no = False         # a literal False would be cast as the C number 0


cdef int _device_of(Tensor t) except -1:
    """The device that t shows: a carried value has no memory on any, a wrapper none of its own."""
    return (<Device>shown_device(t)).id


cdef object converted(Tensor t, int dtype, int device, bint copy, PyObject *format):
    """t itself when it is what is asked for, else a copy that autograd knows of."""
    global _to_copy_op
    cdef PyObject *args[8]
    if dtype == t.tid and device == _device_of(t) and not copy and (format == <PyObject *>None or _has_format(t, format)):
        return t
    if _to_copy_op is None:
        _to_copy_op = ops["aten::_to_copy"]
    d, on = dtype_of(dtype), device_of(device)
    args[0], args[1], args[2], args[3] = <PyObject *>t, <PyObject *>d, <PyObject *>None, <PyObject *>on
    args[4], args[5], args[6] = <PyObject *>None, <PyObject *>_no, format
    return call_op(_to_copy_op, args)


cdef object k_to_dtype(PyObject **a):
    """to(self, dtype, non_blocking, copy, memory_format)."""
    cdef Tensor t = <Tensor><object>a[0]
    return converted(t, dtype_id(<object>a[1]), _device_of(t), <object>a[3] is True, a[4])


cdef object k_to_device(PyObject **a):
    """to(self, device, dtype, non_blocking, copy, memory_format)."""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int device = device_id(<object>a[1]) if a[1] != <PyObject *>None else _device_of(t)
    return converted(t, dtype_id(<object>a[2]) if a[2] != <PyObject *>None else t.tid, device, <object>a[4] is True,
                     a[5])


cdef object k_to_other(PyObject **a):
    """to(self, other, non_blocking, copy, memory_format)."""
    cdef Tensor t = <Tensor><object>a[0], other = <Tensor><object>a[1]
    return converted(t, other.tid, _device_of(other), <object>a[3] is True, a[4])


cdef object k_cpu(PyObject **a):
    return converted(<Tensor><object>a[0], (<Tensor><object>a[0]).tid, 0, False, a[1])


cdef object _to(PyObject **a, int dtype):
    """Short forms: t.float(memory_format)."""
    return converted(<Tensor><object>a[0], dtype, _device_of(<Tensor><object>a[0]), False, a[1])


cdef object k_bool(PyObject **a): return _to(a, TGX_BOOL)
cdef object k_byte(PyObject **a): return _to(a, TGX_U8)
cdef object k_char(PyObject **a): return _to(a, TGX_I8)
cdef object k_short(PyObject **a): return _to(a, TGX_I16)
cdef object k_int(PyObject **a): return _to(a, TGX_I32)
cdef object k_long(PyObject **a): return _to(a, TGX_I64)
cdef object k_half(PyObject **a): return _to(a, TGX_F16)
cdef object k_bfloat16(PyObject **a): return _to(a, TGX_BF16)
cdef object k_float(PyObject **a): return _to(a, TGX_F32)
cdef object k_double(PyObject **a): return _to(a, TGX_F64)
cdef object k_cfloat(PyObject **a): return _to(a, TGX_C64)
cdef object k_cdouble(PyObject **a): return _to(a, TGX_C128)


# ---- numbers and lists ---------------------------------------------------------------------------------------------

cdef object k_item(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    if t.count == 1 and t.device_id == 0:
        return read_scalar(t.data, t.tid)
    if t.count == 1 and t.storage is None:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors: they have no data")
    return t._only_element()


cdef object _list(const char *at, int dtype, const int64_t *sizes, const int64_t *strides, int rank):
    cdef int64_t i, step = strides[0] * ITEMSIZE[dtype]
    if rank == 1:
        return [read_scalar(at + i * step, dtype) for i in range(sizes[0])]
    return [_list(at + i * step, dtype, sizes + 1, strides + 1, rank - 1) for i in range(sizes[0])]


cdef object k_tolist(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t[TGX_MAX_DIMS] sizes, strides
    cdef int i
    _kept = t.storage        # a new list may run a finalizer, which may change the tensor
    for i in range(t.rank):
        sizes[i], strides[i] = t.sizes[i], t.strides[i] if t.count else 0       # strides of nothing may be any number
    return _list(t.data, t.tid, sizes, strides, t.rank) if t.rank else read_scalar(t.data, t.tid)


register_kernel("_to_copy", k_to_copy)
register_kernel("to_dtype", k_to_dtype)
register_kernel("to_device", k_to_device)
register_kernel("to_other", k_to_other)
register_kernel("cpu", k_cpu)
register_kernel("to_bool", k_bool)
register_kernel("to_byte", k_byte)
register_kernel("to_char", k_char)
register_kernel("to_short", k_short)
register_kernel("to_int", k_int)
register_kernel("to_long", k_long)
register_kernel("to_half", k_half)
register_kernel("to_bfloat16", k_bfloat16)
register_kernel("to_float", k_float)
register_kernel("to_double", k_double)
register_kernel("to_cfloat", k_cfloat)
register_kernel("to_cdouble", k_cdouble)
register_kernel("item", k_item)
register_kernel("tolist", k_tolist)
