/* The loops of Fourier transforms for float and double in one instruction set: fft_loops.h, twice. */
#include "fft_moves.h"
#include "fft_orders.h"
#include "vector_bytes.h"

#if VECTOR_BYTES == 64
#define OF_F32(list) list##_F16
#define OF_F64(list) list##_D8
#elif VECTOR_BYTES == 32
#define OF_F32(list) list##_F8
#define OF_F64(list) list##_D4
#else
#define OF_F32(list) list##_F4
#define OF_F64(list) list##_D2
#endif

#define INLINE static inline __attribute__((always_inline))

/* FMA: one rounding for a * b + c, LESS: for c - a * b, where the machine has it. */
#define T float
#define INT int32_t
#define ORDER(list) OF_F32(list)
#define NAME(base) base##_f32
#if defined(__AVX512F__)
#define FMA(a, b, c) ((V)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define LESS(a, b, c) ((V)_mm512_fnmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define SPLAT(x) ((V)_mm512_set1_ps(x))
#elif defined(__AVX2__)
#define FMA(a, b, c) ((V)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define LESS(a, b, c) ((V)_mm256_fnmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define SPLAT(x) ((V)_mm256_set1_ps(x))
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define LESS(a, b, c) ((c) - (a) * (b))
#define SPLAT(x) ((V){x, x, x, x})
#endif
#include "fft_loops.h"
#undef T
#undef INT
#undef ORDER
#undef NAME
#undef FMA
#undef LESS
#undef SPLAT

#define T double
#define INT int64_t
#define ORDER(list) OF_F64(list)
#define NAME(base) base##_f64
#if defined(__AVX512F__)
#define FMA(a, b, c) ((V)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define LESS(a, b, c) ((V)_mm512_fnmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define SPLAT(x) ((V)_mm512_set1_pd(x))
#elif defined(__AVX2__)
#define FMA(a, b, c) ((V)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define LESS(a, b, c) ((V)_mm256_fnmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define SPLAT(x) ((V)_mm256_set1_pd(x))
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define LESS(a, b, c) ((c) - (a) * (b))
#define SPLAT(x) ((V){x, x})
#endif
#include "fft_loops.h"

#define LOOPS(t) {lanes_##t, times_##t, untangle_##t, tangle_##t}
const tgx_fft_table ISA(tgx_fft_table) = {LOOPS(f32), LOOPS(f64)};
