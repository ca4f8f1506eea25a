/* Vector bodies of the random fills: the mt19937 block and the Box-Muller transforms. Included by random.c only.
 *
 * Each body is written once, inlined into one function per instruction set, and picked at run time.
 * A fused multiply-add stands where PyTorch's vector code has one, so that values agree to the last bit; where the
 * processor has none, `fast` is 0 and the float32 one goes through float64, which still vectorises.
 * Needs -ffp-contract=off: the compiler must add no fusing of its own. */
#ifndef TINYGRAD_EXT_KERNELS_RANDOM_SIMD_H
#define TINYGRAD_EXT_KERNELS_RANDOM_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define BODY static inline __attribute__((always_inline))
#ifdef __FMA__
#define BASE_HAS_FMA 1
#elif defined(__aarch64__)
#define BASE_HAS_FMA 1
#else
#define BASE_HAS_FMA 0
#endif

/* PER_ISA(name, (parameters), (arguments)): `name` calls `name_body(arguments, fast)` compiled for this processor. */
#if defined(__x86_64__)
#define PER_ISA(name, parameters, ...)                                                                        \
    __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")))                                   \
    static void name##_avx512 parameters { name##_body(__VA_ARGS__, 1); }                                    \
    __attribute__((target("avx2,fma"))) static void name##_avx2 parameters { name##_body(__VA_ARGS__, 1); }  \
    static void name##_base parameters { name##_body(__VA_ARGS__, BASE_HAS_FMA); }                           \
    static void name parameters {                                                                            \
        if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")                         \
            && __builtin_cpu_supports("avx512bw")) name##_avx512(__VA_ARGS__);                               \
        else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) name##_avx2(__VA_ARGS__);  \
        else name##_base(__VA_ARGS__);                                                                       \
    }
