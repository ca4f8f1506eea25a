/* The loops of convolution for float and double in one instruction set: conv_loops.h, twice. */
#include "conv.h"
#include "vector_bytes.h"

#if VECTOR_BYTES == 64
enum { OUT_ROWS = 8, OUT_VECTORS = 3, SUM_ROWS = 6, SUM_VECTORS = 4 }; /* 24 of 32 registers hold sums */
#elif VECTOR_BYTES == 32
enum { OUT_ROWS = 4, OUT_VECTORS = 3, SUM_ROWS = 6, SUM_VECTORS = 2 }; /* 12 of 16 */
#else
enum { OUT_ROWS = 4, OUT_VECTORS = 3, SUM_ROWS = 6, SUM_VECTORS = 2 };
#endif
#define INLINE static inline __attribute__((always_inline))

/* to[j][i] = from[i][j] for 4 x 4 elements. */
typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint32_t loose_quad __attribute__((vector_size(16), aligned(4), may_alias));
INLINE void turn_block_f32(float *to, ptrdiff_t to_step, const float *from, ptrdiff_t from_step) {
#define ROW(i) (quad)*(const loose_quad *)(from + i * from_step)
#define COLUMN(j) *(loose_quad *)(to + j * to_step)
    quad a = ROW(0), b = ROW(1), c = ROW(2), d = ROW(3);
    quad ab = __builtin_shuffle(a, b, (quad){0, 4, 1, 5}), ab2 = __builtin_shuffle(a, b, (quad){2, 6, 3, 7});
    quad cd = __builtin_shuffle(c, d, (quad){0, 4, 1, 5}), cd2 = __builtin_shuffle(c, d, (quad){2, 6, 3, 7});
    COLUMN(0) = __builtin_shuffle(ab, cd, (quad){0, 1, 4, 5}), COLUMN(1) = __builtin_shuffle(ab, cd, (quad){2, 3, 6, 7});
    COLUMN(2) = __builtin_shuffle(ab2, cd2, (quad){0, 1, 4, 5}), COLUMN(3) = __builtin_shuffle(ab2, cd2, (quad){2, 3, 6, 7});
#undef ROW
#undef COLUMN
}
INLINE void turn_block_f64(double *to, ptrdiff_t to_step, const double *from, ptrdiff_t from_step) {
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) to[j * to_step + i] = from[i * from_step + j];
}

/* FMA: one rounding for a * b + c where the machine has it; the build forbids the compiler to contract by itself.
 * SPLAT: a vector of equal elements; the plain form would add a zero. */
#define T float
#define NAME(base) base##_f32
#if defined(__AVX512F__)
#define FMA(a, b, c) ((NAME(vec))_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define SPLAT(x) ((NAME(vec))_mm512_set1_ps(x))
#elif defined(__AVX2__)
#define FMA(a, b, c) ((NAME(vec))_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define SPLAT(x) ((NAME(vec))_mm256_set1_ps(x))
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define SPLAT(x) ((NAME(vec)){x, x, x, x})
#endif
#include "conv_loops.h"
#undef T
#undef NAME
#undef FMA
#undef SPLAT

#define T double
#define NAME(base) base##_f64
#if defined(__AVX512F__)
#define FMA(a, b, c) ((NAME(vec))_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define SPLAT(x) ((NAME(vec))_mm512_set1_pd(x))
#elif defined(__AVX2__)
#define FMA(a, b, c) ((NAME(vec))_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define SPLAT(x) ((NAME(vec))_mm256_set1_pd(x))
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define SPLAT(x) ((NAME(vec)){x, x})
#endif
#include "conv_loops.h"

#define KERNELS(t) {load_##t, pack_##t, apply_##t, turn_##t, collect_##t, collect_few_##t, spread_##t}
const tgx_conv_table ISA(tgx_conv_table) = {KERNELS(f32), KERNELS(f64)};
