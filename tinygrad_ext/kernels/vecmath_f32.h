/* Exponentials, logarithms and hyperbolic functions in single precision; included by vecmath.h,
 * which explains the method. */

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
#define VM_EXP(T, r)                                                                           \
    VM_POLY7(T, r, 1.0f, 1.0f, 0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558ecp-5f, 0x1.123a4cp-7f,  \
             0x1.6a2fp-10f)
VM_INLINE float vm_exp_poly_f32(float r) { return VM_EXP(f32, r); }

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

/* Below 0.55 a + a^3 T(a^2), above 1 - 2 / (e^(2a) + 1); at 9.1 the difference rounds to 1.
 * 2a = k ln2 + 2r, and e^(2r) is the polynomial of e^r with coefficients times powers of two.  At
 * k = 2, where an error of r weighs most, what ln2 lacks behind its 24 bits is 0.02 ulp of the
 * result; a product that is rounded needs both of its parts. */
#define VM_TANH_NEAR(T, z)                                                                     \
    VM_POLY5(T, z, -0x1.55554ap-2f, 0x1.110ce2p-3f, -0x1.b91c66p-5f, 0x1.58d2eep-6f,           \
             -0x1.98b66cp-8f)
#define VM_EXP_TWICE(T, r)                                                                     \
    VM_POLY7(T, r, 1.0f, 2.0f, 0x1.fffffcp+0f, 0x1.55549p+0f, 0x1.5558ecp-1f, 0x1.123a4cp-2f,  \
             0x1.6a2fp-4f)

VM_INLINE float vm_tanh_f32(float x)
{
    float a = __builtin_fabsf(x), z = a * a, b = a > 9.1f ? 9.1f : a;
    float t = VM_TANH_NEAR(f32, z);
    float shifted = vm_mad_f32(b, 0x1.715476p+1f, VM_ROUND_F32), k = shifted - VM_ROUND_F32;
#if VM_HAS_FMA
    float r = vm_mad_f32(k, -0x1.62e43p-2f, b);
#else
    float r = (b - k * 0x1.62e4p-2f) - k * 0x1.7f7d1cp-21f;
#endif
    float e = VM_EXP_TWICE(f32, r);
    e *= vm_from_bits_f32((vm_bits_f32(shifted) << 23) + VM_ONE_F32);
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

/* log1p(2a / (1 - a)) / 2.  The rounding error of 1 - a joins the term that makes up for the one
 * of 1 + v; v/2 + 1 is 1 / (1 - a). */
VM_INLINE float vm_atanh_f32(float x)
{
    float a = __builtin_fabsf(x);
    float d = 1.0f - a, e = (1.0f - d) - a; /* d + e == 1 - a */
    float v = 2.0f * a / d;
    float u = 1.0f + v;
    float back = u - v;
    float c = (1.0f - back) + (v - (u - back));
    vm_log_parts_f32 p = vm_log_reduce_f32(u);
    c = vm_mad_f32(-v * e, vm_mad_f32(v, 0.5f, 1.0f), c);
    p.g += c / u;
    float r = 0.5f * vm_log_edges_f32(u, vm_log_sum_f32(p));
    return __builtin_copysignf(a < 0x1p-12f ? a : r, x);
}
