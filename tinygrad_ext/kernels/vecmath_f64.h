/* Elementary functions in double precision; included by vecmath.h, which explains the method.
 * Order: exp family, log family, circular, inverse circular, two arguments (powers). */

/* x = k ln2 + r with |r| <= ln2/2; kbits are the bits of k + VM_ROUND. */
typedef struct { double r, k; uint64_t kbits; } vm_exp_parts_f64;

/* Reduces x + low.  The head of ln2 has 42 bits, so its product with k is exact without fma. */
VM_INLINE vm_exp_parts_f64 vm_exp_reduce_f64(double x, double low)
{
    double shifted = vm_mad_f64(x, 0x1.71547652b82fep+0, VM_ROUND_F64);
    double k = shifted - VM_ROUND_F64;
    double r = vm_mad_f64(k, -0x1.62e42fefa3800p-1, x);
    r = vm_mad_f64(k, -0x1.ef35793c76730p-45, r) + low;
    return (vm_exp_parts_f64){r, k, vm_bits_f64(shifted)};
}

/* e^r - 1 = r + r^2 Q(r) on |r| <= ln2/2. */
VM_INLINE double vm_expm1_poly_f64(double r)
{
    double q = VM_POLY11(f64, r, 0.5, 0x1.5555555555559p-3, 0x1.555555555554p-5,
                         0x1.111111110f6b2p-7, 0x1.6c16c16c1e645p-10, 0x1.a01a01afe5b71p-13,
                         0x1.a01a017f6ccfap-16, 0x1.71ddf84cdb439p-19, 0x1.27e52d562f7e9p-22,
                         0x1.af5ed3dd364cp-26, 0x1.1ef7be62e0d2bp-29);
    return vm_mad_f64(r * r, q, r);
}

/* Far outside the range the parts are garbage and the result is replaced.  The two tests look
 * at different variables on purpose: gcc would chain two tests of x (see vm_select_f64). */
VM_INLINE double vm_exp_finish_f64(vm_exp_parts_f64 p, double x, double max)
{
    double r = vm_scale_f64(1.0 + vm_expm1_poly_f64(p.r), p.kbits);
    r = p.k < -1076.0 ? 0.0 : r;
    return x > max ? __builtin_inf() : r;
}

/* e^(x + low) for |low| far below ulp(x). */
VM_INLINE double vm_exp_sum_f64(double x, double low)
{
    return vm_exp_finish_f64(vm_exp_reduce_f64(x, low), x, 710.0);
}

VM_INLINE double vm_exp_f64(double x)
{
    return vm_exp_finish_f64(vm_exp_reduce_f64(x, 0.0), x, 710.0);
}

VM_INLINE double vm_exp2_f64(double x)
{
    double shifted = x + VM_ROUND_F64, k = shifted - VM_ROUND_F64;
    vm_exp_parts_f64 p = {(x - k) * 0x1.62e42fefa39efp-1, k, vm_bits_f64(shifted)};
    return vm_exp_finish_f64(p, x, 1025.0);
}

/* (e^x - 1) / 4 from the parts of x, -40 <= x <= 710.5: the quarter lets sinh reach its largest
 * finite value.  Loses bits where the result is subnormal; callers return x there. */
VM_INLINE double vm_quarter_expm1_f64(vm_exp_parts_f64 p)
{
    double scale = vm_from_bits_f64((p.kbits << 52) + (VM_ONE_F64 - (2ull << 52)));
    return vm_mad_f64(vm_expm1_poly_f64(p.r), scale, scale - 0.25);
}

VM_INLINE double vm_expm1_f64(double x)
{
    vm_exp_parts_f64 p = vm_exp_reduce_f64(x, 0.0);
    double r = 4.0 * vm_quarter_expm1_f64(p);
    r = p.k < -57.0 ? -1.0 : r;
    r = x > 710.0 ? __builtin_inf() : r;
    return __builtin_fabs(x) < 0x1p-54 ? x : r;
}

VM_INLINE double vm_sinh_f64(double x)
{
    double a = __builtin_fabs(x);
    double h = 2.0 * vm_quarter_expm1_f64(vm_exp_reduce_f64(a > 710.5 ? 710.5 : a, 0.0));
    double m = h > 1e300 ? 1e300 : h; /* infinity / infinity would be NaN */
    double r = __builtin_copysign(h + m / (2.0 * m + 1.0), x);
    return a < 0x1p-28 ? x : r;
}

