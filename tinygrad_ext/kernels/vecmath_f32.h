/* Elementary functions in single precision; included last by vecmath.h, which explains the
 * method.  The functions that models call most are computed in float; the others go through
 * the double version and round once. */

/* x = k ln2 + r, |r| <= ln2/2; the head of ln2 has 15 bits, exact times k without fma. */
typedef struct { float r, k; uint32_t kbits; } vm_exp_parts_f32;

VM_INLINE vm_exp_parts_f32 vm_exp_reduce_f32(float x)
{
    float shifted = vm_mad_f32(x, 0x1.715476p+0f, VM_ROUND_F32);
    float k = shifted - VM_ROUND_F32;
    float r = vm_mad_f32(k, -0x1.62e4p-1f, x);
    r = vm_mad_f32(k, -0x1.7f7d1cp-20f, r);
    return (vm_exp_parts_f32){r, k, vm_bits_f32(shifted)};
}

/* e^r = 1 + r + r^2 Q(r), relative error 2^-28. */
VM_INLINE float vm_exp_poly_f32(float r)
{
    return VM_POLY7(f32, r, 1.0f, 1.0f, 0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558ecp-5f,
                    0x1.123a4cp-7f, 0x1.6a2fp-10f);
}

/* e^r - 1 = r + r^2 Q(r), relative error 2^-32. */
VM_INLINE float vm_expm1_poly_f32(float r)
{
    float q = VM_POLY6(f32, r, 0.5f, 0x1.555554p-3f, 0x1.5554bp-5f, 0x1.111182p-7f,
                       0x1.6d729p-10f, 0x1.a04388p-13f);
    return vm_mad_f32(r * r, q, r);
}

/* See vm_exp_finish_f64. */
VM_INLINE float vm_exp_finish_f32(vm_exp_parts_f32 p, float x, float max)
{
    float r = vm_scale_f32(vm_exp_poly_f32(p.r), p.kbits);
    r = p.k < -151.0f ? 0.0f : r;
    return x > max ? __builtin_inff() : r;
}

VM_INLINE float vm_exp_f32(float x)
{
    return vm_exp_finish_f32(vm_exp_reduce_f32(x), x, 89.0f);
}

VM_INLINE float vm_exp2_f32(float x)
{
    float shifted = x + VM_ROUND_F32, k = shifted - VM_ROUND_F32;
    vm_exp_parts_f32 p = {(x - k) * 0x1.62e43p-1f, k, vm_bits_f32(shifted)};
    return vm_exp_finish_f32(p, x, 129.0f);
}

VM_INLINE float vm_expm1_f32(float x)
{
    vm_exp_parts_f32 p = vm_exp_reduce_f32(x);
    float half = vm_from_bits_f32((p.kbits << 23) + (VM_ONE_F32 - (1u << 23))); /* 2^(k-1) */
    float r = 2.0f * vm_mad_f32(vm_expm1_poly_f32(p.r), half, half - 0.5f);
    r = p.k < -26.0f ? -1.0f : r;
    r = x > 89.0f ? __builtin_inff() : r;
    return __builtin_fabsf(x) < 0x1p-25f ? x : r;
}

/* Below 0.55 a + a^3 T(a^2), above 1 - 2 / (e^(2a) + 1); at 9.1 the difference rounds to 1. */
VM_INLINE float vm_tanh_f32(float x)
{
    float a = __builtin_fabsf(x), z = a * a;
    float t = VM_POLY5(f32, z, -0x1.55554ap-2f, 0x1.110ce2p-3f, -0x1.b91c66p-5f, 0x1.58d2eep-6f,
                       -0x1.98b66cp-8f);
    vm_exp_parts_f32 p = vm_exp_reduce_f32(2.0f * (a > 9.1f ? 9.1f : a));
    float e = vm_exp_poly_f32(p.r) * vm_from_bits_f32((p.kbits << 23) + VM_ONE_F32);
    float tail = 1.0f - 2.0f / (e + 1.0f);
    return __builtin_copysignf(a < 0.55f ? vm_mad_f32(a * z, t, a) : tail, x);
}

/* The scale 2^(k+64) is always a normal number. */
VM_INLINE float vm_sigmoid_f32(float x)
{
    float a = __builtin_fabsf(x);
    vm_exp_parts_f32 p = vm_exp_reduce_f32(-(a > 105.0f ? 105.0f : a));
    float scale = vm_from_bits_f32((p.kbits << 23) + (VM_ONE_F32 + (64u << 23)));
    float e = vm_exp_poly_f32(p.r) * scale * 0x1p-64f;
    float den = 1.0f + e, low = e - (den - 1.0f);
    float q = (x < 0.0f ? e : 1.0f) / den;
    return vm_mad_f32(q, -low, q); /* den + low == 1 + e; low/den is close enough to low */
}

