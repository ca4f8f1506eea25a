/* What the generated pointwise loops are made of: storage types, loading and storing, gathering, integer helpers.
 *
 * A storage tag (b8 u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128) names how an element lies in memory; expressions see
 * it as the computing type, float for the two halves. All bodies of a loop evaluate the same expression, so an
 * element's value does not depend on where it lies. An expression that can fail calls FAIL(code), which gives 0 and
 * marks the loop failed.
 *
 * Tried and left out: unrolling and software prefetch, which made every simple loop slower; and streaming stores, which
 * gain 20 to 25 % at 4M elements, lose as much depending on where the buffer lies, and make the next op read from memory. */
#ifndef TGX_LOOPS_H
#define TGX_LOOPS_H
#include <math.h>
#include "types.h"
#include "numbers.h"

typedef uint8_t S_b8; typedef uint8_t S_u8; typedef uint16_t S_u16; typedef uint32_t S_u32; typedef uint64_t S_u64;
typedef int8_t S_i8; typedef int16_t S_i16; typedef int32_t S_i32;
typedef int64_t S_i64; typedef uint16_t S_f16; typedef uint16_t S_bf16; typedef float S_f32; typedef double S_f64;
typedef tgx_c64 S_c64; typedef tgx_c128 S_c128;

#define GET_b8(p) ((p) != 0)
#define GET_u8(p) (p)
#define GET_u16(p) (p)
#define GET_u32(p) (p)
#define GET_u64(p) (p)
#define GET_i8(p) (p)
#define GET_i16(p) (p)
#define GET_i32(p) (p)
#define GET_i64(p) (p)
#define GET_f16(p) tgx_f16_to_f32(p)
#define GET_bf16(p) tgx_bf16_to_f32(p)
#define GET_f32(p) (p)
#define GET_f64(p) (p)
#define GET_c64(p) (p)
#define GET_c128(p) (p)
#define PUT_b8(v) ((v) != 0)
#define PUT_u8(v) ((uint8_t)(v))
#define PUT_u16(v) ((uint16_t)(v))
#define PUT_u32(v) ((uint32_t)(v))
#define PUT_u64(v) ((uint64_t)(v))
#define PUT_i8(v) ((int8_t)(v))
#define PUT_i16(v) ((int16_t)(v))
#define PUT_i32(v) ((int32_t)(v))
#define PUT_i64(v) ((int64_t)(v))
#define PUT_f16(v) tgx_f32_to_f16(v)
#define PUT_bf16(v) tgx_f32_to_bf16(v)
#define PUT_f32(v) (v)
#define PUT_f64(v) (v)
#define PUT_c64(v) (v)
#define PUT_c128(v) (v)

#define FAIL(code) (status = (code), 0)

/* Of nan_to_num: three choices one after the other. Nested ones become a chain of masks, of which each waits for the last. */
#define AS_NUMBER(x, nan, most, least) ({ \
    __typeof__((x) + 0) r_ = (x) == INFINITY ? (most) : (x); \
    r_ = (x) == -INFINITY ? (least) : r_; \
    (x) != (x) ? (nan) : r_; })
/* Of complex numbers that an op takes apart: one walk over both parts where they lie behind each other, else one each. */
static __attribute__((noinline, unused)) int tgx_by_parts(tgx_loop real, ptrdiff_t size, char **data, const ptrdiff_t *s,
                                                          ptrdiff_t count, const tgx_scalar *aux) {
    if (s[0] == 2 * size && s[1] == 2 * size) return real(data, (ptrdiff_t[]){size, size}, 2 * count, aux);
    const int failed = real(data, s, count, aux);
    return failed | real((char *[]){data[0] + size, data[1] + size}, s, count, aux);
}

/* Of what holds for every integer, or for none. */
#define ALWAYS(v) \
    static __attribute__((unused)) int tgx_always_##v(char **data, const ptrdiff_t *s, ptrdiff_t count, const tgx_scalar *aux) { \
        (void)aux; \
        if (s[0] == 1) memset(data[0], v, (size_t)count); \
        else for (ptrdiff_t i = 0; i < count; i++) data[0][i * s[0]] = v; \
        return 0; \
    }