VM_INLINE double vm_cosh_f64(double x)
{
    double a = __builtin_fabs(x);
    vm_exp_parts_f64 p = vm_exp_reduce_f64(a > 711.0 ? 711.0 : a, 0.0);
    double half = vm_scale_f64(1.0 + vm_expm1_poly_f64(p.r), p.kbits - 1);
    return half + 0.25 / half;
}

/* tanh a = e / (e + 2) with e = e^(2a) - 1; at 20 the quotient rounds to 1. */
VM_INLINE double vm_tanh_f64(double x)
{
    double a = __builtin_fabs(x);
    double q = vm_quarter_expm1_f64(vm_exp_reduce_f64(2.0 * (a > 20.0 ? 20.0 : a), 0.0));
    double r = __builtin_copysign(q / (q + 0.5), x);
    return a < 0x1p-28 ? x : r;
}

/* e^-|x| keeps both tails accurate and never overflows; 2^(k+512) is always a normal number. */
VM_INLINE double vm_sigmoid_f64(double x)
{
    double a = __builtin_fabs(x);
    vm_exp_parts_f64 p = vm_exp_reduce_f64(-(a > 746.0 ? 746.0 : a), 0.0);
    double scale = vm_from_bits_f64((p.kbits << 52) + (VM_ONE_F64 + (512ull << 52)));
    double e = (1.0 + vm_expm1_poly_f64(p.r)) * scale * 0x1p-512;
    double den = 1.0 + e, low = e - (den - 1.0);
    double q = (x < 0.0 ? e : 1.0) / den;
    return vm_mad_f64(q, -low, q); /* den + low == 1 + e; low/den is close enough to low */
}

/* x = 2^k (1 + f), log(1 + f) = f - half + t, with sqrt(1/2) <= 1 + f < sqrt(2). */
typedef struct { double k, f, half, t; } vm_log_parts_f64;

/* A positive finite x = 2^k m. */
typedef struct { double k, m; } vm_split_f64;

VM_INLINE vm_split_f64 vm_split_pow2_f64(double x)
{
    int small = x < 0x1p-1022;
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    uint64_t u = vm_bits_f64(small ? x * 0x1p54 : x) + (VM_ONE_F64 - sqrt_half);
    uint64_t e = u >> 52;
    /* Integer to double through the bits of 2^52 + e: SSE2 and AVX2 cannot convert int64. */
    double k = vm_from_bits_f64(e | 0x4330000000000000u) - (0x1p52 + 1023.0);
    double m = vm_from_bits_f64((u & 0x000fffffffffffffu) + sqrt_half);
    return (vm_split_f64){small ? k - 54.0 : k, m};
}

VM_INLINE vm_log_parts_f64 vm_log_reduce_f64(double x)
{
    vm_split_f64 p = vm_split_pow2_f64(x);
    double f = p.m - 1.0;
    double s = f / (2.0 + f);
    double z = s * s;
    /* (log((1+s)/(1-s)) - 2s) / (s z) in z = s^2, |s| <= (sqrt2-1)/(sqrt2+1). */
    double r = z * VM_POLY7(f64, z, 0x1.5555555555593p-1, 0x1.999999997fb3p-2,
                            0x1.2492494217d2bp-2, 0x1.c71c51e7be8c2p-3, 0x1.7466463a589c1p-3,
                            0x1.39a0f37d69b19p-3, 0x1.2f0d9ea538551p-3);
    double half = 0.5 * f * f;
    return (vm_log_parts_f64){p.k, f, half, s * (half + r)};
}

VM_INLINE double vm_log_sum_f64(vm_log_parts_f64 p)
{
    double low = vm_mad_f64(p.k, 0x1.ef35793c76730p-45, p.t);
    return vm_mad_f64(p.k, 0x1.62e42fefa3800p-1, p.f - (p.half - low));
}

/* The value of a logarithm whose argument is x, r being right for finite x > 0. */
VM_INLINE double vm_log_edges_f64(double x, double r)
{
    r = x < __builtin_inf() ? r : x;
    double edge = x == 0.0 ? -__builtin_inf() : __builtin_nan("");
    return x > 0.0 ? r : edge;
}

