/* Double precision: powers, two-argument functions, the error function and the gamma family;
 * included by vecmath.h. */

VM_INLINE double vm_rsqrt_f64(double x)
{
    return 1.0 / __builtin_sqrt(x);
}

/* log(e^a + e^b) for rate and once of 1; equal infinities are their own answer. */
VM_INLINE double vm_power_sum_log_f64(double a, double b, double rate, double once)
{
    double distance = __builtin_fabs(a - b);
    distance = a == b ? 0.0 : distance;
    double m = a > b ? a : b;
    return m + vm_log1p_f64(vm_exp_f64(-distance * rate)) * once;
}

VM_INLINE double vm_logaddexp_f64(double a, double b)
{
    return vm_power_sum_log_f64(a, b, 1.0, 1.0);
}

/* a * b to about 2^-102, both being pairs. */
VM_INLINE vm_pair_f64 vm_product_pair_f64(vm_pair_f64 a, vm_pair_f64 b)
{
    vm_pair_f64 p = vm_product_f64(a.hi, b.hi);
    p.lo += a.hi * b.lo + a.lo * b.hi;
    return p;
}

/* log x for positive finite x to about 2^-68, enough for pow's exponent of up to 745:
 * 2 atanh(s) = 2 (s + s z (1/3 + z Q(z))), s = f / (2 + f), z = s^2, all but Q in pairs. */
VM_INLINE vm_pair_f64 vm_log_pair_f64(double x)
{
    vm_split_f64 p = vm_split_pow2_f64(x);
    double f = p.m - 1.0, den = 2.0 + f, den_lo = f - (den - 2.0);
    vm_pair_f64 s = {f / den, 0.0};
    vm_pair_f64 back = vm_product_f64(s.hi, den);
    s.lo = (((f - back.hi) - back.lo) - s.hi * den_lo) / den;
    vm_pair_f64 z = vm_product_pair_f64(s, s);
    double q = z.hi * VM_POLY8(f64, z.hi, 0x1.9999999999996p-3, 0x1.2492492493049p-3,
                               0x1.c71c71c57e097p-4, 0x1.745d183375d44p-4,
                               0x1.3b13626867415p-4, 0x1.1120c14fb4cd8p-4,
                               0x1.de3195e06d2cbp-5, 0x1.eb2099286923dp-5);
    const double third = 0x1.5555555555555p-2, third_lo = 0x1.5555555555555p-56;
    vm_pair_f64 a = {third + q, 0.0};
    a.lo = (third - a.hi) + q + third_lo;
    vm_pair_f64 c = vm_product_pair_f64(s, vm_product_pair_f64(z, a));
    double hi = s.hi + c.hi, lo = (s.hi - hi) + c.hi + (s.lo + c.lo);
    double head = p.k * 0x1.62e42fefa3800p-1, sum = head + 2.0 * hi;
    return (vm_pair_f64){sum, (head - sum) + 2.0 * hi + (2.0 * lo + p.k * 0x1.ef35793c76730p-45)};
}

/* Zeros, infinities, NaN and the sign of x^y, given r = |x|^y for finite x != 0 and y. */
VM_INLINE double vm_pow_edges_f64(double x, double y, double r)
{
    const double inf = __builtin_inf();
    double ax = __builtin_fabs(x), ay = __builtin_fabs(y);
    uint64_t whole = vm_mask_f64(vm_rint_f64(ay) == ay);
    uint64_t odd = whole & ~vm_mask_f64(vm_rint_f64(0.5 * ay) == 0.5 * ay);
    uint64_t finite = vm_mask_f64(ax < inf);
    uint64_t shrinks = vm_mask_f64(ax > 1.0) ^ vm_mask_f64(y > 0.0);
    double far = vm_select_f64(shrinks, 0.0, inf); /* the limit at x = 0 and at infinities */
    far = vm_select_f64(vm_mask_f64(ax == 1.0), 1.0, far);
    r = vm_select_f64(vm_mask_f64(ax == 0.0) | ~finite | vm_mask_f64(ay == inf), far, r);
    r = vm_select_f64(vm_mask_f64(x < 0.0) & finite & ~whole, __builtin_nan(""), r);
    r = vm_from_bits_f64(vm_bits_f64(r) ^ (odd & vm_bits_f64(x) & VM_SIGN_F64));
    r = vm_select_f64(vm_mask_f64(x != x) | vm_mask_f64(y != y), x + y, r);
    return vm_select_f64(vm_mask_f64(y == 0.0) | vm_mask_f64(x == 1.0), 1.0, r);
}

VM_INLINE double vm_pow_f64(double x, double y)
{
    vm_pair_f64 l = vm_log_pair_f64(__builtin_fabs(x));
    /* 2^64 over- or underflows for every x != 1. */
    double bounded = __builtin_fabs(y) > 0x1p64 ? __builtin_copysign(0x1p64, y) : y;
    vm_pair_f64 e = vm_product_f64(bounded, l.hi);
    return vm_pow_edges_f64(x, y, vm_exp_sum_f64(e.hi, e.lo + bounded * l.lo));
}

