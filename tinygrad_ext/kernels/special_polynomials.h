/* Orthogonal polynomials of a degree that is an element: 0 below degree 0, by recurrence (DLMF 18.9) above it, and by
 * the trigonometric form for the Chebyshev family inside [-1, 1], where that is one step. */
#ifndef TGX_SPECIAL_POLYNOMIALS_H
#define TGX_SPECIAL_POLYNOMIALS_H
#include "chebyshev.h"

#define VM_MOST_STEPS 10000000 /* a recurrence of more steps is not run: infinite outside [-1, 1], NaN where that is not known */

/* y as a degree, cut to a whole number; what is no number counts as negative, and beyond 2^53 there are no odd ones. */
VM_RARE int64_t vm_degree(double y) { return !(y > -1.0) ? -1 : y > 9e15 ? (int64_t)9e15 : (int64_t)y; }

/* p[k+1] = 2 x p[k] - p[k-1] from p[0] = 1 and p[1]. */
VM_RARE double vm_chebyshev_steps(double x, double first, int64_t n) {
    double before = 1.0, p = first;
    for (int64_t k = 1; k < n && p == p; k++) {
        double next = 2.0 * x * p - before;
        before = p, p = next;
    }
    return p;
}

/* Of the four kinds t, u, v, w. */
VM_RARE double vm_chebyshev(double x, int64_t n, char kind) {
    int odd = n & 1;
    if (n < 0) return 0.0;
    if (x != x) return x;
    if (n > VM_MOST_STEPS && !(fabs(x) <= 1.0)) return odd && x < 0.0 ? -(double)INFINITY : (double)INFINITY;
    double m = (double)n;
    if (x == 1.0) return kind == 't' || kind == 'v' ? 1.0 : kind == 'u' ? m + 1.0 : 2.0 * m + 1.0;
    if (x == -1.0) return (odd ? -1.0 : 1.0) * (kind == 't' || kind == 'w' ? 1.0 : kind == 'u' ? m + 1.0 : 2.0 * m + 1.0);
    if (n > 8 && fabs(x) < 1.0) {
        double angle = acos(x);
        if (kind == 't') return cos(m * angle);
        if (kind == 'u') return sin((m + 1.0) * angle) / sin(angle);
        if (kind == 'v') return cos((m + 0.5) * angle) / cos(0.5 * angle);
        return sin((m + 0.5) * angle) / sin(0.5 * angle);
    }
    if (n == 0) return 1.0;
    return vm_chebyshev_steps(x, kind == 't' ? x : kind == 'u' ? 2.0 * x : kind == 'v' ? 2.0 * x - 1.0 : 2.0 * x + 1.0, n);
}
#define VM_CHEBYSHEV(kind, letter) \
    VM_RARE double vm_chebyshev_##kind##_f64(double x, double y) { return vm_chebyshev(x, vm_degree(y), letter); } \
    VM_RARE double vm_shifted_chebyshev_##kind##_f64(double x, double y) { return vm_chebyshev(2.0 * x - 1.0, vm_degree(y), letter); } \
    VM_ROUNDED2(chebyshev_##kind) \
    VM_ROUNDED2(shifted_chebyshev_##kind)
VM_CHEBYSHEV(t, 't')
VM_CHEBYSHEV(u, 'u')
VM_CHEBYSHEV(v, 'v')
VM_CHEBYSHEV(w, 'w')
#undef VM_CHEBYSHEV

/* p[k+1] = FACTOR p[k] - (LESS) p[k-1], over DIVISOR, from p[0] = 1 and p[1] = FIRST. Above a degree it is NaN: of Hermite's
 * where its values leave the dtype's range. */
#define VM_POLYNOMIAL(name, FIRST, FACTOR, LESS, DIVISOR, MOST_F64, MOST_F32) \
    VM_RARE double vm_##name##_f64(double x, double y) { \
        int64_t n = vm_degree(y); \
        if (n <= 0) return n == 0 ? 1.0 : 0.0; \
        if (n > MOST_F64) return (double)NAN; \
        double before = 1.0, p = FIRST; \
        for (int64_t k = 1; k < n && p == p; k++) { \
            double next = ((FACTOR) * p - (LESS) * before) / (DIVISOR); \
            before = p, p = next; \
        } \
        return p; \
    } \
    VM_RARE float vm_##name##_f32(float x, float y) { return y > MOST_F32 ? (float)NAN : (float)vm_##name##_f64(x, y); }
VM_POLYNOMIAL(hermite_h, 2.0 * x, 2.0 * x, 2.0 * (double)k, 1.0, 512, 128)
VM_POLYNOMIAL(hermite_he, x, x, (double)k, 1.0, 512, 128)
VM_POLYNOMIAL(laguerre_l, 1.0 - x, 2.0 * (double)k + 1.0 - x, (double)k, (double)k + 1.0, VM_MOST_STEPS, VM_MOST_STEPS)
VM_POLYNOMIAL(legendre_p, x, (2.0 * (double)k + 1.0) * x, (double)k, (double)k + 1.0, VM_MOST_STEPS, VM_MOST_STEPS)
#undef VM_POLYNOMIAL

/* The same with a parameter a, which derivatives raise: C and L of degree n, order a (DLMF 18.9). */
#define VM_WITH_ORDER(name, FIRST, FACTOR, LESS) \
    VM_RARE double vm_##name##_f64(double x, double y, double a) { \
        int64_t n = vm_degree(y); \
        if (n <= 0) return n == 0 ? 1.0 : 0.0; \
        if (n > VM_MOST_STEPS) return (double)NAN; \
        double before = 1.0, p = FIRST; \
        for (int64_t k = 1; k < n && p == p; k++) { \
            double next = ((FACTOR) * p - (LESS) * before) / ((double)k + 1.0); \
            before = p, p = next; \
        } \
        return p; \
    } \
    VM_RARE float vm_##name##_f32(float x, float y, float a) { return (float)vm_##name##_f64(x, y, a); }
VM_WITH_ORDER(gegenbauer, 2.0 * a * x, 2.0 * x * ((double)k + a), (double)k + 2.0 * a - 1.0)
VM_WITH_ORDER(laguerre, 1.0 + a - x, 2.0 * (double)k + 1.0 + a - x, (double)k + a)
#undef VM_WITH_ORDER

#endif
