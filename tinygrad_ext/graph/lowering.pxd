"""Steps: what the nodes of a graph become when sizes, strides and dtypes are known."""
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.call.kernel cimport tgx_call, tgx_kernel, tgx_tensor
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport int64_t, tgx_loop, tgx_scalar

cdef class Room:                    # memory in C that goes with its last owner; zeroed
    cdef void **chunks              # the last one; each begins with the address of the one before
    cdef char *at
    cdef size_t left
    cdef void *take(self, size_t nbytes) except NULL
    cdef char *_chunk(self, size_t nbytes) except NULL

cdef class Buffer:
    cdef public int base            # number of the base address that it begins at; -1: it lies in the arena
    cdef public int64_t nbytes
    cdef public int64_t offset      # in the arena
    cdef public int first           # item of the schedule that writes it first, and the last that uses it
    cdef public int last
    cdef public bint local          # a value within one group: it has no memory at all
    cdef bint wanted                # some step that is kept reads it, or it is returned
    cdef bint kept                  # it is returned
    cdef int written                # one more than the item that has written it; 0: none
    cdef public Buffer into         # whose memory it takes over, or None
    cdef public Tensor constant     # that it belongs to, or None

cdef class Number:
    cdef public int slot
    cdef public object value        # seen while planning, or one of its type
    cdef public list after          # Buffers that stand for the elements it follows from, in the order of steps

cdef class Constant:                # an element, repeated
    cdef char *data
    cdef int size

cdef class Step:
    cdef public str code            # "tile", "raw", "copy", "zero", "move", "item"
    cdef public object number       # that an item is read into
    cdef public int node
    cdef public list reads          # (Buffer, whether element i of the result needs element i of it alone)
    cdef public list writes         # Buffers
    cdef public bint effect         # it is done for more than its results
    cdef public bint changes        # it writes to a buffer that another step has made
    cdef public object key          # of a tile: sizes and strides of the result
    cdef public list operands       # of a tile: the result, then what is read: Tensors and Constants
    cdef public int64_t work
    cdef public str op              # name, for tables
    cdef public tuple over          # of a raw step: (Buffer, Buffer of the result that may be written over it), or None
    cdef tgx_loop loop
    cdef tgx_scalar *aux
    cdef bint apart                 # its loop may not write over what it reads
    cdef const tgx_kernel *kernel
    cdef tgx_call *call
    cdef tgx_tensor *to
    cdef tgx_tensor *source
    cdef void *target
    cdef const void *origin
    cdef size_t nbytes

cdef class Lowering:
    cdef readonly Room room
    cdef readonly list steps
    cdef readonly list fixups       # (address of a pointer, Buffer, offset)
    cdef readonly list number_patches   # (Number, address, dtype; -1: a tgx_scalar)
    cdef readonly list number_steps     # (function, arguments, Number)
    cdef readonly list updated      # numbers of the bases that are written to at the end
    cdef readonly list kept
    cdef readonly bint serial       # it draws from the default generator
    cdef public int node            # that is lowered now
    cdef readonly int nslots
    cdef dict described
    cdef char *address

    cdef Tensor made(self, Tensor meta)
    cdef tgx_tensor *describe(self, Tensor t) except NULL
    cdef int fix(self, char **where, Tensor t) except -1
    cdef object pointwise(self, Op op, list args)
    cdef Tensor converted(self, Tensor t, int dtype, bint dense)
    cdef int copy(self, Tensor to, Tensor source) except -1
    cdef object value_of(self, object given, Step step, int dtype)

cdef Buffer buffer_of(Tensor t)
