/* Arithmetic that C lacks and that needs no elementary function: Python's division of integers, integer powers, the
 * plain complex product. */
#ifndef TGX_NUMBERS_H
#define TGX_NUMBERS_H
#include <math.h>
#include <stdint.h>

#define NEGATE(x) ((int64_t)(0 - (uint64_t)(x)))

/* Integer division by way of floating point, of whose loops compilers make vectors (int32 by a number 0.3 ns an element, where the
 * processor's division takes 2): q is the integer next to x / y, r = x - q y, which is smaller than y. Of 64 bits the first q may be
 * off by 2^12, so that what is left is divided once more. All is modulo 2^bits, so that the least number by -1 gives itself. */
#define DIVISION(bits, I, U, F, COPYSIGN, WIDE)                                                                                 \
    static inline I vm_next_to_##bits(F quotient) { return (I)(quotient + COPYSIGN((F)0.5, quotient)); }                          \
    static inline I vm_divide_##bits(I x, I y, U *q) {                                                                          \
        const F inverse = 1 / (F)y;                                                                                             \
        I r = (I)((U)x - (U)y * (*q = (U)vm_next_to_##bits((F)x * inverse))), more = WIDE ? vm_next_to_##bits((F)r * inverse) : 0; \
        *q += (U)more;                                                                                                          \
        return (I)((U)r - (U)more * (U)y);                                                                                      \
    }                                                                                                                           \
    static inline I vm_floor_div_##bits(I x, I y) {                                                                             \
        U q;                                                                                                                    \
        const I r = vm_divide_##bits(x, y, &q);                                                                                 \
        return (I)(q - (U)((r != 0) & ((r ^ y) < 0)));                                                                          \
    }                                                                                                                           \
    static inline I vm_floor_mod_##bits(I x, I y) {                                                                             \
        U q;                                                                                                                    \
        const I r = vm_divide_##bits(x, y, &q);                                                                                 \
        return (I)((U)r + ((r != 0) & ((r ^ y) < 0) ? (U)y : 0));                                                               \
    }                                                                                                                           \
    static inline I vm_trunc_div_##bits(I x, I y) {                                                                             \
        U q;                                                                                                                    \
        const I r = vm_divide_##bits(x, y, &q);                                                                                 \
        return (I)(q + ((r != 0) & ((r ^ x) < 0) ? (x ^ y) < 0 ? (U)1 : ~(U)0 : 0));                                            \
    }                                                                                                                           \
    static inline I vm_trunc_mod_##bits(I x, I y) {                                                                             \
        U q;                                                                                                                    \
        const I r = vm_divide_##bits(x, y, &q);                                                                                 \
        return (I)((U)r + ((r != 0) & ((r ^ x) < 0) ? (x ^ y) < 0 ? 0 - (U)y : (U)y : 0));                                      \
    }
DIVISION(16, int32_t, uint32_t, float, copysignf, 0)       /* of at most 16 bits */
DIVISION(32, int32_t, uint32_t, double, copysign, 0)
DIVISION(64, int64_t, uint64_t, double, copysign, 1)
#undef DIVISION

/* Zero as divisor fails. */
#define DIVIDED(what, x, y)                                                                                                     \
    (status |= (y) == 0 ? TGX_ZERO_DIVISION : 0, sizeof(x) < 4 ? vm_##what##_16((int32_t)(x), (int32_t)(y))                        \
     : sizeof(x) == 4 ? vm_##what##_32((int32_t)(x), (int32_t)(y)) : vm_##what##_64(x, y))
#define FLOOR_DIV(x, y) DIVIDED(floor_div, x, y)
#define TRUNC_DIV(x, y) DIVIDED(trunc_div, x, y)
#define FLOOR_MOD(x, y) DIVIDED(floor_mod, x, y)
#define TRUNC_MOD(x, y) DIVIDED(trunc_mod, x, y)

/* Divisors of magnitudes; that of INT64_MIN is itself as an unsigned number. */
static inline int64_t vm_gcd(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y, y = rest;
    }
    return (int64_t)x;
}
static inline int64_t vm_lcm(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    return x && y ? (int64_t)(x / (uint64_t)vm_gcd(a, b) * y) : 0;
}

/* base^exponent modulo 2^64; a negative exponent gives the integer part, 0 unless base is 1 or -1. */
static inline int64_t vm_ipow(int64_t base, int64_t exponent) {
    uint64_t result = 1, b = (uint64_t)base;
    if (base == 1 || exponent == 1) return base;
    if (exponent < 0) return base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    for (; exponent > 0; exponent >>= 1, b *= b)
        if (exponent & 1) result *= b;
    return (int64_t)result;
}

static __attribute__((const, noinline, unused)) double vm_ten_to(int64_t n) { return pow(10.0, (double)n); }

/* The plain complex product. C's own one turns some NaN results back into infinities, which PyTorch does not. */
#define TIMES(x, y) __builtin_complex(__real__(x) * __real__(y) - __imag__(x) * __imag__(y), \
                                      __real__(x) * __imag__(y) + __imag__(x) * __real__(y))
#endif
