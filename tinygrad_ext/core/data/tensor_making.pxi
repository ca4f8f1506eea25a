# Making tensors: room for the shape, storage, strides, windows on another tensor. Part of tensor.pyx, in one
# translation unit with the class, so that these calls are inlined.

cdef bint is_of_subclass(PyObject *o) noexcept:
    return isinstance(<object>o, Tensor)


cdef Tensor blank(int ndim):
    cdef Tensor t = Tensor.__new__(Tensor)
    _reserve(t, ndim)
    return t


cdef Carried blank_carried(int ndim):
    cdef Carried t = Carried.__new__(Carried)
    _reserve(t, ndim)
    return t


cdef int _reserve(Tensor t, int ndim) except -1:
    """Room for `ndim` dimensions."""
    if ndim > INLINE_DIMS:
        if ndim > TGX_MAX_DIMS:
            raise RuntimeError(f"tensor has too many (>{TGX_MAX_DIMS}) dims: {ndim}")
        t.room = bytes(2 * ndim * sizeof(int64_t))
        t.sizes = <int64_t *>PyBytes_AS_STRING(t.room)
        t.strides = t.sizes + ndim
    elif t.sizes != t.dims:
        t.sizes = t.dims
        t.strides = t.dims + INLINE_DIMS
        t.room = None
    t.rank = ndim
    return 0


cdef extern from "extent.h" nogil:
    bint tgx_times(int64_t a, int64_t b, int64_t *out)


cdef int finish(Tensor t) except -1:
    cdef int64_t n = 1
    cdef bint contiguous = True, wrapped = False
    cdef int i
    for i in range(t.rank - 1, -1, -1):
        if t.sizes[i] != 1:
            if t.strides[i] != n:
                contiguous = False
            wrapped |= tgx_times(n, t.sizes[i], &n)
    t.count = counted(t.sizes, t.rank, "a view") if wrapped else n
    if contiguous or t.count == 0:
        t.bits |= CONTIGUOUS
    else:
        t.bits &= ~CONTIGUOUS
    return 0


cdef int64_t checked_numel(const int64_t *shape, int ndim, str what) except -1:
    """Product of sizes; RuntimeError for negative sizes and for a product beyond 63 bits."""
    return counted(shape, ndim, what)


cdef Tensor empty(const int64_t *shape, int ndim, int dtype, int device):
    cdef PyObject *small
    if device == CPU and ndim <= INLINE_DIMS:
        small = _take_whole(shape, ndim, dtype)
        if small != NULL:
            return TGX_OWNED(small)
    return _empty(shape, ndim, dtype, device)


cdef Tensor _empty(const int64_t *shape, int ndim, int dtype, int device):
    cdef int64_t[TGX_MAX_DIMS] kept
    cdef Tensor t
    cdef int64_t n = 1
    cdef int i
    if INLINE_DIMS < ndim <= TGX_MAX_DIMS:      # a collection may run below, and what it meets let go of where `shape` lies
        memcpy(kept, shape, ndim * sizeof(int64_t))
        shape = kept
    t = Tensor.__new__(Tensor)
    if ndim > INLINE_DIMS:
        _reserve(t, ndim)
    t.rank = ndim
    for i in range(ndim - 1, -1, -1):
        t.sizes[i] = shape[i]
        t.strides[i] = n
        if shape[i] > 1:
            if n > (1 << 27) or shape[i] > (1 << 27):        # below, n stays under 2**54
                reach(shape, NULL, ndim, 0, ITEMSIZE[dtype], ANY_ROOM, "empty")
            n *= shape[i]
        elif shape[i] < 0:
            checked_numel(shape, ndim, "empty")
    for i in range(ndim):
        if shape[i] == 0:
            n = 0
    t.count = n
    t.tid = dtype
    t.device_id = device
    t.bits = CONTIGUOUS
    if device == CPU:
        t.storage = new_storage(n * ITEMSIZE[dtype])
        t.data = t.storage.data
    elif device != META:
        _take_memory(t, n * ITEMSIZE[dtype])
    return t


