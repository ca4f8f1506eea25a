"""Steps: what the nodes of a graph become when sizes, strides and dtypes are known."""
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.call.kernel cimport tgx_call, tgx_kernel, tgx_tensor
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport int8_t, int64_t, tgx_loop, tgx_scalar, uint32_t
from tinygrad_ext.graph.stacks cimport Form

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
    cdef bint mark                  # no memory: it says that a number is known
    cdef int phase                  # of the step of a group that writes it (see emission.pyx), and of the last that reads it
    cdef int read_in
    cdef int value                  # its number in a run that becomes machine code, from 1; 0: none
    cdef public int row             # of a popped value, the pop that says where it lies: one more than its number; 0: none

cdef class Number:
    cdef public int slot
    cdef public object value        # seen while planning, or one of its type
    cdef public list after          # Buffers that stand for the elements it follows from, in the order of steps

cdef class Heap:                    # stands for a Pile
    cdef readonly int number
    cdef readonly bint given        # it is passed in: no row is added
    cdef readonly Form form
    cdef readonly list inner        # Heaps
    cdef public bint used

cdef class Stacked:                 # stands for a stack
    cdef readonly object number     # of its last row: a Number, or -1
    cdef readonly Heap heap         # or None: nothing was pushed so far

cdef class Way:                     # stands for a result that may be what was passed in
    cdef readonly Tensor own        # else
    cdef readonly Number number     # which of the sources it is, or -1
    cdef readonly list sources

cdef class Constant:                # an element, repeated
    cdef char *data
    cdef int size

cdef class Step:
    cdef public str code            # "tile", "raw", "copy", "zero", "move", "number", "control", "push", "pop"
    cdef public int node
    cdef public list reads          # (Buffer, whether element i of the result needs element i of it alone)
    cdef public list writes         # Buffers
    cdef public bint effect         # it is done for more than its results
    cdef public bint changes        # it writes to a buffer that another step has made
    cdef public object key          # of a tile: sizes and strides of the result
    cdef public list operands       # of a tile: the result, then what is read: Tensors and Constants
    cdef public int64_t work
    cdef public str op              # name, for tables
    cdef public object said         # (the node it comes from, what that was called with)
    # of a copy to what is passed in, or to a slot: (that Buffer, the one with the same bytes); or None
    cdef public tuple over
    cdef tgx_loop loop
    cdef tgx_scalar *aux
    cdef uint32_t varying           # bits of those that are set anew in each run
    cdef int8_t dtype               # that its loop computes in
    cdef bint casts                 # it is a copy, with conversion
    cdef bint emits                 # it can become machine code
    cdef int phase                  # in its group, see emission.pyx
    cdef void *formula              # of its elements, see kernels/emit.h; set by who looks for it
    cdef bint apart                 # its loop may not write over what it reads
    cdef const tgx_kernel *kernel
    cdef tgx_call *call
    cdef tgx_tensor *to
    cdef tgx_tensor *source
    cdef void *target
    cdef const void *origin
    cdef size_t nbytes
    cdef public int opcode          # of a number or control: kernels/program.h; LABEL
    cdef public int which           # function; of a label: the loop that begins, or less than zero that ends
    cdef public int out             # registers; b of a control step is a label
    cdef public int a
    cdef public int b
    cdef public Heap heap           # of a push or pop
    cdef public list numbers        # that a push keeps

cdef class Recording:
    cdef readonly Room room
    cdef readonly list steps
    cdef readonly list fixups       # (address of a pointer, Buffer, offset)
    cdef readonly dict constants    # (type, text) -> Number that has this value from the start
    cdef readonly list calls        # (function, arguments, Number)
    cdef readonly list places       # addresses of tgx_cells
    cdef readonly list windows      # addresses of tgx_windows
    cdef readonly list rows         # addresses of tgx_rows
    cdef readonly list heaps
    cdef public int node            # that is lowered now
    cdef public str name            # of the graph
    cdef readonly int nslots
    cdef readonly int nlabels
    cdef readonly int nloops

    cdef Step _computed(self, int code, Number made, list operands, str name)
    cdef int register(self, Step step, object o) except -1
    cdef int _waits(self, Step step, Number number) except -1
    cdef int put(self, Step step, Number number, void *where, int dtype) except -1

cdef class Lowering(Recording):
    cdef readonly list updated      # numbers of the bases that are written to at the end
    cdef readonly list kept
    cdef readonly bint serial       # it draws from the default generator
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
cdef int kind_of(object value) except -1
