/* The normal distribution's functions: erfcx, log of the distribution function, quantiles.
 *
 * Powers of t, for their terms do not cancel here: erfcx from its Chebyshev series, the quantiles as quotients of two
 * polynomials, fitted in 60-digit arithmetic by linear least squares at Chebyshev nodes, weighted by the denominator of
 * the fit before. The shorter ones serve float32, as in chebyshev.h. */
#ifndef TGX_SPECIAL_NORMAL_H
#define TGX_SPECIAL_NORMAL_H
#include "chebyshev.h"

/* (1 + 2 a) e^(a^2) erfc a for a >= 0, t = (a - 7/2) / (a + 7/2). */
static const double vm_c_erfcx[] = {
    0x1.3e0a99a0ee914p+0, -0x1.1ebd220ea5946p-3, -0x1.59e2c284b1972p-7, 0x1.8f702ec6b3bbap-4,
    -0x1.d76830c35056ap-4, 0x1.686106045eed1p-4, -0x1.8ff5ef77381b2p-5, 0x1.38ec667477473p-6,
    -0x1.143c4c891e642p-8, -0x1.3cf36f98105c1p-12, 0x1.27e65fbfa9e67p-11, -0x1.fda8a5777da87p-14,
    -0x1.66e11645605dcp-15, 0x1.97053306b92ap-16, 0x1.385e7b901a919p-19, -0x1.ffe8797b263b1p-19,
    -0x1.722921ed381c4p-25, 0x1.42eb1c09ddffap-21, -0x1.27e42f4266242p-27, -0x1.9e0963786431fp-24,
    0x1.6db1173fda30cp-31, 0x1.d421ddb5ecc99p-27, 0x1.09a8bf1ab7ccbp-34, -0x1.406aa617fb329p-30
};
/* The same for float32. */
static const double vm_c_erfcx_single[] = {
    0x1.3e0a99a0ee874p+0, -0x1.1ebd220ec2769p-3, -0x1.59e2c2817d4dfp-7, 0x1.8f702ed4616b7p-4,
    -0x1.d76830ce2761fp-4, 0x1.6861051082c1ep-4, -0x1.8ff5ee94785d5p-5, 0x1.38ec857309195p-6,
    -0x1.143c71dc6013cp-8, -0x1.3d15c595618bcp-12, 0x1.27e9da8f9e53ep-11, -0x1.fc3fe106a548bp-14,
    -0x1.6743f76ea29f6p-15, 0x1.8dedb277dc427p-16, 0x1.3eec13e69d0f4p-19, -0x1.b8015e92bc01ap-19,
    -0x1.3759a2862c4acp-24, 0x1.378a6eb843878p-22
};
/* erfinv(x) / x on |x| <= 3/4, t = 2 (x / 0.75)^2 - 1, numerator; error 5e-17 */
static const double vm_c_middle_p[] = {
    0x1.ed943e7c761e6p-1, -0x1.155e708da09acp+0, 0x1.d2d602e7f16d1p-2, -0x1.69c1ac83ab465p-4,
    0x1.fb3000cdbd8ddp-8, -0x1.05e539fd7b50fp-12, 0x1.72d257e8331cp-20
};
/* and denominator */
static const double vm_c_middle_q[] = {
    0x1.p+0, -0x1.388a98a9c736ap+0, 0x1.2446e1bb5df57p-1, -0x1.04e61949c6c9ap-3, 0x1.c10f818f31c6ap-7,
    -0x1.46a1adca02e59p-11, 0x1.0774a42519fa5p-17
};
/* -Phi^-1(e^(-r^2)) on 1.44 <= r <= 6.25, t = r - 1.4375, numerator; error 9e-18 */
static const double vm_c_tail_p[] = {
    0x1.247587e7b7ee5p+0, 0x1.127afdada5a82p+2, 0x1.8069d8872619p+2, 0x1.12382187f92c4p+2, 0x1.bf8a75adaf45cp+0,
    0x1.b3a5a1fcd3fbbp-2, 0x1.ee5846b670f41p-5, 0x1.20f5cd48246a1p-8, 0x1.ee7137ab7cf2dp-14
};
/* and denominator */
static const double vm_c_tail_q[] = {
    0x1.p+0, 0x1.1c26619589d8dp+1, 0x1.fcdb9d84c7b0fp+0, 0x1.de9e3139e6c2ep-1, 0x1.017a4a59a1141p-2,
    0x1.3c26e53ea37d3p-5, 0x1.890c286d5dcdp-9, 0x1.5d97174a3d7bap-14, 0x1.26fa7d6e6d3b4p-34
};
/* -Phi^-1(e^(-r^2)) on 6.25 <= r <= 27.6, t = r - 6.25, numerator; error 1e-17 */
static const double vm_c_far_p[] = {
    0x1.0f7f9b101f6e8p+3, 0x1.6ef5e859cff23p+2, 0x1.8f0fd5b5fc333p+0, 0x1.becc9e4796d63p-3, 0x1.11270fe4d04ap-6,
    0x1.6388784d6fa4bp-11, 0x1.b7a17a76ac67p-17, 0x1.79798f3147fdbp-24
};
/* and denominator */
static const double vm_c_far_q[] = {
    0x1.p+0, 0x1.024a6b0e56baap-1, 0x1.90f256714c87fp-4, 0x1.2c2faceff72cfp-7, 0x1.bcdb2512cdcdbp-12,
    0x1.29d675a9f3be4p-17, 0x1.0ae9d9bcd9376p-24, 0x1.b1592363fbbafp-51
};
/* erfinv(x) / x on |x| <= 3/4, t = 2 (x / 0.75)^2 - 1, numerator for float32; error 2e-14 */
static const double vm_c_middle_p_single[] = {
    0x1.ed943e7c7616dp-1, -0x1.c807de39bf51p-1, 0x1.25fc5a78313e1p-2, -0x1.34c3ec9767beap-5,
    0x1.c77e711ce39e9p-10, -0x1.c47d827930b37p-17
};
/* and denominator */
static const double vm_c_middle_q_single[] = {
    0x1.p+0, -0x1.05588e8f790c5p+0, 0x1.8165d0ba498fdp-2, -0x1.ec5b4873f22c6p-5, 0x1.f92a48213867bp-9,
    -0x1.188ad83d67c56p-14
};
/* -Phi^-1(e^(-r^2)) on 1.44 <= r <= 6.25, t = r - 1.4375, numerator for float32; error 6e-14 */
static const double vm_c_tail_p_single[] = {
    0x1.247587e7b7dbep+0, 0x1.010036f480867p+2, 0x1.3b583300a004fp+2, 0x1.5dee51a5dc5bep+1, 0x1.6b8c8fe4f97fp-1,
    0x1.40c374bb3ed99p-4, 0x1.5a09a1bdfd2c5p-9
};
/* and denominator */
static const double vm_c_tail_q_single[] = {
    0x1.p+0, 0x1.fb1907c35b2p+0, 0x1.68eb3d2295b9ep+0, 0x1.b9c2ca6fb09b4p-2, 0x1.afca48259ddcep-5,
    0x1.e956285fd843cp-10, 0x1.ad4f7d21803e7p-34
};
/* -Phi^-1(e^(-r^2)) on 6.25 <= r <= 27.6, t = r - 6.25, numerator for float32; error 2e-15 */
static const double vm_c_far_p_single[] = {
    0x1.0f7f9b101f6f4p+3, 0x1.4b2378a6ee23cp+2, 0x1.3bb4c099cbfb9p+0, 0x1.28be21c940b5ep-3,
    0x1.1b8acacf1ef8ap-7, 0x1.f81b9b972870ep-13, 0x1.33e8c2cb829b1p-19
};
/* and denominator */
static const double vm_c_far_q_single[] = {
    0x1.p+0, 0x1.c106f34f9b8fap-2, 0x1.220c6f3083f7dp-4, 0x1.4fdeee49efb4dp-8, 0x1.4f3504fca03a6p-13,
    0x1.b371c5c9ac2cfp-20, 0x1.d28fec9af2b6ap-45
};

