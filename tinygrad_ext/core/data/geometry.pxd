"""What may become the sizes, strides and offset of a tensor."""
from tinygrad_ext.core.data.types cimport int64_t

cdef extern from "extent.h" nogil:
    int64_t ANY_ROOM "TGX_ANY_ROOM"                     # bytes that what has no memory may count
    int64_t LARGEST_MEMORY "TGX_LARGEST_MEMORY"         # bytes that a lender can have lent

# product of sizes, none of them negative
cdef int64_t counted(const int64_t *sizes, int rank, str what) except -1
# bytes from the start of a memory of `room` bytes to the end of the window; offset and strides in elements
cdef int64_t reach(const int64_t *sizes, const int64_t *strides, int rank, int64_t offset, int itemsize, int64_t room,
                   str what) except -1
# a sequence of numbers from outside, as many as dimensions
cdef int read_numbers(object given, int64_t *out, str what, str name) except -1
