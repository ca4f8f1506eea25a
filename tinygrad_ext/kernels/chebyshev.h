/* Sums of Chebyshev polynomials, for the special functions whose graphs are fitted piece by piece.
 *
 * The coefficients beside them are our own: interpolation at the Chebyshev nodes in 50-digit arithmetic (mpmath), cut
 * where the rest is below 1e-17 of the largest value. Clenshaw's recurrence keeps them as they are; as powers of t they
 * would cancel.
 *
 * A function of several pieces sums one series, whose coefficients are those of the element's own piece: nothing
 * branches, and the loop around it runs in vectors. float32 is computed in double by fewer terms, what is cut being
 * below 2^-42, and rounded once. VM_RARE functions branch and loop, so their loops are scalar. */
#ifndef TGX_CHEBYSHEV_H
#define TGX_CHEBYSHEV_H
#include "vecmath.h"
#define VM_RARE static __attribute__((unused))
#define VM_TERMS(table) (int)(sizeof(table) / sizeof *(table))

/* Clenshaw's recurrence; COEFFICIENT is of k, `terms` a constant, so that all of it unrolls. */
#define VM_CLENSHAW(terms, t, COEFFICIENT) \
    double b1 = 0.0, b2 = 0.0; \
    const double twice = (t) + (t); \
    _Pragma("GCC unroll 32") for (int k = (terms)-1; k > 0; k--) { \
        double sum = vm_mad_f64(twice, b1, (COEFFICIENT) - b2); \
        b2 = b1, b1 = sum; \
    } \
    const int k = 0; \
    return vm_mad_f64(t, b1, (COEFFICIENT) - b2);

/* The first n terms. */
VM_INLINE double vm_sum(const double *c, int n, double t) { VM_CLENSHAW(n, t, c[k]) }
/* The first n terms of a where `first`, else the first m of b. */
VM_INLINE double vm_sum_of_two(_Bool first, const double *a, int n, const double *b, int m, double t)
{
    VM_CLENSHAW(n > m ? n : m, t, first ? (k < n ? a[k] : 0.0) : (k < m ? b[k] : 0.0))
}
/* Powers of t by Horner's rule, n a constant, for series that do not cancel so. */
VM_INLINE double vm_horner(const double *c, int n, double t)
{
    double sum = c[n - 1];
    _Pragma("GCC unroll 32") for (int k = n - 2; k >= 0; k--) sum = vm_mad_f64(sum, t, c[k]);
    return sum;
}
/* The first n terms of a where `first`, else the first m of b. */
VM_INLINE double vm_horner_of_two(_Bool first, const double *a, int n, const double *b, int m, double t)
{
    double sum = 0.0;
    _Pragma("GCC unroll 32") for (int k = (n > m ? n : m) - 1; k >= 0; k--)
        sum = vm_mad_f64(sum, t, first ? (k < n ? a[k] : 0.0) : (k < m ? b[k] : 0.0));
    return sum;
}
#define VM_SUM(table, t) vm_sum(table, VM_TERMS(table), t)

/* A function's two precisions from vm_NAME_of(x, single), where `single` cuts its series. */
#define VM_BOTH(name) \
    VM_INLINE double vm_##name##_f64(double x) { return vm_##name##_of(x, 0); } \
    VM_INLINE float vm_##name##_f32(float x) { return (float)vm_##name##_of(x, 1); }
#define VM_ROUNDED(name) VM_RARE float vm_##name##_f32(float x) { return (float)vm_##name##_f64(x); }
#define VM_ROUNDED2(name) VM_RARE float vm_##name##_f32(float x, float y) { return (float)vm_##name##_f64(x, y); }

#endif
