/* Complex numbers in generated loops: in vectors as they lie in memory, and as arrays of real and of imaginary parts.
 *
 * Sums, products and conjugates stay interleaved: W_c64 holds as many numbers as fit a vector, H_c64 half as many, which
 * is quicker far away in memory (FAR), P_c64 one, and all give the same bits, since every step is one operation of IEEE arithmetic. A loop over C's complex numbers would not: gcc makes fused
 * steps of a product whose parts it finds side by side, whatever -ffp-contract says, and none of the one in a loop's tail.
 * What needs each part by itself (quotients, absolute values, exp) is split into blocks of parts and joined again. */
#ifndef TGX_PAIRS_H
#define TGX_PAIRS_H
#include "loops.h"
#include "vecmath_hypot.h"

#if defined(__AVX512F__)
#define PAIR_BYTES 64
#define HALF_c64(F) F(0), F(2), F(4), F(6)
#define HALF_c128(F) F(0), F(2)
#define EACH_c64(F) HALF_c64(F), F(8), F(10), F(12), F(14)
#define EACH_c128(F) HALF_c128(F), F(4), F(6)
#elif defined(__AVX2__)
#define PAIR_BYTES 32
#define EACH_c64(F) F(0), F(2), F(4), F(6)
#define EACH_c128(F) F(0), F(2)
#else
#define PAIR_BYTES 16
#define EACH_c64(F) F(0), F(2)
#define EACH_c128(F) F(0)
#endif
#define REAL_TWICE(i) i, i
#define IMAG_TWICE(i) i + 1, i + 1
#define EXCHANGED(i) i + 1, i
#define FIRST_SIGN(i) -1, 0

/* V: the type of a vector, M: of a mask of its lanes, T: of a part; EACH lists the pairs in it, TAG is in the names. */
#define PAIR_ARITHMETIC(TAG, V, M, T, BYTES, EACH) \
    typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias)); \
    typedef M V##_lanes __attribute__((vector_size(BYTES))); \
    static inline __attribute__((always_inline, unused)) V TIMES_##TAG(V x, V y) { \
        const V_FIRST(V, M, EACH) \
        V across = __builtin_shuffle(x, (V##_lanes){EACH(IMAG_TWICE)}) * __builtin_shuffle(y, (V##_lanes){EACH(EXCHANGED)}); \
        return __builtin_shuffle(x, (V##_lanes){EACH(REAL_TWICE)}) * y + (V)((V##_lanes)across ^ first); \
    } \
    static inline __attribute__((always_inline, unused)) V CONJ_##TAG(V x) { \
        const V_FIRST(V, M, EACH) \
        return (V)((V##_lanes)x ^ __builtin_shuffle(first, (V##_lanes){EACH(EXCHANGED)})); \
    }
/* The sign bits of real parts. */
#define V_FIRST(V, M, EACH) V##_lanes first = (V##_lanes){EACH(FIRST_SIGN)} & (M)((uint64_t)1 << (8 * sizeof(M) - 1));
#define ONE(F) F(0)
PAIR_ARITHMETIC(W_c64, W_c64, int32_t, float, PAIR_BYTES, EACH_c64)
PAIR_ARITHMETIC(W_c128, W_c128, int64_t, double, PAIR_BYTES, EACH_c128)
#ifdef __AVX512F__
PAIR_ARITHMETIC(H_c64, H_c64, int32_t, float, PAIR_BYTES / 2, HALF_c64)
PAIR_ARITHMETIC(H_c128, H_c128, int64_t, double, PAIR_BYTES / 2, HALF_c128)
#endif
PAIR_ARITHMETIC(P_c64, P_c64, int32_t, float, 8, ONE)
PAIR_ARITHMETIC(P_c128, P_c128, int64_t, double, 16, ONE)
/* A number in all lanes of a vector. */
#define SPREAD(T, number, to) do { \
        const S_##T spread_n = (number); \
        for (size_t spread_i = 0; spread_i < sizeof(to) / sizeof spread_n; spread_i++) ((S_##T *)&(to))[spread_i] = spread_n; \
    } while (0)
#define PAIR_LANES(KIND, T) ((ptrdiff_t)(sizeof(KIND##_##T) / sizeof(S_##T)))

/* The conjugate, and the plain quotient as NumPy takes it: by the larger part of the divisor, so that nothing overflows on
 * the way; a divisor of zero divides part by part. */
#define CONJ(x) __builtin_complex(__real__(x), -__imag__(x))
#define QUOTIENT(TAG, C, T, ABS) \
    static inline __attribute__((always_inline, unused)) C vm_div_##TAG(C x, C y) { \
        T c = __real__ y, d = __imag__ y, size_c = ABS(c), size_d = ABS(d); \
        int turned = size_c < size_d; \
        T large = turned ? d : c, small = turned ? c : d, u = turned ? __imag__ x : __real__ x, v = turned ? __real__ x : __imag__ x; \
        int none = (size_c == 0) & (size_d == 0); \
        T ratio = small / (none ? 1 : large), scale = (T)1 / (none ? size_c : large + small * ratio); \
        T to_u = none ? 0 : v * ratio, to_v = none ? 0 : u * ratio; \
        T re = (u + to_u) * scale, im = (turned ? to_v - v : v - to_v) * scale; \
        return __builtin_complex(re, im); \
    }
QUOTIENT(c64, tgx_c64, float, __builtin_fabsf)
QUOTIENT(c128, tgx_c128, double, __builtin_fabs)

VM_INLINE float vm_abs_c64(tgx_c64 x) { return vm_hypot_f32(__real__ x, __imag__ x); }
VM_INLINE double vm_abs_c128(tgx_c128 x) { return vm_hypot_f64(__real__ x, __imag__ x); }

/* m numbers of any stride in bytes, at most BLOCK where it is not theirs, as their parts, and back. Those apart are moved as wholes
 * of W, by one load and one store each, beside dense ones: part by part it took twice as long. */
typedef int64_t tgx_pair_of_words __attribute__((vector_size(16), aligned(8), may_alias));
#define SPLITTING(T, R, W) \
    static __attribute__((noinline, unused)) void tgx_split_##T(const char *p, ptrdiff_t stride, ptrdiff_t m, R *re, R *im) { \
        W dense[BLOCK]; \
        const R *x = (const R *)p; \
        if (stride != sizeof(W)) { \
            for (ptrdiff_t i = 0; i < m; i++, p += stride) dense[i] = *(const W *)p; \
            x = (const R *)dense; \
        } \
        SIMD for (ptrdiff_t i = 0; i < m; i++) { re[i] = x[2 * i]; im[i] = x[2 * i + 1]; } \
    } \
    static __attribute__((noinline, unused)) void tgx_join_##T(char *p, ptrdiff_t stride, ptrdiff_t m, const R *re, const R *im) { \
        W dense[BLOCK]; \
        R *x = stride == sizeof(W) ? (R *)p : (R *)dense; \
        SIMD for (ptrdiff_t i = 0; i < m; i++) { x[2 * i] = re[i]; x[2 * i + 1] = im[i]; } \
        if (stride != sizeof(W)) \
            for (ptrdiff_t i = 0; i < m; i++, p += stride) *(W *)p = dense[i]; \
    }
SPLITTING(c64, float, uint64_t)
SPLITTING(c128, double, tgx_pair_of_words)
#endif
