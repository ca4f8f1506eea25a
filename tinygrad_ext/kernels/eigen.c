/* Eigenvalues of small matrices, see eigen.h, for which LAPACK's geev spends four fifths of its time on calls within itself: 8 x 8
 * doubles take it 9 to 12 us, of which its iteration is 2.
 *
 * The steps are geev's: powers of two balance rows and columns, reflectors make the matrix Hessenberg, steps of Francis with two shifts
 * (Golub and Van Loan, Matrix Computations, 7.5), of complex matrices with one, a Schur form, which is solved backwards for the
 * vectors. Left to LAPACK are matrices with a row or column of zeros beside the diagonal, which a permutation splits, and those whose
 * iteration does not end.
 *
 * Rejected: rows of a size known to the compiler in three instruction sets, 0.8 of the time for 380 KB. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "eigen.h"

#define PASTE(a, b) a##b
#define PASTED(a, b) PASTE(a, b)
#define INLINE static inline __attribute__((always_inline))
enum { MOST_STEPS = 30, SWEEPS = 20 };

#define T float
#define NAME(x) PASTED(x, _f32)
#define EPSILON FLT_EPSILON
#define TINY FLT_MIN
#define ROOT sqrtf
#define HYPOT hypotf
#define FREXP frexpf
#define LDEXP ldexpf
#define SIGN copysignf
#define ABS fabsf
#include "eigen_schur.h"
#include "eigen_vectors.h"
#include "eigen_complex.h"
#undef T
#undef NAME
#undef EPSILON
#undef TINY
#undef ROOT
#undef HYPOT
#undef FREXP
#undef LDEXP
#undef SIGN
#undef ABS
#define T double
#define NAME(x) PASTED(x, _f64)
#define EPSILON DBL_EPSILON
#define TINY DBL_MIN
#define ROOT sqrt
#define HYPOT hypot
#define FREXP frexp
#define LDEXP ldexp
#define SIGN copysign
#define ABS fabs
#include "eigen_schur.h"
#include "eigen_vectors.h"
#include "eigen_complex.h"

int tgx_small_eigen(int dtype, const void *a, int64_t n, void *values, void *vectors) {
    if (n < 2 || n > TGX_EIGEN_ORDER) return 0;
    switch (dtype) {
    case TGX_F32: return eigen_f32(a, (int)n, values, vectors);
    case TGX_F64: return eigen_f64(a, (int)n, values, vectors);
    case TGX_C64: return eigen_complex_f32(a, (int)n, values, vectors);
    case TGX_C128: return eigen_complex_f64(a, (int)n, values, vectors);
    default: return 0;
    }
}
