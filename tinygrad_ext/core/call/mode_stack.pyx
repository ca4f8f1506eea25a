# cython: language_level=3
"""The modes of a thread: a stack that hangs on the thread's state while it is not empty.

A call asks one bit of the thread's word whether there is any. Rejected: a `threading.local` in Python, which every call
would have to look up to learn that there is none.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from tinygrad_ext.core.call.dispatch cimport TGX_MODES, state, tgx_state, uint32_t


cdef class ModeStack:
    """The modes of one thread, and how many of their handlers are running."""


cdef ModeStack stack_of(tgx_state *st):
    return None if st.modes == NULL else <ModeStack><object>st.modes


def push_mode(mode, bint outermost=False):
    """Make mode the innermost of this thread, or the outermost."""
    cdef tgx_state *st = state()
    cdef ModeStack stack = stack_of(st)
    if stack is None:
        stack = ModeStack.__new__(ModeStack)
        stack.modes = []
        Py_INCREF(stack)
        st.modes = <PyObject *>stack
    stack.modes.insert(0 if outermost else len(stack.modes), mode)
    st.flags |= TGX_MODES


def pop_mode(mode=None):
    """Take off the innermost mode, or the innermost entry of the one given; returns it."""
    cdef tgx_state *st = state()
    cdef ModeStack stack = stack_of(st)
    cdef Py_ssize_t i
    modes = [] if stack is None else stack.modes
    for i in range(len(modes) - 1, -1, -1):
        if mode is None or modes[i] is mode:
            found = modes.pop(i)
            if not modes:
                st.flags &= ~<uint32_t>TGX_MODES
                if not stack.running:
                    st.modes = NULL
                    Py_XDECREF(<PyObject *>stack)
            return found
    raise RuntimeError("there is no mode to leave" if mode is None else
                       f"{mode!r} is not active in this thread: it was taken off before its `with` ended, or entered "
                       "by another thread")


def mode_stack():
    """The modes of this thread, outermost first."""
    cdef ModeStack stack = stack_of(state())
    return [] if stack is None else list(stack.modes)
