"""kernels/plan.h, as the maker of plans uses it."""
from tinygrad_ext.core.call.kernel cimport tgx_call, tgx_kernel, tgx_services, tgx_tensor
from tinygrad_ext.core.data.types cimport int16_t, int32_t, int64_t, tgx_loop, tgx_scalar, uint8_t

cdef extern from "plan.h" nogil:
    enum:
        TGX_PLAN_RAW
        TGX_PLAN_TILE
        TGX_PLAN_COPY
        TGX_PLAN_ZERO
        TGX_PLAN_MOVE
        TGX_PLAN_CALL
        TGX_TILE_SCRATCH
    ctypedef struct tgx_operand:
        char *data
        ptrdiff_t step
        int32_t scratch
        int32_t size
        int32_t rank
        int64_t *sizes
        ptrdiff_t *strides
    ctypedef struct tgx_tile_op:
        tgx_loop loop
        const tgx_scalar *aux
        int32_t node
        int16_t n
        int16_t *operand
        ptrdiff_t *strides
    ctypedef struct tgx_tile:
        int64_t count
        int32_t tile
        int32_t nops
        int32_t noperands
        tgx_tile_op *ops
        tgx_operand *operands
    ctypedef struct Raw "struct { const tgx_kernel *kernel; tgx_call *call; }":
        const tgx_kernel *kernel
        tgx_call *call
    ctypedef struct Copy "struct { const tgx_tensor *to, *from; }":
        tgx_tensor *to
        tgx_tensor *source "from"
    ctypedef struct Move "struct { void *to; const void *from; size_t bytes; }":
        void *to
        const void *source "from"
        size_t nbytes "bytes"
    ctypedef struct Call "struct { int (*function)(void *context, int which); void *context; }":
        int (*function)(void *context, int which) noexcept nogil
        void *context
    ctypedef struct tgx_instruction:
        uint8_t code
        int32_t node
        int64_t work
        int64_t nanoseconds
        Raw raw
        tgx_tile *tile
        Copy copy
        Move move
        Call call
    ctypedef struct tgx_patch:
        char **where
        int64_t offset
        int32_t base
    ctypedef struct tgx_plan:
        const tgx_services *services
        tgx_instruction *instructions
        tgx_patch *patches
        char **bases
        int (*interrupted)() noexcept
        int32_t ninstructions
        int32_t npatches
        int32_t nbases
        int32_t profiled
        int32_t failed
        int32_t at
    int tgx_plan_run(tgx_plan *plan) nogil
