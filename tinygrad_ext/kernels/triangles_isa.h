/* Rows of a triangle against sides that lie in the lanes of vectors, for float and double in one instruction set.
 *
 * A tile of rows takes from its sides what all rows before it give, with one load of a known row for all rows of the tile, and is
 * solved in registers. Every element is summed up in the order of the rows, whatever the tile and the number of sides, so
 * that neither changes a bit. A library's trsm lays out both operands first, which a few sides do not repay. Rejected: vectors along
 * the rows of A for few sides, 70 to 90 KB for four rows and four sides at a time, and twice as long where vectors have 32 bytes. */
#include <string.h>
#include "triangles.h"
#include "vector_bytes.h"

#define PASTE(a, b) a##b
#define PASTED(a, b) PASTE(a, b)
#if VECTOR_BYTES == 64
#define HALF 32
#define WHOLE 64
#elif VECTOR_BYTES == 32
#define HALF 32
#define WHOLE 32
#else
#define HALF 16
#define WHOLE 16
#endif
#define INLINE static inline __attribute__((always_inline))

/* LESS: a vector minus a number times another, with one rounding where the machine has it. */
#define T float
#define OF(x) PASTED(x, _f32)
#if VECTOR_BYTES >= 32
#define LESS_16(x, y, z) ((V)_mm_fnmadd_ps(_mm_set1_ps(x), (__m128)(y), (__m128)(z)))
#define LESS_32(x, y, z) ((V)_mm256_fnmadd_ps(_mm256_set1_ps(x), (__m256)(y), (__m256)(z)))
#define LESS_64(x, y, z) ((V)_mm512_fnmadd_ps(_mm512_set1_ps(x), (__m512)(y), (__m512)(z)))
#else
#define LESS_16(x, y, z) ((z) - (x) * (y))
#endif
#include "triangles_panels.h"
#undef T
#undef OF
#undef LESS_16
#undef LESS_32
#undef LESS_64

#define T double
#define OF(x) PASTED(x, _f64)
#if VECTOR_BYTES >= 32
#define LESS_16(x, y, z) ((V)_mm_fnmadd_pd(_mm_set1_pd(x), (__m128d)(y), (__m128d)(z)))
#define LESS_32(x, y, z) ((V)_mm256_fnmadd_pd(_mm256_set1_pd(x), (__m256d)(y), (__m256d)(z)))
#define LESS_64(x, y, z) ((V)_mm512_fnmadd_pd(_mm512_set1_pd(x), (__m512d)(y), (__m512d)(z)))
#else
#define LESS_16(x, y, z) ((z) - (x) * (y))
#endif
#include "triangles_panels.h"

const tgx_triangle_table ISA(tgx_triangles) = {sides_f32, sides_f64};
