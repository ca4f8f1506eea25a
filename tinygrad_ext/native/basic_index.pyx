# cython: language_level=3
"""Windows: the views that an index of ints, slices, None and Ellipsis gives.

The index arrives cleaned (see native/index.pyx): exact ints, slices of ints and None, None, Ellipsis, or a
tuple of these. Slices are clipped as Python does; negative steps do not exist, since strides never are negative.

These kernels speak Python, and stay so: an index is a Python object, and reading it is all the work, for what comes
out is a window. Rejected: an index as a list of numbers for a kernel in C, which costs more to write than the window.
"""
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_Check
from cpython.tuple cimport PyTuple_CheckExact
from tinygrad_ext.core.loops.copy cimport copy_into, zero
from tinygrad_ext.core.data.boxed cimport as_ints
from tinygrad_ext.core.call.dispatch cimport register_kernel
from tinygrad_ext.core.data.tensor cimport Tensor, empty, geometry_changes, view
from tinygrad_ext.core.data.types cimport TGX_MAX_DIMS, int64_t, uint64_t

cdef extern from "Python.h":
    int PySlice_Unpack(object slice, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step)

cdef struct Window:
    int at                  # dimension of the tensor that comes next
    int ndim
    int64_t offset
    int64_t[TGX_MAX_DIMS + 1] sizes
    int64_t[TGX_MAX_DIMS + 1] strides


cdef inline int _keep(Window *w, int64_t size, int64_t stride) except -1:
    if w.ndim >= TGX_MAX_DIMS:
        raise IndexError(f"the indexed tensor would have more than {TGX_MAX_DIMS} dimensions")
    w.sizes[w.ndim], w.strides[w.ndim] = size, stride
    w.ndim += 1
    return 0


cdef inline int _need(Window *w, Tensor t) except -1:
    if w.at >= t.rank:
        raise IndexError(f"too many indices for tensor of dimension {t.rank}")
    return 0


cdef int _select(Window *w, Tensor t, object index) except -1:
    cdef int64_t i, n
    if t.rank == 0:
        raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ "
                         "to convert "
                         "a 0-dim tensor to a number")
    _need(w, t)
    n = t.sizes[w.at]
    try:
        i = index
    except OverflowError:
        raise ValueError(f"Overflow when unpacking long long: index {index} is out of bounds for dimension {w.at} with "
                         "size "
                         f"{n}") from None
    if i < -n or i >= n:
        raise IndexError(f"index {i} is out of bounds for dimension {w.at} with size {n}")
    w.offset += (i + n if i < 0 else i) * t.strides[w.at]
    w.at += 1
    return 0


cdef int _slice(Window *w, Tensor t, object index) except -1:
    cdef Py_ssize_t start, stop, step, n
    if t.rank == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor. Use `tensor.item()` for its value, or "
                         "tensor[...].")
    _need(w, t)
    PySlice_Unpack(index, &start, &stop, &step)
    if step <= 0:
        raise ValueError(f"step must be greater than zero, got {step}: strides are never negative. Use flip() to "
                         "reverse a "
                         "dimension.")
    n = PySlice_AdjustIndices(t.sizes[w.at], &start, &stop, step)
    w.offset += start * t.strides[w.at]
    # a step beyond the end may be huge: a dimension of one element or none keeps its stride
    _keep(w, n, t.strides[w.at] * step if step < (<int64_t>1 << 31) else t.strides[w.at])
    w.at += 1
    return 0


cdef int _whole(Window *w, Tensor t, int until) except -1:
    while w.at < until:
        _keep(w, t.sizes[w.at], t.strides[w.at])
        w.at += 1
    return 0


cdef int _consumed(tuple index) except -1:
    """Dimensions that the parts of an index stand for, Ellipsis left aside."""
    cdef int n = 0
    for part in index:
        if part is not None and part is not Ellipsis:
            n += 1
    return n


cdef int _part(Window *w, Tensor t, object index, int rest) except -1:
    """Apply one part; `rest` is what an Ellipsis stands for and is spent by the first one."""
    if PyLong_CheckExact(index):
        _select(w, t, index)
    elif PySlice_Check(index):
        _slice(w, t, index)
    elif index is None:
        _keep(w, 1, 0)
    elif index is Ellipsis:
        _whole(w, t, w.at + rest)
        return 0
    else:
        raise IndexError(f"a window takes ints, slices, None and Ellipsis, got {type(index).__name__}")
    return rest


cdef Tensor window(Tensor t, object index):
    cdef Window w
    cdef Tensor made
    cdef uint64_t before
    cdef int i, rest
    w.at = w.ndim = 0
    w.offset = 0
    if PyTuple_CheckExact(index):
        rest = t.rank - _consumed(<tuple>index)
        if rest < 0:
            raise IndexError(f"too many indices for tensor of dimension {t.rank}")
        for part in <tuple>index:
            rest = _part(&w, t, part, rest)
    else:
        _part(&w, t, index, t.rank)
    _whole(&w, t, t.rank)
    for i in range(w.ndim - 1, -1, -1):       # the stride of a new dimension of size 1, as unsqueeze gives it
        if w.strides[i] == 0 and w.sizes[i] == 1:
            w.strides[i] = w.sizes[i + 1] * w.strides[i + 1] if i + 1 < w.ndim else 1
    before = geometry_changes
    made = view(t, w.sizes, w.strides, w.ndim, w.offset)
    if before != geometry_changes:      # a finalizer ran when it was allocated, and may have changed the tensor
        return window(t, index)
    return made


cdef object k_basic_index(PyObject **a):
    return window(<Tensor><object>a[0], <object>a[1])


cdef object k_basic_index_backward(PyObject **a):
    """Zeros of a shape with grad in the window."""
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef Tensor grad = <Tensor><object>a[0], out
    cdef int ndim = as_ints(a[1], shape, TGX_MAX_DIMS, 1)
    out = empty(shape, ndim, grad.tid, grad.device_id)
    zero(out)
    copy_into(window(out, <object>a[2]), grad)
    return out


register_kernel("basic_index", k_basic_index)
register_kernel("basic_index_backward", k_basic_index_backward)
