/* Single precision: powers, two-argument functions, the error function, the normal distribution;
 * included last by vecmath.h.  The functions at the end go through the double version and round
 * once. */

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

/* See vm_rint_f64. */
VM_INLINE float vm_rint_f32(float x)
{
    float a = __builtin_fabsf(x);
    float r = (a + 0x1p23f) - 0x1p23f;
    return __builtin_copysignf(a < 0x1p23f ? r : a, x);
}

/* See vm_pow_edges_f64. */
VM_INLINE float vm_pow_edges_f32(float x, float y, float r)
{
    const float inf = __builtin_inff();
    float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y);
    uint32_t whole = vm_mask_f32(vm_rint_f32(ay) == ay);
    uint32_t odd = whole & ~vm_mask_f32(vm_rint_f32(0.5f * ay) == 0.5f * ay);
    uint32_t finite = vm_mask_f32(ax < inf);
    uint32_t shrinks = vm_mask_f32(ax > 1.0f) ^ vm_mask_f32(y > 0.0f);
    float far = vm_select_f32(shrinks, 0.0f, inf);
    far = vm_select_f32(vm_mask_f32(ax == 1.0f), 1.0f, far);
    r = vm_select_f32(vm_mask_f32(ax == 0.0f) | ~finite | vm_mask_f32(ay == inf), far, r);
    r = vm_select_f32(vm_mask_f32(x < 0.0f) & finite & ~whole, __builtin_nanf(""), r);
    r = vm_from_bits_f32(vm_bits_f32(r) ^ (odd & vm_bits_f32(x) & VM_SIGN_F32));
    r = vm_select_f32(vm_mask_f32(x != x) | vm_mask_f32(y != y), x + y, r);
    return vm_select_f32(vm_mask_f32(y == 0.0f) | vm_mask_f32(x == 1.0f), 1.0f, r);
}

/* 2^(y log2|x|) in double, where a float is never subnormal and 200 is far beyond the range of the
 * result: log2((1+s)/(1-s)) / s in z = s^2, and 2^z on |z| <= 1/2, both to 2^-29 of the result. */
