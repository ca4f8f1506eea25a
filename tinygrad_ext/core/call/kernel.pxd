"""The C interface of kernels, kernels/tgx.h, as the caller of kernels uses it."""
from tinygrad_ext.core.loops.blas cimport tgx_blas
from tinygrad_ext.core.data.types cimport int8_t, int32_t, int64_t, tgx_scalar, uint8_t, uint32_t, uint64_t

cdef extern from "tgx.h" nogil:
    enum:
        TGX_MAX_ARGUMENTS
        TGX_SMALL
        TGX_FAILED
        TGX_MORE
        TGX_NATURAL
        TGX_READS
        TGX_APART
        TGX_JOINS
        TGX_ANY_LAYOUT
        TGX_SERIAL
        TGX_REPEATS
        TGX_REPEATS_INPLACE
        TGX_MAX_DIMS
    enum tgx_tag:
        TGX_NONE, TGX_TENSOR, TGX_TENSORS, TGX_INT, TGX_INTS, TGX_FLOAT, TGX_FLOATS, TGX_NUMBER, TGX_STRING, TGX_POINTER, TGX_DTYPE
    enum tgx_number_kind:
        TGX_IS_BOOL, TGX_IS_INT, TGX_IS_FLOAT, TGX_IS_COMPLEX
    enum tgx_origin:
        TGX_FRESH, TGX_VIEW, TGX_WRITES, TGX_SAME, TGX_ABSENT, TGX_OVER
    enum tgx_error_kind:
        TGX_RUNTIME_ERROR, TGX_INDEX_ERROR, TGX_TYPE_ERROR, TGX_VALUE_ERROR, TGX_NOT_IMPLEMENTED_ERROR, TGX_MEMORY_ERROR
    ctypedef struct tgx_tensor:
        char *data
        int64_t *sizes
        int64_t *strides
        int64_t count
        int32_t rank
        int8_t dtype
        uint8_t device
        uint8_t flags
    ctypedef struct tgx_value:
        uint8_t tag
        int8_t want
        uint8_t dense
        uint8_t kind
        int32_t n
        tgx_tensor *tensor
        tgx_tensor **tensors
        int64_t i
        int64_t *ints
        double f
        double *floats
        tgx_scalar *number
        const char *text
        void *pointer
    ctypedef struct tgx_output:
        uint8_t origin
        uint8_t of
        int8_t dtype
        int8_t via
        int32_t rank
        int64_t *sizes
        int64_t *strides
        int64_t offset
        tgx_tensor *tensor
        int64_t *dims
    ctypedef struct tgx_services:
        int (*parallel_for)(int (*fn)(void *, ptrdiff_t, ptrdiff_t) noexcept nogil, void *, ptrdiff_t, ptrdiff_t) noexcept nogil
        int (*num_threads)() noexcept nogil
        int (*processors)() noexcept nogil
        int (*mark_region)(int inside) noexcept nogil
        int (*copy)(const tgx_tensor *to, const tgx_tensor *source) noexcept nogil
        int64_t (*offset)(const tgx_tensor *t, int64_t *nbytes) noexcept
        const tgx_blas *(*blas)() except NULL nogil
        int (*default_dtype)() noexcept
    ctypedef struct tgx_call:
        const tgx_services *services
        const char *title
        tgx_value *args
        const tgx_tensor *target
        int32_t nargs
        int32_t noutputs
        int32_t capacity
        int32_t room
        uint64_t needs
        uint64_t changes
        int64_t work
        int64_t scratch_bytes
        void *scratch
        uint8_t meta
        uint8_t error_kind
        uint8_t warned
        uint8_t warning
        tgx_output *outputs
        char *text
    ctypedef int (*tgx_step)(tgx_call *c) noexcept nogil
    ctypedef struct tgx_kernel:
        const char *name
        tgx_step shape
        tgx_step run
        uint32_t flags

cdef extern from "halves.h" nogil:
    int tgx_ask(const tgx_kernel *kernel, tgx_call *c)