/* erf x on |x| < 3/4: x + x E(x^2). */
VM_INLINE double vm_erf_small_f64(double x)
{
    double z = x * x;
    double e = VM_POLY11(f64, z, 0x1.06eba8214db69p-3, -0x1.812746b0379ep-2,
                         0x1.ce2f21a042462p-4, -0x1.b82ce31255154p-6, 0x1.565bcd03007b1p-8,
                         -0x1.c02db10cf44dfp-11, 0x1.f9a2acf49cc47p-14, -0x1.f4c5a8a1e83e6p-17,
                         0x1.b90c39bedea4cp-20, -0x1.563e0e4e22583p-23, 0x1.89cd676062034p-27);
    return vm_mad_f64(x, e, x);
}

/* erfc a for a >= 0: e^(-a^2) P(t) / (1 + 2a), t = (a - 7/2) / (a + 7/2), where P stands for
 * (1 + 2a) e^(a^2) erfc a on 0 <= a <= 27.3. */
VM_INLINE double vm_erfc_tail_f64(double a)
{
    a = a > 28.0 ? 28.0 : a;
    double t = (a - 3.5) / (a + 3.5);
    double high = VM_POLY11(f64, t, -0x1.66e5c5b05f1d2p-15, 0x1.970e13ffee38ep-16,
                            0x1.39329493fdc1ap-19, -0x1.002ce0c0e0611p-18,
                            -0x1.d499da193dbf6p-25, 0x1.442b5b4062c16p-21,
                            0x1.4c38688805cc4p-28, -0x1.9a83e82787a75p-24,
                            -0x1.1fd9a71356741p-27, 0x1.7fc49572048ffp-27,
                            0x1.75442f3805a6cp-29);
    double p = VM_POLY13(f64, t, 0x1.3e0a99a0ee914p+0, -0x1.1ebd220ea5937p-3,
                         -0x1.59e2c284b0c04p-7, 0x1.8f702ec6b2ed3p-4, -0x1.d76830c355ec8p-4,
                         0x1.686106047855ep-4, -0x1.8ff5ef764a9a8p-5, 0x1.38ec666ec4bb1p-6,
                         -0x1.143c4cdc3856ep-8, -0x1.3cf36479d01a7p-12, 0x1.27e6712f64bfap-11,
                         -0x1.fda97238ed73bp-14, high);
    vm_pair_f64 s = vm_product_f64(a, a);
    return vm_exp_sum_f64(-s.hi, -s.lo) * (p / (1.0 + 2.0 * a));
}

VM_INLINE double vm_erf_f64(double x)
{
    double a = __builtin_fabs(x);
    double r = __builtin_copysign(1.0 - vm_erfc_tail_f64(a), x);
    return a < 0.75 ? vm_erf_small_f64(x) : r;
}

VM_INLINE double vm_erfc_f64(double x)
{
    double a = __builtin_fabs(x);
    double tail = vm_erfc_tail_f64(a);
    double r = x < 0.0 ? 2.0 - tail : tail;
    return a < 0.75 ? 1.0 - vm_erf_small_f64(x) : r;
}

/* |sin(pi r)| and cos(pi r) for |r| <= 1/2, the distance to the nearest integer; arguments
 * above pi/4 go through the other function, 1/2 - |r| being exact there. */
VM_INLINE double vm_sinpi_abs_f64(double r)
{
    const double pi = 0x1.921fb54442d18p+1;
    double a = __builtin_fabs(r);
    double s = vm_sin_poly_f64((vm_pair_f64){pi * a, 0.0});
    double c = vm_cos_poly_f64((vm_pair_f64){pi * (0.5 - a), 0.0});
    return a > 0.25 ? c : s;
}

VM_INLINE double vm_cospi_f64(double r)
{
    return vm_sinpi_abs_f64(0.5 - __builtin_fabs(r));
}

/* log gamma(1 + u) for u in [0, 1], which is zero at both ends: u (u - 1) times the interpolation of the rest at Chebyshev's
 * points, within 0.6 of the last bit. */
VM_INLINE double vm_lgamma1p_unit_f64(double u)
{
    double v = u - 0.5, v2 = v * v, v4 = v2 * v2;
    double low = VM_POLY10(f64, v,
        0x1.eeb95b094c191p-2, -0x1.2aed059bd6085p-3, 0x1.01af62a292eb9p-4, -0x1.007aa83cefa2ap-5,
        0x1.13342351db068p-6, -0x1.34dbda12862fdp-7, 0x1.64f066cf96646p-8, -0x1.a503537a0f991p-9,
        0x1.f814855fdfeb8p-10, -0x1.313e528a95488p-10);
    double high = VM_POLY10(f64, v,
        0x1.7510b1d1fa536p-11, -0x1.cb504365545dbp-12, 0x1.1c0d19e4fef05p-12, -0x1.61841f1ae66cfp-13,
        0x1.c3d6281f9ac35p-14, -0x1.1cfbbcd48451cp-14, 0x1.2550c8f33e895p-15, -0x1.683c30f1a7cfap-16,
        0x1.dbd1c21b8dfa7p-16, -0x1.3712529314dfdp-16);
    return u * (u - 1.0) * vm_mad_f64(high, v4 * v4 * v2, low);
}