VM_INLINE double vm_log_f64(double x)
{
    return vm_log_edges_f64(x, vm_log_sum_f64(vm_log_reduce_f64(x)));
}

/* log(u + c) = log u + c/u, with u + c == 1 + x exactly. */
VM_INLINE double vm_log1p_f64(double x)
{
    double u = 1.0 + x;
    double back = u - x;
    double c = (1.0 - back) + (x - (u - back));
    vm_log_parts_f64 p = vm_log_reduce_f64(u);
    p.t += c / u;
    double r = vm_log_edges_f64(u, vm_log_sum_f64(p));
    return __builtin_fabs(x) < 0x1p-54 ? x : r;
}

/* scale_hi + scale_lo is 1/ln(base), k_hi + k_lo is log_base(2).  The upper half of the
 * mantissa times the 21-bit scale_hi is exact, so only small terms are rounded. */
VM_INLINE double vm_log_base_f64(double x, double scale_hi, double scale_lo,
                                 double k_hi, double k_lo)
{
    vm_log_parts_f64 p = vm_log_reduce_f64(x);
    double hi = vm_from_bits_f64(vm_bits_f64(p.f - p.half) & 0xffffffff00000000u);
    double lo = (p.f - hi) - p.half + p.t;
    double head = p.k * k_hi, val = hi * scale_hi;
    double sum = head + val;
    double tail = (lo + hi) * scale_lo + lo * scale_hi + p.k * k_lo + ((head - sum) + val);
    return vm_log_edges_f64(x, tail + sum);
}

VM_INLINE double vm_log2_f64(double x)
{
    return vm_log_base_f64(x, 0x1.71547p+0, 0x1.94ae0bf85ddf4p-22, 1.0, 0.0);
}

VM_INLINE double vm_log10_f64(double x)
{
    return vm_log_base_f64(x, 0x1.bcb7bp-2, 0x1.526e50e32a6abp-26, 0x1.34413509f7800p-2,
                           0x1.fef311f12b358p-46);
}

VM_INLINE double vm_asinh_f64(double x)
{
    double a = __builtin_fabs(x);
    int big = a > 0x1p500; /* where the square overflows, 1 + x is x */
    double u = big ? a : a + a * a / (1.0 + __builtin_sqrt(a * a + 1.0));
    return __builtin_copysign(vm_log1p_f64(u) + (big ? 0x1.62e42fefa39efp-1 : 0.0), x);
}

VM_INLINE double vm_acosh_f64(double x)
{
    double t = x - 1.0;
    int big = x > 0x1p500;
    double u = big ? x : t + __builtin_sqrt(vm_mad_f64(t, t, 2.0 * t));
    double r = vm_log1p_f64(u) + (big ? 0x1.62e42fefa39efp-1 : 0.0);
    return t < 0.0 ? __builtin_nan("") : r;
}

VM_INLINE double vm_atanh_f64(double x)
{
    double a = __builtin_fabs(x);
    return __builtin_copysign(0.5 * vm_log1p_f64(2.0 * a / (1.0 - a)), x);
}

/* hi + lo = a - n pi/2 for an integer n < 2^20: the parts of pi/2 are chosen so that every
 * product is exact, and each difference that can cancel keeps its rounding error. */
VM_INLINE vm_pair_f64 vm_sub_quarters_f64(double a, double n)
{
#if VM_HAS_FMA
    double r1 = __builtin_fma(n, -0x1.921fb54442d18p+0, a);
    double p2 = n * 0x1.1a62633145c07p-54;
    double p2_low = __builtin_fma(n, 0x1.1a62633145c07p-54, -p2);
    double head = r1 - p2;
    double tail = __builtin_fma(n, -0x1.f1976b7ed8fbcp-110, p2_low - ((r1 - head) - p2));
#else
    double r1 = a - n * 0x1.921fb544p+0;
    double p2 = n * 0x1.0b4611a6p-34, p3 = n * 0x1.3198a2ep-69;
    double r2 = r1 - p2, head = r2 - p3;
    double low = ((r1 - r2) - p2) + ((r2 - head) - p3);
    double tail = n * 0x1.b839a252049c1p-104 - low;
#endif
    double hi = head - tail;
    return (vm_pair_f64){hi, (head - hi) - tail};
}

