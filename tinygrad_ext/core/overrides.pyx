# cython: language_level=3
"""The override protocol: modes innermost first, then the types among the arguments.

Types are asked from left to right, subclasses before their superclasses, each once; the first answer that is not
NotImplemented counts, and a TypeError names all who declined. A plain call never comes here: one test of the
thread's word and of the arguments' exact types sends it straight to its kernel.

What belongs to a type is read from the type, as Python does with special methods, so an object whose `__getattr__`
answers everything is no override.
"""
import sys

cimport cython
from cpython.object cimport Py_TPFLAGS_HEAPTYPE, PyObject, PyTypeObject
from tinygrad_ext.core.dispatch cimport TGX_NO_SUBCLASS, state, uint32_t
from tinygrad_ext.core.mode_stack cimport ModeStack
from tinygrad_ext.core.mode_stack import mode_stack
from tinygrad_ext.core.subclass cimport as_class, reclass
from tinygrad_ext.core.tensor cimport Parameter, Tensor, exact

cdef extern from "Python.h":
    PyObject *_PyType_Lookup(PyTypeObject *type, object name)      # borrowed; NULL without an error
    PyTypeObject *Py_TYPE(object o)
    Py_ssize_t Py_REFCNT(object o)
    bint PyType_IsSubtype(PyTypeObject *a, PyTypeObject *b)
    PyTypeObject PyLong_Type, PyFloat_Type, PyBool_Type, PyUnicode_Type, PyTuple_Type, PyList_Type
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)
    object PyObject_Call(object f, tuple args, dict kwargs)
    int Py_EnterRecursiveCall(const char *where) except -1
    void Py_LeaveRecursiveCall()

cdef enum:
    OVERRIDE = 1 << TGX_SLOT_OVERRIDE

cdef str _NAME = sys.intern("__torch_function__")
cdef PyObject *_default = NULL          # the `__torch_function__` that subclasses of Tensor inherit
cdef object _theirs = None              # torch.Tensor of PyTorch itself, once that is imported
cdef object _path_of                    # names a function in messages
cdef set _own_types = set()             # classes of our public callables
cdef set _open = set()                  # functions of classmethods that run their class's code, with overrides on
cdef object _handler_of = None          # type -> handler that somebody registered for it, or None
cdef set _without = set()               # types known to have none
cdef object _common_type = None         # types -> the type in which siblings meet, or None
cdef object _watch = None               # overrides.watch while somebody watches who is asked
cdef object _nowrap = frozenset()       # getters whose result keeps its class


class Unhandled(TypeError):
    """Every handler of a call returned NotImplemented."""


# ---- which arguments count -----------------------------------------------------------------------------------------

@cython.binding(False)
def _disabled_torch_function_impl(func, types, args=(), kwargs=None):
    """The `__torch_function__` of a type that does not override: the call runs as on plain tensors."""
    return _without_types(func, tuple(args), {} if kwargs is None else kwargs)


cdef PyObject *_function_of(PyTypeObject *t) noexcept:
    """What the type says about overriding; NULL for nothing."""
    cdef PyObject *found = _PyType_Lookup(t, _NAME)
    if found == <PyObject *>None or found == <PyObject *>_disabled_torch_function_impl:
        return NULL
    return found


cdef int brings_function(object o) except -1:
    cdef PyTypeObject *t = Py_TYPE(o)
    if exact(o) or t == &PyLong_Type or t == &PyFloat_Type or t == &PyTuple_Type or t == &PyList_Type:
        return 0
    if t == &PyUnicode_Type or t == &PyBool_Type or o is None:
        return 0
    # asked about our functions, PyTorch's own tensors would call them again, forever
    if _function_of(t) == NULL or from_elsewhere(o):
        return _has_handler(o, t)
    return 1


cdef bint _has_handler(object o, PyTypeObject *t) except -1:
    """Whether somebody registered a handler for o's type."""
    cdef bint lasting = not t.tp_flags & Py_TPFLAGS_HEAPTYPE       # a type of C code, such as NumPy's scalars
    if _handler_of is None or (lasting and <object>t in _without) or isinstance(o, type):
        return False
    if _handler_of(<object>t) is not None:
        return True
    if lasting:
        _without.add(<object>t)
    return False


