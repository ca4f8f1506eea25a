/* Arithmetic that C lacks and that needs no elementary function: Python's division of integers, integer powers, the
 * plain complex product. */
#ifndef TGX_NUMBERS_H
#define TGX_NUMBERS_H
#include <math.h>
#include <stdint.h>

/* Integer division. Zero fails; -1 is taken apart because INT_MIN / -1 traps. */
#define NEGATE(x) ((int64_t)(0 - (uint64_t)(x)))
#define FLOOR_DIV(x, y) ((y) == 0 ? FAIL(TGX_ZERO_DIVISION) : ((y) == -1 ? NEGATE(x) : (x) / (y) - (((x) % (y) != 0) && (((x) < 0) != ((y) < 0)))))
#define TRUNC_DIV(x, y) ((y) == 0 ? FAIL(TGX_ZERO_DIVISION) : ((y) == -1 ? NEGATE(x) : (x) / (y)))
#define FLOOR_MOD(x, y) ((y) == 0 ? FAIL(TGX_ZERO_DIVISION) : ((y) == -1 ? 0 : (x) % (y) + ((((x) % (y)) != 0 && (((x) % (y)) < 0) != ((y) < 0)) ? (y) : 0)))
#define TRUNC_MOD(x, y) ((y) == 0 ? FAIL(TGX_ZERO_DIVISION) : ((y) == -1 ? 0 : (x) % (y)))

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
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    for (; exponent > 0; exponent >>= 1, b *= b)
        if (exponent & 1) result *= b;
    return (int64_t)result;
}

static __attribute__((const, noinline, unused)) double vm_ten_to(int64_t n) { return pow(10.0, (double)n); }

/* The plain complex product. C's own one turns some NaN results back into infinities, which PyTorch does not. */
#define TIMES(x, y) __builtin_complex(__real__(x) * __real__(y) - __imag__(x) * __imag__(y), \
                                      __real__(x) * __imag__(y) + __imag__(x) * __real__(y))
#endif