/* x = 2^k (1 + f), log(1 + f) = f + g, with sqrt(1/2) <= 1 + f < sqrt(2). */
typedef struct { float k, f, g; } vm_log_parts_f32;

VM_INLINE vm_log_parts_f32 vm_log_reduce_f32(float x)
{
    const uint32_t sqrt_half = 0x3f3504f3u;
    int small = x < 0x1p-126f;
    uint32_t u = vm_bits_f32(small ? x * 0x1p23f : x) + (VM_ONE_F32 - sqrt_half);
    uint32_t e = u >> 23;
    float f = vm_from_bits_f32((u & 0x007fffffu) + sqrt_half) - 1.0f;
    float k = (float)((int32_t)e - (small ? 127 + 23 : 127));
    /* (log(1+f) - f) / f^2 */
    float q = VM_POLY9(f32, f, -0x1.fffff8p-2f, 0x1.55555p-2f, -0x1.00042ep-2f, 0x1.99a406p-3f,
                       -0x1.5425f4p-3f, 0x1.226f2p-3f, -0x1.0f4214p-3f, 0x1.085e46p-3f,
                       -0x1.38303p-4f);
    return (vm_log_parts_f32){k, f, f * f * q};
}

VM_INLINE float vm_log_sum_f32(vm_log_parts_f32 p)
{
    return vm_mad_f32(p.k, 0x1.62e4p-1f, p.f + vm_mad_f32(p.k, 0x1.7f7d1cp-20f, p.g));
}

/* The value of a logarithm whose argument is x, r being right for finite x > 0. */
VM_INLINE float vm_log_edges_f32(float x, float r)
{
    r = x < __builtin_inff() ? r : x;
    float edge = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
    return x > 0.0f ? r : edge;
}

VM_INLINE float vm_log_f32(float x)
{
    return vm_log_edges_f32(x, vm_log_sum_f32(vm_log_reduce_f32(x)));
}

/* log(u + c) = log u + c/u, with u + c == 1 + x exactly. */
VM_INLINE float vm_log1p_f32(float x)
{
    float u = 1.0f + x;
    float back = u - x;
    float c = (1.0f - back) + (x - (u - back));
    vm_log_parts_f32 p = vm_log_reduce_f32(u);
    p.g += c / u;
    float r = vm_log_edges_f32(u, vm_log_sum_f32(p));
    return __builtin_fabsf(x) < 0x1p-25f ? x : r;
}

/* scale_hi + scale_lo is 1/ln(base), k_hi + k_lo is log_base(2). */
VM_INLINE float vm_log_base_f32(float x, float scale_hi, float scale_lo, float k_hi, float k_lo)
{
    vm_log_parts_f32 p = vm_log_reduce_f32(x);
    float low = vm_mad_f32(p.f, scale_lo, vm_mad_f32(p.g, scale_hi, p.k * k_lo));
    return vm_log_edges_f32(x, vm_mad_f32(p.k, k_hi, vm_mad_f32(p.f, scale_hi, low)));
}

VM_INLINE float vm_log2_f32(float x)
{
    return vm_log_base_f32(x, 0x1.715476p+0f, 0x1.4ae0cp-26f, 1.0f, 0.0f);
}

VM_INLINE float vm_log10_f32(float x)
{
    return vm_log_base_f32(x, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f, 0x1.344p-2f, 0x1.3509f8p-18f);
}

/* a - n pi/2 for an integer n < 2^20.  Without fma, double is cheaper than enough short
 * parts of pi. */
