# cython: language_level=3
"""The thread's grad modes, as the three small numbers that the engine reads.

They are read and set together, so that a context manager (autograd/modes.py) puts back exactly what it found, however
modes are nested. Rejected: context managers of their own here; entering one is rare, and they are decorators as well.
"""
from tinygrad_ext.core.call.dispatch cimport state, tgx_state


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
