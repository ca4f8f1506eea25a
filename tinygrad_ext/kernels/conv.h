/* Convolution of planes, without a matrix of all windows.
 *
 *     out[o][j][i] = bias[o] + sum over c, v, u of weight[o][c][v][u] src[c][j step_y + at_y[v]][i step_x + at_x[u]]
 *
 * with zeros outside src. This one form serves the forward direction and, with roles exchanged, the gradient of the
 * input; `collect` is the gradient of the weights. A block of rows of src is first laid out once for each u (`load`),
 * so that all rows of a window lie at fixed distances and the inner loops run over whole blocks without edges. */
#ifndef TGX_CONV_H
#define TGX_CONV_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    ptrdiff_t channels, height, width; /* of src, whose planes are contiguous */
    ptrdiff_t outputs, rows, cols;     /* of out */
    ptrdiff_t step_y, step_x, taps_y, taps_x;
    const ptrdiff_t *at_y, *at_x;      /* where the taps of the first window lie in src; may be negative */
    /* set by tgx_conv_plan */
    ptrdiff_t block;                   /* rows of out computed at a time */
    ptrdiff_t base_y, phases, phase_rows, plane, buffer, pad_outputs;
    ptrdiff_t *offset;                 /* of tap (u, v) in a plane of the buffer; room for taps_y * taps_x */
} tgx_conv;

/* All of out for int64, in plain loops; tap numbers the weights of one channel. */
void tgx_conv_integers(const tgx_conv *p, const int64_t *src, const int64_t *weight, const ptrdiff_t *tap, const int64_t *bias,
                       int64_t *out);

/* Choose the block for elements of `size` bytes. */
void tgx_conv_plan(tgx_conv *p, ptrdiff_t size);

typedef struct {
    /* Lay out what rows [first, first + count) of out need; buf has room for p->buffer elements. */
    void (*load)(const tgx_conv *p, const void *src, ptrdiff_t first, ptrdiff_t count, void *buf);
    /* Weights in the order in which `apply` reads them: taps_y * taps_x * channels * pad_outputs elements. */
    void (*pack)(const tgx_conv *p, const void *weight, ptrdiff_t step_o, ptrdiff_t step_c, const ptrdiff_t *tap, void *packed);
    /* count rows from the buffer to out, whose planes lie `out_plane` apart; bias may be NULL. */
    void (*apply)(const tgx_conv *p, const void *buf, ptrdiff_t count, const void *packed, const void *bias, void *out,
                  ptrdiff_t out_plane);
    /* turned[position][output] = grad[output][position], outputs padded with zeros to pad_outputs. */
    void (*turn)(const tgx_conv *p, const void *grad, ptrdiff_t grad_plane, ptrdiff_t count, void *turned);
    /* sums[tap k of channel c][output] += buf . turned, for channels [lo, hi) of the buffer. */
    void (*collect)(const tgx_conv *p, const void *buf, ptrdiff_t count, const void *turned, void *sums);
} tgx_conv_kernels;

typedef struct { tgx_conv_kernels f32, f64; } tgx_conv_table;
const tgx_conv_table *tgx_conv_pick(void);
#endif