cdef int _take_memory(Tensor t, int64_t nbytes) except -1:
    """Memory for a tensor that is not to be on the cpu as such, nor on meta."""
    if is_host(t.device_id):
        t.storage = new_storage(nbytes)
        t.device_id = device_for(t.tid, CPU)    # like one of a plugin's dtype, or one that is read flipped, but itself plain
    elif is_coded(t.tid):
        raise NotImplementedError(f"{dtype_of(t.tid)} on {device_of(t.device_id)}: a plugin's dtype lives on the cpu. Convert the "
                                  "tensor first, for example with .float()")
    else:
        t.storage = storage_on(t.device_id, nbytes)
    t.data = t.storage.data
    return 0


cdef Tensor empty_strided(const int64_t *shape, const int64_t *strides, int ndim, int dtype, int device):
    """Fresh memory with the given strides (non-negative, possibly with gaps)."""
    cdef int64_t nbytes = reach(shape, strides, ndim, 0, ITEMSIZE[dtype], ANY_ROOM, "empty_strided")
    cdef Tensor t = blank(ndim)
    cdef int i
    for i in range(ndim):
        t.sizes[i] = shape[i]
        t.strides[i] = strides[i]
    t.tid = dtype
    t.device_id = device
    finish(t)
    if device == CPU:
        t.storage = new_storage(nbytes)
        t.data = t.storage.data
    elif device != META:
        _take_memory(t, nbytes)
    return t


cdef Tensor empty_like(Tensor t, int dtype):
    """Fresh tensor of t's shape; a dense t's order of dimensions is kept, as preserve_format does."""
    cdef int[TGX_MAX_DIMS] order
    cdef int64_t[TGX_MAX_DIMS] strides
    cdef int i, j, k
    cdef int64_t n = 1
    if t.bits & CONTIGUOUS:
        return empty(t.sizes, t.rank, dtype, t.device_id)
    # insertion sort of dimensions by stride, innermost first, ties keep the later dimension inside
    for i in range(t.rank):
        k = t.rank - 1 - i
        j = i
        while j > 0 and t.strides[order[j - 1]] > t.strides[k]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    for i in range(t.rank):
        if t.sizes[order[i]] != 1 and t.strides[order[i]] != n:
            if t.strides[order[i]] < n:      # expanded or overlapping: plain row-major
                return empty(t.sizes, t.rank, dtype, t.device_id)
        strides[order[i]] = n
        n *= t.sizes[order[i]]
    return empty_strided(t.sizes, strides, t.rank, dtype, t.device_id)


cdef Tensor view(Tensor t, const int64_t *shape, const int64_t *strides, int ndim, int64_t offset):
    """A window on t's memory, `offset` elements further; shares storage and version."""
    cdef Tensor v = blank(ndim)
    cdef int i
    for i in range(ndim):
        v.sizes[i] = shape[i]
        v.strides[i] = strides[i]
    v.storage = t.storage
    v.counter = t.counter
    v.data = t.data + offset * ITEMSIZE[t.tid] if t.data != NULL else NULL
    v.tid = t.tid
    v.device_id = t.device_id
    v.bits = t.bits & (INFERENCE | READONLY)
    finish(v)
    return v


cdef object shown_device(Tensor t):
    if type(t) is Carried:
        return (<Carried>t).shown_device
    if t.device_id == META and t.extra is not None and "shown_device" in t.extra:
        return t.extra["shown_device"]
    return device_of(t.device_id)


cdef Tensor alias(Tensor t):
    return view(t, t.sizes, t.strides, t.rank, 0)


cdef int set_geometry(Tensor t, Tensor like) except -1:
    """Let t be what `like` is (memory, shape, dtype), keeping t's identity and autograd links."""
    global geometry_changes
    if t is like:
        return 0
    geometry_changes += 1
    if t.accumulator != NULL and not (same_sizes(t, like) and t.tid == like.tid and t.device_id == like.device_id):
        leave_accumulator(t)
    _reserve(t, like.rank)
    memcpy(t.sizes, like.sizes, like.rank * sizeof(int64_t))
    memcpy(t.strides, like.strides, like.rank * sizeof(int64_t))
    t.storage = like.storage
    t.counter = like.counter
    t.data = like.data
    t.tid = like.tid
    t.device_id = like.device_id
    t.bits = (t.bits & ~(READONLY | INFERENCE)) | (like.bits & (READONLY | INFERENCE))
    return finish(t)
