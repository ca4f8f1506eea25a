# The buffer protocol of a tensor. Part of tensor.pyx.

# int64 is C's long where that has 64 bits: NumPy tells a long long apart from it, and its int64 is the long
cdef list _FORMATS = [b"l" if row.typecode == "q" and sizeof(long) == 8 else row.typecode.encode() for row in DTYPES]


cdef int _export(Tensor t, Py_buffer *view, int flags) except -1:
    """Lend t's memory. BufferError for what no other library may see or understand."""
    cdef PyObject **kept
    cdef Py_ssize_t *room
    cdef int i
    if needs_grad(t):
        raise BufferError("a tensor that requires grad does not lend its memory: use tensor.detach()")
    if t.storage is None:
        raise BufferError("a meta tensor has no memory to lend")
    if flips_of(t.device_id):
        raise BufferError(f"a tensor with the {flips_words(t)} bit does not lend its memory, which holds other numbers than it shows: "
                          "use resolve_conj() or resolve_neg()")
    if t.device_id == CODED:
        raise BufferError(f"the buffer protocol knows no {dtype_of(t.tid).name}: convert the tensor first, for example with .float()")
    if t.device_id != CPU:
        raise BufferError(f"a tensor on {t.device} does not lend its memory: copy it first, with cpu()")
    if t.tid == TGX_BF16:
        raise BufferError("the buffer protocol knows no bfloat16: convert the tensor first, for example with .float()")
    if flags & PyBUF_WRITABLE and t.bits & READONLY:
        raise BufferError("the tensor is read-only: its memory was lent by another library that does not allow writing")
    if not t.bits & CONTIGUOUS and flags & PyBUF_STRIDES != PyBUF_STRIDES:
        raise BufferError("the tensor's elements do not lie in row-major order; call contiguous() first")
    # the storage, which the tensor may leave (`.data =`, resize_) while it is lent; then shape and strides
    kept = <PyObject **>malloc(sizeof(PyObject *) + 2 * t.rank * sizeof(Py_ssize_t))
    if kept == NULL:
        raise MemoryError
    kept[0] = <PyObject *>t.storage
    Py_INCREF(t.storage)
    room = <Py_ssize_t *>(kept + 1)
    for i in range(t.rank):
        room[i] = t.sizes[i]
        room[t.rank + i] = t.strides[i] * ITEMSIZE[t.tid]
    view.internal = kept
    view.obj = t
    view.buf = t.data
    view.itemsize = ITEMSIZE[t.tid]
    view.len = t.count * view.itemsize
    view.readonly = (t.bits & READONLY) != 0
    view.ndim = t.rank
    view.format = PyBytes_AS_STRING(_FORMATS[t.tid]) if flags & PyBUF_FORMAT else NULL
    view.shape = room if flags & PyBUF_ND else NULL
    view.strides = room + t.rank if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
    view.suboffsets = NULL
    return 0
