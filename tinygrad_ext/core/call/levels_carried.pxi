# Carried values: which level serves a call, and what it says of their attributes and methods. Part of levels.pyx.

cdef Py_ssize_t _carrier(object args, Py_ssize_t active, int depth=DEPTH) except -2:
    """The highest level that carries a value among the arguments, -1 for none; RuntimeError when it is not active."""
    cdef Py_ssize_t found = -1, at
    for o in args:
        if type(o) is Carried:
            at = _place(<Carried>o)
            if at < 0:
                _refuse_ended(<Carried>o)
            if at >= active:
                raise RuntimeError(f"a value carried by {(<Carried>o).level!r} reached an operation below that level: process() "
                                   "has to pass on what the value holds (value.value) instead")
            if at > found:
                found = at
        elif depth and isinstance(o, (list, tuple)):
            at = _carrier(o, active, depth - 1)
            if at > found:
                found = at
    return found


cdef Py_ssize_t _place(Carried o) noexcept:
    """Where the level of a value stands in this thread's stack; -1 when it is over, or another thread's."""
    cdef tgx_state *st = state()
    cdef Py_ssize_t at
    if not isinstance(o.level, Level) or st.levels == NULL:
        return -1
    at = (<Level>o.level).at
    return at if 0 <= at < len(<list>st.levels) and (<list>st.levels)[at] is o.level else -1


cdef int _refuse_ended(Carried o) except -1:
    raise RuntimeError(f"a value carried by {o.level!r} was used after that level ended, or in another thread: it has no "
                       "elements of its own. Return what you need from the function that the level runs")


cdef bint _holds(object args, int depth) noexcept:
    for o in args:
        if type(o) is Carried or (depth and isinstance(o, (list, tuple)) and _holds(o, depth - 1)):
            return True
    return False


cdef bint holds_carried(PyObject **args, Py_ssize_t n) noexcept:
    cdef Py_ssize_t i
    for i in range(n):
        o = <object>args[i]
        if type(o) is Tensor:
            continue
        if type(o) is Carried or (isinstance(o, (list, tuple)) and _holds(o, DEPTH)):
            return True
    return False


cdef int check_carried(PyObject **args, Py_ssize_t n) except -1:
    cdef Py_ssize_t i
    for i in range(n):
        _carrier((<object>args[i],), state().active)
    return 0


cdef object _ask_level(Carried o, str how, tuple given):
    """level.read or level.write, with that level and those above it off."""
    cdef tgx_state *st = state()
    cdef Py_ssize_t at = _place(o), was = st.active, n
    if at < 0:
        if given[1] == "__repr__":
            return f"<value of {o.level!r}, which ended>"
        _refuse_ended(o)
    if how == "read" and given[1] in (<Level>o.level).known:
        return _known(o, given[1])
    n = len(<list>st.levels)
    if was == n:
        _note_line()
    _activate(st, min(at, was))
    try:
        return getattr(o.level, how)(*given)
    finally:
        _activate(st, was + len(<list>st.levels) - n)


cdef object _known(Carried o, str name):
    """What shape, dtype and device say; NotImplemented where the tensor's own attribute does."""
    if name == "device":
        return shown_device(o)
    if name == "is_complex":
        return is_complex(o.tid)
    if name == "is_floating_point":
        return is_inexact(o.tid) and not is_complex(o.tid)
    return NotImplemented


cdef object read_carried(object carried, str name, tuple args):
    return _ask_level(<Carried>carried, "read", (carried, name, args))


cdef object write_carried(object carried, object target, str name, object new):
    return _ask_level(<Carried>carried, "write", (target, name, new))


cdef object ask_observers(object tensor, str name, tuple args, bint writes):
    cdef tgx_state *st = state()
    cdef Py_ssize_t i, n, was = st.active
    cdef list levels = <list>st.levels
    for i in range(was - 1, -1, -1):
        level = <Level>levels[i]
        if not isinstance(level, Observer) or not level.sees_attributes:
            continue
        n = len(levels)
        if was == n:
            _note_line()
        _activate(st, i)
        try:
            result = level.write(tensor, name, *args) if writes else level.read(tensor, name, args)
        finally:
            _activate(st, was + len(levels) - n)
        if result is not NotImplemented:
            return result
    return NotImplemented


cdef Carried _carry(Level level, object value, tuple shape, object kind, object where):
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int64_t n = 1
    cdef int i, rank = len(shape)
    cdef Carried t
    if rank > TGX_MAX_DIMS:
        raise RuntimeError(f"carry(): tensor has too many (>{TGX_MAX_DIMS}) dims: {rank}")
    if type(kind) is not dtype:
        raise TypeError(f"carry(): argument 'dtype' must be a dtype, not {type(kind).__name__}")
    for i in range(rank):
        sizes[i] = index(shape[i])
    checked_numel(sizes, rank, "carry")
    t = blank_carried(rank)
    for i in range(rank - 1, -1, -1):
        t.sizes[i], t.strides[i] = sizes[i], n
        n *= max(sizes[i], 1)
    t.tid, t.device_id = (<dtype>kind).id, META
    t.level, t.value, t.shown_device = level, value, device(where)
    finish(t)
    return t


cdef Carried carry_like(Level level, object value, Tensor like):
    """A value that shows the shape and dtype of a tensor."""
    cdef Carried t = blank_carried(like.rank)
    cdef int64_t n = 1
    cdef int i
    for i in range(like.rank - 1, -1, -1):
        t.sizes[i], t.strides[i] = like.sizes[i], n
        n *= max(t.sizes[i], 1)
    t.tid, t.device_id = like.tid, META
    t.level, t.value = level, value
    t.shown_device = shown_device(like)
    t.bits |= REQUIRES_GRAD     # it is no mere number where an op takes either
    finish(t)
    return t


cdef Carried carry_row(Level level, Tensor rows):
    """A value that shows one row of what it stands for: all dimensions but the first."""
    cdef Carried t = blank_carried(rows.rank - 1)
    cdef int64_t n = 1
    cdef int i
    for i in range(rows.rank - 2, -1, -1):
        t.sizes[i], t.strides[i] = rows.sizes[i + 1], n
        n *= max(t.sizes[i], 1)
    t.tid, t.device_id = rows.tid, META
    t.level, t.value = level, rows
    t.shown_device = shown_device(rows)
    if t.rank == 0 or needs_grad(rows):
        t.bits |= REQUIRES_GRAD     # of no dimensions: it is no mere number where an op takes either
    finish(t)
    return t
