/* The loops of convolution for float and double in one instruction set: conv_loops.h, twice. */
#include "casts.h"
#include "conv.h"
#include "vector_bytes.h"

#if VECTOR_BYTES == 64
enum { OUT_ROWS = 8, OUT_VECTORS = 3, SUM_ROWS = 6, SUM_VECTORS = 4 }; /* 24 of 32 registers hold sums */
#elif VECTOR_BYTES == 32
enum { OUT_ROWS = 4, OUT_VECTORS = 3, SUM_ROWS = 6, SUM_VECTORS = 2 }; /* 12 of 16 */
#else
enum { OUT_ROWS = 4, OUT_VECTORS = 3, SUM_ROWS = 6, SUM_VECTORS = 2 };
#endif
#if VECTOR_BYTES == 64
#define OUTPUTS_OF(t) apply_across_##t, load_laid_##t, apply_laid_##t
#elif VECTOR_BYTES == 32
#define OUTPUTS_OF(t) NULL, load_laid_##t, apply_laid_##t
#else
#define OUTPUTS_OF(t) NULL, NULL, NULL
#endif
enum { /* of tiles of conv_across.h and conv_laid.h */
    MOST_POSITIONS = TGX_CONV_POSITIONS(VECTOR_BYTES), MOST_VECTORS = TGX_CONV_VECTORS(VECTOR_BYTES),
    LAID_WEIGHTS = 16 << 10, LAID_TILES = 16, /* bytes of weights, and tiles that use them one after the other */
    TAP_TIME = 4 /* of a tap in a tile, beside its products */
};
/* A tap: where it lies in src and in the weights. And which lie in the image, [first, last) of rows and [left, right) of columns. */
typedef struct { int32_t offset, weight; } tgx_conv_met;
typedef struct { ptrdiff_t first, last, left, right; } tgx_conv_range;
/* How the columns of a part become tiles: zones from at[z] to at[z + 1], each cut evenly into so many. */
typedef struct { ptrdiff_t at[4], pieces[3], all; } tgx_conv_cuts;
enum { DOWN = 7 }; /* rows of a tile of conv_planes.h: those of most planes are multiples of it */
#define INLINE static inline __attribute__((always_inline))
#define ALL_OF _Pragma("GCC unroll 16")
#if defined(__x86_64__)
#define IN_REGISTER(v) __asm__("" : "+v"(v)) /* gcc reads what several products share for each of them */
#else
#define IN_REGISTER(v)
#endif

/* to[j][i] = from[i][x + j] for 4 x 4 elements. */
typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint32_t loose_quad __attribute__((vector_size(16), aligned(4), may_alias));
INLINE void turn_rows_f32(float *to, ptrdiff_t to_step, const float *const *from, ptrdiff_t x) {
#define ROW(i) (quad)*(const loose_quad *)(from[i] + x)
#define COLUMN(j) *(loose_quad *)(to + j * to_step)
    quad a = ROW(0), b = ROW(1), c = ROW(2), d = ROW(3);
    quad ab = __builtin_shuffle(a, b, (quad){0, 4, 1, 5}), ab2 = __builtin_shuffle(a, b, (quad){2, 6, 3, 7});
    quad cd = __builtin_shuffle(c, d, (quad){0, 4, 1, 5}), cd2 = __builtin_shuffle(c, d, (quad){2, 6, 3, 7});
    COLUMN(0) = __builtin_shuffle(ab, cd, (quad){0, 1, 4, 5}), COLUMN(1) = __builtin_shuffle(ab, cd, (quad){2, 3, 6, 7});
    COLUMN(2) = __builtin_shuffle(ab2, cd2, (quad){0, 1, 4, 5}), COLUMN(3) = __builtin_shuffle(ab2, cd2, (quad){2, 3, 6, 7});
#undef ROW
#undef COLUMN
}
INLINE void turn_rows_f64(double *to, ptrdiff_t to_step, const double *const *from, ptrdiff_t x) {
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) to[j * to_step + i] = from[i][x + j];
}
#define TURN_BLOCK(T, t)                                                                                    \
    INLINE void turn_block_##t(T *to, ptrdiff_t to_step, const T *from, ptrdiff_t from_step) {              \
        const T *const rows[4] = {from, from + from_step, from + 2 * from_step, from + 3 * from_step};      \
        turn_rows_##t(to, to_step, rows, 0);                                                                \
    }
TURN_BLOCK(float, f32)
TURN_BLOCK(double, f64)

/* EVENS: elements 0, 2, 4, ... of two vectors. FIRST, SECOND: halves of a vector of twice the length, with elements of two
 * vectors in turn.
 * FMA: one rounding for a * b + c where the machine has it; the build forbids the compiler to contract by itself.
 * SPLAT: a vector of equal elements; the plain form would add a zero. */
#define T float
#define INT int32_t
#define NAME(base) base##_f32
#if defined(__AVX512F__)
#define FMA(a, b, c) ((NAME(vec))_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define SPLAT(x) ((NAME(vec))_mm512_set1_ps(x))
#define EVENS(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30})
#define FIRST(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23})
#define SECOND(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31})
#elif defined(__AVX2__)
#define FMA(a, b, c) ((NAME(vec))_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define SPLAT(x) ((NAME(vec))_mm256_set1_ps(x))
#define EVENS(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 2, 4, 6, 8, 10, 12, 14})
#define FIRST(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 8, 1, 9, 2, 10, 3, 11})
#define SECOND(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){4, 12, 5, 13, 6, 14, 7, 15})
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define SPLAT(x) ((NAME(vec)){x, x, x, x})
#define EVENS(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 2, 4, 6})
#define FIRST(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 4, 1, 5})
#define SECOND(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){2, 6, 3, 7})
#endif
#include "conv_loops.h"
#undef T
#undef NAME
#undef FMA
#undef SPLAT
#undef EVENS
#undef FIRST
#undef SECOND
#undef INT

#define T double
#define INT int64_t
#define NAME(base) base##_f64
#if defined(__AVX512F__)
#define FMA(a, b, c) ((NAME(vec))_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define SPLAT(x) ((NAME(vec))_mm512_set1_pd(x))
#define EVENS(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 2, 4, 6, 8, 10, 12, 14})
#define FIRST(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 8, 1, 9, 2, 10, 3, 11})
#define SECOND(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){4, 12, 5, 13, 6, 14, 7, 15})
#elif defined(__AVX2__)
#define FMA(a, b, c) ((NAME(vec))_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define SPLAT(x) ((NAME(vec))_mm256_set1_pd(x))
#define EVENS(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 2, 4, 6})
#define FIRST(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 4, 1, 5})
#define SECOND(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){2, 6, 3, 7})
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define SPLAT(x) ((NAME(vec)){x, x})
#define EVENS(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 2})
#define FIRST(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){0, 2})
#define SECOND(a, b) __builtin_shuffle((NAME(vec))(a), (NAME(vec))(b), (NAME(order)){1, 3})
#endif
#include "conv_loops.h"

#define KERNELS(t) {VECTOR_BYTES / sizeof(((vec_##t){0})[0]), load_##t, pack_##t, apply_##t, turn_##t, collect_##t, collect_few_##t, spread_##t, \
                    lay_##t, apply_plane_##t, apply_direct_##t, OUTPUTS_OF(t), collect_plane_##t, settle_##t, apply_pair_##t}
const tgx_conv_table ISA(tgx_conv_table) = {KERNELS(f32), KERNELS(f64)};