#define VM_SQRT_HALF 0.70710678118654752440

/* e^(a^2) erfc a for a >= 0. */
VM_INLINE double vm_erfcx_right(double a, _Bool single)
{
    double t = a > 1e300 ? 1.0 : (a - 3.5) / (a + 3.5);
    double p = single ? vm_horner(vm_c_erfcx_single, 18, t) : vm_horner(vm_c_erfcx, 24, t);
    return p / (1.0 + 2.0 * a);
}
VM_INLINE double vm_erfcx_of(double x, _Bool single)
{
    double tail = vm_erfcx_right(fabs(x), single), bounded = x > -27.0 ? x : -27.0;
    vm_pair_f64 square = vm_product_f64(bounded, bounded);
    double left = 2.0 * vm_exp_sum_f64(square.hi, square.lo) - tail;
    return x < 0.0 ? left : tail;
}

/* The area of the tail beyond |x|: e^(-x^2 / 2) with the square in two parts, times erfcx, so that the rounding of
 * x / sqrt(2) costs next to nothing. */
VM_INLINE double vm_normal_tail(double x, _Bool single)
{
    double a = fabs(x);
    a = a > 40.0 ? 40.0 : a;
    vm_pair_f64 square = vm_product_f64(a, a);
    return 0.5 * vm_erfcx_right(a * VM_SQRT_HALF, single) * vm_exp_sum_f64(-0.5 * square.hi, -0.5 * square.lo);
}
VM_INLINE double vm_ndtr_of(double x, _Bool single)
{
    double tail = vm_normal_tail(x, single), middle = 0.5 + 0.5 * vm_erf_small_f64(x * VM_SQRT_HALF);
    double r = x > 0.0 ? 1.0 - tail : tail;
    return fabs(x) < 0.5 ? middle : r;
}

