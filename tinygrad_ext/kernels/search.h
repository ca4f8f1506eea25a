/* Binary search in rows. */
#ifndef TGX_SEARCH_H
#define TGX_SEARCH_H
#include "types.h"

/* out[i]: how many of the n sorted elements of `row` lie before values[i] (with `right`: not behind it). `order`, when not
 * NULL, says in which order the row is sorted. Everything is contiguous; dtype is no complex or half one. */
void tgx_search_row(int dtype, const char *row, const int64_t *order, int64_t n, const char *values, int64_t count, int right,
                    int64_t *out);
#endif
