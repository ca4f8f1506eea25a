# cython: language_level=3
"""Which arguments of a call count: those whose type has a `__torch_function__`, or a handler somebody registered.

What belongs to a type is read from the type, as Python does with special methods, so an object whose `__getattr__`
answers everything is no override. A plain call never comes here: one test of the thread's word and of the arguments'
exact types sends it straight to its kernel.
"""
import sys

from cpython.object cimport Py_TPFLAGS_HEAPTYPE, PyObject, PyTypeObject
from tinygrad_ext.core.call.dispatch cimport TGX_NO_SUBCLASS, TGX_SKIP_ONE, state, tgx_state, uint32_t
from tinygrad_ext.core.call.elsewhere cimport from_elsewhere
from tinygrad_ext.core.call.mode_stack cimport modes_on
from tinygrad_ext.core.data.tensor cimport Carried, Tensor, exact
from tinygrad_ext.core.call.unasked import _disabled_torch_function_impl

cdef extern from "Python.h":
    PyObject *_PyType_Lookup(PyTypeObject *type, object name)      # borrowed; NULL without an error
    PyTypeObject *Py_TYPE(object o)
    bint PyType_IsSubtype(PyTypeObject *a, PyTypeObject *b)
    Py_ssize_t PySequence_Fast_GET_SIZE(object o)
    PyObject *PySequence_Fast_GET_ITEM(object o, Py_ssize_t i)      # borrowed; of a list or tuple
    PyTypeObject PyLong_Type, PyFloat_Type, PyBool_Type, PyUnicode_Type, PyTuple_Type, PyList_Type, PySlice_Type, PyEllipsis_Type

cdef str _NAME = sys.intern("__torch_function__")
cdef str _DISPATCH = sys.intern("__torch_dispatch__")
cdef PyObject *_disabled = <PyObject *>_disabled_torch_function_impl
cdef object _handler_of = None          # type -> handler that somebody registered for it, or None
cdef set _without = set()               # types known to have none


# ---- one argument --------------------------------------------------------------------------------------------------

cdef PyObject *function_of(PyTypeObject *t) noexcept:
    """What the type says about overriding; NULL for nothing."""
    cdef PyObject *found = _PyType_Lookup(t, _NAME)
    if found == <PyObject *>None or found == _disabled:
        return NULL
    return found


cdef int brings_function(object o) except -1:
    cdef PyTypeObject *t = Py_TYPE(o)
    if exact(o) or t == &PyLong_Type or t == &PyFloat_Type or t == &PyTuple_Type or t == &PyList_Type:
        return 0
    if t == &PyUnicode_Type or t == &PyBool_Type or t == &PySlice_Type or t == &PyEllipsis_Type or o is None:
        return 0
    if type(o) is Carried:
        return 1                # no override, and no plain operand: its level is asked
    # asked about our functions, PyTorch's own tensors would call them again, forever
    if function_of(t) == NULL or from_elsewhere(o):
        return _has_handler(o, t) or (isinstance(o, Tensor) and dispatches(t))
    return 1


cdef int dispatches(PyTypeObject *t) except -1:
    """Whether a type of tensors has a `__torch_dispatch__` of its own: such a tensor is no override, and no plain operand."""
    cdef PyObject *found = _PyType_Lookup(t, _DISPATCH)
    return found != NULL and found != <PyObject *>None and found != _PyType_Lookup(<PyTypeObject *>Tensor, _DISPATCH)


cdef bint _overrides(object o) except -1:
    """Whether o's type, or a handler registered for it, is asked about public functions."""
    cdef PyTypeObject *t = Py_TYPE(o)
    return brings_function(o) and type(o) is not Carried and (
        function_of(t) != NULL or not isinstance(o, Tensor) or _has_handler(o, t))


cdef bint _has_handler(object o, PyTypeObject *t) except -1:
    """Whether somebody registered a handler for o's type."""
    cdef bint lasting = not t.tp_flags & Py_TPFLAGS_HEAPTYPE       # a type of C code, such as NumPy's scalars
    if _handler_of is None or (lasting and <object>t in _without) or isinstance(o, type):
        return False
    if state().flags & NO_FOREIGN:
        return False
    if _handler_of(<object>t) is not None:
        return True
    if lasting:
        _without.add(<object>t)
    return False


cdef object registered_for(object t):
    return None if _handler_of is None else _handler_of(t)


cdef bint is_registered(object o) except -1:
    return function_of(Py_TYPE(o)) == NULL or (_handler_of is not None and from_elsewhere(o))


def set_handler_of(lookup):
    """Hand in type -> registered handler or None; None takes it out, so that it costs nothing while there is none."""
    global _handler_of
    _handler_of = lookup
    _without.clear()


# ---- the arguments of a call ---------------------------------------------------------------------------------------

cdef int insert_overloaded(list found, object o, int depth=0) except -1:
    """Put o where it is asked, if it is and no other of its type stands in found; else the members of a list."""
    cdef PyTypeObject *t = Py_TYPE(o)
    cdef Py_ssize_t i, at = len(found)
    if type(o) is Carried:
        return 0
    if not _overrides(o):
        if depth and isinstance(o, (list, tuple)):
            for item in o:
                insert_overloaded(found, item, depth - 1)
        return 0
    for i in range(len(found)):
        if Py_TYPE(found[i]) == t:
            return 0
        if at == len(found) and PyType_IsSubtype(t, Py_TYPE(found[i])):
            at = i
    found.insert(at, o)
    return 0


cdef list overloaded(PyObject **args, Py_ssize_t n, int depth=1):
    cdef list found = []
    cdef Py_ssize_t i
    for i in range(n):
        insert_overloaded(found, <object>args[i], depth)
    return found


cdef bint holds_overloaded(object o, int depth) except -1:
    cdef Py_ssize_t i = 0
    if not isinstance(o, (list, tuple)):
        return False
    while i < PySequence_Fast_GET_SIZE(o):      # a loop over an object of either type would make an iterator
        item = <object>PySequence_Fast_GET_ITEM(o, i)
        if brings_function(item) or (depth > 1 and isinstance(item, (list, tuple)) and holds_overloaded(item, depth - 1)):
            return True
        i += 1
    return False


cdef bint must_ask(PyObject **args, Py_ssize_t n) except -1:
    cdef tgx_state *st = state()
    cdef Py_ssize_t i
    for i in range(n):
        if type(<object>args[i]) is Carried:
            return True
    if st.below:
        return False
    if modes_on(st) or st.flags & TGX_SKIP_ONE:
        return True
    if st.flags & TGX_NO_SUBCLASS:
        return False
    for i in range(n):
        o = <object>args[i]
        if not exact(o) and (_overrides(o) or holds_overloaded(o, 1)):
            return True
    return False


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
        if _overrides(o):
            return True
    return False
