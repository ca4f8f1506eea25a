/* Elementary functions of complex numbers: branch cuts, infinities and NaN as in C99's Annex G, powers as NumPy has them.
 *
 * Most are the C library's. exp is written out for the usual arguments, so that a loop over parts is vector code; the others,
 * of which vm_exp_far_* tells, go to the C library. The functions that C lacks are computed in double for both precisions. */
#ifndef TGX_COMPLEX_MATH_H
#define TGX_COMPLEX_MATH_H
#include "scalars.h"
#include "pairs.h"

#define BOTH(NAME, LIBRARY) \
    static inline __attribute__((unused)) tgx_c64 vm_##NAME##_c64(tgx_c64 x) { return LIBRARY##f(x); } \
    static inline __attribute__((unused)) tgx_c128 vm_##NAME##_c128(tgx_c128 x) { return LIBRARY(x); }
BOTH(log, clog) BOTH(sqrt, csqrt) BOTH(sin, csin) BOTH(cos, ccos) BOTH(tan, ctan) BOTH(asin, casin) BOTH(acos, cacos)
BOTH(atan, catan) BOTH(sinh, csinh) BOTH(cosh, ccosh) BOTH(tanh, ctanh) BOTH(asinh, casinh) BOTH(acosh, cacosh) BOTH(atanh, catanh)
#undef BOTH

#define EXPONENTIAL(TAG, C, T, B, ABS, LIBRARY, TOP) \
    VM_INLINE _Bool vm_exp_far_##TAG(C x) { return !(ABS(__real__ x) < (T)TOP) | !(ABS(__imag__ x) < (T)VM_TRIG_MAX); } \
    VM_INLINE C vm_exp_near_##TAG(C x) { \
        T size = vm_exp_##B(__real__ x), im = __imag__ x; \
        T height = vm_sin_near_##B(im); \
        return __builtin_complex(size * vm_cos_near_##B(im), size * height); \
    } \
    static __attribute__((noinline, unused)) C vm_exp_##TAG(C x) { \
        return vm_exp_far_##TAG(x) ? LIBRARY(x) : vm_exp_near_##TAG(x); \
    }
EXPONENTIAL(c64, tgx_c64, float, f32, __builtin_fabsf, cexpf, 87)
EXPONENTIAL(c128, tgx_c128, double, f64, __builtin_fabs, cexp, 708)
#undef EXPONENTIAL

/* ---- what C has no function for ---- */

/* Whether the absolute value is less than 1/2, without its root: the bound is the least square whose root, rounded, is not. */
VM_INLINE _Bool vm_below_half_c64(tgx_c64 x) {
    double re = __real__ x, im = __imag__ x;
    return re * re + im * im < 0x1.fffffe0000008p-3;
}
VM_INLINE _Bool vm_below_half_c128(tgx_c128 x) {
    double a = __builtin_fabs(__real__ x), b = __builtin_fabs(__imag__ x), big = a > b ? a : b, small = a > b ? b : a;
    return vm_mad_f64(big, big, small * small) < 0.25;
}

/* The angle, the number of length 1 in a number's direction or zero, and lerp from the nearer end. */
#define OF_PARTS(TAG, C, T, B) \
    VM_INLINE T vm_angle_##TAG(C x) { return vm_atan2_##B(__imag__ x, __real__ x); } \
    VM_INLINE C vm_direction_##TAG(C x) { \
        T size = vm_abs_##TAG(x); \
        size = size == 0 ? (T)INFINITY : size; /* 0 / inf: no division by zero to choose from */ \
        T re = __real__ x / size, im = __imag__ x / size; \
        return __builtin_complex(re + 0, im + 0); \
    } \
    VM_INLINE C vm_lerp_##TAG(C x, C y, C w) { \
        _Bool near = vm_below_half_##TAG(w); \
        T u = near ? __real__ w : 1 - __real__ w, v = near ? __imag__ w : -__imag__ w; \
        T re = __real__ y - __real__ x, im = __imag__ y - __imag__ x; \
        T step_re = u * re - v * im, step_im = u * im + v * re; \
        return __builtin_complex(near ? __real__ x + step_re : __real__ y - step_re, near ? __imag__ x + step_im : __imag__ y - step_im); \
    }
OF_PARTS(c64, tgx_c64, float, f32)
OF_PARTS(c128, tgx_c128, double, f64)
#undef OF_PARTS

#define SLOW static __attribute__((noinline, unused)) tgx_c128

