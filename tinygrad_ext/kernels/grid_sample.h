/* Images and volumes read at the points of a grid. See grid_sample.c. */
#ifndef TGX_GRID_SAMPLE_H
#define TGX_GRID_SAMPLE_H
#include "tgx.h"

enum { TGX_BILINEAR, TGX_NEAREST, TGX_BICUBIC };
enum { TGX_ZEROS, TGX_BORDER, TGX_REFLECTION };
enum { TGX_GRID_BLOCK = 64, TGX_GRID_CORNERS = 16, TGX_GRID_ROWS = 4 };
/* points whose corners are worked out at once; corners of a point, and those that differ in more than the last dimension */

typedef struct {
    char *to;
    const char *x, *grid, *grad;        /* images, points, and what arrived for (image, channel, point) */
    ptrdiff_t channels, points, blocks; /* of an image */
    ptrdiff_t size[3], stride[3], plane;
    int dims, mode, padding, align;
} tgx_grid_job;

typedef int (*tgx_grid_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);
/* By dtype (float, double) and by what an index within a plane needs (32 bits, 64). */
typedef struct { tgx_grid_fn read[2][2], spread[2][2], slopes[2][2]; } tgx_grid_table;
extern const tgx_grid_table tgx_grid_base, tgx_grid_avx2, tgx_grid_avx512;
#endif
