# Memory of the results of a call, and what is written to. Part of routine.pyx.

cdef extern from *:
    """
    /* Of an object of a type that takes weak references. */
    static inline int tgx_is_weakly_held(PyObject *o) {
        return *(PyObject **)((char *)o + Py_TYPE(o)->tp_weaklistoffset) != NULL;
    }
    """
    bint tgx_is_weakly_held(PyObject *o) noexcept

cdef enum:
    MOST_AGAIN = 1 << 14    # bytes of a gradient up to which finding memory for it costs as much as computing it


cdef int _set_updates(Routine self, list updated) except -1:
    cdef int i
    self.nupdated = <int>len(updated)
    self.updated = <int *>self.room.take(self.nupdated * sizeof(int) + 8)
    for i in range(self.nupdated):
        self.updated[i] = updated[i]
    return 0


cdef int _set_again(Routine self, list outputs, numbers) except -1:
    """Which outputs are small, memory of their own and in no other result."""
    cdef int i
    cdef Result *r
    self.again = <int *>self.room.take(self.noutputs * sizeof(int) + 8)
    self.last, self.spare = [None] * self.nresults, [None] * self.nresults
    for i in range(self.noutputs):
        self.again[i] = -1
    bases = [buffer_of(<Tensor>t).base for t in _tensors(outputs)]
    for i in numbers:
        r = &self.results[i]
        if r.kind != TENSOR or r.offset or not r.bits & CONTIGUOUS or bases.count(r.at) > 1:
            continue
        if self.output_bytes[r.at - self.ninputs] <= MOST_AGAIN:
            self.again[r.at - self.ninputs] = i
    return 0


cdef list _memories(Routine self):
    """For each output a Storage, or a gradient of the call before the last that nobody has any more, memory and all. That of
    the last call stays as it is until this one is done: it may fail."""
    cdef list made = PyList_New(self.noutputs)
    cdef Storage memory
    cdef PyObject *held
    cdef int i, k
    for i in range(self.noutputs):
        k = self.again[i]
        held = PyList_GET_ITEM(self.spare, k) if k >= 0 else NULL
        if held != NULL and _nobody_has(held, &self.results[k]):
            (<Tensor>held).storage.version = 0
            self.plan.bases[self.ninputs + i] = (<Tensor>held).data
            Py_INCREF(<object>held)
            PyList_SET_ITEM(made, i, <object>held)
            continue
        memory = new_storage(self.output_bytes[i])
        self.plan.bases[self.ninputs + i] = memory.data
        Py_INCREF(memory)
        PyList_SET_ITEM(made, i, memory)
    return made


cdef int _keep_again(Routine self, tuple made) except -1:
    """Remember the gradients of this call."""
    cdef PyObject **last = PySequence_Fast_ITEMS(self.last)
    cdef PyObject **spare = PySequence_Fast_ITEMS(self.spare)
    cdef PyObject *old
    cdef int i, k
    for i in range(self.noutputs):
        k = self.again[i]
        if k < 0:
            continue
        old, spare[k], last[k] = spare[k], last[k], PyTuple_GET_ITEM(made, k)
        Py_INCREF(<object>last[k])
        Py_DECREF(<object>old)
    return 0


cdef bint _nobody_has(PyObject *held, Result *r) noexcept:
    """Whether a tensor is in one list alone, and as it was made: nothing shares its memory or hangs on it."""
    cdef Tensor t
    if held == <PyObject *>None or held.ob_refcnt != 1:
        return False
    t = <Tensor>held
    if (<PyObject *>t.storage).ob_refcnt != 1 or t.storage.watched or tgx_is_weakly_held(<PyObject *>t.storage):
        return False
    if tgx_is_weakly_held(held) or <PyObject *>t.attributes != NULL or t.accumulator != NULL or t.bits != r.bits:
        return False
    if t.node is not None or t.base is not None or t.grad_ is not None or t.counter is not None or t.extra is not None:
        return False
    return t.data == t.storage.data and t.rank == r.rank and t.tid == r.dtype and _lies_so(held, r.rank, r.geometry)


# These take pointers: casts to objects would count references.

cdef inline bint _is_exact(PyObject *o) noexcept:
    return o.ob_type == <PyTypeObject *>Tensor or o.ob_type == <PyTypeObject *>Parameter


cdef inline bint _lies_so(PyObject *t, int rank, const int64_t *geometry) noexcept:
    """Whether the sizes and strides of a tensor are these."""
    cdef const int64_t *sizes = (<Tensor>t).sizes
    cdef const int64_t *strides = (<Tensor>t).strides
    cdef int i
    for i in range(rank):
        if sizes[i] != geometry[i] or strides[i] != geometry[rank + i]:
            return False
    return True


cdef inline bint _is_writable(Tensor t) noexcept:
    """Whether it surely is: its own memory, each element once."""
    return t.bits & CONTIGUOUS and not t.bits & READONLY and not t.storage.readonly