/* log|gamma(y)| for y >= 0.  From 8 on by the series sum B_2n / (2n (2n-1)) y^(1-2n), below by the unit interval, to which
 * y = (z - 1) (z - 2) ... leads: next to the zeros at 1 and 2 nothing is subtracted but what is exact. */
VM_INLINE double vm_lgamma_positive_f64(double y)
{
    double z = y, product = 1.0;
    for (int i = 0; i < 5; i++) {
        int above = z >= 3.0;
        z = above ? z - 1.0 : z;
        product = above ? product * z : product;
    }
    int two = z >= 2.0, below = y < 1.0;
    double u = two ? z - 2.0 : below ? y : z - 1.0;
    double of = below ? y : two ? product * (z - 1.0) : 1.0;
    int far = y >= 8.0;
    double i = 1.0 / y;
    double series = i * VM_POLY9(f64, i * i, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680,
                                 1.0 / 1188, -691.0 / 360360, 1.0 / 156, -3617.0 / 122400,
                                 43867.0 / 244188);
    double log = vm_log_f64(far ? y : of);
    /* log(2 pi)/2 - 1/2, so that an infinite y meets no infinity of the other sign. */
    double r = (y - 0.5) * (log - 1.0) + 0x1.acfe390c97d69p-2 + series;
    return far ? r : vm_lgamma1p_unit_f64(u) + (below ? -log : log);
}

/* Reflection for x < 0: log|gamma(x)| = log(pi / |sin(pi x)|) - log gamma(1 - x).  Next to 0,
 * where the quotient overflows, it is -log|x| on both sides. */
VM_INLINE double vm_lgamma_f64(double x)
{
    int left = x < -0x1p-60;
    double core = vm_lgamma_positive_f64(left ? 1.0 - x : __builtin_fabs(x));
    double r = x - vm_rint_f64(x);
    double reflected = vm_log_f64(0x1.921fb54442d18p+1 / vm_sinpi_abs_f64(r)) - core;
    reflected = x <= -0x1p52 ? __builtin_inf() : reflected; /* every such x is a pole */
    return left ? reflected : core;
}

/* psi(y) for y >= 0, keeping the sign of a zero.  The sum of 1/(y+i) for i < 8 is carried as
 * one fraction; the series is sum B_2n / (2n) z^(-2n). */
VM_INLINE double vm_digamma_positive_f64(double y)
{
    int low = y < 8.0;
    double s = low ? y : 1.0;
    double num = 1.0, den = s + 1.0;
    for (int i = 2; i < 8; i++) {
        num = num * (s + i) + den;
        den *= s + i;
    }
    double z = low ? y + 8.0 : y;
    double i = 1.0 / z, w = i * i;
    double series = w * VM_POLY9(f64, w, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132,
                                 -691.0 / 32760, 1.0 / 12, -3617.0 / 8160, 43867.0 / 14364);
    double r = (vm_log_f64(z) - 0.5 * i) - series;
    return low ? (r - num / den) - 1.0 / s : r;
}

/* psi(x) = psi(1 - x) - pi / tan(pi x) for x < 0; the poles there have no signed limit. */
VM_INLINE double vm_digamma_f64(double x)
{
    int left = x < 0.0;
    double core = vm_digamma_positive_f64(left ? 1.0 - x : x);
    double r = x - vm_rint_f64(x);
    double cot = __builtin_copysign(vm_cospi_f64(r) / vm_sinpi_abs_f64(r), r);
    double reflected = core - 0x1.921fb54442d18p+1 * cot;
    reflected = r == 0.0 ? __builtin_nan("") : reflected;
    return left ? reflected : core;
}

/* psi'(y) for y >= 0, the sum of 1/(y+i)^2 as one fraction; series sum B_2n z^(-2n-1). */
VM_INLINE double vm_trigamma_positive_f64(double y)
{
    int low = y < 8.0;
    double s = low ? y : 1.0;
    double num = 1.0, den = (s + 1.0) * (s + 1.0);
    for (int i = 2; i < 8; i++) {
        double square = (s + i) * (s + i);
        num = num * square + den;
        den *= square;
    }
    double z = low ? y + 8.0 : y;
    double i = 1.0 / z, w = i * i;
    double series = VM_POLY11(f64, w, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66,
                              -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798,
                              -174611.0 / 330, 854513.0 / 138);
    double r = i + (0.5 * w + i * w * series);
    return low ? 1.0 / (s * s) + (num / den + r) : r;
}

/* psi'(x) + psi'(1 - x) = pi^2 / sin^2(pi x) for x < 0; infinite at the poles. */
VM_INLINE double vm_trigamma_f64(double x)
{
    int left = x < 0.0;
    double core = vm_trigamma_positive_f64(left ? 1.0 - x : x);
    double q = 0x1.921fb54442d18p+1 / vm_sinpi_abs_f64(x - vm_rint_f64(x));
    return left ? q * q - core : core;
}
