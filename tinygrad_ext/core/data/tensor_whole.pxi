# Small tensors that went are kept as they are, memory and all, for the next of as many bytes. Part of tensor.pyx.
#
# Most of what a small op costs beside its call is an object and a storage made and freed. A tensor that nothing hangs on
# but its history, and whose storage is its own alone, needs no more than a new shape to be another one. Kept ones are in
# nobody's lists, and their memory counts as cached.

cdef enum:
    LARGEST_KEPT = 1024             # bytes; up to there the classes of blocks are steps of 64

cdef PyObject *_whole[LARGEST_KEPT / 64 + 1][TGX_WHOLE + 1]
cdef int[LARGEST_KEPT / 64 + 1] _nwhole


cdef inline bint _keep_whole(PyObject *o) noexcept:
    """Keep a tensor that goes, if it is a plain one; whether it is kept."""
    cdef Links *t = <Links *>o
    cdef Memory *memory = <Memory *>t.storage
    cdef void *none = <void *>None
    cdef void *node = t.node
    cdef size_t c
    if (t.link.next == NULL or t.attributes != NULL or t.__weakref__ != NULL or t.accumulator != NULL or t.device_id != CPU
            or <void *>t.base != none or <void *>t.grad_ != none or t.counter != none or <void *>t.extra != none
            or <void *>t.room != none or t.storage == none or Py_TYPE(o) != <void *>Tensor):
        return False
    if Py_REFCNT(t.storage) != 1 or memory.block - 1 >= LARGEST_KEPT or memory.readonly or memory.__weakref__ != NULL:
        return False
    c = memory.block >> 6
    if _nwhole[c] >= TGX_WHOLE:
        return False
    tgx_unlink(&t.link)
    books.in_use -= memory.block
    books.whole += memory.block
    _whole[c][_nwhole[c]] = o
    _nwhole[c] += 1
    if node != none:
        Py_INCREF(None)
        t.node = <PyObject *>None
        let_go(<PyObject *>node)
    return True


cdef inline PyObject *_take_whole(const int64_t *shape, int ndim, int dtype) noexcept:
    """A dense tensor of this shape out of one that went, or NULL where there is none of as many bytes."""
    cdef int64_t nbytes = ITEMSIZE[dtype], n = 1
    cdef Memory *memory
    cdef PyObject *t
    cdef size_t c
    cdef int i
    for i in range(ndim):
        if shape[i] <= 0 or shape[i] > LARGEST_KEPT:
            return NULL
        nbytes *= shape[i]
        if nbytes > LARGEST_KEPT:
            return NULL
    c = (nbytes + 63) >> 6
    if not _nwhole[c]:
        return NULL
    _nwhole[c] -= 1
    t = _whole[c][_nwhole[c]]
    _Py_NewReference(t)
    tgx_link_into(&tgx_ring, &(<Tensor>t).link)
    for i in range(ndim - 1, -1, -1):
        (<Tensor>t).sizes[i] = shape[i]
        (<Tensor>t).strides[i] = n
        n *= shape[i]
    (<Tensor>t).rank = ndim
    (<Tensor>t).count = n
    (<Tensor>t).tid = dtype
    (<Tensor>t).bits = CONTIGUOUS
    (<Tensor>t).output_nr = (<Tensor>t).view_version = 0
    memory = <Memory *>(<Links *>t).storage
    memory.nbytes, memory.version, memory.watched = nbytes, 0, 0
    (<Tensor>t).data = memory.data
    books.whole -= memory.block
    books.in_use += memory.block
    books.allocations += 1
    if books.in_use > books.peak:
        books.peak = books.in_use
    return t


cdef void _drop_whole() noexcept:
    """Free what is kept."""
    cdef size_t c
    for c in range(LARGEST_KEPT / 64 + 1):
        while _nwhole[c]:
            _nwhole[c] -= 1
            books.whole -= c << 6
            books.in_use += c << 6
            _plain_dealloc(_whole[c][_nwhole[c]])


storages.drop_whole = _drop_whole
