# What comes out of a call: written down while planning, made in each call. Part of routine.pyx.

cdef int _set_result(Routine self, Result *r, object o, dict given) except -1:
    cdef Tensor t
    cdef Way way
    cdef Result *inner
    if isinstance(o, Tensor):
        t = <Tensor>o
        r.kind, r.at, r.rank, r.dtype, r.count = TENSOR, buffer_of(t).base, t.rank, t.tid, t.count
        r.bits, r.offset, r.geometry = t.bits & CONTIGUOUS, t.data - t.storage.data, _geometry(self.room, t)
        if id(o) in given:
            r.kind, r.at = ITSELF, given[id(o)]
        elif r.at < self.ninputs:
            r.kind = WINDOW
    elif isinstance(o, Number):
        r.kind, r.at, r.dtype = NUMBER, (<Number>o).slot, kind_of((<Number>o).value)
    elif isinstance(o, Stacked):
        r.kind, r.known, r.at = STACK, <PyObject *>(<Stacked>o).heap, -1
        if isinstance((<Stacked>o).number, Number):
            r.at = (<Number>(<Stacked>o).number).slot
    elif isinstance(o, Way):
        way = <Way>o
        inner = <Result *>self.room.take((1 + len(way.sources)) * sizeof(Result))
        r.kind, r.at, r.geometry = WAY, way.number.slot, <int64_t *>inner
        for i, x in enumerate([way.own, *way.sources]):
            _set_result(self, &inner[<int>i], x, given)
    elif isinstance(o, (list, tuple, dict)) and _nested(o):
        inner = <Result *>self.room.take(len(o) * sizeof(Result) + 8)
        r.kind, r.rank, r.geometry, r.known = NEST, len(o), <int64_t *>inner, <PyObject *>o
        for i, x in enumerate(o.values() if isinstance(o, dict) else o):
            _set_result(self, &inner[<int>i], x, given)
    else:
        r.kind, r.known = GENERATOR if isinstance(o, Generator) else VALUE, <PyObject *>o
    return 0


cdef object _result(Routine self, Result *r, PyObject **args, list memories):
    cdef Tensor t
    cdef int i
    cdef Generator g
    if r.kind == TENSOR:
        if type(<object>PyList_GET_ITEM(memories, r.at - self.ninputs)) is Tensor:
            return <object>PyList_GET_ITEM(memories, r.at - self.ninputs)
        t = blank(r.rank)
        memcpy(t.sizes, r.geometry, 8 * r.rank)
        memcpy(t.strides, r.geometry + r.rank, 8 * r.rank)
        t.storage = <Storage>memories[r.at - self.ninputs]
        t.data, t.count, t.tid, t.device_id, t.bits = t.storage.data + r.offset, r.count, r.dtype, CPU, r.bits
        return t
    if r.kind == ITSELF:
        return <object>args[r.at]
    if r.kind == WINDOW:
        t = view(<Tensor>args[r.at], r.geometry, r.geometry + r.rank, r.rank, 0)
        t.data, t.tid = t.data + r.offset, r.dtype
        return t
    if r.kind == WAY:
        return _result(self, &(<Result *>r.geometry)[1 + self.plan.numbers[r.at].i], args, memories)
    if r.kind == NUMBER:
        return number_of(&self.plan.numbers[r.at], r.dtype)
    if r.kind == STACK:
        return stack_of(_pile_of(self, <object>r.known), -1 if r.at < 0 else self.plan.numbers[r.at].i)
    if r.kind == GENERATOR:
        g = Generator.__new__(Generator)
        g.mt = (<Generator>r.known).mt
        return g
    if r.kind == VALUE:
        return <object>r.known
    made = [_result(self, &(<Result *>r.geometry)[i], args, memories) for i in range(r.rank)]
    like = <object>r.known
    if isinstance(like, dict):
        return dict(zip(like, made))
    return made if type(like) is list else tuple(made) if type(like) is tuple else tuple.__new__(type(like), made)


def _tensors(o):
    """The tensors in a value, or in lists in it."""
    if isinstance(o, Tensor):
        return [o]
    if isinstance(o, Way):
        return [(<Way>o).own]
    if isinstance(o, dict):
        o = list(o.values())
    return [t for x in o for t in _tensors(x)] if isinstance(o, (list, tuple)) else []


cdef bint _nested(object o):
    """Whether a list or dict is or holds what is made anew in each call."""
    for x in o:
        if isinstance(x, (Tensor, Number, Stacked, Way, Generator, list, dict)) or (isinstance(x, tuple) and _nested(x)):
            return True
    return not isinstance(o, tuple)


cdef int64_t *_geometry(Room room, Tensor t) except NULL:
    cdef int64_t *made = <int64_t *>room.take(16 * t.rank + 8)
    memcpy(made, t.sizes, 8 * t.rank)
    memcpy(made + t.rank, t.strides, 8 * t.rank)
    return made


cdef bint _equal(object a, object b) noexcept:
    """Whether two values are the same number, text or word; not 1 and True, nor 0.0 and -0.0."""
    try:
        return type(a) is type(b) and not isinstance(a, (Tensor, list, tuple, dict)) and a == b and repr(a) == repr(b)
    except Exception:
        return False


cdef int64_t _work(object item) except -1:
    return max([s.work for s in item.steps], default=0) if isinstance(item, Group) else item.work