VM_INLINE float vm_pow_f32(float x, float y)
{
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    uint64_t u = vm_bits_f64(__builtin_fabsf(x)) + (VM_ONE_F64 - sqrt_half);
    double k = vm_from_bits_f64((u >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    double f = vm_from_bits_f64((u & 0x000fffffffffffffu) + sqrt_half) - 1.0;
    double s = f / (2.0 + f);
    double l = VM_POLY5(f64, s * s, 0x1.71547652bee2bp+1, 0x1.ec709d1284ec3p-1,
                        0x1.27778023dd5ccp-1, 0x1.a58d6b6304bd2p-2, 0x1.5cea8f133a33p-2);
    double t = vm_mad_f64(s, l, k) * y;
    t = t > 200.0 ? 200.0 : t;
    t = t < -200.0 ? -200.0 : t;
    double shifted = t + VM_ROUND_F64, z = t - (shifted - VM_ROUND_F64);
    double p = VM_POLY7(f64, z, 0x1.0000000265cafp+0, 0x1.62e430c937357p-1, 0x1.ebfbdad4c7a79p-3,
                        0x1.c6aed2f4d4ac3p-5, 0x1.3b2dbef3b1b06p-7, 0x1.5f464f1958774p-10,
                        0x1.41d281828a5e5p-13);
    double r = p * vm_from_bits_f64((vm_bits_f64(shifted) << 52) + VM_ONE_F64);
    return vm_pow_edges_f32(x, y, (float)r);
}

/* log(1 + e) for 0 <= e <= 1: (log(1 + e) - e) / e^2. */
VM_INLINE float vm_log1p_unit_f32(float e)
{
    float q = VM_POLY9(f32, e, -0x1.ffffd2p-2f, 0x1.554deap-2f, -0x1.ff2664p-3f, 0x1.9359dp-3f,
                       -0x1.3a719cp-3f, 0x1.b55906p-4f, -0x1.d81d72p-5f, 0x1.4ab8b2p-6f,
                       -0x1.b25f18p-9f);
    return vm_mad_f32(e * e, q, e);
}

/* The logarithm of the sum of two powers, to the base e^rate, and once is 1 / rate: log(e^a + e^b) for 1 and 1.  Next to its
 * zeros the absolute error is that of a result of 1/2. */
VM_INLINE float vm_power_sum_log_f32(float a, float b, float rate, float once)
{
    float distance = __builtin_fabsf(a - b);
    distance = a == b ? 0.0f : distance;
    float m = a > b ? a : b;
    return m + vm_log1p_unit_f32(vm_exp_f32(-distance * rate)) * once;
}

VM_INLINE float vm_logaddexp_f32(float a, float b)
{
    return vm_power_sum_log_f32(a, b, 1.0f, 1.0f);
}

/* |x| < 0.6: 1 - erf x.  Above: e^(-a^2) P(t) / (a + 5/2), t = (a - 5/2) / (a + 5/2), where P
 * stands for (a + 5/2) e^(a^2) erfc a on 1/2 <= a <= 10.1; its coefficients are rounded one after
 * another, the rest fitted again.  P and its product with the quotient q are kept as pairs; d
 * gathers the relative errors of a^2 and of q, which moves t as well (hence 1.8 - t).  Without fma
 * the double version is as fast. */
VM_INLINE float vm_erfc_f32(float x)
{
#if VM_HAS_FMA
    float a = __builtin_fabsf(x), b = a > 10.2f ? 10.2f : a, z = x * x;
    float erf = VM_POLY5(f32, z, 0x1.06eb9ep-3f, -0x1.812666p-2f, 0x1.cdfc94p-4f, -0x1.b361aep-6f,
                         0x1.21dd1cp-8f);
    float small = 1.0f - vm_mad_f32(x, erf, x);
    float den = b + 2.5f, q = 1.0f / den, t = vm_mad_f32(-5.0f, q, 1.0f);
    float e = vm_mad_f32(-q, b - (den - 2.5f), vm_mad_f32(-q, den, 1.0f));
    float c1 = VM_POLY8(f32, t, -0x1.9bfb56p-1f, 0x1.d0cef4p-2f, -0x1.5eb7dep-3f, 0x1.d0921ap-6f,
                        0x1.127d66p-7f, -0x1.3918e2p-8f, -0x1.982142p-12f, 0x1.364ffap-11f);
    float p = vm_mad_f32(t, c1, 0x1.0dd508p+0f);
    float p_low = vm_mad_f32(t, c1, 0x1.0dd508p+0f - p) - 0x1.0ea244p-25f;
    float v = q * p, v_low = vm_mad_f32(q, p_low, vm_mad_f32(q, p, -v));
    float s = b * b, s_low = vm_mad_f32(b, b, -s);
    vm_exp_parts_f32 parts = vm_exp_reduce_f32(-s);
    float m = vm_expm1_poly_f32(parts.r);
    float d = vm_mad_f32(e, 1.8f - t, -s_low);
    v += vm_mad_f32(v, m + vm_mad_f32(d, m, d), vm_mad_f32(v_low, m, v_low));
    float tail = vm_scale_f32(v, parts.kbits);
    float far = x < 0.0f ? 2.0f - tail : tail;
    return a < 0.6f ? small : far;
#else
    return (float)vm_erfc_f64(x);
#endif
}

/* erfc a for 0 <= a, absolute error 2^-25: 2^(a T(a)), T a polynomial for log2(erfc a) / a. */
VM_INLINE float vm_erfc_rough_f32(float a)
{
    float t = a * VM_POLY8(f32, a, -0x1.a0be9ep+0f, -0x1.d63aacp-1f, -0x1.301726p-3f,
                           0x1.cee8d8p-6f, -0x1.962c92p-11f, -0x1.866f04p-10f, 0x1.d320ecp-12f,
                           -0x1.7c7918p-15f);
    float shifted = t + VM_ROUND_F32;
    float scale = vm_from_bits_f32((vm_bits_f32(shifted) << 23) + VM_ONE_F32);
    float p = vm_exp_poly_f32((t - (shifted - VM_ROUND_F32)) * 0x1.62e43p-1f);
    return a < 3.95f ? p * scale : 0.0f;
}

/* The normal distribution function, absolute error 2^-25. */
VM_INLINE float vm_normal_f32(float x)
{
    float half = 0.5f * vm_erfc_rough_f32(__builtin_fabsf(x) * 0x1.6a09e6p-1f);
    return x > 0.0f ? 1.0f - half : half;
}

/* x times the normal distribution function; for x > 0 as x - x erfc / 2, one rounding less.  The
 * bound keeps infinity times 0 out of it. */
VM_INLINE float vm_gelu_f32(float x)
{
    float tail = vm_erfc_rough_f32(__builtin_fabsf(x) * 0x1.6a09e6p-1f);
    float half = 0.5f * (x > 100.0f ? 100.0f : x);
    return x > 0.0f ? vm_mad_f32(-half, tail, x) : half * tail;
}

#define VM_THROUGH_F64(name) \
    VM_INLINE float vm_##name##_f32(float x) { return (float)vm_##name##_f64(x); }

VM_THROUGH_F64(sinh)
VM_THROUGH_F64(cosh)
VM_THROUGH_F64(asinh)
VM_THROUGH_F64(acosh)
VM_THROUGH_F64(lgamma)
VM_THROUGH_F64(digamma)
VM_THROUGH_F64(trigamma)
#undef VM_THROUGH_F64
