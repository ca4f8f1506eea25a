/* Elementary functions for float and double that the compiler can vectorise.
 *
 * Every function is inline and, unless its comment says otherwise, free of branches and
 * calls, so a loop under `#pragma omp simd` turns it into vector code for whatever
 * instruction set the including file selected by `#pragma GCC target(...)` above the
 * include.  Expected switches: -O3 -fopenmp-simd -ffp-contract=off -fno-math-errno
 * -fno-trapping-math; never -ffast-math, which would undo the compensated sums here.
 *
 * One rule shapes everything: within one instruction set an element has the same bits in a
 * vector body, a scalar tail or a strided loop.  Hence only IEEE operations, fused
 * multiply-adds only where written (vm_mad_*), and no library call on a path that a vector
 * loop would replace by a different routine.
 *
 * Method: exact or compensated argument reduction, then a minimax polynomial.
 * The polynomials are our own fits: the Remez exchange in 60-digit arithmetic minimises
 * max |w(t) (g(t) - P(t))| over the reduced interval, widened by 0.1 %, where g is the
 * function with its exact leading terms taken out and w turns the error into a relative
 * error of the result; coefficients are then rounded to the working precision.  The comment
 * on each polynomial gives g and the interval.  Splitting constants follows Cody and Waite;
 * log uses the s = f/(2+f) form and log2/log10 the split product of fdlibm; erfc uses the
 * map t = (x-c)/(x+c) of Shepherd and Laframboise (1981); the gamma family uses Stirling's
 * series with Bernoulli numbers, after a shift to arguments of at least 8.
 *
 * Largest error measured, in ulp (float against double over every 7th, 41st or 83rd float; double
 * against quadruple precision on 1.5 million mixed arguments, sin, cos and tan also at the
 * doubles next to every multiple of pi/2 below 2^20).  First with fma, then without if worse:
 *   float   exp 0.89 1.2, exp2 0.87 1.2, expm1 1.4, log 0.91, log2 1.0 1.9, log10 1.0 1.9,
 *           log1p 0.93, tanh 1.6, sigmoid 2.0, erf 1.4 1.5, sin and cos 1.9, rsqrt 1.5,
 *           tan 2.0 0.501, asin 1.2, acos 1.1, atan 1.5 1.6, atan2 1.6, atanh 1.7,
 *           erfc 1.9 0.501, pow 0.53; logaddexp 1.8 2.1, with absolute error 2^-24 next to its
 *           zeros; gelu 1.5 for x > 0 and absolute error 2^-24 |x| below;
 *           the others, computed in double, 0.501 (the gamma family away from its zeros)
 *   double  exp 0.97, exp2 1.1, expm1 1.9, log 0.8, log2 0.8, log10 0.7, log1p 0.9, pow 1.1,
 *           sin and cos 0.8, tan 2.0 2.4, asin 2.0, acos 1.2, atan 1.7, atan2 1.9, sinh 2.4,
 *           cosh 1.5, tanh 2.5, asinh 1.7, acosh 2.0, atanh 1.9, sigmoid 1.9, erf 1.6,
 *           erfc 3.4, rsqrt 1.5, hypot 1.0 1.2; lgamma 1e-14, digamma 4e-15, trigamma 1e-15,
 *           relative or, next to a zero, absolute; logaddexp likewise next to its zeros
 * pow without fma is the one function gcc leaves scalar (it cannot make its masks in SSE2).
 *
 * Infinities, NaN, signed zeros and subnormals are right everywhere; the NaN returned need
 * not carry the payload of the NaN that came in.
 */
#ifndef TGX_VECMATH_H
#define TGX_VECMATH_H

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

#include "vecmath_f64.h"
#include "vecmath_special.h"
#include "vecmath_f32.h"
#include "vecmath_f32_circular.h"
#include "vecmath_f32_special.h"

#endif
