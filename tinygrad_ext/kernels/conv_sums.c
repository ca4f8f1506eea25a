/* The gradient of a convolution by its weights. See conv_sums.h.
 *
 * Threads get channels of the input, and each sums over all images in their order. Rejected: images to the threads, which would
 * need a set of sums for each, and another order of additions for another number of threads. */
#include "conv_sums.h"
#include "conv_bf16.h"
#include "conv_bf16_sums.h"
#include "conv_job.h"
#include "conv_products.h"

enum { FEW_OUTPUTS = 2 }; /* outputs of a group below which vectors run along positions */

#if defined(__x86_64__)
extern const tgx_conv_table tgx_conv_table_avx2;
#endif

/* The loops for it: vectors of 32 bytes where more would leave half of the lanes empty, if the processor computes those of 64 in two
 * steps. */
static void begin_sums(tgx_call *c, job_t *j, const tgx_conv_sizes *g, int dtype) {
    begin(c, j, g, dtype);
#if defined(__x86_64__)
    const int64_t outputs = g->outputs / g->groups;
    if (j->p.lanes * j->size == 64 && outputs > FEW_OUTPUTS && 2 * outputs <= j->p.lanes && __builtin_cpu_is("amd")) {
        j->k = dtype == TGX_F32 ? &tgx_conv_table_avx2.f32 : &tgx_conv_table_avx2.f64;
        j->p.lanes = j->k->lanes;
    }
#endif
}

static int64_t sums_bytes(const job_t *j) {
    return padded(j->g->groups * j->p.channels * j->p.taps_y * j->p.taps_x * j->p.pad_outputs * j->size);
}

/* The plan, and its scratch. */
static int64_t plan(job_t *j) {
    tgx_conv *p = &j->p;
    tgx_conv_plan(p, j->size, j->g->n * (j->inner.run ? j->inner.run : 1));
    j->room_size = p->images * (p->buffer + (p->plane_by_plane ? 0 : p->block * p->span * p->pad_outputs)) * j->size;
    return tables(j->g) + sums_bytes(j) + j->room_size * j->most_shares;
}

/* Whether there is nothing to sum. */
static int is_idle(const tgx_conv_sizes *g) {
    return g->n == 0 || tgx_conv_count(g->out) == 0 || g->channels == 0 || g->outputs == 0 || tgx_conv_count(g->kernel) == 0;
}

int tgx_conv_weight_grad_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    job_t j;
    taps_t y, x;
    if (tgx_is_half(dtype)) return tgx_conv_bf16_room(c, g, dtype, TGX_CONV_WEIGHT_GRAD);
    if (c->meta || is_idle(g)) return 0;
    if (tgx_conv_is_product(c, g, dtype)) {
        tgx_conv_product_room(c, g, dtype);
        return 0;
    }
    c->notes[0] = c->services->num_threads();
    begin_sums(c, &j, g, dtype);
    forward_windows(&j, &y, &x);
    switch (limit(&j)) {
    case TOO_LARGE: return 0; /* nobody finds memory for the result */
    case TOO_FAR: return too_far(c, &j);
    }
    c->scratch_bytes = plan(&j);
    return 0;
}

/* A part's share of the sums of its group, from number `first` of its planes on. */
static void collect_part(const job_t *j, const tgx_conv_part *part, const planes_t *planes, int64_t first, int64_t group, char *buf) {
    const tgx_conv *p = &j->p;
    const int64_t own = p->own * p->src_channel, at = (planes->z + first % planes->run) * j->step_z + j->z.at;
    const int64_t volume = first / planes->run * j->g->groups + group;
    const int64_t to = volume * p->outputs * part->out_plane + planes->z * part->out_next + part->row * p->cols + part->col;
    const char *grad = j->out + to * j->size;
    const char *one = grad + tgx_conv_out(part, 0) * j->size; /* where there is one plane */
    char *turned = buf + p->images * p->buffer * j->size;
    char *sums = j->sums + group * p->channels * p->taps_x * p->taps_y * p->pad_outputs * j->size;
    if (p->plane_by_plane) {
        j->k->lay(p, part, j->src + (volume * own + at * p->height * p->width) * j->size, buf);
        j->k->collect_plane(p, part, buf, one, sums);
        return;
    }
    load_planes(j, part, planes, first, group, buf);
    if (p->outputs <= FEW_OUTPUTS) j->k->collect_few(p, part, buf, one, sums);
    else {
        j->k->turn(p, part, grad, turned);
        j->k->collect(p, part, buf, turned, sums);
    }
}

