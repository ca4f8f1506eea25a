"""The modes of a thread."""
from tinygrad_ext.core.call.dispatch cimport TGX_MODES, TGX_NO_MODES, tgx_state

cdef inline bint modes_on(tgx_state *st) noexcept:
    """Whether a mode sees calls."""
    return st.flags & (TGX_MODES | TGX_NO_MODES) == TGX_MODES

cdef class ModeStack:
    cdef list modes                 # outermost first; a mode is taken off while its handler runs
    cdef int running                # handlers that have not returned

cdef ModeStack stack_of(tgx_state *st)      # None: the thread has no modes
