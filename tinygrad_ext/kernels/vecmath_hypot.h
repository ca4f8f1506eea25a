/* sqrt(x^2 + y^2) without overflow or underflow on the way; included by vecmath.h, and by loops that need nothing else of it. */
#ifndef TGX_VECMATH_HYPOT_H
#define TGX_VECMATH_HYPOT_H
#include "vecmath_base.h"

/* Scaling by a power of two keeps the squares in range without rounding. */
VM_INLINE double vm_hypot_f64(double x, double y)
{
    double a = __builtin_fabs(x), b = __builtin_fabs(y);
    int infinite = (a == __builtin_inf()) | (b == __builtin_inf());
    double scale = a + b < 0x1p-459 ? 0x1p600 : 1.0;
    scale = a + b > 0x1p510 ? 0x1p-600 : scale;
    a *= scale;
    b *= scale;
    double big = a > b ? a : b; /* ordered, so (y, x) gives the same bits */
    double small = a > b ? b : a;
    double r = __builtin_sqrt(vm_mad_f64(big, big, small * small)) / scale;
    return infinite ? __builtin_inf() : r;
}

/* Squares of floats neither overflow nor underflow in double. */
VM_INLINE float vm_hypot_f32(float x, float y)
{
    double a = x, b = y;
    uint32_t infinite = vm_mask_f32(__builtin_fabsf(x) == __builtin_inff())
                      | vm_mask_f32(__builtin_fabsf(y) == __builtin_inff());
    return vm_select_f32(infinite, __builtin_inff(), (float)__builtin_sqrt(a * a + b * b));
}

#endif
