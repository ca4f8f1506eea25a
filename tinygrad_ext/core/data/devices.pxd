"""Memory of the devices that plugins bring."""
from tinygrad_ext.core.data.storage cimport Storage

cdef Storage storage_on(int device, size_t nbytes)
cdef int read_from(Storage s, const char *address, Storage into, size_t nbytes) except -1
cdef int write_to(Storage s, const char *address, Storage data, size_t nbytes) except -1
cdef int copy_bytes(Storage to, Storage source, size_t offset, size_t nbytes) except -1      # to the start of `to`
cdef int check_here(int device) except -1       # RuntimeError for a device that is gone
cdef bint is_of_now(Storage s) except -1        # not of a device of this name that went since