/* Sine and cosine of r.hi + r.lo, |r| <= pi/4: sin r = r + r^3 S(r^2) and
 * cos r = 1 - r^2/2 + r^4 C(r^2), where w keeps the rounding error of 1 - r^2/2. */
VM_INLINE double vm_sin_poly_f64(vm_pair_f64 r)
{
    double z = r.hi * r.hi;
    double s = VM_POLY6(f64, z, -0x1.5555555555548p-3, 0x1.111111110f7bap-7,
                        -0x1.a01a019bfac25p-13, 0x1.71de3564c5c5ap-19, -0x1.ae5e57f831acfp-26,
                        0x1.5d8f0314a0afp-33);
    return r.hi + vm_mad_f64(r.hi * z, s, vm_mad_f64(r.lo, -0.5 * z, r.lo));
}

VM_INLINE double vm_cos_poly_f64(vm_pair_f64 r)
{
    double z = r.hi * r.hi;
    double c = VM_POLY6(f64, z, 0x1.555555555554cp-5, -0x1.6c16c16c15165p-10,
                        0x1.a01a019caf176p-16, -0x1.27e4f807e33bdp-22, 0x1.1ee9ea6fbb7cep-29,
                        -0x1.8fadcfda24e75p-37);
    double half = 0.5 * z, w = 1.0 - half;
    return w + vm_mad_f64(z * z, c, ((1.0 - w) - half) - r.hi * r.lo);
}

/* |x| = n pi/2 + r: bits of sin r and cos r, exchanged if n is odd. */
typedef struct { uint64_t n, sin, cos; } vm_quadrant_f64;

VM_INLINE vm_quadrant_f64 vm_quadrant_of_f64(double x)
{
    double a = __builtin_fabs(x);
    double shifted = vm_mad_f64(a, 0x1.45f306dc9c883p-1, VM_ROUND_F64);
    vm_pair_f64 r = vm_sub_quarters_f64(a, shifted - VM_ROUND_F64);
    uint64_t s = vm_bits_f64(vm_sin_poly_f64(r)), c = vm_bits_f64(vm_cos_poly_f64(r));
    uint64_t n = vm_bits_f64(shifted);
    uint64_t swap = (s ^ c) & (0 - (n & 1));
    return (vm_quadrant_f64){n, s ^ swap, c ^ swap};
}

VM_INLINE double vm_sin_near_f64(double x)
{
    vm_quadrant_f64 q = vm_quadrant_of_f64(x);
    return vm_from_bits_f64(q.sin ^ ((q.n << 62) & VM_SIGN_F64) ^ (vm_bits_f64(x) & VM_SIGN_F64));
}

VM_INLINE double vm_cos_near_f64(double x)
{
    vm_quadrant_f64 q = vm_quadrant_of_f64(x);
    return vm_from_bits_f64(q.cos ^ (((q.n + 1) << 62) & VM_SIGN_F64));
}

/* tan(r + pi/2) = -cos r / sin r. */
VM_INLINE double vm_tan_near_f64(double x)
{
    vm_quadrant_f64 q = vm_quadrant_of_f64(x);
    uint64_t t = vm_bits_f64(vm_from_bits_f64(q.sin) / vm_from_bits_f64(q.cos));
    return vm_from_bits_f64(t ^ (q.n << 63) ^ (vm_bits_f64(x) & VM_SIGN_F64));
}

VM_INLINE double vm_sin_f64(double x)
{
    return __builtin_expect(vm_trig_far_f64(x), 0) ? sin(x) : vm_sin_near_f64(x);
}

VM_INLINE double vm_cos_f64(double x)
{
    return __builtin_expect(vm_trig_far_f64(x), 0) ? cos(x) : vm_cos_near_f64(x);
}

VM_INLINE double vm_tan_f64(double x)
{
    return __builtin_expect(vm_trig_far_f64(x), 0) ? tan(x) : vm_tan_near_f64(x);
}

/* atan(y/x) for y, x >= 0, in [0, pi/2].  The quotient is brought to |t| <= tan(pi/8) before
 * the only division: y/x, (y-x)/(y+x) + pi/4, or -x/y + pi/2. */
