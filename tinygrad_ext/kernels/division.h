/* Remainders and rounded quotients of floating numbers, exactly: fmod, and Python's a // b and a % b.
 *
 * C's fmod subtracts one bit of the quotient at a time. Here the quotient n is rounded, and a - n b is formed without
 * an error: by a fused multiply-add, in double, or from the product's two halves. That remainder fits the type, since
 * it is a multiple of b's last bit and not larger than b. One step of b mends an n that was rounded up. So the value is
 * fmod's own, bit by bit, for quotients below VM_QUOTIENT; larger ones, NaN, infinite dividends and zero divisors are
 * `far` and go to C's fmod. Rejected for float: a quotient in double, which would spare more of them the far path, at half
 * the lanes for all. */
#ifndef TGX_DIVISION_H
#define TGX_DIVISION_H
#include "vecmath_base.h"

/* Quotients this large are still rounded right by (a - rest) / b, which the far path divides by. */
#define VM_QUOTIENT_f32 0x1p21f
#define VM_QUOTIENT_f64 0x1p50

VM_INLINE float vm_rest_of_f32(float a, float n, float b)
{
#if VM_HAS_FMA
    return __builtin_fmaf(-n, b, a);
#else
    return (float)((double)a - (double)n * (double)b); /* 21 and 24 bits */
#endif
}

VM_INLINE double vm_rest_of_f64(double a, double n, double b)
{
#if VM_HAS_FMA
    return __builtin_fma(-n, b, a);
#else
    vm_pair_f64 p = vm_product_f64(n, b);
    return (a - p.hi) - p.lo;
#endif
}

VM_INLINE _Bool vm_division_far_f32(float a, float b)
{
    return !(__builtin_fabsf(a) < __builtin_fabsf(b) * VM_QUOTIENT_f32);
}

VM_INLINE _Bool vm_division_far_f64(double a, double b)
{
    /* Splitting a factor into halves must not overflow. */
    double limit = __builtin_fabs(b) * VM_QUOTIENT_f64;
    limit = !VM_HAS_FMA && limit > 0x1p960 ? 0x1p960 : limit;
    return !(__builtin_fabs(a) < limit);
}

/* Once for each precision: T the type, B its suffix, F that of C's functions. */
#define DIVISION(T, B, F) \
    /* |a| = n |b| + rest with 0 <= rest < |b|. */ \
    typedef struct { T n, rest; } vm_divided_##B; \
    VM_INLINE vm_divided_##B vm_divide_near_##B(T a, T b) \
    { \
        T size = __builtin_fabs##F(a), by = __builtin_fabs##F(b); \
        T n = (size / by + VM_ROUND_##B) - VM_ROUND_##B; \
        T rest = vm_rest_of_##B(size, n, by); \
        T one = rest < 0 ? (T)1 : (T)0; \
        rest = rest < 0 ? rest + by : rest; \
        return (vm_divided_##B){n - one, size < by ? size : rest}; /* an infinite divisor times 0 is NaN */ \
    } \
    VM_INLINE T vm_fmod_near_##B(T a, T b) { return __builtin_copysign##F(vm_divide_near_##B(a, b).rest, a); } \
    VM_INLINE T vm_floor_mod_of_##B(T rest, T b) { return (rest != 0) & ((b < 0) != (rest < 0)) ? rest + b : rest; } \
    VM_INLINE T vm_floor_mod_near_##B(T a, T b) { return vm_floor_mod_of_##B(vm_fmod_near_##B(a, b), b); } \
    VM_INLINE T vm_floor_div_near_##B(T a, T b) \
    { \
        vm_divided_##B d = vm_divide_near_##B(a, b); \
        T sign = __builtin_copysign##F((T)1, a) * __builtin_copysign##F((T)1, b); \
        T n = d.n + ((d.rest != 0) & (sign < 0) ? (T)1 : (T)0); \
        return __builtin_copysign##F(n, sign); \
    } \
    /* a == (a // b) * b + a % b as far as rounding allows, whatever the quotient. */ \
    static __attribute__((noinline, unused)) T vm_floor_div_far_##B(T a, T b) \
    { \
        if (b == 0) return a / b; \
        T rest = fmod##F(a, b), q = (a - rest) / b; \
        if (rest != 0 && (b < 0) != (rest < 0)) q -= 1; \
        if (q == 0) return __builtin_copysign##F(0, a / b); \
        T down = floor##F(q); \
        return q - down > (T)0.5 ? down + 1 : down; \
    } \
    VM_INLINE T vm_fmod_##B(T a, T b) \
    { \
        return __builtin_expect(vm_division_far_##B(a, b), 0) ? fmod##F(a, b) : vm_fmod_near_##B(a, b); \
    } \
    VM_INLINE T vm_floor_mod_##B(T a, T b) { return vm_floor_mod_of_##B(vm_fmod_##B(a, b), b); } \
    VM_INLINE T vm_floor_div_##B(T a, T b) \
    { \
        return __builtin_expect(vm_division_far_##B(a, b), 0) ? vm_floor_div_far_##B(a, b) : vm_floor_div_near_##B(a, b); \
    }
#define VM_ROUND_f32 VM_ROUND_F32
#define VM_ROUND_f64 VM_ROUND_F64
DIVISION(float, f32, f)
DIVISION(double, f64, )
#undef DIVISION

#endif
