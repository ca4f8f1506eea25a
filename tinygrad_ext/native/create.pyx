# cython: language_level=3
"""Kernels that make tensors: empty, full, tensor(), and copies of other tensors.

The options dtype, layout, device, pin_memory, requires_grad stand at the end of every factory's schema in this
order; `Options` reads them.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.construct cimport read_shape, tensor_of
from tinygrad_ext.core.copy cimport cast, clone, contiguous, copy_into, fill, zero
from tinygrad_ext.core.dispatch cimport register_kernel
from tinygrad_ext.core.dtype cimport default_dtype_id, device_id, dtype_id
from tinygrad_ext.core.tensor cimport REQUIRES_GRAD, Tensor, alias, empty, empty_like
from tinygrad_ext.core.types cimport TGX_BOOL, TGX_C64, TGX_C128, TGX_F16, TGX_F64, TGX_I64, TGX_MAX_DIMS, int64_t

from tinygrad_ext.core.dtype import contiguous_format as _contiguous_format


cdef struct Options:
    int dtype           # -1: not given
    int device          # -1: not given
    bint requires_grad


cdef Options options(PyObject **args) except *:
    """Read dtype, layout, device, pin_memory, requires_grad from five arguments."""
    cdef Options o
    o.dtype = dtype_id(<object>args[0]) if args[0] != <PyObject *>None else -1
    o.device = device_id(<object>args[2]) if args[2] != <PyObject *>None else -1
    if <object>args[3] is True:
        raise RuntimeError("pin_memory=True needs a device to pin memory for; this build has the cpu only")
    o.requires_grad = <object>args[4] is True
    if o.requires_grad and 0 <= o.dtype < TGX_F16:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients: give a floating dtype")
    return o


cdef Tensor finished(Tensor t, Options *o):
    if o.requires_grad:
        if t.tid < TGX_F16:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients: give a floating dtype")
        t.bits |= REQUIRES_GRAD
    return t


cdef Tensor sized(PyObject *size, Options *o):
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int ndim = read_shape(<object>size, shape)
    return empty(shape, ndim, o.dtype if o.dtype >= 0 else default_dtype_id, o.device if o.device > 0 else 0)


cdef object k_empty(PyObject **a):
    cdef Options o = options(a + 1)
    return finished(sized(a[0], &o), &o)


cdef object k_zeros(PyObject **a):
    cdef Options o = options(a + 1)
    cdef Tensor t = sized(a[0], &o)
    zero(t)
    return finished(t, &o)


cdef object k_full(PyObject **a):
    """full(size, fill_value): the value's kind of number gives the dtype."""
    cdef Options o = options(a + 2)
    cdef Tensor t
    cdef object value = <object>a[1]
    if o.dtype < 0:
        if isinstance(value, bool):
            o.dtype = TGX_BOOL
        elif isinstance(value, int):
            o.dtype = TGX_I64
        elif isinstance(value, complex):
            o.dtype = TGX_C128 if default_dtype_id == TGX_F64 else TGX_C64
    t = sized(a[0], &o)
    fill(t, value)
    return finished(t, &o)


cdef object k_full_like(PyObject **a):
    cdef Options o = options(a + 2)
    cdef Tensor like = <Tensor><object>a[0]
    cdef Tensor t = empty_like(like, o.dtype if o.dtype >= 0 else like.tid)
    if o.device > 0:
        t = empty(t.sizes, t.rank, t.tid, o.device)
    if a[1] != <PyObject *>None:
        fill(t, <object>a[1])
    return finished(t, &o)


cdef object k_tensor(PyObject **a):
    """tensor(data, dtype, device, requires_grad)."""
    cdef int dtype = dtype_id(<object>a[1]) if a[1] != <PyObject *>None else -1
    cdef int device = device_id(<object>a[2]) if a[2] != <PyObject *>None else 0
    cdef Options o
    o.requires_grad = <object>a[3] is True
    return finished(tensor_of(<object>a[0], dtype, device), &o)


cdef object k_clone(PyObject **a):
    """clone(self, memory_format): preserve_format unless contiguous_format is asked for."""
    cdef Tensor t = <Tensor><object>a[0], out
    if <object>a[1] is not _contiguous_format:
        return clone(t)
    out = empty(t.sizes, t.rank, t.tid, t.place)
    copy_into(out, t)
    return out



cdef object k_detach(PyObject **a):
    return alias(<Tensor><object>a[0])


cdef object k_copy(PyObject **a):
    """copy_(self, src): out-of-place form; the in-place one passes self as `out`."""
    cdef Tensor self = <Tensor><object>a[0], src = <Tensor><object>a[1]
    cdef Tensor out = empty_like(self, self.tid) if a[3] == <PyObject *>None else <Tensor><object>a[3]
    copy_into(out, src)
    return out


cdef object k_fill(PyObject **a):
    """fill_(self, value)."""
    cdef Tensor self = <Tensor><object>a[0]
    cdef Tensor out = empty_like(self, self.tid) if a[2] == <PyObject *>None else <Tensor><object>a[2]
    fill(out, <object>a[1])
    return out


cdef object k_cast(PyObject **a):
    """_cast(self, dtype): always a fresh tensor."""
    cdef Tensor self = <Tensor><object>a[0]
    cdef int dtype = dtype_id(<object>a[1])
    return clone(self) if dtype == self.tid else cast(self, dtype)


register_kernel("empty", k_empty)
register_kernel("zeros", k_zeros)
register_kernel("full", k_full)
register_kernel("full_like", k_full_like)
register_kernel("tensor", k_tensor)
register_kernel("clone", k_clone)
register_kernel("detach", k_detach)
register_kernel("copy", k_copy)
register_kernel("fill", k_fill)
register_kernel("cast", k_cast)
