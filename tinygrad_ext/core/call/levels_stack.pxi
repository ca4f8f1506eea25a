# The stack of a thread's levels, and what is asked about it. Part of levels.pyx.

cdef int push_level(Level level, Py_ssize_t at) except -1:
    """Put a level on top of those that are active, or at a place."""
    cdef tgx_state *st = state()
    cdef list levels
    if level.at >= 0:
        raise RuntimeError(f"{level!r} is active already; make another one")
    if st.levels == NULL:
        levels = []
        Py_INCREF(levels)
        st.levels = <PyObject *>levels
    levels = <list>st.levels
    levels.insert(st.active if at < 0 else at, level)
    _activate(st, st.active + 1)
    _number(levels)
    return 0


cdef int _pop(Level level) except -1:
    cdef tgx_state *st = state()
    cdef list levels = [] if st.levels == NULL else <list>st.levels
    if level.at < 0 or level.at >= len(levels) or levels[level.at] is not level:
        raise RuntimeError(f"{level!r} is not active in this thread")
    if level.at < st.active:
        _activate(st, st.active - 1)
    del levels[level.at]
    level.at = -1
    _number(levels)
    return 0


cdef int _number(list levels) except -1:
    cdef Py_ssize_t i
    for i in range(len(levels)):
        (<Level>levels[i]).at = i
    return 0


cdef object _run_with(Py_ssize_t active, object function, tuple args):
    cdef tgx_state *st = state()
    cdef Py_ssize_t was = st.active
    _activate(st, active)
    try:
        return function(*args)
    finally:
        _activate(st, was)


def _inside(Operation operation, tuple args):
    return operation.run(args)


def active_levels():
    """The levels of this thread that see the next operation, the lowest first."""
    cdef tgx_state *st = state()
    return [] if st.levels == NULL else (<list>st.levels)[:st.active]


def levels_on():
    """Whether some level of this thread has a say in the next operation: one that only looks on has none."""
    return (state().flags & TGX_LEVELS) != 0 and not all_watch()


cdef bint all_watch() noexcept:
    cdef tgx_state *st = state()
    cdef Py_ssize_t i
    for i in range(st.active):
        level = <object>PyList_GET_ITEM(<list>st.levels, i)
        if not isinstance(level, Observer) or not (<Observer>level).watches:
            return False
    return True


def user_line():
    """'file:line in function': where the user called the operation that this thread's levels are processing."""
    cdef tgx_place place
    place.code, place.lasti = tgx_line_code, tgx_line_at
    return place_text(place)


def calling_line():
    """The same of whoever calls now, which need not be an operation."""
    return place_text(here())


def mark_range(str name, bint begin):
    """Tell the observers of this thread that a range of the user's begins or ends, inside an operation that they see, too."""
    cdef tgx_state *st = state()
    if st.levels != NULL:
        for level in list(<list>st.levels):
            if isinstance(level, Observer):
                level.begin(name) if begin else level.end(name)