#else
#define PER_ISA(name, parameters, ...)                                                                        \
    static void name parameters { name##_body(__VA_ARGS__, BASE_HAS_FMA); }
#endif

BODY uint32_t bits_of(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
BODY float float_of(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
BODY uint64_t bits_of_double(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
BODY double double_of(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }

BODY float fma32(float a, float b, float c, int fast)
{
    return fast ? __builtin_fmaf(a, b, c) : (float)((double)a * b + c);
}

/* ---- mt19937 (Matsumoto and Nishimura, 1998) ---- */

BODY uint32_t mix(uint32_t a, uint32_t b)
{
    uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
    return (y >> 1) ^ ((0u - (b & 1u)) & 0x9908b0dfu);
}

BODY void twist_body(uint32_t *w, int fast)
{
    (void)fast;
    for (int i = 0; i < 227; i++) w[i] = w[i + 397] ^ mix(w[i], w[i + 1]);
    for (int i = 227; i < 623; i++) w[i] = w[i - 227] ^ mix(w[i], w[i + 1]);
    w[623] = w[396] ^ mix(w[623], w[0]);
}
PER_ISA(twist, (uint32_t *w), w)

BODY void temper_body(const uint32_t *restrict w, uint32_t *restrict out, int64_t n, int fast)
{
    (void)fast;
    for (int64_t i = 0; i < n; i++) {
        uint32_t y = w[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        out[i] = y ^ (y >> 18);
    }
}
PER_ISA(temper, (const uint32_t *w, uint32_t *out, int64_t n), w, out, n)

/* ---- words to uniforms ---- */

BODY void to_float_body(const uint32_t *restrict w, float *restrict out, int64_t n, int fast)
{
    (void)fast;
    for (int64_t i = 0; i < n; i++) out[i] = (float)(int32_t)(w[i] & 0xffffffu) * 0x1p-24f;
}
PER_ISA(to_float, (const uint32_t *w, float *out, int64_t n), w, out, n)

/* Low 53 bits of a 64-bit draw whose high half came first; in two exact parts, for want of a vector int64 to double. */
BODY void to_double_body(const uint32_t *restrict w, double *restrict out, int64_t n, int fast)
{
    (void)fast;
    for (int64_t i = 0; i < n; i++) {
        double high = (int32_t)(w[2 * i] & 0x1fffffu), low = w[2 * i + 1];
        out[i] = (high * 0x1p32 + low) * 0x1p-53;
    }
}
PER_ISA(to_double, (const uint32_t *w, double *out, int64_t n), w, out, n)

/* `value` where the number in [0, 1) of such a draw is below a bound, given in steps of 2^-53, and 0 elsewhere. */
#define CHOICES(T, name) \
BODY void name##_body(const uint32_t *restrict w, T *restrict out, int64_t n, int64_t below, T value, int fast) \
{ \
    (void)fast; \
    for (int64_t i = 0; i < n; i++) out[i] = ((int64_t)(w[2 * i] & 0x1fffffu) << 32 | w[2 * i + 1]) < below ? value : 0; \
} \
PER_ISA(name, (const uint32_t *w, T *out, int64_t n, int64_t below, T value), w, out, n, below, value)
CHOICES(float, choose_float)
CHOICES(double, choose_double)

/* ---- float32 Box-Muller; polynomials of the Cephes library (Moshier), good to 1 ulp ---- */

BODY float log_float(float x, int fast)
{
    uint32_t u = bits_of(x);
    float e = (float)((int32_t)(u >> 23) - 126), m = float_of((u & 0x007fffffu) | 0x3f000000u);
    int low = m < 0.707106781186547524f;
    e -= low ? 1.0f : 0.0f;
    m = (m - 1.0f) + (low ? m : 0.0f);
    float z = m * m, y = 7.0376836292e-2f;
    y = fma32(y, m, -1.1514610310e-1f, fast);
    y = fma32(y, m, 1.1676998740e-1f, fast);
    y = fma32(y, m, -1.2420140846e-1f, fast);
    y = fma32(y, m, 1.4249322787e-1f, fast);
    y = fma32(y, m, -1.6668057665e-1f, fast);
    y = fma32(y, m, 2.0000714765e-1f, fast);
    y = fma32(y, m, -2.4999993993e-1f, fast);
    y = fma32(y, m, 3.3333331174e-1f, fast);
    y = fma32(y * m, z, e * -2.12194440e-4f, fast);
    y = fma32(z, -0.5f, y, fast);
    return fma32(e, 0.693359375f, m + y, fast);
}

/* x in [0, 2 pi]: quarter turns are counted off in three parts of pi / 4. */
BODY void sincos_float(float x, float *sine, float *cosine, int fast)
{
    int32_t j = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    float k = (float)j;
    x = fma32(k, -0.78515625f, x, fast);
    x = fma32(k, -2.4187564849853515625e-4f, x, fast);
    x = fma32(k, -3.77489497744594108e-8f, x, fast);
    float z = x * x, c = 2.443315711809948e-5f, s = -1.9515295891e-4f;
    c = fma32(c, z, -1.388731625493765e-3f, fast);
    c = fma32(c, z, 4.166664568298827e-2f, fast);
    c = fma32(c * z, z, z * -0.5f, fast) + 1.0f;
    s = fma32(s, z, 8.3321608736e-3f, fast);
    s = fma32(s, z, -1.6666654611e-1f, fast);
    s = fma32(s * z, x, x, fast);
    uint32_t sine_sign = (uint32_t)(j & 4) << 29, cosine_sign = (uint32_t)((j + 2) & 4) << 29;
    *sine = float_of(bits_of(j & 2 ? c : s) ^ sine_sign);
    *cosine = float_of(bits_of(j & 2 ? s : c) ^ cosine_sign);
}

/* In place on chunks of 16: eight radii, then eight angles. */
BODY void box_muller_float_body(float *data, int64_t chunks, float mean, float std, int fast)
{
    for (int64_t c = 0; c < chunks; c++, data += 16) {
        float first[8], second[8];
        for (int i = 0; i < 8; i++) {
            float sine, cosine, radius = sqrtf(-2.0f * log_float(1.0f - data[i], fast));
            sincos_float(6.283185307179586f * data[i + 8], &sine, &cosine, fast);
            first[i] = fma32(radius * cosine, std, mean, fast);
            second[i] = fma32(radius * sine, std, mean, fast);
        }
        memcpy(data, first, sizeof first);
        memcpy(data + 8, second, sizeof second);
    }
}
PER_ISA(box_muller_float, (float *data, int64_t chunks, float mean, float std), data, chunks, mean, std)

/* ---- float64 Box-Muller; polynomials of fdlibm (Sun Microsystems, 1993), below 1 ulp ---- */

/* x in [2^-53, 1]. */
BODY double log_double(double x)
{
    uint64_t u = bits_of_double(x);
    double m = double_of((u & 0x000fffffffffffffu) | 0x3ff0000000000000u);
    double k = double_of((u >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    int high = m > 1.4142135623730951;
    k += high ? 1.0 : 0.0;
    m *= high ? 0.5 : 1.0;
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
    double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01
               + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    double low = s * (half + (even + odd)) + k * 1.90821492927058770002e-10;
    return k * 6.93147180369123816490e-01 - ((half - low) - f);
}

BODY void sincos_double(double x, double *sine, double *cosine)
{
    const double round = 0x1.8p52;                 /* adding it leaves an integer in the low bits */
    double shifted = x * 6.36619772367581382433e-01 + round, k = shifted - round;
    uint64_t j = bits_of_double(shifted);
    x = ((x - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11) - k * 2.02226624871116645580e-21;
    double z = x * x, half = 0.5 * z, rest = 1.0 - half;
    double s = x + x * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03
             + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06
             + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
    double c = z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03
             + z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07
             + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
    c = rest + (((1.0 - rest) - half) + z * c);
    *sine = double_of(bits_of_double(j & 1 ? c : s) ^ ((j & 2) << 62));
    *cosine = double_of(bits_of_double(j & 1 ? s : c) ^ (((j + 1) & 2) << 62));
}

BODY void box_muller_double_body(double *data, int64_t chunks, double mean, double std, int fast)
{
    (void)fast;
    for (int64_t c = 0; c < chunks; c++, data += 16) {
        double first[8], second[8];
        for (int i = 0; i < 8; i++) {
            double sine, cosine, radius = sqrt(-2.0 * log_double(1.0 - data[i]));
            sincos_double(6.283185307179586 * data[i + 8], &sine, &cosine);
            first[i] = __builtin_fma(radius * cosine, std, mean);
            second[i] = __builtin_fma(radius * sine, std, mean);
        }
        memcpy(data, first, sizeof first);
        memcpy(data + 8, second, sizeof second);
    }
}
PER_ISA(box_muller_double, (double *data, int64_t chunks, double mean, double std), data, chunks, mean, std)

/* Uniforms to exponentials, in place; 1 - u is exact, so log needs no care near 1. */
BODY void exponential_body(double *data, int64_t n, double lambda, int fast)
{
    (void)fast;
    double scale = -1.0 / lambda;
    for (int64_t i = 0; i < n; i++) data[i] = scale * log_double(1.0 - data[i]);
}
PER_ISA(exponential, (double *data, int64_t n, double lambda), data, n, lambda)

/* ---- uniforms to another interval, one rounding, and never the upper end ---- */

BODY void rescale_float_body(float *data, int64_t n, float from, float to, int fast)
{
    float width = to - from;
    for (int64_t i = 0; i < n; i++) {
        float x = fma32(data[i], width, from, fast);
        data[i] = x == to ? from : x;
    }
}
PER_ISA(rescale_float, (float *data, int64_t n, float from, float to), data, n, from, to)

BODY void rescale_double_body(double *data, int64_t n, double from, double to, int fast)
{
    (void)fast;
    double width = to - from;
    for (int64_t i = 0; i < n; i++) {
        double x = __builtin_fma(data[i], width, from);
        data[i] = x == to ? from : x;
    }
}
PER_ISA(rescale_double, (double *data, int64_t n, double from, double to), data, n, from, to)

/* ---- words modulo a range up to 2^31 ---- */

/* Exact: the rounded quotient leaves a remainder within half a range. Without vector conversions % is faster. */
BODY void remainder32_body(const uint32_t *restrict w, int64_t *restrict out, int64_t n, uint32_t range, int fast)
{
    if (!fast) { for (int64_t i = 0; i < n; i++) out[i] = w[i] % range; return; }
    double divisor = range, inverse = 1.0 / divisor;
    for (int64_t i = 0; i < n; i++) {
        double x = w[i], quotient = (x * inverse + 0x1.8p52) - 0x1.8p52;
        int32_t r = (int32_t)(x - quotient * divisor);
        out[i] = (int64_t)r + (r < 0 ? (int64_t)range : 0);
    }
}
PER_ISA(remainder32, (const uint32_t *w, int64_t *out, int64_t n, uint32_t range), w, out, n, range)

#endif
