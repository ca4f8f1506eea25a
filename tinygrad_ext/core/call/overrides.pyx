# cython: language_level=3
"""The override protocol: modes innermost first, then the types among the arguments.

Types are asked from left to right, subclasses before their superclasses, each once; the first answer that is not
NotImplemented counts, and a TypeError names all who declined. Which arguments count is told by `overloaded`.
"""
from weakref import WeakSet

from cpython.object cimport PyObject, PyTypeObject
from tinygrad_ext.core.call.dispatch cimport TGX_MODES, TGX_NO_SUBCLASS, state, tgx_state, uint32_t
from tinygrad_ext.core.call.mode_stack cimport ModeStack, modes_on, stack_of
from tinygrad_ext.core.call.mode_stack import mode_stack
from tinygrad_ext.core.call.overloaded cimport function_of, insert_overloaded, is_registered, registered_for
from tinygrad_ext.core.data.tensor cimport Parameter, Tensor
from tinygrad_ext.core.call.unasked cimport run_plain
from tinygrad_ext.core.call.unasked import _disabled_torch_function_impl, redispatch_function

cdef extern from "Python.h":
    PyTypeObject *Py_TYPE(object o)
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)
    int Py_EnterRecursiveCall(const char *where) except -1
    void Py_LeaveRecursiveCall()

cdef PyObject *_default = NULL          # the `__torch_function__` that subclasses of Tensor inherit
cdef object _path_of                    # names a function in messages
cdef object _common_type = None         # types -> the type in which siblings meet, or None
cdef object _plain_methods = WeakSet()  # types whose `__torch_function__` is bound to a value: told about
cdef object _watch = None               # overrides.watch while somebody watches who is asked


cdef object ask(object func, tuple types, list found, tuple args, dict kwargs):
    """The answer of the first handler that has one. When all decline, TypeError.

    Where only handlers of types that know nothing of the protocol were asked, NotImplemented instead: the call goes on
    as if nobody had registered them, so that a plugin takes nothing from a program that works without it.
    `types` None stands for the types of `found`. Each handler gets a dict of its own, so what one does to it is not
    seen by the next.
    """
    cdef tgx_state *st = state()
    cdef object result
    cdef dict own
    cdef Py_ssize_t i
    if types is None:
        types = tuple([type(o) for o in found])
    Py_EnterRecursiveCall(" in __torch_function__")
    try:
        if modes_on(st):
            result = _ask_modes(st, func, types, args, kwargs)
            if result is not NotImplemented:
                return result
        for i in range(len(found)):
            # nobody comes after the last one
            own = kwargs if i == len(found) - 1 and _common_type is None else kwargs.copy()
            result = _ask_type(found[i], func, types, args, own)
            if result is not NotImplemented:
                if _watch is not None:
                    _watch.unasked(func, [("registered handler" if is_registered(o) else "type", type(o))
                                           for o in found[i + 1:]])
                return result
        to = None if _common_type is None else _common_type([type(o) for o in found])
        if to is not None:
            result = _call_handler("common type", to, to.__torch_function__, func, (to,), args, kwargs)
            if result is not NotImplemented:
                return result
    finally:
        Py_LeaveRecursiveCall()
    if found and not modes_on(st) and _all_registered(found):
        return NotImplemented
    raise _unhandled(func, found)


cdef bint _all_registered(list found) except -1:
    for o in found:
        if not is_registered(o):
            return False
    return True


cdef object _ask_type(object o, object func, tuple types, tuple args, dict kwargs):
    if _watch is None and function_of(Py_TYPE(o)) == _default:
        return run_plain(type(o), func, types, args, kwargs)
    if is_registered(o):
        handler = registered_for(type(o))
        if handler is None:
            return NotImplemented       # taken away by the one asked before
        return _call_handler("registered handler", type(o), handler, func, types, args, kwargs)
    handler = o.__torch_function__
    if getattr(handler, "__self__", None) is o:
        _warn_of_plain_method(type(o))
    return _call_handler("type", type(o), handler, func, types, args, kwargs)


