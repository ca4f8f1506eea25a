/* The lower median of one row, or another element by its place in their order, by selection. See median_isa.h. */
#ifndef TGX_MEDIAN_H
#define TGX_MEDIAN_H
#include "types.h"

enum { TGX_MEDIAN = -1, TGX_NANMEDIAN = -2 };

/* Index within the row of the k-th of its n elements in their order, from 0 on, NaN behind the others; n >= 1. TGX_MEDIAN: of its lower
 * median; a NaN is the median, the first one. TGX_NANMEDIAN: NaN do not count, and a row of nothing else gives 0. `room` is for n
 * elements. */
typedef int64_t (*tgx_median_row)(const void *row, int64_t n, int64_t k, void *room);
extern const tgx_median_row tgx_medians_base[TGX_NTYPES], tgx_medians_avx2[TGX_NTYPES], tgx_medians_avx512[TGX_NTYPES];
#endif
