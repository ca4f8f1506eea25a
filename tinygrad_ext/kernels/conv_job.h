/* What the maps of a convolution share: one call's numbers, taps, limits, buffers. Included by conv_maps.c and conv_sums.c.
 *
 * The work is done by conv_loops.h, block by block of output rows: no matrix of windows is made, and the memory beyond the
 * result is the packed weights, or the sums, and one buffer of a few hundred kilobytes for each thread. */
#ifndef TGX_CONV_JOB_H
#define TGX_CONV_JOB_H
#include "conv.h"
#include "conv_geometry.h"
#include "conv_taps.h"

/* Multiplications that pay for a second thread, 18 us; a plane by itself takes longer for each. */
enum { MIN_WORK = 1 << 20, MIN_PLANE_WORK = 1 << 16 };
static const double MOST_ROOM = (double)((int64_t)1 << 45); /* bytes */

/* Planes of the result that are computed alike: so many of every volume from number z on. Of images there is one. */
typedef struct { int64_t z, run; } planes_t;

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
    int64_t outputs, some_outputs, output_parts; /* of a group, and of an item */
    taps_t z;                  /* of planes: a channel of p is a tap plane of a channel, and all of one tap plane come first */
    int64_t step_z, src_planes, planes; /* planes between windows, of src and of what is computed */
    planes_t inner;            /* those whose tap planes all lie in src */
    /* where results go when they do not lie side by side */
    int scatter;
    int64_t first_z, first_y, first_x, out_step, out_d, out_h, out_w; /* out_step: between planes */
} job_t;

