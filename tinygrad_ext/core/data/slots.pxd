cdef object slot(str name)
