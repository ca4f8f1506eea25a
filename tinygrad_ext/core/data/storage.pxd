from cpython.object cimport PyObject
from tinygrad_ext.core.data.types cimport int64_t, uint32_t, uint8_t

cdef class Storage:
    cdef char *data
    cdef size_t nbytes
    cdef size_t block           # bytes of the block behind data; 0 when an owner lends the memory
    cdef uint32_t version       # shared by all tensors of this storage but `.data` aliases
    cdef uint8_t readonly
    cdef uint8_t device_id      # of what the address means something to
    cdef uint8_t watched        # some graph saved it: in-place ops note their place
    cdef object owner
    cdef object __weakref__

cdef struct Books:              # in bytes; all under the GIL
    size_t in_use
    size_t peak
    size_t cached               # in free blocks
    size_t whole                # in tensors that are kept whole, see tensor_whole.pxi
    size_t allocations          # their number

cdef Books books
cdef void (*drop_whole)() noexcept                              # let go of those tensors; tensor.pyx fills it
cdef size_t bytes_in_use() noexcept nogil
cdef Storage new_storage(size_t nbytes)
cdef Storage borrow_storage(char *data, size_t nbytes, object owner, bint readonly)
cdef void let_go(PyObject *o) noexcept                          # Py_XDECREF that does not nest without end