VM_INLINE float vm_sub_quarters_f32(float a, float n)
{
#if VM_HAS_FMA
    float r = __builtin_fmaf(n, -0x1.921fb6p+0f, a);
    r = __builtin_fmaf(n, 0x1.777a5cp-25f, r);
    return __builtin_fmaf(n, 0x1.ee59dap-50f, r);
#else
    return (float)(((double)a - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34);
#endif
}

/* |x| = n pi/2 + r: bits of sin r and cos r, exchanged if n is odd. */
typedef struct { uint32_t n, sin, cos; } vm_quadrant_f32;

/* sin r = r + r^3 S(r^2), cos r = 1 - r^2/2 + r^4 C(r^2) on |r| <= 1.02 pi/4: rounding of the
 * quotient may push r a little past pi/4. */
VM_INLINE vm_quadrant_f32 vm_quadrant_of_f32(float x)
{
    float a = __builtin_fabsf(x);
    float shifted = vm_mad_f32(a, 0x1.45f306p-1f, VM_ROUND_F32);
    float r = vm_sub_quarters_f32(a, shifted - VM_ROUND_F32), z = r * r;
    float s = VM_POLY3(f32, z, -0x1.555544p-3f, 0x1.11066ap-7f, -0x1.98fd46p-13f);
    float c = VM_POLY4(f32, z, -0.5f, 0x1.555548p-5f, -0x1.6c0b52p-10f, 0x1.99ab34p-16f);
    uint32_t n = vm_bits_f32(shifted);
    uint32_t sin = vm_bits_f32(vm_mad_f32(r * z, s, r)), cos = vm_bits_f32(vm_mad_f32(z, c, 1.0f));
    uint32_t swap = (sin ^ cos) & (0 - (n & 1));
    return (vm_quadrant_f32){n, sin ^ swap, cos ^ swap};
}

VM_INLINE float vm_sin_near_f32(float x)
{
    vm_quadrant_f32 q = vm_quadrant_of_f32(x);
    return vm_from_bits_f32(q.sin ^ ((q.n << 30) & VM_SIGN_F32) ^ (vm_bits_f32(x) & VM_SIGN_F32));
}

VM_INLINE float vm_cos_near_f32(float x)
{
    vm_quadrant_f32 q = vm_quadrant_of_f32(x);
    return vm_from_bits_f32(q.cos ^ (((q.n + 1) << 30) & VM_SIGN_F32));
}

VM_INLINE float vm_tan_near_f32(float x) { return (float)vm_tan_near_f64(x); }

VM_INLINE float vm_sin_f32(float x)
{
    return __builtin_expect(vm_trig_far_f32(x), 0) ? (float)sin(x) : vm_sin_near_f32(x);
}

VM_INLINE float vm_cos_f32(float x)
{
    return __builtin_expect(vm_trig_far_f32(x), 0) ? (float)cos(x) : vm_cos_near_f32(x);
}

VM_INLINE float vm_tan_f32(float x)
{
    return __builtin_expect(vm_trig_far_f32(x), 0) ? (float)tan(x) : vm_tan_near_f32(x);
}

/* |x| < 0.89: x + x E(x^2).  Above: 1 - 2^T(|x|) with T a polynomial for log2(erfc);
 * at 4 the result rounds to 1. */
VM_INLINE float vm_erf_f32(float x)
{
    float a = __builtin_fabsf(x), z = x * x;
    float e = VM_POLY6(f32, z, 0x1.06eba6p-3f, -0x1.8126fep-2f, 0x1.ce1e9cp-4f, -0x1.b6cb36p-6f,
                       0x1.48c46p-8f, -0x1.40a23cp-11f);
    float t = VM_POLY7(f32, a > 3.95f ? 3.95f : a, -0x1.ce73d6p-13f, -0x1.a08ce6p+0f,
                       -0x1.d66fbap-1f, -0x1.33e03ap-3f, 0x1.083cbap-5f, -0x1.22dc86p-8f,
                       0x1.2d8d7ap-12f);
    float shifted = t + VM_ROUND_F32;
    float scale = vm_from_bits_f32((vm_bits_f32(shifted) << 23) + VM_ONE_F32);
    float p = vm_exp_poly_f32((t - (shifted - VM_ROUND_F32)) * 0x1.62e43p-1f);
    float tail = __builtin_copysignf(1.0f - p * scale, x);
    return a < 0.89f ? vm_mad_f32(x, e, x) : tail;
}

VM_INLINE float vm_rsqrt_f32(float x) { return 1.0f / __builtin_sqrtf(x); }

/* Squares of floats neither overflow nor underflow in double. */
VM_INLINE float vm_hypot_f32(float x, float y)
{
    double a = x, b = y;
    uint32_t infinite = vm_mask_f32(__builtin_fabsf(x) == __builtin_inff())
                      | vm_mask_f32(__builtin_fabsf(y) == __builtin_inff());
    return vm_select_f32(infinite, __builtin_inff(), (float)__builtin_sqrt(a * a + b * b));
}

/* An exponent of at most 104 leaves plenty of double's bits without vm_log_pair_f64. */
VM_INLINE float vm_pow_f32(float x, float y)
{
    double r = vm_exp_f64(y * vm_log_f64(__builtin_fabsf(x)));
    return (float)vm_pow_edges_f64(x, y, r);
}

#define VM_THROUGH_F64(name) \
    VM_INLINE float vm_##name##_f32(float x) { return (float)vm_##name##_f64(x); }

VM_THROUGH_F64(asin)
VM_THROUGH_F64(acos)
VM_THROUGH_F64(atan)
VM_THROUGH_F64(sinh)
VM_THROUGH_F64(cosh)
VM_THROUGH_F64(asinh)
VM_THROUGH_F64(acosh)
VM_THROUGH_F64(atanh)
VM_THROUGH_F64(erfc)
VM_THROUGH_F64(lgamma)
VM_THROUGH_F64(digamma)
VM_THROUGH_F64(trigamma)
#undef VM_THROUGH_F64

VM_INLINE float vm_atan2_f32(float y, float x) { return (float)vm_atan2_f64(y, x); }
VM_INLINE float vm_logaddexp_f32(float a, float b) { return (float)vm_logaddexp_f64(a, b); }
