/* Pooling of planes and volumes: largest or mean of each window. Windows are given by tables, one entry for each layer, row and
 * column of the result, so that regular, adaptive and drawn windows are the same to the loops. A plane is a volume of depth one. */
#ifndef TGX_POOL_H
#define TGX_POOL_H
#include <stddef.h>
#include <stdint.h>
#include "types.h"

typedef struct {
    ptrdiff_t depth, height, width, layers, rows, cols;
    /* window (h, i, j) holds rows [y_lo[i], y_hi[i]) in steps of step_y, likewise layers and columns; a mean divides by
     * z_count[h] * y_count[i] * x_count[j], or by divisor unless that is 0 */
    const ptrdiff_t *z_lo, *z_hi, *z_count, *y_lo, *y_hi, *y_count, *x_lo, *x_hi, *x_count;
    ptrdiff_t step_z, step_y, step_x;
    int64_t divisor;
} tgx_pool;

/* Elements of a plane or volume, and of what it is pooled to. */
static inline ptrdiff_t tgx_pool_volume(const tgx_pool *p) { return p->depth * p->height * p->width; }
static inline ptrdiff_t tgx_pool_windows(const tgx_pool *p) { return p->layers * p->rows * p->cols; }

/* Windows of rows: number j holds `taps` elements in steps of `far`, from j * stride - pad on, as far as they lie in the row. */
typedef struct { ptrdiff_t width, cols, taps, stride, pad, far; } tgx_pool_row;

/* The largest of each window of some planes, and of some rows, by dtype; compiled for several instruction sets. */
typedef struct {
    void (*max[TGX_NTYPES])(const tgx_pool *p, ptrdiff_t planes, const void *src, void *out, int64_t *at);
    void (*row_max[TGX_NTYPES])(const tgx_pool_row *p, ptrdiff_t rows, const void *src, void *out);
} tgx_pool_table;

/* For planes [lo, hi) of a dtype of types.h. at: place of the largest in its plane, or NULL. NaN wins. */
void tgx_pool_max(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out, int64_t *at);
/* The same of rows, without the places and without tables, which take longer than the loop where there is one row. */
void tgx_pool_row_max(const tgx_pool_row *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out);
void tgx_pool_mean(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out);
/* The transpose of mean, for floating dtypes: src has the result's planes, out the input's and is zeroed here. */
void tgx_pool_spread(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out);

/* Planes of `n` elements, windows of `m`: out[at[i]] += src[i], and out[i] = src[at[i]]. TGX_INDEX for a place outside. */
int tgx_pool_scatter(int dtype, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n, ptrdiff_t m, const void *src, const int64_t *at, void *out);
int tgx_pool_gather(int dtype, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n, ptrdiff_t m, const void *src, const int64_t *at, void *out);
#endif
