"""C types by width, the numbers and predicates of the table, and what a pointwise loop takes, for every compiled module."""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from tinygrad_ext.core.data.table_gen cimport *

cdef extern from "types.h" nogil:
    cdef enum tgx_error:
        TGX_OK, TGX_ZERO_DIVISION, TGX_NEGATIVE_POWER, TGX_INDEX, TGX_INTERRUPTED, TGX_NO_MEMORY, TGX_BAD_VALUE
    cdef enum:
        TGX_MAX_DIMS
        TGX_MAX_OPERANDS
        TGX_ABOVE
    ctypedef struct tgx_scalar:
        double f
        double im
        int64_t i
        int64_t given
    ctypedef int (*tgx_loop)(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) noexcept nogil
    float tgx_bf16_to_f32(uint16_t h)
    uint16_t tgx_f32_to_bf16(float f)
    float tgx_f16_to_f32(uint16_t h)
    uint16_t tgx_f32_to_f16(float f)

cdef inline int wide_of(int coded) noexcept nogil:
    """What a dtype that no kernel computes in is computed in."""
    return TGX_C64 if coded == TGX_C32 else TGX_F32
