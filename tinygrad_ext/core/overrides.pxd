"""Who is asked about a call before it runs: modes, then `__torch_function__` of the argument types."""
from cpython.object cimport PyObject
from tinygrad_ext.core.dispatch cimport TGX_NO_MODES, TGX_SKIP_ONE, TGX_SLOT_OVERRIDE, tgx_state

cdef inline bint modes_on(tgx_state *st) noexcept:
    """Whether a mode, or another handler in the override slot, sees calls."""
    return st.flags & (1 << TGX_SLOT_OVERRIDE | TGX_NO_MODES) == 1 << TGX_SLOT_OVERRIDE

cdef int brings_function(object o) except -1                        # o's type has a `__torch_function__` to be asked
cdef bint from_elsewhere(object o) except -1                        # a tensor of PyTorch itself
cdef list overloaded(PyObject **args, Py_ssize_t n)                 # one argument of each type to ask, in their order
cdef bint must_ask(PyObject **args, Py_ssize_t n) except -1         # a call with these arguments is not a plain one
cdef object ask(object func, tuple types, list found, tuple args, dict kwargs)
