"""kernels/plan.h, as the maker of plans uses it."""
from tinygrad_ext.core.call.kernel cimport tgx_call, tgx_kernel, tgx_services, tgx_tensor
from tinygrad_ext.core.data.types cimport int16_t, int32_t, int64_t, tgx_loop, tgx_scalar, uint8_t, uint16_t, uint32_t

cdef extern from "program.h" nogil:
    enum:
        TGX_CODE_END
        TGX_CODE_NONE
        TGX_CODE_STEP
        TGX_CODE_RAW
        TGX_CODE_SMALL
        TGX_CODE_CALL
        TGX_CODE_FAIL
        TGX_CODE_JUMP
        TGX_CODE_UNLESS
        TGX_CODE_NEXT
        TGX_CODE_LOAD
        TGX_CODE_PUT
        TGX_CODE_WINDOW
        TGX_CODE_PUSH
        TGX_CODE_POP
        TGX_CODE_MOVE
        TGX_CODE_ADD
        TGX_CODE_SUB
        TGX_CODE_MUL
        TGX_CODE_FLOORDIV
        TGX_CODE_MOD
        TGX_CODE_POW
        TGX_CODE_NEG
        TGX_CODE_ABS
        TGX_CODE_MAX
        TGX_CODE_MIN
        TGX_CODE_AND
        TGX_CODE_OR
        TGX_CODE_XOR
        TGX_CODE_LSHIFT
        TGX_CODE_RSHIFT
        TGX_CODE_INVERT
        TGX_CODE_LT
        TGX_CODE_LE
        TGX_CODE_EQ
        TGX_CODE_NE
        TGX_CODE_TRUEDIV
        TGX_CODE_FADD
        TGX_CODE_FSUB
        TGX_CODE_FMUL
        TGX_CODE_FDIV
        TGX_CODE_FFLOORDIV
        TGX_CODE_FMOD
        TGX_CODE_FPOW
        TGX_CODE_FNEG
        TGX_CODE_FABS
        TGX_CODE_FMAX
        TGX_CODE_FMIN
        TGX_CODE_FLT
        TGX_CODE_FLE
        TGX_CODE_FEQ
        TGX_CODE_FNE
        TGX_CODE_FLOOR
        TGX_CODE_CEIL
        TGX_CODE_ROUND
        TGX_CODE_MATH
        TGX_CODE_ISNAN
        TGX_CODE_ISINF
        TGX_CODE_ISFINITE
        TGX_CODE_FLOAT
        TGX_CODE_EXACT
        TGX_CODE_INT
        TGX_CODE_TRUTH
        TGX_CODE_FTRUTH
        TGX_CODE_NOT
        TGX_CODE_UNLESS_LT
        TGX_KIND_INT
        TGX_KIND_FLOAT
        TGX_KIND_BOOL
        TGX_KIND_COMPLEX
    ctypedef struct tgx_number:
        int64_t i
        double f
        double im
    ctypedef struct tgx_code:
        uint16_t code
        uint16_t which
        int32_t to
        int32_t a
        int32_t b
    ctypedef struct tgx_cell:
        char *data
        int32_t dtype
        int32_t kind
    ctypedef struct tgx_window:
        char *data
        char **where
        int64_t count
        ptrdiff_t stride

cdef extern from "stacks.h" nogil:
    ctypedef struct tgx_pile:
        char **chunks
        int64_t count
        int64_t room
        size_t row_bytes
        int32_t shift
        void *owner
    ctypedef struct tgx_row_number:
        int64_t offset
        int32_t slot
        int32_t size
    ctypedef struct tgx_row_part:
        int64_t offset
        size_t bytes
        const char *data
        char **where
    ctypedef struct tgx_row:
        int32_t pile
        int32_t nnumbers
        int32_t nparts
        tgx_row_number *numbers
        tgx_row_part *parts
    char *tgx_row_of(const tgx_pile *pile, int64_t which)

cdef extern from "plan.h" nogil:
    enum:
        TGX_PLAN_RAW
        TGX_PLAN_TILE
        TGX_PLAN_SMALL
        TGX_PLAN_COPY
        TGX_PLAN_ZERO
        TGX_PLAN_MOVE
        TGX_TILE_SCRATCH
        TGX_LINE
        TGX_FEW_WORDS
    ctypedef struct tgx_operand
    ctypedef void (*tgx_spread)(uint32_t *to, const tgx_operand *o) noexcept nogil
    ctypedef struct tgx_operand:
        ptrdiff_t step
        int32_t scratch
        int32_t size
        int32_t rank
        int64_t *sizes
        ptrdiff_t *strides
        const char *source "from"
        tgx_spread spread
        const uint8_t *index
        int32_t reach, words
    tgx_spread tgx_spread_here() noexcept
    ctypedef void (*tgx_emitted)(char **at, int64_t n) noexcept nogil
    ctypedef struct tgx_tile_op:
        tgx_loop loop
        const tgx_scalar *aux
        tgx_emitted code
        int16_t n
        int16_t *operand
        ptrdiff_t *strides
    ctypedef struct tgx_tile:
        int64_t count
        int32_t tile
        int32_t nops
        int32_t noperands
        int32_t nbrought
        int16_t *brought
        tgx_tile_op *ops
        tgx_operand *operands
        char **at
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
    ctypedef struct tgx_instruction:
        uint8_t code
        int64_t work
        int64_t nanoseconds
        Raw raw
        tgx_tile *tile
        Copy copy
        Move move
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
        const tgx_code *program
        tgx_number *numbers
        tgx_cell **places
        tgx_window **windows
        tgx_row **rows
        tgx_pile **piles
        int (*grow)(tgx_pile *pile) noexcept
        int (*call)(void *context, int which) noexcept nogil
        void *context
        int32_t ninstructions
        int32_t npatches
        int32_t nbases
        int32_t profiled
        void (*seen)(void *watcher, int32_t which, int64_t begin, int64_t end) noexcept nogil
        void *watcher
        int32_t at
    int tgx_plan_run(tgx_plan *plan) nogil
