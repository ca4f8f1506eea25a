"""Which nodes a pass can come to."""

cdef dict needed_for(list roots, dict targets)