VM_INLINE double vm_atan_ratio_f64(double y, double x)
{
    uint64_t middle = vm_mask_f64(y > 0x1.a827999fcef32p-2 * x);
    uint64_t steep = vm_mask_f64(y > 0x1.3504f333f9de6p+1 * x);
    double num = vm_select_f64(steep, -x, vm_select_f64(middle, y - x, y));
    double den = vm_select_f64(steep, y, vm_select_f64(middle, y + x, x));
    double t = num / den, z = t * t;
    /* (atan t - t) / t^3 in z = t^2. */
    double p = VM_POLY11(f64, z, -0x1.555555555553cp-2, 0x1.9999999995735p-3,
                         -0x1.24924922a65f4p-3, 0x1.c71c70e3733cdp-4, -0x1.745cf8937e1b9p-4,
                         0x1.3b1114232294cp-4, -0x1.10eb8072baffp-4, 0x1.df0c2585a5352p-5,
                         -0x1.9cc4a222cb52ep-5, 0x1.37b1ec232dc22p-5, -0x1.251c3d02c98d7p-6);
    double quarters = vm_select_f64(steep, 2.0, vm_select_f64(middle, 1.0, 0.0));
    double angle = quarters * 0x1.921fb54442d18p-1, low = quarters * 0x1.1a62633145c07p-55;
    return angle + (t + vm_mad_f64(t * z, p, low));
}

VM_INLINE double vm_atan_f64(double x)
{
    return __builtin_copysign(vm_atan_ratio_f64(__builtin_fabs(x), 1.0), x);
}

VM_INLINE double vm_atan2_f64(double y, double x)
{
    double ay = __builtin_fabs(y), ax = __builtin_fabs(x);
    double far = 0.5 * ay + 0.5 * ax > 0x1p1020 ? 0.25 : 1.0; /* y + x would overflow */
    ay *= far;
    ax *= far;
    double r = vm_atan_ratio_f64(ay, ax);
    /* Equal magnitudes, among them zeros and infinities, whose ratio is not a number. */
    double equal = ay > 0.0 ? 0x1.921fb54442d18p-1 : 0.0;
    r = ay == ax ? equal : r;
    double left = 0x1.921fb54442d18p+1 - (r - 0x1.1a62633145c07p-53);
    r = __builtin_copysign(1.0, x) < 0.0 ? left : r;
    return __builtin_copysign(r, y);
}

/* asin s = s + s z B(z) for z = s^2 <= 1/4; this is the second term. */
VM_INLINE double vm_asin_rest_f64(double s, double z)
{
    double b = VM_POLY13(f64, z, 0x1.5555555555577p-3, 0x1.333333332e08cp-4,
                         0x1.6db6db7219f8bp-5, 0x1.f1c71a921b78ap-6, 0x1.6e8bdf312e927p-6,
                         0x1.1c49ea9912006p-6, 0x1.ca201a0a01045p-7, 0x1.7580f6380fe7cp-7,
                         0x1.6156ad5e498c9p-7, 0x1.e4634c01b1886p-9, 0x1.64191690827e4p-6,
                         -0x1.58b12cf022f4cp-6, 0x1.0b7ff79216eccp-5);
    return s * z * b;
}

/* Above 1/2: asin a = pi/2 - 2 asin(sqrt((1-a)/2)); 1 - a and, near 1/2, pi/2 - 2s are exact. */
VM_INLINE double vm_asin_f64(double x)
{
    double a = __builtin_fabs(x);
    int big = a > 0.5;
    double z = big ? (1.0 - a) * 0.5 : a * a;
    double s = big ? __builtin_sqrt(z) : a;
    double rest = vm_asin_rest_f64(s, z);
    double r = (0x1.921fb54442d18p+0 - 2.0 * s) - (2.0 * rest - 0x1.1a62633145c07p-54);
    return __builtin_copysign(big ? r : s + rest, x);
}

VM_INLINE double vm_acos_f64(double x)
{
    double a = __builtin_fabs(x);
    int big = a > 0.5;
    double z = big ? (1.0 - a) * 0.5 : a * a;
    double s = big ? __builtin_sqrt(z) : a;
    double q = s + vm_asin_rest_f64(s, z);
    double middle = 0x1.921fb54442d18p+0 - (__builtin_copysign(q, x) - 0x1.1a62633145c07p-54);
    double left = 0x1.921fb54442d18p+1 - (2.0 * q - 0x1.1a62633145c07p-53);
    double side = x < 0.0 ? left : 2.0 * q;
    return big ? side : middle;
}
