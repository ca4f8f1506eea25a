# cython: language_level=3
"""The modes of a thread: a stack that stands in the thread's override slot while it is not empty."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from tinygrad_ext.core.dispatch cimport TGX_SLOT_OVERRIDE, state, tgx_state, uint32_t

cdef enum:
    OVERRIDE = 1 << TGX_SLOT_OVERRIDE


cdef class ModeStack:
    """What stands in the override slot of a thread that has modes."""


def push_mode(mode, bint outermost=False):
    """Make mode the innermost of this thread, or the outermost."""
    cdef tgx_state *st = state()
    cdef ModeStack stack
    if st.handler[TGX_SLOT_OVERRIDE] == NULL:
        stack = ModeStack.__new__(ModeStack)
        stack.modes = []
        Py_INCREF(stack)
        st.handler[TGX_SLOT_OVERRIDE] = <PyObject *>stack
    stack = _stack()
    stack.modes.insert(0 if outermost else len(stack.modes), mode)
    st.flags |= OVERRIDE


def pop_mode(mode=None):
    """Take off the innermost mode, or the innermost entry of the one given; returns it."""
    cdef ModeStack stack = _stack()
    cdef tgx_state *st = state()
    cdef Py_ssize_t i
    modes = [] if stack is None else stack.modes
    for i in range(len(modes) - 1, -1, -1):
        if mode is None or modes[i] is mode:
            found = modes.pop(i)
            if not modes:
                st.flags &= ~<uint32_t>OVERRIDE
                if not stack.running:
                    st.handler[TGX_SLOT_OVERRIDE] = NULL
                    Py_XDECREF(<PyObject *>stack)
            return found
    raise RuntimeError("there is no mode to leave" if mode is None else
                       f"{mode!r} is not active in this thread: it was taken off before its `with` ended, or entered "
                       "by another thread")


cdef ModeStack _stack():
    cdef PyObject *handler = state().handler[TGX_SLOT_OVERRIDE]
    if handler == NULL:
        return None
    if type(<object>handler) is not ModeStack:
        raise RuntimeError("the override slot of this thread is taken by another handler than a mode")
    return <ModeStack>handler


def mode_stack():
    """The modes of this thread, outermost first."""
    cdef PyObject *handler = state().handler[TGX_SLOT_OVERRIDE]
    if handler == NULL:
        return []
    return list((<ModeStack>handler).modes) if type(<object>handler) is ModeStack else [<object>handler]
