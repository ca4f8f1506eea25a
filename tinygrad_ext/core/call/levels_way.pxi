# How an operation comes to the levels of its thread, one after the other, and past them. Part of levels.pyx.

cdef inline void _activate(tgx_state *st, Py_ssize_t count) noexcept:
    st.active = <int32_t>count
    if count:
        st.flags |= TGX_LEVELS
    else:
        st.flags &= ~<uint32_t>TGX_LEVELS


cdef object perform(Operation operation, tuple args):
    if state().flags & TGX_LEVELS:
        result = offer(operation, args)
        if result is not NotImplemented:
            return result
    return operation.run(args)


cdef object run_unseen(Operation operation, tuple args):
    cdef tgx_state *st = state()
    cdef Py_ssize_t was = st.active
    _activate(st, 0)
    try:
        return operation.run(args)
    finally:
        _activate(st, was)


cdef object offer(Operation operation, tuple args):
    cdef tgx_state *st = state()
    cdef list levels = <list>st.levels
    cdef Py_ssize_t i, was = st.active, carrier = _carrier(args, was)
    cdef Level level
    if was == len(levels):
        _note_line()        # else a level is processing an operation, whose line it is
    for i in range(was - 1, -1, -1):
        level = <Level>levels[i]
        if i != carrier:
            if isinstance(level, Observer):
                if (<Observer>level).resting:
                    continue
            elif not (isinstance(operation, OpForm) and (<OpForm>operation).draws and level.sees_draws):
                continue
        if i == carrier and isinstance(operation, OpForm) and (<OpForm>operation).reads:
            result = read_carried(_first_of(level, args), operation.schema.name, args[1:])
            if result is NotImplemented:
                _refuse_reading(level, operation.schema.name)
        else:
            result = _process(st, level, i, operation, args)
        if result is not NotImplemented:
            return result
        if i != carrier:
            continue
        if operation.composite:
            return NotImplemented
        raise NotImplementedError(f"{operation.name}: {level!r} has no rule for it: its process() returned NotImplemented for a "
                                  "value that it carries, and the operation is not written in others that it could be asked about")
    return NotImplemented if operation.composite else run_unseen(operation, args)


cdef void _note_line() noexcept:
    global tgx_line_code, tgx_line_at
    cdef tgx_place place = here()
    cdef PyObject *old = tgx_line_code
    tgx_line_code, tgx_line_at = place.code, place.lasti
    Py_XDECREF(old)


cdef object _process(tgx_state *st, Level level, Py_ssize_t i, Operation operation, tuple args):
    """level.process with that level and those above it off."""
    cdef Py_ssize_t was = st.active, n = len(<list>st.levels)
    _activate(st, i)
    try:
        return level.process(operation, args)
    finally:
        # what process() put on the stack and left there moved the others up
        _activate(st, was + len(<list>st.levels) - n)


cdef object _offer_op(Op op, PyObject **args, int form):
    cdef tgx_state *st = state()
    cdef PyObject *only
    if st.active == 1:
        only = PyList_GET_ITEM(<list>st.levels, 0)
        if isinstance(<object>only, Observer) and (<Observer>only).watches and len(<list>st.levels) == 1:
            return (<Observer>only).watch(op, args, form)
    return offer_row(op, args, form)


cdef object offer_row(Op op, PyObject **args, int form):
    cdef int i, n = op.nargs + (form == OUT)
    cdef tuple row = PyTuple_New(n)
    for i in range(n):
        if args[i] == NULL:
            raise SystemError(f"{op.name}: a compiled composite left argument {i} out")
        Py_INCREF(<object>args[i])
        PyTuple_SET_ITEM(row, i, <object>args[i])
    return offer(form_of(op, form), row)


cdef int _refuse_reading(Level level, name) except -1:
    where = user_line()
    raise RuntimeError(f"{name}() reads the elements of a value that {level!r} carries, which stands for other values than one. "
                       f"Keep to operations on tensors there, or compute it outside" + (f" ({where})" if where else ""))


cdef Carried _first_of(Level level, object args):
    """The first value among the arguments that a level carries."""
    for o in args:
        found = o if type(o) is Carried and o.level is level else _first_of(level, o) if isinstance(o, (list, tuple)) else None
        if found is not None:
            return found
    return None