def set_lookups(*, handler_of=None, common_type=None, watch=None):
    """Hand in what is asked beyond the types themselves; see overrides/foreign.py, common.py and watch.py.

    Only what is given is set; False takes it out, so that a lookup costs nothing while there is nothing to find.
    """
    global _handler_of, _common_type, _watch
    if handler_of is not None:
        _handler_of = handler_of or None
        _without.clear()
    if common_type is not None:
        _common_type = common_type or None
    if watch is not None:
        _watch = watch or None


cdef bint from_elsewhere(object o) except -1:
    global _theirs
    if _theirs is None:
        found = getattr(sys.modules.get("torch"), "Tensor", None)
        if found is None or found is Tensor or not isinstance(found, type):
            return False
        _theirs = found
    return PyType_IsSubtype(Py_TYPE(o), <PyTypeObject *>_theirs)


cdef int _insert(list found, object o) except -1:
    cdef PyTypeObject *t = Py_TYPE(o)
    cdef Py_ssize_t i, at = len(found)
    for i in range(len(found)):
        if Py_TYPE(found[i]) == t:
            return 0
        if at == len(found) and PyType_IsSubtype(t, Py_TYPE(found[i])):
            at = i
    found.insert(at, o)
    return 0


cdef list overloaded(PyObject **args, Py_ssize_t n):
    cdef list found = []
    cdef Py_ssize_t i
    for i in range(n):
        o = <object>args[i]
        if brings_function(o):
            _insert(found, o)
        elif isinstance(o, (list, tuple)):
            for item in o:
                if brings_function(item):
                    _insert(found, item)
    return found


cdef bint must_ask(PyObject **args, Py_ssize_t n) except -1:
    cdef tgx_state *st = state()
    cdef Py_ssize_t i
    if st.below:
        return False
    if modes_on(st) or st.flags & TGX_SKIP_ONE:
        return True
    if st.flags & TGX_NO_SUBCLASS:
        return False
    for i in range(n):
        o = <object>args[i]
        if exact(o):
            continue
        if brings_function(o):
            return True
        if isinstance(o, (list, tuple)):
            for item in o:
                if brings_function(item):
                    return True
    return False


# ---- asking --------------------------------------------------------------------------------------------------------

cdef object ask(object func, tuple types, list found, tuple args, dict kwargs):
    """The answer of the first handler that has one. TypeError when all decline.

    `types` None stands for the types of `found`. Each handler gets a dict of its own, so what one does to it is not
    seen by the next.
    """
    cdef tgx_state *st = state()
    cdef object result
    cdef Py_ssize_t i
    if types is None:
        types = tuple([type(o) for o in found])
    Py_EnterRecursiveCall(" in __torch_function__")
    try:
        if modes_on(st):
            result = _ask_slot(st, func, types, args, kwargs)
            if result is not NotImplemented:
                return result
        for i in range(len(found)):
            result = _ask_type(found[i], func, types, args, kwargs)
            if result is not NotImplemented:
                if _watch is not None:
                    _watch.unasked(func, [("registered handler" if _is_registered(o, _function_of(Py_TYPE(o))) else "type",
                                            type(o)) for o in found[i + 1:]])
                return result
        to = None if _common_type is None else _common_type([type(o) for o in found])
        if to is not None:
            result = _call_handler("common type", to, to.__torch_function__, func, (to,), args, kwargs)
            if result is not NotImplemented:
                return result
    finally:
        Py_LeaveRecursiveCall()
    raise _unhandled(func, found)


cdef object _ask_type(object o, object func, tuple types, tuple args, dict kwargs):
    cdef PyObject *own = _function_of(Py_TYPE(o))
    if own == _default and _watch is None:
        return _run_plain(type(o), func, types, args, kwargs)
    if _is_registered(o, own):
        handler = None if _handler_of is None else _handler_of(type(o))
        if handler is None:
            return NotImplemented       # taken away by the one asked before
        return _call_handler("registered handler", type(o), handler, func, types, args, kwargs)
    return _call_handler("type", type(o), getattr(o, _NAME), func, types, args, kwargs)


cdef inline bint _is_registered(object o, PyObject *own) except -1:
    """Whether a registered handler answers for o, not what its type says."""
    return own == NULL or (_handler_of is not None and from_elsewhere(o))


