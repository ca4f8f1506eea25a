/* Functions that expressions of the op records call and that are made of elementary ones: pieces of activations,
 * polygamma. `vm_NAME_f32` and `vm_NAME_f64` as in vecmath.h. Only loops that call one include this, so that a change
 * here or in vecmath.h compiles nothing else again. */
#ifndef TGX_SCALARS_H
#define TGX_SCALARS_H
#include "vecmath.h"

/* Hurwitz zeta for s >= 2 and a > 0: terms up to a >= 12, then Euler and Maclaurin's formula. */
static double vm_hurwitz_above(double s, double a) {
    static const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510};
    double sum = 0.0;
    for (; a < 12.0 + s; a += 1.0) sum += pow(a, -s);
    double power = pow(a, -s), factor = s / 2.0;
    sum += power * a / (s - 1.0) + 0.5 * power;
    power /= a;
    for (int k = 0; k < 8; k++) {
        sum += bernoulli[k] * factor * power;
        power /= a * a;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / ((2 * k + 3) * (2 * k + 4));
    }
    return sum;
}

/* The n-th derivative of digamma, n >= 1: (-1)^(n+1) n! zeta(n + 1, x). Left of zero the terms with negative arguments
 * are the difference of two zetas with positive ones. */
static __attribute__((unused)) double vm_polygamma_f64(int64_t n, double x) {
    double s = (double)n + 1.0, zeta;
    if (n > 170) return NAN;
    if (x > 0.0) zeta = vm_hurwitz_above(s, x);
    else if (x == floor(x)) zeta = INFINITY;
    else if (!(x > -0x1p50)) return NAN;
    else {
        double inside = x - floor(x), sign = n & 1 ? 1.0 : -1.0;
        zeta = vm_hurwitz_above(s, inside) + sign * (vm_hurwitz_above(s, 1.0 - inside) - vm_hurwitz_above(s, 1.0 - x));
    }
    return (n & 1 ? 1.0 : -1.0) * tgamma(s) * zeta;
}
static inline float vm_polygamma_f32(int64_t n, float x) { return (float)vm_polygamma_f64(n, x); }

VM_INLINE double vm_log1p_unit_f64(double e) { return vm_log1p_f64(e); }
VM_INLINE double vm_normal_f64(double x) { return 0.5 * (1.0 + vm_erf_f64(x * 0.70710678118654752)); }
VM_INLINE double vm_gelu_f64(double x) { return x * vm_normal_f64(x); }

/* The rest once for each precision: T the type, B its suffix, F that of C's functions. */
#define SCALARS(T, B, F) \
    /* fmax for a bound that is a number: fmax itself keeps a loop from being vectorised. */ \
    VM_INLINE T vm_at_least_##B(T x, T low) { return vm_select_##B(vm_mask_##B(x > low), x, low); } \
    VM_INLINE T vm_softplus_##B(T x) { \
        T above = vm_select_##B(vm_mask_##B(x < 0), (T)0, x); /* a ?: would become a branch in longer expressions */ \
        return above + vm_log1p_unit_##B(vm_exp_##B(-__builtin_fabs##F(x))); \
    } \
    VM_INLINE T vm_softplus_until_##B(T x, T beta, T threshold) { \
        return vm_select_##B(vm_mask_##B(x * beta > threshold), x, vm_softplus_##B(x * beta) / beta); \
    } \
    VM_INLINE T vm_gelu_slope_##B(T x) { \
        return vm_normal_##B(x) + x * (T)0.3989422804014327 * vm_exp_##B((T)-0.5 * x * x); \
    } \
    VM_INLINE T vm_gelu_inner_##B(T x) { return (T)0.7978845608028654 * (x + (T)0.044715 * x * x * x); } \
    VM_INLINE T vm_gelu_tanh_##B(T x) { return (T)0.5 * x * ((T)1 + vm_tanh_##B(vm_gelu_inner_##B(x))); } \
    VM_INLINE T vm_gelu_tanh_slope_##B(T x) { \
        T t = vm_tanh_##B(vm_gelu_inner_##B(x)); \
        T slope = (T)0.7978845608028654 * ((T)1 + (T)0.134145 * x * x); \
        return (T)0.5 * ((T)1 + t) + (T)0.5 * x * ((T)1 - t * t) * slope; \
    } \
    VM_INLINE T vm_silu_slope_##B(T g, T x) { \
        T s = vm_sigmoid_##B(x); \
        return g * s * ((T)1 + x * ((T)1 - s)); \
    } \
    VM_INLINE T vm_mish_slope_##B(T g, T x) { \
        T t = vm_tanh_##B(vm_softplus_##B(x)); \
        return g * (t + x * ((T)1 - t * t) * vm_sigmoid_##B(x)); \
    }
SCALARS(float, f32, f)
SCALARS(double, f64, )
#undef SCALARS

#endif
