/* The loops of grid_sample.c, for two dtypes and two widths of an index. */
#include "grid_sample.h"
#include <math.h>
#include <string.h>

#define ALIGNED __attribute__((aligned(64)))
/* All points of a block; those behind the last are points too, in the middle of the image, and are not kept. */
#define EACH _Pragma("omp simd") for (ptrdiff_t j = 0; j < TGX_GRID_BLOCK; j++)

#define T float
#define BITS int32_t
#define INDEX int32_t
#define NAME(f) f##_float_int
#define FLOOR floorf
#define ABS fabsf
#define RINT rintf
#include "grid_sample_body.h"
#undef INDEX
#undef NAME
#define INDEX int64_t
#define NAME(f) f##_float_long
#include "grid_sample_body.h"
#undef T
#undef BITS
#undef NAME
#undef FLOOR
#undef ABS
#undef RINT
#define T double
#define BITS int64_t
#define NAME(f) f##_double_long
#define FLOOR floor
#define ABS fabs
#define RINT rint
#include "grid_sample_body.h"
#undef INDEX
#undef NAME
#define INDEX int32_t
#define NAME(f) f##_double_int
#include "grid_sample_body.h"

#define FOUR(f) {{f##_float_int, f##_float_long}, {f##_double_int, f##_double_long}}
const tgx_grid_table ISA(tgx_grid) = {FOUR(read), FOUR(spread), FOUR(slopes)};