cdef int _warn_of_plain_method(object t) except -1:
    """Say it once a type: the handler answers for all values of the type, and the one it is bound to is arbitrary."""
    if t in _plain_methods:
        return 0
    _plain_methods.add(t)
    import warnings
    warnings.warn("Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please "
                  f"define it as a classmethod: {t.__module__}.{t.__qualname__}", UserWarning, stacklevel=1)
    return 0


cdef object _call_handler(str kind, object who, object handler, object func, tuple types, tuple args, dict kwargs):
    cdef PyObject *given[4]
    if _watch is not None:
        return _watch.ask(kind, who, func, handler, types, args, kwargs)
    given[0], given[1], given[2], given[3] = <PyObject *>func, <PyObject *>types, <PyObject *>args, <PyObject *>kwargs
    return PyObject_Vectorcall(handler, given, 4, NULL)


cdef object _ask_modes(tgx_state *st, object func, tuple types, tuple args, dict kwargs):
    """Modes innermost first; each is off while its handler runs."""
    cdef ModeStack stack = stack_of(st)
    cdef list off = []
    cdef Py_ssize_t left
    stack.running += 1
    try:
        while stack.modes:
            mode = stack.modes.pop()
            off.append((mode, len(stack.modes)))
            _switch(st, len(stack.modes) > 0)
            result = _call_handler("mode", mode, mode.__torch_function__, func, types, args, kwargs.copy())
            if result is not NotImplemented:
                return result
        return NotImplemented
    finally:
        # a handler that entered a mode and did not leave it loses it here
        for mode, left in reversed(off):
            del stack.modes[left:]
            stack.modes.append(mode)
        stack.running -= 1
        _switch(st, True)


cdef inline void _switch(tgx_state *st, bint on) noexcept:
    """Whether there is a mode to ask."""
    if on:
        st.flags |= TGX_MODES
    else:
        st.flags &= ~<uint32_t>TGX_MODES


# ---- everybody declined ----------------------------------------------------------------------------------------------

cdef object _unhandled(object func, list found):
    cdef tgx_state *st = state()
    name = _path_of(func)
    types = [type(o) for o in found]
    who = [f"mode {m!r}" for m in reversed(mode_stack())] if modes_on(st) else []
    text = f"no implementation found for '{name}'"
    if types:
        text += f" on types that implement __torch_function__: {types}"
        who += [f"type {t.__module__}.{t.__qualname__}" for t in types]
    error = TypeError(f"{text}. Multiple dispatch failed: NotImplemented was returned by {', '.join(who)}. Let one of "
                      f"them handle {name}.")
    error.declined = func               # how an operator tells this error from one of a handler's own
    return error


cdef bint all_declined(object error, object func) except -1:
    return getattr(error, "declined", None) is func


# ---- for the layers above ------------------------------------------------------------------------------------------

def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Ask modes and the types of relevant_args to carry out public_api(*args, **kwargs); TypeError when all decline.

    Where all who declined are handlers of types that they do not own, public_api itself carries the call out.
    """
    cdef list found = []
    if not state().flags & TGX_NO_SUBCLASS:
        for o in relevant_args:
            insert_overloaded(found, o)
    result = ask(public_api, None, found, args, kwargs)
    if result is NotImplemented:
        return redispatch_function(public_api, (), args, kwargs)
    return result


def set_lookups(*, common_type=None, watch=None):
    """Hand in what is asked beyond modes and types; see overrides/common.py and watch.py.

    Only what is given is set; False takes it out, so that a lookup costs nothing while there is nothing to find.
    """
    global _common_type, _watch
    if common_type is not None:
        _common_type = common_type or None
    if watch is not None:
        _watch = watch or None


def install(default, path_of):
    """Take over what the layers above define: Tensor's `__torch_function__`, and how messages name a function."""
    global _default, _path_of
    Tensor.__torch_function__ = default
    Parameter.__torch_function__ = _disabled_torch_function_impl    # what is computed of a subclass's is a plain tensor
    _default = function_of(<PyTypeObject *>Tensor)
    _path_of = path_of
