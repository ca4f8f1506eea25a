/* Sums into windows whose elements may share memory: the derivative of as_strided and unfold. */
#ifndef TGX_PUTBACK_H
#define TGX_PUTBACK_H
#include "types.h"

/* dst[i] += src[i] over all indices, in index order and one thread, since indices may meet in dst. Strides in bytes.
 * Returns 0, or TGX_BAD_VALUE for a dtype that carries no gradients. */
int tgx_window_add(int dtype, char *dst, const ptrdiff_t *dst_strides, const char *src, const ptrdiff_t *src_strides,
                   const int64_t *sizes, int ndim);
/* counts[p] = how many indices of the window address element p; strides in elements. */
void tgx_window_count(int64_t *counts, const int64_t *strides, const int64_t *sizes, int ndim);
/* data[p] /= counts[p] where counts[p] > 1. */
int tgx_window_share(int dtype, char *data, const int64_t *counts, int64_t n);
#endif
