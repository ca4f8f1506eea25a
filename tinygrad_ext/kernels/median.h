/* The lower median of one row, by selection. See median_isa.h. */
#ifndef TGX_MEDIAN_H
#define TGX_MEDIAN_H
#include "types.h"

/* Index within the row of its lower median; n >= 1. A NaN is the median, the first one, unless skip_nan: then NaN do
 * not count, and a row of nothing else gives 0. `room` is for n elements. */
typedef int64_t (*tgx_median_row)(const void *row, int64_t n, int skip_nan, void *room);
extern const tgx_median_row tgx_medians_base[TGX_NTYPES], tgx_medians_avx2[TGX_NTYPES], tgx_medians_avx512[TGX_NTYPES];
#endif
