# cython: language_level=3
"""The thread's grad modes, as the three small numbers that the engine reads.

They are read and set together, so that a context manager puts back exactly what it found, however modes are nested.
The managers that programs enter often are compiled: in Python an empty `no_grad` block cost as much as six small
operations. One that is decorator without brackets has a vectorcall slot, since a type's call may return a function
there. Users find them all in autograd/modes.py, where the rare ones are subclasses in Python.
"""
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from tinygrad_ext.core.call.decorated import decorated
from tinygrad_ext.core.call.dispatch cimport state, tgx_state

cdef extern from *:
    """
    static void tgx_call_of_type(PyObject *type, vectorcallfunc call) {
        ((PyTypeObject *)type)->tp_vectorcall = call;
    }
    """
    ctypedef object (*vectorcallfunc)(object, PyObject *const *, size_t, PyObject *)
    void tgx_call_of_type(object type, vectorcallfunc call)

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf) noexcept nogil

cdef extern from "vectorcall.h":
    void tgx_name_type(object type, const char *name)


def is_grad_enabled():
    """Whether this thread records operations for backward."""
    return not state().no_grad


def is_inference_mode_enabled():
    """Whether this thread is in inference mode."""
    return state().inference != 0


def is_anomaly_enabled():
    """Whether backward errors show where their forward was."""
    return state().anomaly != 0


def is_anomaly_check_nan_enabled():
    """Whether anomaly mode looks for NaN gradients."""
    return state().anomaly == 2


def get_modes():
    """(recording, inference, anomaly level) of this thread."""
    cdef tgx_state *st = state()
    return not st.no_grad, st.inference != 0, <int>st.anomaly


def set_modes(bint grad, bint inference, int anomaly):
    """Set all three."""
    cdef tgx_state *st = state()
    st.no_grad, st.inference, st.anomaly = not grad, inference, anomaly


def without_grad(function, *args):
    """function(*args), unrecorded."""
    cdef tgx_state *st = state()
    cdef bint before = st.no_grad
    st.no_grad = True
    try:
        return function(*args)
    finally:
        state().no_grad = before


# ---- context managers ----------------------------------------------------------------------------------------------

cdef struct Found:
    uint8_t no_grad
    uint8_t inference
    uint8_t anomaly


@cython.auto_pickle(False)
@cython.no_gc
@cython.freelist(8)
cdef class Mode:
    """Base: switches on entry, and back to what was on exit; one remembered state for each nesting.

    A subclass in Python says what it switches in `_switch(grad, inference, anomaly)`.
    """
    cdef Found first             # what the outermost entry found
    cdef list further            # what entries within it found, None before there is one
    cdef Py_ssize_t depth

    cdef int switch(self) except -1:
        self._switch(*get_modes())
        return 0

    cdef int save(self) except -1:
        cdef tgx_state *st = state()
        if self.depth == 0:
            self.first = Found(st.no_grad, st.inference, st.anomaly)
        else:
            if self.further is None:
                self.further = []
            self.further.append(get_modes())
        self.depth += 1
        return 0

    cdef int restore(self) except -1:
        cdef tgx_state *st = state()
        if self.depth == 0:
            raise IndexError(f"{type(self).__name__} is left more often than it was entered; use it in a `with`")
        self.depth -= 1
        if self.depth:
            set_modes(*self.further.pop())
        else:
            st.no_grad, st.inference, st.anomaly = self.first.no_grad, self.first.inference, self.first.anomaly
        return 0

    @cython.binding(False)
    def __enter__(self):
        self.save()
        self.switch()

    @cython.binding(False)
    def __exit__(self, kind=None, error=None, traceback=None):
        self.restore()

    def clone(self):
        """A fresh one of the same setting, for each call of a decorated function."""
        return type(self)()

    def __call__(self, fn):
        return decorated(self, fn)


@cython.no_gc
cdef class no_grad(Mode):
    """Operations inside are not recorded for backward. Also a decorator, with or without brackets."""

    cdef int switch(self) except -1:
        state().no_grad = True
        return 0


@cython.no_gc
cdef class enable_grad(Mode):
    """Operations inside are recorded for backward, also within no_grad."""

    cdef int switch(self) except -1:
        cdef tgx_state *st = state()
        st.no_grad = st.inference != 0
        return 0


@cython.no_gc
cdef class inference_mode(Mode):
    """No recording, and the tensors made inside can never enter a graph."""
    cdef readonly bint mode

    def __init__(self, bint mode=True):
        self.mode = mode

    cdef int switch(self) except -1:
        cdef tgx_state *st = state()
        st.no_grad = st.inference = self.mode
        return 0

    def clone(self):
        return inference_mode(self.mode)


@cython.no_gc
cdef class set_grad_enabled(Mode):
    """Switch recording on or off, at once; as a `with` or decorator, for its extent only."""
    cdef readonly bint mode

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}")
        self.mode = mode
        self.save()
        self.switch()

    cdef int switch(self) except -1:
        state().no_grad = not self.mode
        return 0

    @cython.binding(False)
    def __enter__(self):
        self.switch()

    @cython.binding(False)
    def __exit__(self, kind=None, error=None, traceback=None):
        self.depth = 1     # what it found when it was made comes back, however often it was entered
        self.restore()

    def __call__(self, fn):
        self.restore()
        return decorated(self, fn)

    def clone(self):
        return set_grad_enabled(self.mode)


cdef object argument(type cls, str name, PyObject *const *args, size_t nargsf, PyObject *names):
    """The one optional argument of a mode's call, None where it is left out."""
    cdef Py_ssize_t count = PyVectorcall_NARGS(nargsf) + (len(<tuple>names) if names is not NULL else 0)
    if count == 0:
        return None
    if count > 1:
        raise TypeError(f"{cls.__name__}() takes at most 1 argument, '{name}', but {count} were given")
    if names is not NULL and (<tuple>names)[0] != name:
        raise TypeError(f"{cls.__name__}() got an unexpected argument '{(<tuple>names)[0]}'; its only one is '{name}'")
    return <object>args[0]


cdef object call_no_grad(object cls, PyObject *const *args, size_t nargsf, PyObject *names):
    cdef object fn = argument(cls, "fn", args, nargsf, names)
    cdef no_grad mode = no_grad.__new__(no_grad)
    return mode if fn is None else mode(fn)


cdef object call_enable_grad(object cls, PyObject *const *args, size_t nargsf, PyObject *names):
    cdef object fn = argument(cls, "fn", args, nargsf, names)
    cdef enable_grad mode = enable_grad.__new__(enable_grad)
    return mode if fn is None else mode(fn)


cdef object call_inference_mode(object cls, PyObject *const *args, size_t nargsf, PyObject *names):
    """`mode` may be the function to decorate."""
    cdef object given = argument(cls, "mode", args, nargsf, names)
    cdef inference_mode mode = inference_mode.__new__(inference_mode)
    mode.mode = given is not False
    return mode if given is None or isinstance(given, bool) else mode(given)


tgx_call_of_type(no_grad, call_no_grad)
tgx_call_of_type(enable_grad, call_enable_grad)
tgx_call_of_type(inference_mode, call_inference_mode)
tgx_name_type(no_grad, "tinygrad_ext.autograd.modes.no_grad")
tgx_name_type(enable_grad, "tinygrad_ext.autograd.modes.enable_grad")
tgx_name_type(inference_mode, "tinygrad_ext.autograd.modes.inference_mode")
tgx_name_type(set_grad_enabled, "tinygrad_ext.autograd.modes.set_grad_enabled")
