"""Machine code of plans, as their maker lays it out; kernels/emit.h."""
from tinygrad_ext.core.data.types cimport TGX_MAX_OPERANDS, int8_t, int16_t, int64_t, tgx_scalar, uint8_t, uint32_t
from tinygrad_ext.graph.plan_h cimport tgx_emitted

cdef extern from "emit.h" nogil:
    ctypedef struct tgx_formula:
        pass
    ctypedef struct tgx_text:
        uint8_t *bytes
        size_t n
        int evex
    ctypedef struct tgx_emit_value:
        int8_t dtype
        uint8_t repeated
        int16_t operand
    ctypedef struct tgx_emit_step:
        const tgx_formula *formula
        const tgx_scalar *aux
        uint32_t varying
        int8_t dtype
        int8_t n
        int16_t value[TGX_MAX_OPERANDS]

cdef class Code:                        # of all groups of a plan; goes with it
    cdef tgx_text *text
    cdef char *memory
    cdef size_t nbytes
    cdef list waiting                   # (address of a pointer, where its code begins in the text)
    cdef bint run(self, const tgx_emit_step *steps, int nsteps, const tgx_emit_value *values, int nvalues, tgx_emitted *to) except -1
    cdef bint close(self) except -1
    cdef int _forget(self) noexcept

cdef int level() noexcept               # 0: nothing is emitted, 1: AVX2, 2: AVX-512
