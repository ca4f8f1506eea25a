/* What the maps of a convolution share: one call's numbers, taps, limits, buffers. Included by conv_maps.c and conv_sums.c.
 *
 * The work is done by conv_loops.h, block by block of output rows: no matrix of windows is made, and the memory beyond the
 * result is the packed weights, or the sums, and one buffer of a few hundred kilobytes for each thread. */
#ifndef TGX_CONV_JOB_H
#define TGX_CONV_JOB_H
#include "conv.h"
#include "conv_geometry.h"

/* Multiplications that pay for a second thread; a plane by itself takes longer for each. */
enum { MIN_WORK = 1 << 20, MIN_PLANE_WORK = 1 << 18 };
static const double MOST_ROOM = (double)((int64_t)1 << 45); /* bytes */

typedef struct job {
    tgx_conv p;
    const tgx_conv_kernels *k;
    const tgx_conv_sizes *g;
    int64_t size;              /* bytes of an element */
    const char *src;           /* images of p.channels * groups planes */
    char *out;                 /* or, for the gradient of the weights, the gradient of the output */
    const char *bias;
    char *packed, *sums;
    char *room;                /* a buffer for each share of the work */
    int64_t room_size;
    int64_t most_shares, shares, items;
    void (*fn)(struct job *, char *buf, int64_t lo, int64_t hi);
    int64_t step_o, step_c;    /* elements between the weights of outputs and of channels */
    int64_t packed_group;      /* elements of packed in one group */
    int64_t blocks;
    /* where results go when they do not lie side by side */
    int scatter;
    int64_t first_y, first_x, out_h, out_w;
} job_t;

static int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t padded(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* ---- taps -------------------------------------------------------------------------------------------------------- */

/* Places of the taps along one dimension and their numbers in the kernel, both evenly spaced. */
typedef struct { int64_t count, at, at_step, which, which_step; } taps_t;

static taps_t all_taps(int64_t n, int64_t first, int64_t dilation) { return (taps_t){n, first, dilation, 0, 1}; }

/* Taps v for which an output position (first - v * dilation) / stride exists, and that position. */
static taps_t taps_reaching(int64_t n, int64_t first, int64_t dilation, int64_t stride) {
    int64_t a = dilation, b = stride, v = 0;
    while (b) { /* the greatest common divisor */
        int64_t rest = a % b;
        a = b, b = rest;
    }
    int64_t step = stride / a;
    while (v < n && v < step && (first - v * dilation) % stride) v++;
    if (v >= n || v >= step) return (taps_t){0, 0, 0, 0, 0};
    return (taps_t){(n - 1 - v) / step + 1, (first - v * dilation) / stride, -(dilation / a), v, step};
}

static void set_taps(tgx_conv *p, const taps_t *y, const taps_t *x) {
    int64_t last = (y->count - 1) * y->at_step, right = (x->count - 1) * x->at_step;
    p->taps_y = y->count, p->taps_x = x->count;
    p->base_y = y->at + (last < 0 ? last : 0), p->reach = last < 0 ? -last : last;
    p->base_x = x->at + (right < 0 ? right : 0), p->reach_x = right < 0 ? -right : right;
}

static int64_t tables(const tgx_conv_sizes *g) {
    return padded((g->kernel[0] + g->kernel[1] + 2 * g->kernel[0] * g->kernel[1]) * (int64_t)sizeof(ptrdiff_t));
}

/* Write the tables of taps to the start of the scratch; returns the taps' numbers in the weights' (height, width) order. */
static const ptrdiff_t *fill_tables(tgx_call *c, job_t *j, const taps_t *y, const taps_t *x) {
    ptrdiff_t *at_y = c->scratch, *at_x = at_y + j->g->kernel[0], *tap = at_x + j->g->kernel[1];
    for (int64_t v = 0; v < y->count; v++) at_y[v] = y->at + v * y->at_step;
    for (int64_t u = 0; u < x->count; u++) {
        at_x[u] = x->at + u * x->at_step;
        for (int64_t v = 0; v < y->count; v++)
            tap[v * x->count + u] = (y->which + v * y->which_step) * j->g->kernel[1] + x->which + u * x->which_step;
    }
    j->p.at_y = at_y, j->p.at_x = at_x, j->p.offset = tap + j->g->kernel[0] * j->g->kernel[1];
    return tap;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void begin(tgx_call *c, job_t *j, const tgx_conv_sizes *g, int dtype) {
    const tgx_conv_table *table = tgx_conv_pick();
    j->g = g, j->k = dtype == TGX_F32 ? &table->f32 : &table->f64, j->size = tgx_itemsize[dtype], j->p.lanes = j->k->lanes;
    j->bias = NULL, j->scatter = 0, j->most_shares = c->notes[0];
}

/* Where an image is so large that no memory holds it, or a dilation of 2**31 spreads the rows of a block's buffer: */
enum { FINE, TOO_LARGE, TOO_FAR };
static int limit(const job_t *j) {
    const tgx_conv *p = &j->p;
    double row = (double)p->taps_x * (double)p->cols * (double)(p->channels > 1 ? p->channels : 1) * (double)j->size;
    if ((double)p->rows * (double)p->cols * (double)j->size > MOST_ROOM) return TOO_LARGE;
    if ((double)j->g->kernel[0] * (double)j->g->kernel[1] * (double)sizeof(ptrdiff_t) > MOST_ROOM) return TOO_LARGE;
    return (double)at_most(p->reach + 1, p->step_y) * (double)(p->rows + p->reach / p->step_y) * row > MOST_ROOM ? TOO_FAR : FINE;
}

static int too_far(tgx_call *c, const job_t *j) {
    return tgx_fail(c, TGX_MEMORY_ERROR, "convolution: taps that are %lld rows apart need a buffer beyond any memory; use a smaller dilation "
                    "or kernel", (long long)j->p.reach);
}

static int run_shares(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    job_t *j = context;
    j->fn(j, j->room + lo * j->room_size, j->items * lo / j->shares, j->items * hi / j->shares);
    return 0;
}

/* fn over all items, in as many shares as there are buffers at most: the number of threads may have risen since. */
static int deal(tgx_call *c, job_t *j, void (*fn)(job_t *, char *, int64_t, int64_t), int64_t items, int64_t work) {
    int64_t pay = items / ((j->p.plane_by_plane ? MIN_PLANE_WORK : MIN_WORK) / work + 1);
    j->fn = fn, j->items = items, j->shares = pay > 1 ? at_most(pay, j->most_shares) : 1;
    return tgx_range(c, run_shares, j, j->shares, 1);
}

/* The windows of the forward direction. */
static void forward_windows(job_t *j, taps_t *y, taps_t *x) {
    const tgx_conv_sizes *g = j->g;
    tgx_conv *p = &j->p;
    p->channels = g->channels / g->groups, p->height = g->size[0], p->width = g->size[1];
    p->outputs = g->outputs / g->groups, p->rows = g->out[0], p->cols = g->out[1];
    p->step_y = g->stride[0], p->step_x = g->stride[1];
    j->step_c = g->kernel[0] * g->kernel[1], j->step_o = p->channels * j->step_c;
    *y = all_taps(g->kernel[0], -g->pad[0], g->dilation[0]), *x = all_taps(g->kernel[1], -g->pad[1], g->dilation[1]);
    set_taps(p, y, x);
}
#endif