cdef object _call_handler(str kind, object who, object handler, object func, tuple types, tuple args, dict kwargs):
    cdef PyObject *given[4]
    cdef dict keywords = kwargs.copy()
    if _watch is not None:
        return _watch.ask(kind, who, func, handler, types, args, keywords)
    given[0], given[1], given[2], given[3] = <PyObject *>func, <PyObject *>types, <PyObject *>args, <PyObject *>keywords
    return PyObject_Vectorcall(handler, given, 4, NULL)


cdef object _ask_slot(tgx_state *st, object func, tuple types, tuple args, dict kwargs):
    """The handler in the override slot, which is off meanwhile."""
    handler = <object>st.handler[TGX_SLOT_OVERRIDE]
    st.flags &= ~<uint32_t>OVERRIDE
    try:
        if type(handler) is ModeStack:
            return _ask_modes(<ModeStack>handler, func, types, args, kwargs)
        return _call_handler("mode", handler, handler, func, types, args, kwargs)
    finally:
        if st.handler[TGX_SLOT_OVERRIDE] != NULL:
            st.flags |= OVERRIDE


cdef object _unhandled(object func, list found):
    cdef tgx_state *st = state()
    name = _path_of(func)
    types = [type(o) for o in found]
    who = [f"mode {m!r}" for m in reversed(mode_stack())] if modes_on(st) else []
    text = f"no implementation found for '{name}'"
    if types:
        text += f" on types that implement __torch_function__: {types}"
        who += [f"type {t.__module__}.{t.__qualname__}" for t in types]
    return Unhandled(f"{text}. Multiple dispatch failed: NotImplemented was returned by {', '.join(who)}. Let one of "
                     f"them handle {name}.")


cdef object _ask_modes(ModeStack stack, object func, tuple types, tuple args, dict kwargs):
    """Modes innermost first; each is off while its handler runs."""
    cdef tgx_state *st = state()
    cdef list off = []
    cdef Py_ssize_t left
    stack.running += 1
    try:
        while stack.modes:
            mode = stack.modes.pop()
            off.append((mode, len(stack.modes)))
            if stack.modes:
                st.flags |= OVERRIDE
            else:
                st.flags &= ~<uint32_t>OVERRIDE
            result = _call_handler("mode", mode, mode.__torch_function__, func, types, args, kwargs)
            if result is not NotImplemented:
                return result
        return NotImplemented
    finally:
        # a handler that entered a mode and did not leave it loses it here
        for mode, left in reversed(off):
            del stack.modes[left:]
            stack.modes.append(mode)
        stack.running -= 1


# ---- switches ------------------------------------------------------------------------------------------------------

def set_disabled(bint types, bint modes):
    """Switch the asking of types and of modes off in this thread; returns what was off before."""
    cdef tgx_state *st = state()
    was = (st.flags & TGX_NO_SUBCLASS) != 0, (st.flags & TGX_NO_MODES) != 0
    st.flags &= ~<uint32_t>(TGX_NO_SUBCLASS | TGX_NO_MODES)
    if types:
        st.flags |= TGX_NO_SUBCLASS
    if modes:
        st.flags |= TGX_NO_MODES
    return was


def set_below(int depth):
    """Set how deep this thread is inside composites, where nobody is asked; returns the depth before."""
    cdef tgx_state *st = state()
    was = st.below
    st.below = depth
    return was


# ---- what Tensor does by itself ------------------------------------------------------------------------------------

def torch_function(cls, func, types, args=(), kwargs=None):
    """Run func and give its tensors this class: what subclasses of Tensor that define nothing do.

    NotImplemented where a type is not a superclass of this one: then that type should decide.
    """
    return _run_plain(cls, func, types, tuple(args), {} if kwargs is None else kwargs)


cdef object _run_plain(object cls, object func, object types, tuple args, dict kwargs):
    cdef bint ours = type(func) in _own_types
    if not ours:
        _check_origin(func)
    for t in types:
        if t is not cls and not issubclass(cls, t):
            return NotImplemented
    if not ours and getattr(func, "__func__", None) in _open:
        # a Function's apply: its forward and setup_context are the caller's code
        return redispatch_function(func, types, args, kwargs)
    result = _without_types(func, args, kwargs)
    if isinstance(result, (Tensor, tuple, list)) and cls is not Tensor and cls is not Parameter:
        return result if type(func) is _method_wrapper and func in _nowrap else _convert(result, cls)
    return result


cdef object _method_wrapper = type((0).__add__)


