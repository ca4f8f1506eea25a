cdef object slot(str name)
cdef object slot_or_none(str name)
