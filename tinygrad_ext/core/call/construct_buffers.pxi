# Tensors over the memory of arrays and other lenders of buffers. Part of construct.pyx.

cdef int _tid_of_code(str code, int itemsize) except -2:
    """dtype number of a NumPy or struct type letter."""
    if code == "?":
        return TGX_BOOL
    if code == "e":
        return TGX_F16
    if code == "f":
        return TGX_F32
    if code == "d":
        return TGX_F64
    if code in ("F", "Zf"):
        return TGX_C64
    if code in ("D", "Zd"):
        return TGX_C128
    if code in ("b", "h", "i", "l", "q", "n", "p"):
        return {1: TGX_I8, 2: TGX_I16, 4: TGX_I32, 8: TGX_I64}[itemsize]
    if code in ("B", "c") and itemsize == 1:
        return TGX_U8
    if code in ("H", "I", "L", "Q", "N"):
        return {2: TGX_U16, 4: TGX_U32, 8: TGX_U64}[itemsize]
    raise TypeError(f"can't convert an array of type '{code}' ({itemsize} bytes). The only supported types are: "
                    f"float64, float32, "
                    "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.")


cdef class BufferOwner:
    """Keeps a lender's buffer alive as long as the storage that uses it."""

    cdef Py_buffer view

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


def lender(Storage s not None):
    """The object whose buffer a storage shows, None where there is none."""
    if not isinstance(s.owner, BufferOwner) or <void *>(<BufferOwner>s.owner).view.obj == NULL:
        return None
    return (<BufferOwner>s.owner).view.obj


cdef Tensor from_buffer(object data, bint copy):
    """A tensor over the memory of anything with the buffer protocol. Read-only lenders give read-only tensors."""
    cdef BufferOwner owner = BufferOwner.__new__(BufferOwner)
    cdef Tensor t
    cdef int i, tid
    cdef int64_t nbytes
    cdef bint readonly = False
    cdef str code
    if not PyObject_CheckBuffer(data):
        import numpy
        data = numpy.asarray(data)
    if hasattr(data, "dtype") and not data.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between "
                         "byte orders "
                         "is currently not supported. Use array.astype(array.dtype.newbyteorder('=')).")
    if hasattr(data, "dtype"):
        _tid_of_code(data.dtype.char, data.dtype.itemsize)     # NumPy's own refusal of odd types would name no dtype
    try:
        PyObject_GetBuffer(data, &owner.view, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE)
    except (BufferError, ValueError):
        PyObject_GetBuffer(data, &owner.view, PyBUF_STRIDES | PyBUF_FORMAT)
        readonly = True
    code = owner.view.format.decode() if owner.view.format != NULL else "B"
    if len(code) > 1 and code[0] in "@=<":
        code = code[1:]
    tid = _tid_of_code(code, owner.view.itemsize)
    if owner.view.itemsize != ITEMSIZE[tid]:
        raise TypeError(f"can't convert a buffer of type '{code}' whose elements have {owner.view.itemsize} bytes: "
                        f"{dtype_of(tid)} has {ITEMSIZE[tid]}")
    t = blank(owner.view.ndim)
    for i in range(t.rank):
        t.sizes[i] = owner.view.shape[i]
        if owner.view.strides[i] % owner.view.itemsize:
            raise ValueError("given numpy array strides not a multiple of the element byte size. Copy array to "
                             "reallocate memory.")
        t.strides[i] = owner.view.strides[i] // owner.view.itemsize
        if t.strides[i] < 0 and t.sizes[i] > 1:
            if copy:
                import numpy
                return from_buffer(numpy.ascontiguousarray(data), False)
            raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative "
                             "strides are not "
                             "currently supported. (You can probably work around this by making a copy of your array "
                             "with "
                             "array.copy().)")
        if t.strides[i] < 0:
            t.strides[i] = 1            # of one element or none, so never stepped by
    if <size_t>owner.view.buf % owner.view.itemsize:
        import numpy
        return from_buffer(numpy.array(data), False)
    t.tid = tid
    nbytes = reach(t.sizes, t.strides, t.rank, 0, ITEMSIZE[tid], LARGEST_MEMORY, "from_numpy")
    finish(t)
    t.storage = borrow_storage(<char *>owner.view.buf, nbytes, owner, readonly)
    t.data = <char *>owner.view.buf
    if readonly:
        t.bits |= READONLY
    return _from_outside(t)


def from_numpy(array):
    """A tensor that shares memory with a NumPy array. Raises TypeError for anything else and for unsupported dtypes."""
    import numpy
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    t = from_buffer(array, False)
    if (<Tensor>t).bits & READONLY:
        import warnings
        warnings.warn("The given NumPy array is not writable: the tensor shares its memory and refuses in-place "
                      "writes. "
                      "Copy the array to get a writable tensor.", UserWarning, stacklevel=1)
    return t


def over_bytes(buffer, dt, int64_t offset, int64_t count):
    """One-dimensional tensor of `count` elements, `offset` bytes into a contiguous buffer."""
    cdef BufferOwner owner = BufferOwner.__new__(BufferOwner)
    cdef Tensor t = blank(1)
    cdef bint readonly = False
    try:
        PyObject_GetBuffer(buffer, &owner.view, PyBUF_WRITABLE)
    except (BufferError, ValueError):
        PyObject_GetBuffer(buffer, &owner.view, PyBUF_SIMPLE)
        readonly = True
    t.tid = (<DType?>dt).id
    t.sizes[0], t.strides[0] = count, 1
    reach(&offset, NULL, 1, 0, 1, owner.view.len, "frombuffer")         # the buffer lent, not the one asked before
    reach(t.sizes, t.strides, 1, 0, ITEMSIZE[t.tid], owner.view.len - offset, "frombuffer")
    t.data = <char *>owner.view.buf + offset
    if <size_t>t.data % min(ITEMSIZE[t.tid], 8):
        raise ValueError(f"the memory {offset} bytes into the buffer is not aligned to elements of {ITEMSIZE[t.tid]} "
                         f"bytes: copy that "
                         "part of the buffer first")
    finish(t)
    t.storage = borrow_storage(t.data, count * ITEMSIZE[t.tid], owner, readonly)
    if readonly:
        t.bits |= READONLY
        import warnings
        warnings.warn("The given buffer is not writable: the tensor shares its memory and refuses in-place writes. "
                      "Copy the buffer "
                      "to get a writable tensor.", UserWarning, stacklevel=2)
    return t
