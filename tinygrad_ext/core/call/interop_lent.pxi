# Memory that other libraries lend, by DLPack's capsules. Part of interop.pyx.

cdef class DLPackOwner:
    """Calls a lender's deleter when the storage over its memory dies."""

    cdef DLManagedTensor *old
    cdef DLManagedTensorVersioned *new

    def __dealloc__(self):
        if self.old != NULL and self.old.deleter != NULL:
            self.old.deleter(self.old)
        if self.new != NULL and self.new.deleter != NULL:
            self.new.deleter(self.new)


cdef int _dtype_of(DLDataType *d) except -1:
    cdef int i
    if d.lanes == 1:
        for i in range(TGX_NTYPES):
            if _code_of(i) == d.code and 8 * ITEMSIZE[i] == d.bits:
                return i
        if d.code == DL_COMPLEX and d.bits == 32:
            return TGX_C32
    raise BufferError(f"from_dlpack: elements of type {_CODE_NAMES.get(d.code, 'code ' + str(d.code))}{d.bits}"
                      f"{f' in groups of {d.lanes}' if d.lanes != 1 else ''} have no dtype here; convert them in the "
                      f"library they "
                      "come from")


cdef Tensor _over(DLTensor *d, object owner, bint readonly):
    """A tensor over the memory that d describes, after every number in it was checked."""
    cdef Tensor t
    cdef int i, tid
    cdef int64_t nbytes
    if d.device.device_type != DL_CPU:
        raise BufferError(f"from_dlpack: the data is on a device of type {d.device.device_type}; only the cpu (type "
                          f"1) can be read. "
                          "Move it to the cpu in the library it comes from.")
    if not 0 <= d.ndim <= TGX_MAX_DIMS or (d.ndim and d.shape == NULL):
        raise BufferError(f"from_dlpack: {d.ndim} dimensions are not possible; from 0 to {TGX_MAX_DIMS} are")
    if d.byte_offset > <uint64_t>LARGEST_MEMORY:
        raise BufferError(f"from_dlpack: the elements cannot begin {d.byte_offset} bytes into the memory: none is that "
                          "large")
    tid = _dtype_of(&d.dtype)
    t = blank(d.ndim)
    t.tid, t.device_id = tid, device_for(tid, CPU)
    for i in range(d.ndim):
        t.sizes[i] = d.shape[i]
        t.strides[i] = d.strides[i] if d.strides != NULL else 1
        if t.strides[i] < 0 and t.sizes[i] <= 1:
            t.strides[i] = 1            # never stepped by, and some lenders leave anything there
    if d.strides == NULL:
        nbytes = reach(t.sizes, NULL, t.rank, 0, ITEMSIZE[tid], LARGEST_MEMORY, "from_dlpack")
        fill_row_strides(t)
    else:
        nbytes = reach(t.sizes, t.strides, t.rank, 0, ITEMSIZE[tid], LARGEST_MEMORY, "from_dlpack")
    finish(t)
    t.data = <char *>d.data + d.byte_offset if d.data != NULL else NULL
    if t.count and t.data == NULL:
        raise BufferError("from_dlpack: the capsule describes elements but holds no memory")
    t.storage = borrow_storage(t.data, nbytes, owner, readonly)
    if readonly:
        t.bits |= READONLY
    # kernels read whole elements: what lies askew is copied once, byte by byte, by the copy loop of its size
    if <size_t>t.data % (ITEMSIZE[tid] // 2 if is_complex(tid) else ITEMSIZE[tid]):
        raise BufferError("from_dlpack: the memory is not aligned to the element size: copy the array first")
    return t


def import_dlpack(capsule):
    """A tensor over the memory of a DLPack capsule, of either protocol; the capsule is used up."""
    cdef DLPackOwner owner = DLPackOwner.__new__(DLPackOwner)
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        owner.new = <DLManagedTensorVersioned *>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        if owner.new.version.major > 1:
            raise BufferError(f"from_dlpack: the capsule follows DLPack "
                              f"{owner.new.version.major}.{owner.new.version.minor}, but "
                              "version 1 is the newest understood: ask for max_version=(1, 0)")
        return _over(&owner.new.dl_tensor, owner, (owner.new.flags & DL_READ_ONLY) != 0)
    if PyCapsule_IsValid(capsule, "dltensor"):
        owner.old = <DLManagedTensor *>PyCapsule_GetPointer(capsule, "dltensor")
        PyCapsule_SetName(capsule, "used_dltensor")
        return _over(&owner.old.dl_tensor, owner, False)
    if type(capsule).__name__ == "PyCapsule":
        raise RuntimeError("from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
                           "once, so you "
                           "might have already constructed a tensor from it once.")
    raise TypeError(f"from_dlpack: expected an object with __dlpack__, or a DLPack capsule, not "
                    f"{type(capsule).__name__}")
