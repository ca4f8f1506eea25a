/* What a mask selects: counts, positions, compressed and expanded copies. All memory here is contiguous. */
#ifndef TGX_MASKS_H
#define TGX_MASKS_H
#include "types.h"

int64_t tgx_count_true(const char *p, int dtype, int64_t n);
/* Coordinates of the `count` elements that are not zero: out[d * count + k] is that of element k in dimension d. */
void tgx_true_coordinates(const char *p, int dtype, const int64_t *sizes, int ndim, int64_t count, int64_t *out);
/* The `count` elements of x whose mask byte is not 0, in order. */
void tgx_compress(char *out, const char *x, const uint8_t *mask, int64_t count, int width);
/* x[i] = the next element of src where the mask byte is not 0. */
void tgx_expand(char *x, const char *src, const uint8_t *mask, int64_t n, int width);
/* out = mask ? value : x; a tgx_loop for elements of `width` bytes. */
tgx_loop tgx_masked_fill_loop(int width);
#endif