/* Channels that no output plane reaches: sums over nothing. */
static void collect_nothing(const job_t *j, tgx_conv_part *part, int64_t group, char *buf) {
    const tgx_conv *p = &j->p;
    char *sums = j->sums + group * p->channels * p->taps_x * p->taps_y * p->pad_outputs * j->size;
    part->rows = part->cols = part->images = 0;
    if (p->plane_by_plane) j->k->collect_plane(p, part, buf, buf, sums);
    else if (p->outputs <= FEW_OUTPUTS) j->k->collect_few(p, part, buf, buf, sums);
    else j->k->collect(p, part, buf, buf, sums);
}

/* Items are channels of p, groups one after the other; each sums over all images by itself. */
static void collect_items(job_t *j, char *buf, int64_t lo, int64_t hi) {
    const tgx_conv *p = &j->p;
    tgx_conv_part part;
    const int64_t together = p->outputs <= FEW_OUTPUTS ? 1 : p->images;
    part.out_next = p->rows * p->cols, part.out_plane = j->planes * part.out_next;
    part.out_image = j->g->outputs * part.out_plane;
    for (int64_t channel = lo; channel < hi; channel += part.channels) {
        const int64_t group = channel / p->channels;
        planes_t planes;
        int64_t end;
        part.channel = channel % p->channels, part.fresh = 1;
        part.channels = at_most(at_most(hi - channel, p->own - part.channel % p->own), p->depth); /* of one tap plane */
        output_planes(j, part.channel / p->own, &planes.z, &end);
        planes.run = part.run = end - planes.z;
        if (planes.run == 0) collect_nothing(j, &part, group, buf);
        for (int64_t image = 0; image < j->g->n * planes.run; image += together) {
            part.images = at_most(together, j->g->n * planes.run - image), part.skip = image % planes.run;
            for (part.row = 0; part.row < p->rows; part.row += part.rows)
                for (part.col = 0; part.col < p->cols; part.col += part.cols) {
                    part.rows = at_most(p->block, p->rows - part.row), part.cols = at_most(p->span, p->cols - part.col);
                    collect_part(j, &part, &planes, image, group, buf);
                    part.fresh = 0;
                }
        }
    }
}

static void spread_sums(const job_t *j, char *out) {
    int64_t group = j->p.channels * j->p.taps_x * j->p.taps_y * j->size;
    for (int64_t i = 0; i < j->g->groups; i++)
        (j->p.plane_by_plane ? j->k->settle : j->k->spread)(&j->p, j->sums + i * group * j->p.pad_outputs, out + i * group * j->p.outputs);
}

int tgx_conv_weight_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x) {
    const tgx_tensor *out = tgx_out(c, 0);
    job_t j;
    taps_t y, across;
    if (is_idle(g)) {
        memset(out->data, 0, (size_t)out->count * (size_t)tgx_itemsize[out->dtype]);
        return 0;
    }
    if (x->dtype == TGX_BF16) return tgx_conv_bf16_weight_grad(c, g, grad, x);
    if (tgx_conv_is_product(c, g, x->dtype)) return tgx_conv_product_weight_grad(c, g, grad, x);
    begin_sums(c, &j, g, x->dtype);
    forward_windows(&j, &y, &across);
    if (limit(&j) != FINE) return TGX_NO_MEMORY;
    j.src = x->data, j.out = grad->data;
    fill_tables(c, &j, &y, &across);
    plan(&j);
    tgx_conv_place_taps(&j.p);
    j.sums = (char *)c->scratch + tables(g);
    j.room = j.sums + sums_bytes(&j);
    const int64_t work = g->n * j.planes * j.p.taps_y * j.p.taps_x * j.p.rows * j.p.cols * j.p.outputs + 1;
    int code = deal(c, &j, collect_items, g->groups * j.p.channels, work);
    if (!code) spread_sums(&j, out->data);
    return code;
}
