# cython: language_level=3
"""tensor(data), which reads Python's objects, and copy_, which also moves between devices. Other factories are kernels/create.c.

These two cannot be pairs in C: a kernel sees no nested lists, and operands of its own device only.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.construct cimport tensor_of, warn_of_copy
from tinygrad_ext.core.loops.copy cimport broadcasts, copy_into, fill
from tinygrad_ext.core.call.dispatch cimport register_kernel
from tinygrad_ext.core.data.dtype cimport META, device_id, dtype_id
from tinygrad_ext.core.call.outputs cimport require_grad
from tinygrad_ext.core.data.tensor cimport Tensor, empty_like, shape_text


# ---- from data -----------------------------------------------------------------------------------------------------

cdef object k_tensor(PyObject **a):
    """tensor(data, dtype, device, requires_grad, pin_memory)."""
    cdef int dtype = dtype_id(<object>a[1]) if a[1] != <PyObject *>None else -1
    cdef int device = device_id(<object>a[2]) if a[2] != <PyObject *>None else 0
    cdef Tensor t
    warn_of_copy(<object>a[0], "tensor(t)")
    t = tensor_of(<object>a[0], dtype, device)
    if <object>a[3] is True:
        require_grad(t)
    return t


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


register_kernel("tensor", k_tensor)
register_kernel("copy", k_copy)