ALWAYS(0) ALWAYS(1)
#define SIMD _Pragma("omp simd")
/* Of elements at any distance that a choice is made between: one by one the processor guesses at random numbers, for 5 ns each where
 * four brought together take 0.35. Wider vectors take longer to fill. */
#define SIMD_4 _Pragma("omp simd simdlen(4)")

/* For loops that wait for memory: beyond the second cache 512-bit vectors are slower than 256-bit ones, by 7 to 28 % on
 * Zen 4. Inside it, and in loops that compute, the full width is faster. */
#ifdef __AVX512F__
#define HALF_WIDTH __attribute__((noinline, target("prefer-vector-width=256")))
#define FAR(count) ((count) >= 1 << 16)
#else
#define HALF_WIDTH
#define FAR(count) 0
#endif

/* Blocks of operands that are not contiguous: GATHER gives a pointer to `m` elements behind each other, which is the
 * operand itself where it can be; a repeated element is written out once. SCATTER is the way back. */
#define BLOCK 256
#define GATHER(T, p, stride, at, m, buffer) \
    ((const S_##T *)((stride) == sizeof(S_##T) ? (p) + (at) * (stride) : tgx_gather_##T(p, stride, at, m, buffer)))
#define SCATTER(T, p, stride, at, m, buffer) \
    for (ptrdiff_t i = 0; i < (m); i++) *(S_##T *)((p) + ((at) + i) * (stride)) = (buffer)[i]
#define DEFINE_GATHER(T) \
    static __attribute__((noinline, unused)) char *tgx_gather_##T(const char *p, ptrdiff_t stride, ptrdiff_t at, ptrdiff_t m, S_##T *buffer) { \
        if (stride == 0) { \
            if (at == 0) { const S_##T v = *(const S_##T *)p; for (ptrdiff_t i = 0; i < m; i++) buffer[i] = v; } \
        } else { \
            p += at * stride; \
            for (ptrdiff_t i = 0; i < m; i++, p += stride) buffer[i] = *(const S_##T *)p; \
        } \
        return (char *)buffer; \
    }
DEFINE_GATHER(b8) DEFINE_GATHER(u8) DEFINE_GATHER(i8) DEFINE_GATHER(i16) DEFINE_GATHER(i32) DEFINE_GATHER(i64)
DEFINE_GATHER(u16) DEFINE_GATHER(u32) DEFINE_GATHER(u64)
DEFINE_GATHER(f16) DEFINE_GATHER(bf16) DEFINE_GATHER(f32) DEFINE_GATHER(f64) DEFINE_GATHER(c64) DEFINE_GATHER(c128)

/* A loop of two operands whose first is one element again and again: that is written out for a stretch of the second. */
static __attribute__((noinline, unused)) int tgx_written_out(tgx_loop real, ptrdiff_t size, char **data, const ptrdiff_t *s,
                                                             ptrdiff_t count, const tgx_scalar *aux) {
    char room[BLOCK * sizeof(S_c128)] __attribute__((aligned(64)));
    const ptrdiff_t dense[] = {s[0], size, s[2]};
    int status = 0;
    const ptrdiff_t some = count < BLOCK ? count : BLOCK;
#define WRITE_OUT(T) do { const T one = *(const T *)data[1]; for (ptrdiff_t i = 0; i < some; i++) ((T *)room)[i] = one; } while (0)
    if (size == 1) WRITE_OUT(uint8_t);
    else if (size == 2) WRITE_OUT(uint16_t);
    else if (size == 4) WRITE_OUT(uint32_t);
    else if (size == 8) WRITE_OUT(uint64_t);
    else WRITE_OUT(S_c128);
#undef WRITE_OUT
    for (ptrdiff_t at = 0; at < count; at += BLOCK)
        status |= real((char *[]){data[0] + at * s[0], room, data[2] + at * s[2]}, dense, count - at < BLOCK ? count - at : BLOCK, aux);
    return status;
}

#endif