/* Left of -1 by erfcx, so that nothing underflows. */
VM_INLINE double vm_log_ndtr_of(double x, _Bool single)
{
    double left = vm_log_f64(0.5 * vm_erfcx_right(fabs(x) * VM_SQRT_HALF, single)) - 0.5 * x * x;
    double right = vm_log1p_f64(-vm_ndtr_of(-x, single));
    return x < -1.0 ? left : right;
}

/* erfinv(x) / x, with t, where `middle`; otherwise the x > 0 beyond which the normal distribution has the area
 * e^(-r^2) <= 1/8, which is far where r is larger than 6.25. */
VM_INLINE double vm_quantile_of(_Bool middle, double t, double r, _Bool far, _Bool single)
{
    t = middle ? t : far ? r - 6.25 : r - 1.4375;
    double p = 0.0, q = 0.0;
#define VM_OF(table) (k < VM_TERMS(table) ? table[k] : 0.0)
#define VM_PIECE(pq, precision) \
    (middle ? VM_OF(vm_c_middle_##pq##precision) : far ? VM_OF(vm_c_far_##pq##precision) : vm_c_tail_##pq##precision[k])
    _Pragma("GCC unroll 16") for (int k = single ? 6 : 8; k >= 0; k--) {
        p = vm_mad_f64(p, t, single ? VM_PIECE(p, _single) : VM_PIECE(p, ));
        q = vm_mad_f64(q, t, single ? VM_PIECE(q, _single) : VM_PIECE(q, ));
    }
#undef VM_PIECE
#undef VM_OF
    return p / q;
}

VM_INLINE double vm_erfinv_of(double x, _Bool single)
{
    double a = fabs(x), s = x / 0.75;
    _Bool middle = a <= 0.75;
    double r = __builtin_sqrt(-vm_log_f64(0.5 * (1.0 - a)));
    double ratio = vm_quantile_of(middle, 2.0 * s * s - 1.0, r, !single && r > 6.25, single); /* float32: below 4.2 */
    double value = middle ? x * ratio : copysign(VM_SQRT_HALF * ratio, x);
    return a == 1.0 ? copysign((double)INFINITY, x) : value;
}

VM_INLINE double vm_ndtri_of(double p, _Bool single)
{
    double x = 2.0 * (p - 0.5), s = x / 0.75, least = p < 0.5 ? p : 1.0 - p;
    _Bool middle = fabs(x) <= 0.75;
    double r = __builtin_sqrt(-vm_log_f64(least));
    double ratio = vm_quantile_of(middle, 2.0 * s * s - 1.0, r, r > 6.25, single);
    double value = middle ? 1.41421356237309504880 * x * ratio : copysign(ratio, x);
    return least == 0.0 ? copysign((double)INFINITY, x) : value;
}

VM_BOTH(erfcx)
VM_BOTH(ndtr)
VM_BOTH(log_ndtr)
VM_BOTH(erfinv)
VM_BOTH(ndtri)

#endif
