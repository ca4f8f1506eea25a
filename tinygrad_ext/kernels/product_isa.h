/* Products of integers modulo 2^bits in one instruction set: four rows of A at a time against vectors of B's columns, with
 * the depth cut so that the part of B in use stays near. And small ones of floats, see product_tiny.h and
 * product_middle.h. */
#include "product_complex.h"
#include "vector_bytes.h"
#include <string.h>

enum { ROWS = 4, VECTORS = 2, DEPTH = 128, FEW_ROWS = 4, FEW_COLUMNS = 2 };
enum { MANY_ROWS = 96, FAR = 1024 };     /* rows that pay for a copy of columns whose steps lie so many bytes apart, on pages of their own */
#if defined(__AVX512F__)
enum { MIDDLE_ROWS = 12 };       /* 24 of 32 registers hold sums */
#elif defined(__AVX2__)
enum { MIDDLE_ROWS = 6 };        /* 12 of 16 */
#else
enum { MIDDLE_ROWS = 4 };
#endif

/* Unsigned types wrap. The narrow ones are widened by C to int, where two uint16_t could overflow: int16_t cannot. */
#define T uint8_t
#define NAME(base) base##_8
#include "product_loops.h"
#undef T
#undef NAME
#define T int16_t
#define NAME(base) base##_16
#include "product_loops.h"
#undef T
#undef NAME
#define T uint32_t
#define NAME(base) base##_32
#include "product_loops.h"
#undef T
#undef NAME
#define T uint64_t
#define NAME(base) base##_64
#include "product_loops.h"

void ISA(tgx_integer_product)(const tgx_shape *s, int size, int64_t alpha, const void *a, const void *b, int64_t beta, void *c) {
    if (size == 1) product_8(s, (uint8_t)alpha, a, b, (uint8_t)beta, c);
    else if (size == 2) product_16(s, (int16_t)alpha, a, b, (int16_t)beta, c);
    else if (size == 4) product_32(s, (uint32_t)alpha, a, b, (uint32_t)beta, c);
    else product_64(s, (uint64_t)alpha, a, b, (uint64_t)beta, c);
}

/* ---- tiny products of floats ------------------------------------------------------------------------------------- */

#undef T
#undef NAME
#define TINY_BYTES (VECTOR_BYTES < 32 ? VECTOR_BYTES : 32)     /* few tiny matrices have sixteen columns */

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t order __attribute__((vector_size(16)));

/* to[k][o] = from[o][k]: `across` and `row` are steps between rows of the two. */
static inline __attribute__((always_inline)) void turn(const float *from, ptrdiff_t across, float *to, ptrdiff_t row) {
    quad a = *(const quad *)from, b = *(const quad *)(from + across);
    quad c = *(const quad *)(from + 2 * across), d = *(const quad *)(from + 3 * across);
    quad ab = __builtin_shuffle(a, b, (order){0, 4, 1, 5}), ab2 = __builtin_shuffle(a, b, (order){2, 6, 3, 7});
    quad cd = __builtin_shuffle(c, d, (order){0, 4, 1, 5}), cd2 = __builtin_shuffle(c, d, (order){2, 6, 3, 7});
    *(quad *)to = __builtin_shuffle(ab, cd, (order){0, 1, 4, 5});
    *(quad *)(to + row) = __builtin_shuffle(ab, cd, (order){2, 3, 6, 7});
    *(quad *)(to + 2 * row) = __builtin_shuffle(ab2, cd2, (order){0, 1, 4, 5});
    *(quad *)(to + 3 * row) = __builtin_shuffle(ab2, cd2, (order){2, 3, 6, 7});
}

/* FUSED_WHOLE: a vector times another plus a third. FUSED: a number times a vector of so many bytes plus another, with one rounding
 * where the machine has it; the build forbids the compiler to contract by itself. */
