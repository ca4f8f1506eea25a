/* Sums of Chebyshev polynomials, for the special functions whose graphs are fitted piece by piece.
 *
 * The coefficients beside them are our own: interpolation at the Chebyshev nodes in 50-digit arithmetic (mpmath), cut
 * where the rest is below 1e-17 of the largest value. Clenshaw's recurrence keeps them as they are; as powers of t they
 * would cancel. Functions here branch and loop, so their loops are scalar; float32 is computed in double and rounded
 * once. */
#ifndef TGX_CHEBYSHEV_H
#define TGX_CHEBYSHEV_H
#include <math.h>
#include <stdint.h>
#define VM_RARE static __attribute__((unused))

VM_RARE double vm_clenshaw(const double *c, int n, double t) {
    double b1 = 0.0, b2 = 0.0;
    for (int k = n - 1; k > 0; k--) {
        double b = 2.0 * t * b1 - b2 + c[k];
        b2 = b1, b1 = b;
    }
    return t * b1 - b2 + c[0];
}
#define VM_SUM(table, t) vm_clenshaw(table, (int)(sizeof(table) / sizeof *(table)), t)
#define VM_ROUNDED(name) VM_RARE float vm_##name##_f32(float x) { return (float)vm_##name##_f64(x); }
#define VM_ROUNDED2(name) VM_RARE float vm_##name##_f32(float x, float y) { return (float)vm_##name##_f64(x, y); }

#endif
