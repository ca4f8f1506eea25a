"""The modes of a thread."""
from tinygrad_ext.core.dispatch cimport TGX_NO_MODES, TGX_SLOT_OVERRIDE, tgx_state

cdef inline bint modes_on(tgx_state *st) noexcept:
    """Whether a mode, or another handler in the override slot, sees calls."""
    return st.flags & (1 << TGX_SLOT_OVERRIDE | TGX_NO_MODES) == 1 << TGX_SLOT_OVERRIDE

cdef class ModeStack:
    cdef list modes                 # outermost first; a mode is taken off while its handler runs
    cdef int running                # handlers that have not returned
