from cpython.object cimport PyObject
from tinygrad_ext.core.data.types cimport int8_t, int64_t, TGX_MOST, is_coded

cdef class dtype:
    cdef readonly str name
    cdef readonly int id
    cdef readonly int itemsize
    cdef readonly bint is_floating_point
    cdef readonly bint is_complex
    cdef readonly bint is_signed
    cdef readonly str typecode

cdef enum:
    CPU = 0                     # numbers of devices; those of plugins follow
    META = 1                    # sizes and dtype without elements
    CODED = 255                 # the cpu, with elements that no kernel reads: those of a dtype that a plugin brought
    FLIPPED = 252               # from here up to CODED: the cpu, with elements that are read with their signs flipped

cdef class device:
    cdef readonly str type
    cdef readonly object index
    cdef readonly int id

cdef PyObject *DTYPES[TGX_MOST]         # the dtype objects by number, owned for the life of the process
cdef int default_id() noexcept nogil
cdef int promoted(int a, int b) except -2              # the dtype of Python floats, in this thread

cdef int dtype_id(object d) except -1
cdef int device_id(object d) except -1
cdef object dtype_of(int id)
cdef int complex_of(int real) noexcept
cdef int real_of(int pair) noexcept
cdef object device_of(int id)
cdef object make_size(int64_t *shape, int ndim)
cdef object SIZE                        # the class of what it makes

cdef inline bint is_row(object o) noexcept:
    """Whether o is a tuple whose items are what it says they are, as sizes are."""
    return type(o) is tuple or type(o) is SIZE

cdef inline int device_for(int dtype, int device) noexcept:
    """The number of a device as a tensor of this dtype has it: memory of this process goes by the dtype."""
    if is_host(device):
        return CODED if is_coded(dtype) else CPU
    return device

cdef inline bint is_host(int device) noexcept:
    """Whether it is memory of this process, however its elements are read."""
    return device == CPU or device >= FLIPPED

cdef inline int flips_of(int device) noexcept:
    """The conjugate bit (1) and the negative bit (2) of a tensor on a device: TGX_FLIP_CONJ and TGX_FLIP_NEG."""
    return device - FLIPPED + 1 if FLIPPED <= device < CODED else 0

cdef inline int device_flipped(int dtype, int flips) noexcept:
    """The device of a tensor of this process with these bits."""
    return FLIPPED + flips - 1 if flips else device_for(dtype, CPU)