static int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t padded(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* ---- taps -------------------------------------------------------------------------------------------------------- */

static void set_taps(tgx_conv *p, const taps_t *y, const taps_t *x) {
    int64_t last = (y->count - 1) * y->at_step, right = (x->count - 1) * x->at_step;
    p->taps_y = y->count, p->taps_x = x->count;
    p->base_y = y->at + (last < 0 ? last : 0), p->reach = last < 0 ? -last : last;
    p->base_x = x->at + (right < 0 ? right : 0), p->reach_x = right < 0 ? -right : right;
}

/* Taps that lie in src for the output plane z: [*lo, *hi). What lies outside is left out, for it is zeros. */
static void tap_planes(const job_t *j, int64_t z, int64_t *lo, int64_t *hi) {
    const taps_t *t = &j->z;
    const int64_t at = z * j->step_z + t->at;
    for (*lo = 0; *lo < t->count && (at + *lo * t->at_step < 0 || at + *lo * t->at_step >= j->src_planes);) ++*lo;
    for (*hi = *lo; *hi < t->count && at + *hi * t->at_step >= 0 && at + *hi * t->at_step < j->src_planes;) ++*hi;
}

/* Output planes [*lo, *hi) for which tap number v lies in src. */
static void output_planes(const job_t *j, int64_t v, int64_t *lo, int64_t *hi) {
    const int64_t at = j->z.at + v * j->z.at_step;
    *lo = at_most(at < 0 ? parts(-at, j->step_z) : 0, j->planes);
    *hi = at >= j->src_planes ? 0 : at_most(parts(j->src_planes - at, j->step_z), j->planes);
    if (*hi < *lo) *hi = *lo;
}

/* Volumes as planes: p's channels so far are those of volumes. */
static void set_planes(job_t *j, taps_t z, int64_t step, int64_t src_planes, int64_t planes) {
    tgx_conv *p = &j->p;
    j->z = z, j->step_z = step, j->src_planes = src_planes, j->planes = planes;
    p->own = p->channels, p->channels *= z.count, p->src_channel = src_planes * p->height * p->width;
    int64_t first = 0, end = planes;
    for (int side = 0; side < 2; side++) { /* the first tap plane and the last */
        int64_t lo = 0, hi = 0;
        if (z.count) output_planes(j, side * (z.count - 1), &lo, &hi);
        first = lo > first ? lo : first, end = at_most(hi, end);
    }
    j->inner = first < end ? (planes_t){first, end - first} : (planes_t){planes, 0};
}

static int64_t tables(const tgx_conv_sizes *g) {
    return padded((g->kernel[1] + g->kernel[2] + 2 * g->kernel[1] * g->kernel[2]) * (int64_t)sizeof(ptrdiff_t));
}

/* Write the tables of taps to the start of the scratch; returns the taps' numbers in the weights' (height, width) order. */
static const ptrdiff_t *fill_tables(tgx_call *c, job_t *j, const taps_t *y, const taps_t *x) {
    ptrdiff_t *at_y = c->scratch, *at_x = at_y + j->g->kernel[1], *tap = at_x + j->g->kernel[2];
    for (int64_t v = 0; v < y->count; v++) at_y[v] = y->at + v * y->at_step;
    for (int64_t u = 0; u < x->count; u++) {
        at_x[u] = x->at + u * x->at_step;
        for (int64_t v = 0; v < y->count; v++)
            tap[v * x->count + u] = (y->which + v * y->which_step) * j->g->kernel[2] + x->which + u * x->which_step;
    }
    j->p.at_y = at_y, j->p.at_x = at_x, j->p.offset = tap + j->g->kernel[1] * j->g->kernel[2];
    return tap;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void begin(tgx_call *c, job_t *j, const tgx_conv_sizes *g, int dtype) {
    const tgx_conv_table *table = tgx_conv_pick();
    j->g = g, j->k = dtype == TGX_F32 ? &table->f32 : &table->f64, j->size = tgx_itemsize[dtype], j->p.lanes = j->k->lanes;
    j->bias = NULL, j->scatter = 0, j->first_z = 0, j->out_step = 1, j->most_shares = c->notes[0];
}

/* Where an image is so large that no memory holds it, or a dilation of 2**31 spreads the rows of a block's buffer: */
enum { FINE, TOO_LARGE, TOO_FAR };
static int limit(const job_t *j) {
    const tgx_conv *p = &j->p;
    double row = (double)p->taps_x * (double)p->cols * (double)(p->channels > 1 ? p->channels : 1) * (double)j->size;
    if ((double)p->rows * (double)p->cols * (double)j->size > MOST_ROOM) return TOO_LARGE;
    if ((double)j->g->kernel[1] * (double)j->g->kernel[2] * (double)sizeof(ptrdiff_t) > MOST_ROOM) return TOO_LARGE;
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
    p->channels = g->channels / g->groups, p->height = g->size[1], p->width = g->size[2];
    p->outputs = g->outputs / g->groups, p->rows = g->out[1], p->cols = g->out[2];
    p->step_y = g->stride[1], p->step_x = g->stride[2];
    j->step_c = tgx_conv_count(g->kernel), j->step_o = p->channels * j->step_c;
    *y = all_taps(g->kernel[1], -g->pad[1], g->dilation[1]), *x = all_taps(g->kernel[2], -g->pad[2], g->dilation[2]);
    set_taps(p, y, x);
    set_planes(j, all_taps(g->kernel[0], -g->pad[0], g->dilation[0]), g->stride[0], g->size[0], g->out[0]);
}

/* The next of the part's channels that lie equally far apart, for image number i of a group's planes: where they begin, or NULL.
 * `some` holds those before, none at first. */
static const char *next_channels(const job_t *j, const tgx_conv_part *part, const planes_t *planes, int64_t i, int64_t group,
                                 tgx_conv_part *some) {
    const tgx_conv *p = &j->p;
    const int64_t c = some->channel + some->channels, v = c / (p->own ? p->own : 1), own = c - v * p->own;
    const int64_t at = (planes->z + i % planes->run) * j->step_z + j->z.at + v * j->z.at_step;
    const int64_t volumes = (i / planes->run * j->g->groups + group) * p->own;
    some->channel = c, some->channels = at_most(p->own - own, part->channel + part->channels - c);
    return some->channels > 0 ? j->src + ((volumes + own) * p->src_channel + at * p->height * p->width) * j->size : NULL;
}

/* Lay out the part's channels for its images, of which it begins with number `first` of a group's planes. */
static void load_planes(const job_t *j, const tgx_conv_part *part, const planes_t *planes, int64_t first, int64_t group, char *buf) {
    for (int64_t i = 0; i < part->images; i++) {
        char *to = buf + i * j->p.buffer * j->size;
        const char *src;
        tgx_conv_part some = *part;
        for (some.channels = 0; (src = next_channels(j, part, planes, first + i, group, &some)); to += some.channels * j->p.plane * j->size)
            j->k->load(&j->p, &some, src, to);
    }
}
#endif
