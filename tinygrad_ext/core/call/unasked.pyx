# cython: language_level=3
"""Running a function without asking about it: what Tensor does by itself, and the switches of the protocol.

A switch of the thread's word keeps types from being asked while the function runs, and the arguments stay what they are: an
instance of a subclass is a tensor to every kernel. Rejected: plain tensors in their place, for which lists would have
to be searched, and which would each be one more step in the history.
"""
cimport cython
from tinygrad_ext.core.call.dispatch cimport TGX_NO_MODES, TGX_NO_SUBCLASS, TGX_SKIP_ONE, state, tgx_state, uint32_t
from tinygrad_ext.core.call.elsewhere cimport is_ours
from tinygrad_ext.core.call.subclass cimport as_class, reclass
from tinygrad_ext.core.data.tensor cimport Parameter, Tensor

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object o)
    object PyObject_Call(object f, tuple args, dict kwargs)

cdef object _method_wrapper = type((0).__add__)
cdef set _open = set()                  # functions of classmethods that run their class's code, with overrides on
cdef object _nowrap = frozenset()       # getters whose result keeps its class


# ---- what Tensor does by itself ------------------------------------------------------------------------------------

def torch_function(cls, func, types, args=(), kwargs=None):
    """Run func and give its tensors this class: what subclasses of Tensor that define nothing do.

    NotImplemented where a type is not a superclass of this one: then that type should decide.
    """
    return run_plain(cls, func, types, tuple(args), {} if kwargs is None else kwargs)


cdef object run_plain(object cls, object func, object types, tuple args, dict kwargs):
    cdef bint ours = is_ours(func)
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


@cython.binding(False)
def _disabled_torch_function_impl(func, types, args=(), kwargs=None):
    """The `__torch_function__` of a type that does not override: the call runs as on plain tensors."""
    is_ours(func)       # PyTorch's own functions ask it too
    return _without_types(func, tuple(args), {} if kwargs is None else kwargs)


def set_nowrap(getters):
    """Hand in the getters whose result keeps its class."""
    global _nowrap
    _nowrap = frozenset(getters)


def keep_open(function):
    """Mark a classmethod's function that runs code of its class: overrides stay on inside when a subclass overrides none."""
    _open.add(function)


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


def redispatch_function(func, types, args, kwargs=None):
    """Run func without asking about this one call; calls inside it are asked about again."""
    cdef tgx_state *st = state()
    st.flags |= TGX_SKIP_ONE
    try:
        return PyObject_Call(func, tuple(args), {} if kwargs is None else dict(kwargs))
    finally:
        st.flags &= ~<uint32_t>TGX_SKIP_ONE