SLOW vm_log1p_c128(tgx_c128 z) {
    double a = creal(z), b = cimag(z);
    if (!(cabs(z) < 0.5)) return clog(__builtin_complex(1 + a, b));
    return __builtin_complex(0.5 * log1p(a * (2 + a) + b * b), atan2(b, 1 + a));
}

/* exp(a) cos b - 1 = expm1(a) cos b - 2 sin(b / 2)^2 */
SLOW vm_expm1_c128(tgx_c128 z) {
    double a = creal(z), b = cimag(z), half = sin(0.5 * b);
    if (!isfinite(a) || !isfinite(b)) {
        tgx_c128 whole = cexp(z);
        return __builtin_complex(creal(whole) - 1, cimag(whole));
    }
    if (a > 700) return cexp(z);
    return __builtin_complex(expm1(a) * cos(b) - 2 * half * half, exp(a) * sin(b));
}

/* A real factor, which leaves an infinite part alone. */
static inline tgx_c128 vm_scaled_c128(tgx_c128 z, double factor) { return __builtin_complex(creal(z) * factor, cimag(z) * factor); }

SLOW vm_exp2_c128(tgx_c128 z) { return cexp(vm_scaled_c128(z, 0.69314718055994531)); }
SLOW vm_log2_c128(tgx_c128 z) { return vm_scaled_c128(clog(z), 1.4426950408889634); }
SLOW vm_log10_c128(tgx_c128 z) { return vm_scaled_c128(clog(z), 0.43429448190325183); }
SLOW vm_rsqrt_c128(tgx_c128 z) { return 1.0 / csqrt(z); }
SLOW vm_sigmoid_c128(tgx_c128 z) { return 1.0 / (1.0 + cexp(-z)); }

SLOW vm_sinc_c128(tgx_c128 z) {
    tgx_c128 angle = vm_scaled_c128(z, 3.14159265358979324);
    return z == 0 ? 1 : csin(angle) / angle;
}

/* As NumPy: anything to the power of zero is one, zero to a positive real power is zero, and small whole powers are products. */
SLOW vm_pow_c128(tgx_c128 x, tgx_c128 y) {
    double whole = creal(y);
    if (y == 0) return 1;
    if (x == 0) return creal(y) > 0 ? 0 : __builtin_complex((double)NAN, (double)NAN);
    if (cimag(y) != 0 || whole != rint(whole) || !(fabs(whole) <= 100)) return cpow(x, y);
    tgx_c128 result = 1, power = x;
    for (int n = (int)fabs(whole); n; n >>= 1, power = TIMES(power, power))
        if (n & 1) result = TIMES(result, power);
    return whole < 0 ? vm_div_c128(1, result) : result;
}

/* g times the derivative of x sigmoid(x) */
SLOW vm_silu_slope_c128(tgx_c128 g, tgx_c128 x) {
    tgx_c128 s = vm_sigmoid_c128(x), rest = 1 - s, slope = 1 + TIMES(x, rest);
    slope = TIMES(s, slope);
    return TIMES(g, slope);
}

/* Around the operand with the larger real part. */
SLOW vm_logaddexp_c128(tgx_c128 x, tgx_c128 y) {
    if (x != x || y != y) return __builtin_complex((double)NAN, (double)NAN);
    tgx_c128 high = creal(x) >= creal(y) ? x : y, low = creal(x) >= creal(y) ? y : x;
    if (creal(high) == -INFINITY) return high;
    if (creal(high) == INFINITY) return creal(low) == INFINITY ? clog(cexp(x) + cexp(y)) : high;
    return high + vm_log1p_c128(cexp(low - high));
}
#undef SLOW

#define NARROW(NAME) static inline __attribute__((unused)) tgx_c64 vm_##NAME##_c64(tgx_c64 x) { return (tgx_c64)vm_##NAME##_c128(x); }
NARROW(log1p) NARROW(expm1) NARROW(exp2) NARROW(log2) NARROW(log10) NARROW(rsqrt) NARROW(sigmoid) NARROW(sinc)
#undef NARROW
static inline __attribute__((unused)) tgx_c64 vm_pow_c64(tgx_c64 x, tgx_c64 y) { return (tgx_c64)vm_pow_c128(x, y); }
static inline __attribute__((unused)) tgx_c64 vm_silu_slope_c64(tgx_c64 g, tgx_c64 x) { return (tgx_c64)vm_silu_slope_c128(g, x); }
static inline __attribute__((unused)) tgx_c64 vm_logaddexp_c64(tgx_c64 x, tgx_c64 y) { return (tgx_c64)vm_logaddexp_c128(x, y); }
#endif
