/* Layer norm over rows, group norm over channels of a row, batch norm over channels, and their derivatives.
 *
 * Sums over many rows go to a fixed number of partial sums that depends on the sizes alone, so that the number of
 * threads changes nothing. */
#ifndef TGX_NORM_H
#define TGX_NORM_H
#include <stddef.h>
#include <stdint.h>

#define TGX_NORM_COLUMNS 32     /* channels that lie side by side and are summed together */

typedef struct {
    char *out;
    const char *x, *grad, *weight, *bias;       /* weight and bias may be NULL */
    char *sums;                                 /* backward: parts times (gain, shift) of n, zeros at first, or NULL */
    int64_t rows, n, parts;                     /* the rows are cut into parts for the partial sums of parameters */
    int64_t groups, inner;                      /* group: rows of one example, and elements of one channel */
    char *shifts;                               /* group, backward: sums of a channel of an example by weight in `sums`, by bias here */
    double eps;
    int half;                                   /* layer: the dtype of out and x where they are halves, in rows of at most TGX_WIDE_ROW */
} tgx_layer_norm_job;

/* x is (outer, channels, inner). Sums have a unit of work for each channel, or for each group of TGX_NORM_COLUMNS
 * channels when inner is 1. */
typedef struct {
    char *out;
    const char *x, *grad;
    double *a, *b;              /* per channel: mean and sum of squares, or sum of grad and of grad * distance */
    const char *scale, *shift;  /* per channel: (x - mean) * scale + shift; backward: grad * slope minus that */
    const char *slope, *mean;
    int64_t outer, channels, inner;
    int half;                   /* apply: the dtype of out and x where they are halves, see norm_halves.h */
} tgx_batch_norm_job;

typedef int (*tgx_norm_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);
typedef struct {
    tgx_norm_fn layer[2], layer_backward[2];            /* rows; parts */
    tgx_norm_fn moments[2], products[2];                /* channels */
    tgx_norm_fn apply[2], apply_backward[2];            /* rows of inner; rows of channels when inner is 1 */
    tgx_norm_fn group[2], group_backward[2];            /* rows, with a weight and a bias for each channel */
} tgx_norm_table;

extern const tgx_norm_table tgx_norm_base, tgx_norm_avx2, tgx_norm_avx512;
#endif
