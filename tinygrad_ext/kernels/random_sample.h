/* Draws of indices: permutations and samples by weight. */
#ifndef TGX_RANDOM_SAMPLE_H
#define TGX_RANDOM_SAMPLE_H
#include "random.h"

void tgx_random_permutation(tgx_stream *s, int64_t *out, int64_t n);

/* weights: rows x categories of float32 or float64, finite, >= 0 and each row with a sum > 0 (else TGX_BAD_VALUE,
 * nothing drawn); out: rows x samples. Samples are distinct unless `replace`. TGX_NO_MEMORY if scratch is refused. */
int tgx_random_multinomial(tgx_stream *s, int type, const void *weights, int64_t rows, int64_t categories,
                           int64_t *out, int64_t samples, int replace);
#endif
