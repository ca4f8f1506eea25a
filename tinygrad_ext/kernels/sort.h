/* Stable sorting and selection of one contiguous row.
 *
 * An element becomes an unsigned key in the same order (NaN above all, -0 equal to 0) in the high bits of a word
 * and its position in the low ones. Words are all different, so any way of sorting them is stable. */
#ifndef TGX_SORT_H
#define TGX_SORT_H
#include "tgx.h"

/* Bytes of scratch memory for a row of n elements, which begins at a multiple of 16. */
size_t tgx_sort_room(int dtype, int64_t n);
/* From so many elements on a row is worth several threads. */
enum { TGX_SORT_LONG = 65536 };
/* Sorts n words, at most TGX_SORT_BLOCK; NULL where there are no instructions for it. */
enum { TGX_SORT_BLOCK = 128 };
typedef void (*tgx_sort_block)(uint64_t *a, int64_t n);
extern const tgx_sort_block tgx_block_base, tgx_block_avx2, tgx_block_avx512;
/* The first k of the sorted row: values (of the row's dtype) and positions. 0 < k <= n. c: NULL, or the call whose threads may share
 * a long row. */
void tgx_sort_row(tgx_call *c, int dtype, const char *row, int64_t n, int64_t k, int descending, char *values, int64_t *indices,
                  void *room);
#endif