cdef object _without_types(object func, tuple args, dict kwargs):
    cdef tgx_state *st = state()
    cdef uint32_t was = st.flags & TGX_NO_SUBCLASS
    st.flags |= TGX_NO_SUBCLASS
    try:
        return PyObject_Call(func, args, kwargs)
    finally:
        if not was:
            st.flags &= ~<uint32_t>TGX_NO_SUBCLASS


cdef object _convert(object result, object cls):
    """Tensors of a result, in tuples and lists too, as instances of cls."""
    if isinstance(result, Tensor):
        if isinstance(result, cls):
            return result
        # a result that nobody else holds hands its place in the graph on
        if (<Tensor>result).node is not None and Py_REFCNT(result) == 1:
            return as_class(<Tensor>result, cls)
        return reclass(<Tensor>result, cls)
    if isinstance(result, (tuple, list)):
        converted = [_convert(r, cls) for r in result]
        if type(result) is list:
            return converted
        if type(result) is tuple:
            return tuple(converted)
        return type(result)(*converted) if hasattr(result, "_fields") else type(result)(converted)
    return result


cdef int _check_origin(object func) except -1:
    """Refuse a function of PyTorch itself: it was given our tensor, and would ask us again, forever."""
    from_elsewhere(None)
    if _theirs is None:
        return 0
    for owner in (func, getattr(func, "__objclass__", None), getattr(func, "__self__", None),
                  getattr(getattr(func, "__self__", None), "__objclass__", None)):
        home = getattr(owner, "__module__", None) or ""
        if isinstance(home, str) and home.partition(".")[0] == "torch":
            name = getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(func))
            raise TypeError(f"torch.{name.rpartition('.')[2]}(): a tensor of tinygrad_ext cannot be an argument of a function of "
                            "PyTorch. Convert one side first: torch.from_dlpack(...) of our tensor, or "
                            "tinygrad_ext.from_dlpack(...) of PyTorch's; both share the memory.")
    return 0


def redispatch_function(func, types, args, kwargs=None):
    """Run func without asking about this one call; calls inside it are asked about again."""
    cdef tgx_state *st = state()
    st.flags |= TGX_SKIP_ONE
    try:
        return PyObject_Call(func, tuple(args), {} if kwargs is None else dict(kwargs))
    finally:
        st.flags &= ~<uint32_t>TGX_SKIP_ONE


# ---- for functions written in Python -------------------------------------------------------------------------------

cdef bint _skips(tgx_state *st) noexcept:
    """Whether this is the call that `redispatch_function` spares."""
    if not st.flags & TGX_SKIP_ONE:
        return False
    st.flags &= ~<uint32_t>TGX_SKIP_ONE
    return True


def has_torch_function(relevant_args):
    """Whether a mode is on, or a type among the arguments overrides: then call `handle_torch_function`."""
    return has_torch_function_variadic(*relevant_args)


def has_torch_function_unary(tensor):
    """`has_torch_function` for one argument."""
    return has_torch_function_variadic(tensor)


def has_torch_function_variadic(*relevant_args):
    """`has_torch_function` for arguments given one by one."""
    cdef tgx_state *st = state()
    if st.below or _skips(st):
        return False
    if modes_on(st):
        return True
    if st.flags & TGX_NO_SUBCLASS:
        return False
    for o in relevant_args:
        if brings_function(o):
            return True
    return False


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Ask modes and the types of relevant_args to carry out public_api(*args, **kwargs); TypeError when all decline."""
    cdef list found = []
    if not state().flags & TGX_NO_SUBCLASS:
        for o in relevant_args:
            if brings_function(o):
                _insert(found, o)
    return ask(public_api, None, found, args, kwargs)


def overloaded_args(relevant_args):
    """One argument of each type that is asked, in the order in which they are."""
    cdef list found = []
    for o in relevant_args:
        if brings_function(o):
            _insert(found, o)
    return found


def install(default, path_of, nowrap):
    """Take over what the layers above define: Tensor's `__torch_function__`, naming, getters that keep the class."""
    global _default, _path_of, _nowrap
    Tensor.__torch_function__ = default
    _default = _PyType_Lookup(<PyTypeObject *>Tensor, _NAME)
    _path_of, _nowrap = path_of, nowrap


def own_types(*types):
    """Classes of public callables: their instances are never taken for functions of another library."""
    _own_types.update(types)


def keep_open(function):
    """Mark a classmethod's function that runs code of its class: overrides stay on inside when a subclass overrides none."""
    _open.add(function)
