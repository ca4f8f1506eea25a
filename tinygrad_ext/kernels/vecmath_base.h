/* What all functions of vecmath.h are written with; division.h too, which needs none of them. */
#ifndef TGX_VECMATH_BASE_H
#define TGX_VECMATH_BASE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VM_INLINE static inline __attribute__((always_inline, unused))

#if defined(__FMA__) || defined(__aarch64__)
#define VM_HAS_FMA 1
#else
#define VM_HAS_FMA 0
#endif

/* a*b + c: fused where the instruction exists, two roundings elsewhere.  Code that needs the
 * fused result for correctness, not only for speed, asks VM_HAS_FMA. */
VM_INLINE float vm_mad_f32(float a, float b, float c)
{
#if VM_HAS_FMA
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

VM_INLINE double vm_mad_f64(double a, double b, double c)
{
#if VM_HAS_FMA
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

VM_INLINE uint32_t vm_bits_f32(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
VM_INLINE uint64_t vm_bits_f64(double x) { uint64_t u; memcpy(&u, &x, sizeof u); return u; }
VM_INLINE float vm_from_bits_f32(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }
VM_INLINE double vm_from_bits_f64(uint64_t u) { double x; memcpy(&x, &u, sizeof x); return x; }

#define VM_SIGN_F32 0x80000000u
#define VM_SIGN_F64 0x8000000000000000u
#define VM_ONE_F32 0x3f800000u         /* bits of 1.0f */
#define VM_ONE_F64 0x3ff0000000000000u /* bits of 1.0 */

/* Adding and subtracting 1.5 * 2^(mantissa bits) rounds to the nearest integer without an
 * SSE4.1 instruction, and leaves that integer in the low bits of the sum. */
#define VM_ROUND_F32 0x1.8p23f
#define VM_ROUND_F64 0x1.8p52

/* Choosing by mask.  A chain of ?: on related conditions is rewritten by gcc into branches it
 * then cannot vectorise (or copies of whole computations), so the conditional operator is kept
 * for isolated choices and everything else goes through these. */
VM_INLINE uint32_t vm_mask_f32(_Bool condition) { return 0 - (uint32_t)condition; }

/* By way of a double, for SSE2 has no 64-bit integer comparison to make the mask with. */
VM_INLINE uint64_t vm_mask_f64(_Bool condition)
{
    return vm_bits_f64(condition ? vm_from_bits_f64(~(uint64_t)0) : 0.0);
}

VM_INLINE float vm_select_f32(uint32_t mask, float a, float b)
{
    return vm_from_bits_f32((vm_bits_f32(a) & mask) | (vm_bits_f32(b) & ~mask));
}

VM_INLINE double vm_select_f64(uint64_t mask, double a, double b)
{
    return vm_from_bits_f64((vm_bits_f64(a) & mask) | (vm_bits_f64(b) & ~mask));
}

/* p * 2^k, where kbits are the bits of k + VM_ROUND.  Two steps, each within the exponent
 * range, so overflow gives infinity and a subnormal result is rounded once. */
VM_INLINE float vm_scale_f32(float p, uint32_t kbits)
{
    uint32_t first = (kbits >> 1) << 23;
    uint32_t second = (kbits << 23) - first;
    return p * vm_from_bits_f32(first + VM_ONE_F32) * vm_from_bits_f32(second + VM_ONE_F32);
}

VM_INLINE double vm_scale_f64(double p, uint64_t kbits)
{
    uint64_t first = (kbits >> 1) << 52;
    uint64_t second = (kbits << 52) - first;
    return p * vm_from_bits_f64(first + VM_ONE_F64) * vm_from_bits_f64(second + VM_ONE_F64);
}

/* Nearest integer, for every x; from 2^52 on there are no others. */
VM_INLINE double vm_rint_f64(double x)
{
    double a = __builtin_fabs(x);
    double r = (a + 0x1p52) - 0x1p52;
    return __builtin_copysign(a < 0x1p52 ? r : a, x);
}

/* VM_POLYn(T, z, c0, c1, ...): the polynomial c0 + c1 z + ... with n coefficients, by Horner's
 * rule.  Loop iterations are independent, so its latency is hidden. */
#define VM_POLY2(T, z, a, b) vm_mad_##T(b, z, a)
#define VM_POLY3(T, z, a, ...) vm_mad_##T(VM_POLY2(T, z, __VA_ARGS__), z, a)
#define VM_POLY4(T, z, a, ...) vm_mad_##T(VM_POLY3(T, z, __VA_ARGS__), z, a)
#define VM_POLY5(T, z, a, ...) vm_mad_##T(VM_POLY4(T, z, __VA_ARGS__), z, a)
#define VM_POLY6(T, z, a, ...) vm_mad_##T(VM_POLY5(T, z, __VA_ARGS__), z, a)
#define VM_POLY7(T, z, a, ...) vm_mad_##T(VM_POLY6(T, z, __VA_ARGS__), z, a)
#define VM_POLY8(T, z, a, ...) vm_mad_##T(VM_POLY7(T, z, __VA_ARGS__), z, a)
#define VM_POLY9(T, z, a, ...) vm_mad_##T(VM_POLY8(T, z, __VA_ARGS__), z, a)
#define VM_POLY10(T, z, a, ...) vm_mad_##T(VM_POLY9(T, z, __VA_ARGS__), z, a)
#define VM_POLY11(T, z, a, ...) vm_mad_##T(VM_POLY10(T, z, __VA_ARGS__), z, a)
#define VM_POLY12(T, z, a, ...) vm_mad_##T(VM_POLY11(T, z, __VA_ARGS__), z, a)
#define VM_POLY13(T, z, a, ...) vm_mad_##T(VM_POLY12(T, z, __VA_ARGS__), z, a)

/* The trigonometric functions come in two forms with equal bits where both apply:
 *   vm_sin_near_f32(x)  branch-free, for |x| <= VM_TRIG_MAX, infinities and NaN;
 *   vm_sin_f32(x)       for every x, but larger arguments call libm, which keeps the loop
 *                       around it from being vectorised.
 * So do the divisions of division.h.
 * VM_NEAR_LOOP(n, FAR, NEAR, FULL) runs FULL over blocks in which FAR is true of an element and
 * NEAR over the others.  The three are written in terms of the index i, for example
 *   VM_NEAR_LOOP(n, vm_trig_far_f32(in[i]), out[i] = vm_sin_near_f32(in[i]),
 *                out[i] = vm_sin_f32(in[i]))
 * A block is inspected before it is written, so out may be in. */
#define VM_TRIG_MAX 0x1p20
#define VM_NEAR_BLOCK 1024

#define VM_NEAR_LOOP(n, FAR, NEAR, FULL)                                                  \
    for (ptrdiff_t vm_start = 0; vm_start < (n); vm_start += VM_NEAR_BLOCK) {             \
        ptrdiff_t vm_left = (n) - vm_start;                                               \
        ptrdiff_t vm_stop = vm_start + (vm_left < VM_NEAR_BLOCK ? vm_left : VM_NEAR_BLOCK); \
        int vm_far = 0;                                                                   \
        _Pragma("omp simd reduction(|:vm_far)")                                           \
        for (ptrdiff_t i = vm_start; i < vm_stop; i++)                                    \
            vm_far |= FAR;                                                                \
        if (__builtin_expect(vm_far, 0)) {                                                \
            for (ptrdiff_t i = vm_start; i < vm_stop; i++) { FULL; }                      \
        } else {                                                                          \
            _Pragma("omp simd")                                                           \
            for (ptrdiff_t i = vm_start; i < vm_stop; i++) { NEAR; }                      \
        }                                                                                 \
    }

VM_INLINE _Bool vm_trig_far_f32(float x) { return __builtin_fabsf(x) > (float)VM_TRIG_MAX; }
VM_INLINE _Bool vm_trig_far_f64(double x) { return __builtin_fabs(x) > VM_TRIG_MAX; }

/* An unevaluated sum: hi + lo with |lo| <= ulp(hi). */
typedef struct { double hi, lo; } vm_pair_f64;

/* a * b exactly; without fma by Dekker's splitting into halves of 26 bits. */
VM_INLINE vm_pair_f64 vm_product_f64(double a, double b)
{
    double p = a * b;
#if VM_HAS_FMA
    return (vm_pair_f64){p, __builtin_fma(a, b, -p)};
#else
    double ta = a * 0x1.0000002p27, tb = b * 0x1.0000002p27;
    double ah = ta - (ta - a), bh = tb - (tb - b);
    double al = a - ah, bl = b - bh;
    return (vm_pair_f64){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
}

#endif
