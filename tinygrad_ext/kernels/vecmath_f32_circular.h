/* Circular functions and their inverses in single precision; included by vecmath.h.
 *
 * Rejected: sin by a reduction to multiples of pi with one polynomial, 12 to 19 % faster and up to 2.1 ulp wrong where this
 * is 1.5; and a chain of ?: in acos, of which gcc computes both sides twice, 0.45 ns an element where masks take 0.28. */

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

/* Tangent of r.hi + r.lo = |x| - n pi/2, or for odd n -1 / it: tan r = r + r^3 T(r^2) on
 * |r| <= 1.06 pi/4, which a quotient by the float next to pi/2 reaches at the far end.  The low part
 * keeps the result within 2 ulp; without fma it would cost as much as the double version. */
VM_INLINE float vm_tan_near_f32(float x)
{
#if VM_HAS_FMA
    float shifted = vm_mad_f32(__builtin_fabsf(x), 0x1.45f306p-1f, VM_ROUND_F32);
    float n = shifted - VM_ROUND_F32;
    float r1 = __builtin_fmaf(n, -0x1.921fb6p+0f, __builtin_fabsf(x));
    float p2 = n * -0x1.777a5cp-25f, p2_low = __builtin_fmaf(n, -0x1.777a5cp-25f, -p2);
    float head = r1 - p2;
    float tail = __builtin_fmaf(n, -0x1.ee59dap-50f, p2_low - ((r1 - head) - p2));
    float r = head - tail, low = (head - r) - tail, z = r * r;
    float p = VM_POLY7(f32, z, 0x1.555572p-2f, 0x1.1108c8p-3f, 0x1.bbadbap-5f, 0x1.547ba2p-6f,
                       0x1.8c3d3cp-7f, -0x1.7c588ap-10f, 0x1.4eef4cp-8f);
    float t = r + vm_mad_f32(r * z, p, vm_mad_f32(low, z, low));
    uint32_t odd = 0 - (vm_bits_f32(shifted) & 1);
    float quotient = vm_select_f32(odd, -1.0f, t) / vm_select_f32(odd, t, 1.0f);
    return vm_from_bits_f32(vm_bits_f32(quotient) ^ (vm_bits_f32(x) & VM_SIGN_F32));
#else
    return (float)vm_tan_near_f64(x);
#endif
}

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

/* atan(y/x) for y, x >= 0: the smaller over the larger, (atan t - t) / t^3 in z = t^2 <= 1. */
VM_INLINE float vm_atan_ratio_f32(float y, float x)
{
    uint32_t steep = vm_mask_f32(y > x);
    float num = vm_select_f32(steep, x, y), den = vm_select_f32(steep, y, x);
    float t = num / den, z = t * t;
    float p = VM_POLY9(f32, z, -0x1.55553ep-2f, 0x1.9991f8p-3f, -0x1.242174p-3f, 0x1.c0970ep-4f,
                       -0x1.582b38p-4f, 0x1.daa76cp-5f, -0x1.fe87e6p-6f, 0x1.65526cp-7f,
                       -0x1.d590e8p-10f);
    float r = vm_mad_f32(t * z, p, t);
    float turned = 0x1.921fb6p+0f - (r + 0x1.777a5cp-25f);
    return vm_select_f32(steep, turned, r);
}

VM_INLINE float vm_atan_f32(float x)
{
    return __builtin_copysignf(vm_atan_ratio_f32(__builtin_fabsf(x), 1.0f), x);
}

VM_INLINE float vm_atan2_f32(float y, float x)
{
    float ay = __builtin_fabsf(y), ax = __builtin_fabsf(x);
    float r = vm_atan_ratio_f32(ay, ax);
    /* Equal magnitudes, among them zeros and infinities, whose ratio is not a number. */
    float equal = ay > 0.0f ? 0x1.921fb6p-1f : 0.0f;
    r = ay == ax ? equal : r;
    float left = 0x1.921fb6p+1f - (r + 0x1.777a5cp-24f);
    r = __builtin_copysignf(1.0f, x) < 0.0f ? left : r;
    return __builtin_copysignf(r, y);
}

/* asin s = s + s z B(z) for z = s^2 <= 1/4; this is the second term. */
VM_INLINE float vm_asin_rest_f32(float s, float z)
{
    float b = VM_POLY5(f32, z, 0x1.5555c8p-3f, 0x1.3301c6p-4f, 0x1.748186p-5f, 0x1.8c05c4p-6f,
                       0x1.598c7ap-5f);
    return s * z * b;
}

/* Above 1/2: asin a = pi/2 - 2 asin(sqrt((1-a)/2)), low being the rounding error of pi/2 - 2s. */
VM_INLINE float vm_asin_f32(float x)
{
    float a = __builtin_fabsf(x);
    int big = a > 0.5f;
    float z = big ? (1.0f - a) * 0.5f : a * a;
    float s = big ? __builtin_sqrtf(z) : a;
    float rest = vm_asin_rest_f32(s, z);
    float head = 0x1.921fb6p+0f - 2.0f * s, low = (0x1.921fb6p+0f - head) - 2.0f * s;
    float r = head - (2.0f * rest + (0x1.777a5cp-25f - low));
    return __builtin_copysignf(big ? r : s + rest, x);
}

VM_INLINE float vm_acos_f32(float x)
{
    float a = __builtin_fabsf(x);
    int big = a > 0.5f;
    float z = big ? (1.0f - a) * 0.5f : a * a;
    float s = big ? __builtin_sqrtf(z) : a;
    float q = s + vm_asin_rest_f32(s, z);
    float middle = 0x1.921fb6p+0f - (__builtin_copysignf(q, x) + 0x1.777a5cp-25f);
    float left = 0x1.921fb6p+1f - (2.0f * q + 0x1.777a5cp-24f);
    float side = vm_select_f32(vm_mask_f32(x < 0.0f), left, 2.0f * q);
    return vm_select_f32(vm_mask_f32(big), side, middle);
}
