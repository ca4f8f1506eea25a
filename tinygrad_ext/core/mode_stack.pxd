cdef class ModeStack:
    cdef list modes                 # outermost first; a mode is taken off while its handler runs
    cdef int running                # handlers that have not returned
