/* The loops of grid_sample.c, for two dtypes and two widths of an index. */
#include "grid_sample.h"
#include <math.h>
#include <string.h>

#define ALIGNED __attribute__((aligned(64)))
/* All points of a block; those behind the last are points too, in the middle of the image, and are not kept. */
#define EACH _Pragma("omp simd") for (ptrdiff_t j = 0; j < TGX_GRID_BLOCK; j++)

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef double wide_quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef double two_floats __attribute__((aligned(4), may_alias));
typedef int32_t order __attribute__((vector_size(16)));
typedef int64_t wide_order __attribute__((vector_size(32)));
typedef int64_t wide_bits __attribute__((vector_size(32), aligned(8), may_alias));
typedef int32_t bits __attribute__((vector_size(16), aligned(4), may_alias));
#define INLINE static inline __attribute__((always_inline))

/* to[k] = tap k of a, b, c and d; rows of `to` are a block apart. */
INLINE void four_taps_float(const float *a, const float *b, const float *c, const float *d, float *to) {
    const quad w = *(const quad *)a, x = *(const quad *)b, y = *(const quad *)c, z = *(const quad *)d;
    const quad wx = __builtin_shuffle(w, x, (order){0, 4, 1, 5}), wx2 = __builtin_shuffle(w, x, (order){2, 6, 3, 7});
    const quad yz = __builtin_shuffle(y, z, (order){0, 4, 1, 5}), yz2 = __builtin_shuffle(y, z, (order){2, 6, 3, 7});
    *(quad *)to = __builtin_shuffle(wx, yz, (order){0, 1, 4, 5});
    *(quad *)(to + TGX_GRID_BLOCK) = __builtin_shuffle(wx, yz, (order){2, 3, 6, 7});
    *(quad *)(to + 2 * TGX_GRID_BLOCK) = __builtin_shuffle(wx2, yz2, (order){0, 1, 4, 5});
    *(quad *)(to + 3 * TGX_GRID_BLOCK) = __builtin_shuffle(wx2, yz2, (order){2, 3, 6, 7});
}
INLINE void two_taps_float(const float *a, const float *b, const float *c, const float *d, float *to) {
    const quad ab = (quad)(pair){*(const two_floats *)a, *(const two_floats *)b};
    const quad cd = (quad)(pair){*(const two_floats *)c, *(const two_floats *)d};
    *(quad *)to = __builtin_shuffle(ab, cd, (order){0, 2, 4, 6});
    *(quad *)(to + TGX_GRID_BLOCK) = __builtin_shuffle(ab, cd, (order){1, 3, 5, 7});
}
INLINE void four_taps_double(const double *a, const double *b, const double *c, const double *d, double *to) {
    const wide_quad w = *(const wide_quad *)a, x = *(const wide_quad *)b, y = *(const wide_quad *)c, z = *(const wide_quad *)d;
    const wide_quad wx = __builtin_shuffle(w, x, (wide_order){0, 4, 2, 6}), wx2 = __builtin_shuffle(w, x, (wide_order){1, 5, 3, 7});
    const wide_quad yz = __builtin_shuffle(y, z, (wide_order){0, 4, 2, 6}), yz2 = __builtin_shuffle(y, z, (wide_order){1, 5, 3, 7});
    *(wide_quad *)to = __builtin_shuffle(wx, yz, (wide_order){0, 1, 4, 5});
    *(wide_quad *)(to + TGX_GRID_BLOCK) = __builtin_shuffle(wx2, yz2, (wide_order){0, 1, 4, 5});
    *(wide_quad *)(to + 2 * TGX_GRID_BLOCK) = __builtin_shuffle(wx, yz, (wide_order){2, 3, 6, 7});
    *(wide_quad *)(to + 3 * TGX_GRID_BLOCK) = __builtin_shuffle(wx2, yz2, (wide_order){2, 3, 6, 7});
}
INLINE void two_taps_double(const double *a, const double *b, const double *c, const double *d, double *to) {
    *(pair *)to = (pair){a[0], b[0]}, *(pair *)(to + 2) = (pair){c[0], d[0]};
    *(pair *)(to + TGX_GRID_BLOCK) = (pair){a[1], b[1]}, *(pair *)(to + TGX_GRID_BLOCK + 2) = (pair){c[1], d[1]};
}

/* Two places, of which those of 32 bits are one load. */
#define PLACES_INT(from, a, b) { \
        uint64_t both; \
        memcpy(&both, from, sizeof both); \
        a = (ptrdiff_t)(uint32_t)both, b = (ptrdiff_t)(both >> 32); \
    }
#define PLACES_LONG(from, a, b) (a = (from)[0], b = (from)[1])

#define FOUR quad
#define FOUR_BITS bits
#define TWO_TAPS two_taps_float
#define FOUR_TAPS four_taps_float
#define T float
#define BITS int32_t
#define INDEX int32_t
#define TWO_PLACES PLACES_INT
#define NAME(f) f##_float_int
#define FLOOR floorf
#define ABS fabsf
#define RINT rintf
#define BELOW(x) nextafterf(x, 0)
#include "grid_sample_body.h"
#undef INDEX
#undef TWO_PLACES
#undef NAME
#define INDEX int64_t
#define TWO_PLACES PLACES_LONG
#define NAME(f) f##_float_long
#include "grid_sample_body.h"
#undef T
#undef BITS
#undef NAME
#undef FLOOR
#undef ABS
#undef RINT
#undef BELOW
#undef TWO_TAPS
#undef FOUR_TAPS
#undef FOUR
#undef FOUR_BITS
#define FOUR wide_quad
#define FOUR_BITS wide_bits
#define TWO_TAPS two_taps_double
#define FOUR_TAPS four_taps_double
#define T double
#define BITS int64_t
#define NAME(f) f##_double_long
#define FLOOR floor
#define ABS fabs
#define RINT rint
#define BELOW(x) nextafter(x, 0)
#include "grid_sample_body.h"
#undef INDEX
#undef TWO_PLACES
#undef NAME
#define INDEX int32_t
#define TWO_PLACES PLACES_INT
#define NAME(f) f##_double_int
#include "grid_sample_body.h"

#define ALL(f) {{f##_float_int, f##_float_long}, {f##_double_int, f##_double_long}}
const tgx_grid_table ISA(tgx_grid) = {ALL(read), ALL(spread), ALL(slopes)};