#define PASTE(a, b) a##b
#define FUSED(bytes, x, y, z) PASTE(FUSED_, bytes)(x, y, z)
#define T float
#define NAME(base) base##_f32
#define TURN(from, across, to, row) turn(from, across, to, row)
#if defined(__AVX2__)
#define FUSED_16(x, y, z) ((vec16_f32)_mm_fmadd_ps(_mm_set1_ps(x), (__m128)(y), (__m128)(z)))
#define FUSED_32(x, y, z) ((vec32_f32)_mm256_fmadd_ps(_mm256_set1_ps(x), (__m256)(y), (__m256)(z)))
#define FUSED_64(x, y, z) ((vec64_f32)_mm512_fmadd_ps(_mm512_set1_ps(x), (__m512)(y), (__m512)(z)))
#else
#define FUSED_16(x, y, z) ((x) * (y) + (z))
#endif
#if defined(__AVX512F__)
#define FUSED_WHOLE(x, y, z) _mm512_fmadd_ps((__m512)(x), (__m512)(y), (__m512)(z))
#elif defined(__AVX2__)
#define FUSED_WHOLE(x, y, z) _mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(z))
#else
#define FUSED_WHOLE(x, y, z) ((x) * (y) + (z))
#endif
#include "product_tiny.h"
#include "product_middle.h"
#include "product_packed.h"
#include "product_pairs.h"
#include "product_complex_tile.h"
#undef T
#undef NAME
#undef TURN
#undef FUSED_16
#undef FUSED_32
#undef FUSED_64
#undef FUSED_WHOLE

#define T double
#define NAME(base) base##_f64
#define TURN(from, across, to, row)                                                      \
    for (int q = 0; q < 4; q++)                                                          \
        for (int o = 0; o < 4; o++) (to)[q * (row) + o] = (from)[o * (across) + q]
#if defined(__AVX2__)
#define FUSED_16(x, y, z) ((vec16_f64)_mm_fmadd_pd(_mm_set1_pd(x), (__m128d)(y), (__m128d)(z)))
#define FUSED_32(x, y, z) ((vec32_f64)_mm256_fmadd_pd(_mm256_set1_pd(x), (__m256d)(y), (__m256d)(z)))
#define FUSED_64(x, y, z) ((vec64_f64)_mm512_fmadd_pd(_mm512_set1_pd(x), (__m512d)(y), (__m512d)(z)))
#else
#define FUSED_16(x, y, z) ((x) * (y) + (z))
#endif
#if defined(__AVX512F__)
#define FUSED_WHOLE(x, y, z) _mm512_fmadd_pd((__m512d)(x), (__m512d)(y), (__m512d)(z))
#elif defined(__AVX2__)
#define FUSED_WHOLE(x, y, z) _mm256_fmadd_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#else
#define FUSED_WHOLE(x, y, z) ((x) * (y) + (z))
#endif
#include "product_tiny.h"
#include "product_middle.h"
#include "product_packed.h"
#include "product_pairs.h"
#include "product_complex_tile.h"

void ISA(tgx_small_product)(const tgx_small *p, int dtype) {
    const tgx_shape *s = &p->s;
    if (tgx_is_tiny(s->m, s->n, s->k)) {
        if (dtype == TGX_F32) tiny_f32(p);
        else tiny_f64(p);
    } else if (dtype == TGX_F32) middle_f32(p);
    else middle_f64(p);
}

void ISA(tgx_small_sums)(const tgx_small *p, ptrdiff_t count, const ptrdiff_t *steps, int dtype) {
    if (dtype == TGX_F32) sums_f32(p, count, steps);
    else sums_f64(p, count, steps);
}

tgx_row_product *const ISA(tgx_row_products)[2] = {row_f32, row_f64};

const tgx_packed_products ISA(tgx_packed)[2] = {{packed_lay_f32, packed_times_f32}, {packed_lay_f64, packed_times_f64}};

const tgx_complex_kernels ISA(tgx_complex)[2] = {{LANES_f32, complex_lay_f32, complex_times_f32, pair_dot_f32},
                                                 {LANES_f64, complex_lay_f64, complex_times_f64, pair_dot_f64}};
