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
 *           erfc 3.4, rsqrt 1.5, hypot 1.0 1.2; lgamma 4 for x > 0, else 1e-15, digamma 4e-15, trigamma 1e-15,
 *           relative or, next to a zero, absolute; logaddexp likewise next to its zeros
 * pow without fma is the one function gcc leaves scalar (it cannot make its masks in SSE2).
 *
 * Infinities, NaN, signed zeros and subnormals are right everywhere; the NaN returned need
 * not carry the payload of the NaN that came in.
 */
#ifndef TGX_VECMATH_H
#define TGX_VECMATH_H

#include "vecmath_base.h"
#include "vecmath_hypot.h"
#include "vecmath_f64.h"
#include "vecmath_special.h"
#include "vecmath_f32.h"
#include "vecmath_f32_loops.h"
#include "vecmath_f32_circular.h"
#include "vecmath_f32_special.h"

#endif
