/* The lower median of one row, by selection. See median.c. */
#ifndef TGX_MEDIAN_H
#define TGX_MEDIAN_H
#include "types.h"

/* Index within the row of its lower median; n >= 1. A NaN is the median, the first one, unless skip_nan: then NaN do
 * not count, and a row of nothing else gives 0. `room` is for n elements. */
int64_t tgx_median(const char *row, int64_t n, int dtype, int skip_nan, void *room);
#endif
