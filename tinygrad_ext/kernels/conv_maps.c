/* The forward map of a convolution, and the gradient of its input. See conv_maps.h.
 *
 * The gradient of a convolution with stride is one dense convolution for each residue of rows and columns. Rejected: one
 * over the gradient with zeros put between, stride times stride as many multiplications, nearly all by zero. */
#include "conv_maps.h"
#include "conv_bf16.h"
#include "conv_integers.h"
#include "conv_job.h"
#include "conv_overlaps.h"
#include "conv_pairs.h"
#include "conv_products.h"
#include "isa.h"

/* Outputs of a tile; positions for which packing the weights does not pay, for one tap and for more; of planes that go together;
 * items for a thread of which one more or less does no harm; outputs of an item, whole tiles of them; channels that are packed at a
 * time. */
enum { MOST_ROWS = 8, FEW_POSITIONS = 64, SOME_POSITIONS = 256, FEW_BYTES = 8 << 10, MANY_ITEMS = 8, SOME_OUTPUTS = 32, PACKED_CHANNELS = 32 };

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static int64_t packed_bytes(const job_t *j) { return padded(j->packed_group * j->g->groups * j->size); }

static int64_t shared(const job_t *, int64_t), all_shared(const job_t *);

/* Outputs of an item: all, or where there are few items as many as leave the share of the busiest thread smallest. */
static int64_t outputs_of_item(const job_t *j) {
    const int64_t tile = j->p.across || j->p.laid ? j->p.lanes * TGX_CONV_VECTORS(j->p.lanes * j->size) : SOME_OUTPUTS;
    const int64_t items = all_shared(j) * j->g->groups * j->blocks, n = parts(j->p.outputs, tile);
    int64_t best = j->p.outputs, least = INT64_MAX;
    if (j->p.plane_by_plane || j->scatter || items >= MANY_ITEMS * j->most_shares) return best;
    for (int64_t k = 1; k <= n && k <= MANY_ITEMS * j->most_shares; k++) {
        const int64_t some = parts(n, k) * tile, most = parts(items * parts(j->p.outputs, some), j->most_shares) * some;
        if (most < least) best = some, least = most;
    }
    return best;
}

/* The plan of one call of `apply_all`, and its scratch behind the tables. */
static int64_t plan_apply(job_t *j) {
    tgx_conv *p = &j->p;
    const int64_t kernel = j->g->kernel[1] * j->g->kernel[2];
    const int few = j->g->n * j->planes * p->rows * p->cols <= (kernel == 1 ? FEW_POSITIONS : SOME_POSITIONS);
    p->weight_row = few && j->step_c == kernel && p->outputs % MOST_ROWS == 0 && j->g->kernel[0] == 1 ? j->step_o : 0;
    const int64_t images = j->g->n * (j->inner.run ? j->inner.run : 1);
    tgx_conv_plan(p, j->size, parts(images, j->most_shares));
    tgx_conv_plan_outputs(p, j->size, images, j->planes > j->inner.run ? j->g->n : images);
    j->blocks = parts(p->rows, p->block) * parts(p->cols, p->span);
    j->outputs = p->outputs, j->some_outputs = outputs_of_item(j), j->output_parts = parts(j->outputs, j->some_outputs);
    j->packed_group = p->taps_x * p->taps_y * p->channels * p->pad_outputs;
    j->room_size = p->images * (p->buffer + (j->scatter ? p->outputs * p->block * p->span : 0)) * j->size;
    return packed_bytes(j) + j->room_size * j->most_shares;
}

/* Add to c->scratch_bytes what a call of `apply_all` needs, if it is more than what others need that come before. */
static int need_apply(tgx_call *c, job_t *j) {
    if (j->planes <= 0 || j->p.rows <= 0 || j->p.cols <= 0 || j->g->n == 0) return 0;
    switch (limit(j)) {
    case TOO_LARGE: return 0; /* nobody finds memory for the result */
    case TOO_FAR: return too_far(c, j);
    }
    int64_t bytes = tables(j->g) + plan_apply(j);
    if (bytes > c->scratch_bytes) c->scratch_bytes = bytes;
    return 0;
}

/* ---- forward, and the gradient of the input ---------------------------------------------------------------------- */

/* Plane z of a group of volume number `image` of the result. */
static char *result_plane(const job_t *j, int64_t image, int64_t group, int64_t z) {
    const int64_t volume = (image * j->g->groups + group) * j->outputs * j->out_d;
    return j->out + (volume + j->first_z + z * j->out_step) * j->out_h * j->out_w * j->size;
}

/* Rows of a block to every stride-th row and column of a plane of the result. */
static const char *scatter(const job_t *j, const tgx_conv_part *part, const char *block, char *planes) {
    int64_t size = j->size, step = j->g->stride[2] * size;
    for (int64_t o = 0; o < j->p.outputs; o++)
        for (int64_t y = 0; y < part->rows; y++, block += part->cols * size) {
            const int64_t row = o * j->out_d * j->out_h + j->first_y + (part->row + y) * j->g->stride[1];
            char *to = planes + (row * j->out_w + j->first_x) * size + part->col * step;
            for (int64_t x = 0; x < part->cols; x++) {
                if (size == 4) *(float *)(to + x * step) = ((const float *)block)[x];
                else *(double *)(to + x * step) = ((const double *)block)[x];
            }
        }
    return block;
}

/* One plane of one channel, or of some in a row where it is read where it lies. */
static void apply_alone(const job_t *j, const tgx_conv_part *part, const planes_t *planes, int64_t first, int64_t group, char *buf,
                        char *out) {
    const tgx_conv *p = &j->p;
    const int64_t plane = p->height * p->width, z = planes->z + first % planes->run, at = z * j->step_z + j->z.at;
    const char *src = j->src + ((first / planes->run * j->g->groups + group) * p->src_channel + at * plane) * j->size;
    const char *weight = j->packed + group * j->packed_group * j->size, *bias = j->bias ? j->bias + group * j->size : NULL;
    if (at < 0 || at >= j->src_planes)
        for (int64_t i = 0; i < part->rows * p->cols; i++) {
            if (j->size == 4) ((float *)out)[i] = bias ? *(const float *)bias : 0;
            else ((double *)out)[i] = bias ? *(const double *)bias : 0;
        }
    else if (p->direct) j->k->apply_direct(p, part, src, weight, bias, out);
    else {
        j->k->lay(p, part, src, buf);
        j->k->apply_plane(p, part, buf, weight, bias, out);
    }
}

/* The part's channels for its images, where they lie. */
static void apply_across(const job_t *j, const tgx_conv_part *part, const planes_t *planes, int64_t first, int64_t group, const char *bias,
                         char *out) {
    const char *packed = j->packed + group * j->packed_group * j->size;
    for (int64_t i = 0; i < part->images; i++) {
        tgx_conv_part some = *part;
        some.channels = 0;
        const char *src = next_channels(j, part, planes, first + i, group, &some);
        do { /* once at least, for the bias */
            j->k->apply_across(&j->p, &some, src ? src : j->src, packed, bias, out + tgx_conv_out(part, i) * j->size);
            some.fresh = 0;
        } while ((src = next_channels(j, part, planes, first + i, group, &some)));
    }
}

/* Lay out the part's channels for its images in turn; behind them is room for a channel of all. */
static void load_laid(const job_t *j, const tgx_conv_part *part, const planes_t *planes, int64_t first, int64_t group, char *buf) {
    const tgx_conv *p = &j->p;
    const int64_t channel = p->images * p->plane * j->size;
    const void *src[TGX_CONV_POSITIONS(64)];
    char *room = buf + p->depth * channel;
    tgx_conv_part some = *part;
    for (some.channels = 0;; buf += some.channels * channel) {
        const tgx_conv_part before = some;
        for (int64_t i = 0; i < part->images; i++) {
            some = before;
            if (!(src[i] = next_channels(j, part, planes, first + i, group, &some))) return;
        }
        j->k->load_laid(p, &some, src, room, buf);
    }
}

/* Some rows of some planes in one group, from plane number `first` on, a few channels of the source at a time. */
static void apply_part(const job_t *j, tgx_conv_part *part, const planes_t *planes, int64_t first, int64_t group, char *buf) {
    const tgx_conv *p = &j->p;
    const int64_t plane = (part->row * p->cols + part->col) * j->size;
    char *result = buf + p->images * p->buffer * j->size;
    const char *block = result, *bias = j->bias ? j->bias + group * j->outputs * j->size : NULL;
    int64_t lo, hi;
    if (p->plane_by_plane)
        apply_alone(j, part, planes, first, group, buf,
                    j->scatter ? result : result_plane(j, first / planes->run, group, planes->z + first % planes->run) + plane);
    else {
        char *out = j->scatter ? result : result_plane(j, first / planes->run, group, planes->z) + plane;
        tap_planes(j, planes->z, &lo, &hi);
        part->channel = lo * p->own, part->fresh = 1;
        do { /* once at least: a plane of the result that no tap reaches is the bias */
            part->channels = at_most(p->depth, hi * p->own - part->channel);
            if (p->across) apply_across(j, part, planes, first, group, bias, out);
            else {
                (p->laid ? load_laid : load_planes)(j, part, planes, first, group, buf);
                (p->laid ? j->k->apply_laid : j->k->apply)(p, part, buf, j->packed + group * j->packed_group * j->size, bias, out);
            }
            part->channel += part->channels, part->fresh = 0;
        } while (part->channel < hi * p->own);
    }
    for (int64_t i = first; j->scatter && i < first + part->images; i++)
        block = scatter(j, part, block, result_plane(j, i / planes->run, group, planes->z + i % planes->run));
}

/* Groups of planes that are computed together: those at the edges of the volumes, whose tap planes do not all lie in them, by
 * themselves; `shared` of one of those and of the inner ones. */
static int64_t shared(const job_t *j, int64_t run) { return parts(j->g->n * run, j->p.images); }
static int64_t all_shared(const job_t *j) { return (j->planes - j->inner.run) * shared(j, 1) + shared(j, j->inner.run); }

/* The planes of group number k, and which of them is its first. */
static planes_t find_planes(const job_t *j, int64_t k, int64_t *first) {
    const int64_t edge = shared(j, 1), inner = shared(j, j->inner.run), before = j->inner.z * edge;
    planes_t found = j->inner;
    if (k >= before && k < before + inner) *first = k - before;
    else if (k < before) found = (planes_t){k / edge, 1}, *first = k % edge;
    else k -= before + inner, found = (planes_t){j->inner.z + j->inner.run + k / edge, 1}, *first = k % edge;
    *first *= j->p.images;
    return found;
}

/* Let j be about part number k of the outputs of `all`. */
static void take_outputs(job_t *j, const job_t *all, int64_t k) {
    const int64_t first = k * all->some_outputs;
    j->p.outputs = at_most(all->some_outputs, all->outputs - first);
    j->packed = all->packed + first * j->p.channels * j->p.taps_y * j->p.taps_x * j->size;
    j->bias = all->bias ? all->bias + first * j->size : NULL;
    j->out = all->out + first * j->out_d * j->out_h * j->out_w * j->size;
}

/* Items are (planes, group, outputs, block of rows). */
static void apply_items(job_t *all, char *buf, int64_t lo, int64_t hi) {
    job_t own = *all, *j = &own;
    const tgx_conv *p = &j->p;
    tgx_conv_part part;
    for (int64_t item = lo; item < hi; item += part.planes) {
        int64_t first;
        const planes_t planes = find_planes(j, item / j->blocks / j->output_parts / j->g->groups, &first);
        part.images = at_most(p->images, j->g->n * planes.run - first);
        int64_t block = item % j->blocks; /* of rows, or of columns if there is one row */
        part.row = p->rows > 1 ? block * p->block : 0, part.rows = at_most(p->block, p->rows - part.row);
        part.col = p->rows > 1 ? 0 : block * p->span, part.cols = at_most(p->span, p->cols - part.col);
        part.out_next = j->out_step * j->out_h * j->out_w;
        part.out_plane = j->scatter ? part.rows * part.cols : j->out_d * j->out_h * j->out_w;
        part.out_image = (j->scatter ? 1 : j->g->groups) * j->outputs * part.out_plane;
        part.run = j->scatter ? 1 : planes.run, part.skip = first % part.run;
        int64_t group = item / j->blocks / j->output_parts % j->g->groups;
        if (j->output_parts > 1) take_outputs(j, all, item / j->blocks % j->output_parts);
        part.planes = 1;
        if (p->plane_by_plane && p->direct && j->blocks == 1 && !j->scatter && j->src_planes == 1 && j->inner.run && j->out_d == 1)
            part.planes = at_most(at_most(hi - item, j->g->groups - group), parts(FEW_BYTES, p->height * p->width * j->size));
        apply_part(j, &part, &planes, first, group, buf);
    }
}

typedef struct { const job_t *j; const char *weight; const ptrdiff_t *tap; int64_t parts; } packing_t;

/* Items are some channels of a tap plane of a group. */
static int pack_channels(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const packing_t *t = context;
    const job_t *j = t->j;
    const int64_t kernel = j->g->kernel[1] * j->g->kernel[2];
    tgx_conv p = j->p;
    for (ptrdiff_t k = lo; k < hi; k++) {
        const int64_t v = k / t->parts % j->z.count, group = k / t->parts / j->z.count, channel = k % t->parts * PACKED_CHANNELS;
        const int64_t at = group * p.outputs * j->p.own * kernel * j->g->kernel[0] + (j->z.which + v * j->z.which_step) * kernel;
        p.own = at_most(PACKED_CHANNELS, j->p.own - channel);
        j->k->pack(&p, t->weight + (at + channel * j->step_c) * j->size, j->step_o, j->step_c, t->tap, v * j->p.own + channel,
                   j->packed + group * j->packed_group * j->size);
    }
    return 0;
}

/* Plan, pack the weights of every group, and go through the images. */
static int apply_all(tgx_call *c, job_t *j, const taps_t *y, const taps_t *x, const char *weight) {
    tgx_conv *p = &j->p;
    if (j->planes <= 0 || p->rows <= 0 || p->cols <= 0 || j->g->n == 0) return 0;
    if (limit(j) != FINE) return TGX_NO_MEMORY;
    const ptrdiff_t *tap = fill_tables(c, j, y, x);
    plan_apply(j);
    tgx_conv_place_taps(p);
    j->packed = (char *)c->scratch + tables(j->g);
    j->room = j->packed + packed_bytes(j);
    if (p->weight_row) j->packed = (char *)weight, j->packed_group = p->outputs * p->weight_row; /* in the order of the loops */
    else {
        packing_t all = {j, weight, tap, parts(p->own, PACKED_CHANNELS)};
        const int64_t work = at_most(PACKED_CHANNELS, p->own) * p->taps_x * p->taps_y * p->outputs + 1;
        tgx_range(c, pack_channels, &all, j->g->groups * j->z.count * all.parts, 1 + TGX_SMALL / work);
    }
    int64_t work = p->images * p->block * p->span * p->taps_x * p->taps_y * p->channels * j->some_outputs + 1;
    return deal(c, j, apply_items, all_shared(j) * j->g->groups * j->output_parts * j->blocks, work);
}

int tgx_conv_forward_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    job_t j;
    taps_t y, x;
    if (tgx_is_half(dtype)) return tgx_conv_bf16_room(c, g, dtype, TGX_CONV_FORWARD);
    if (c->meta || dtype == TGX_I64) return 0;
    if (tgx_conv_is_forward_product(c, g, dtype)) {
        tgx_conv_product_room(c, g, dtype);
        return 0;
    }
    c->notes[0] = c->services->num_threads();
    begin(c, &j, g, dtype);
    forward_windows(&j, &y, &x);
    return need_apply(c, &j);
}

int tgx_conv_forward(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    job_t j;
    taps_t down, across;
    if (tgx_out(c, 0)->count == 0) return 0;
    if (x->dtype == TGX_BF16) return tgx_conv_bf16_forward(c, g, x, w, bias);
    if (x->dtype == TGX_I64) return tgx_conv_integers(c, g, x, w, bias);
    if (tgx_conv_is_forward_product(c, g, x->dtype)) return tgx_conv_product(c, g, x, w, bias);
    begin(c, &j, g, x->dtype);
    forward_windows(&j, &down, &across);
    j.src = x->data, j.out = tgx_out(c, 0)->data, j.bias = bias ? bias->data : NULL;
    j.out_d = g->out[0], j.out_h = g->out[1], j.out_w = g->out[2];
    return apply_all(c, &j, &down, &across, w->data);
}

typedef int map_class_t(tgx_call *, job_t *, const taps_t *, const taps_t *, const char *);

/* Every position of the input gathers from the output positions whose windows hold it. With a stride the positions fall into
 * stride[0] * stride[1] * stride[2] classes, each with taps of its own: those of one class of planes and one of rows. */
static int each_column(tgx_call *c, job_t *j, const taps_t *z, const taps_t *y, const char *weight, map_class_t *fn) {
    const tgx_conv_sizes *g = j->g;
    tgx_conv *p = &j->p;
    int code = 0;
    for (int64_t b = 0; z->count && y->count && b < at_most(g->stride[2], g->size[2]) && !code; b++) {
        const taps_t x = taps_reaching(g->kernel[2], b + g->pad[2], g->dilation[2], g->stride[2]);
        if (x.count == 0) continue;
        j->first_x = b, p->cols = parts(g->size[2] - b, g->stride[2]), p->channels = g->outputs / g->groups;
        set_taps(p, y, &x);
        set_planes(j, *z, 1, g->out[0], parts(g->size[0] - j->first_z, g->stride[0]));
        code = fn(c, j, y, &x, weight);
    }
    return code;
}

static int each_class(tgx_call *c, job_t *j, const char *weight, map_class_t *fn) {
    const tgx_conv_sizes *g = j->g;
    tgx_conv *p = &j->p;
    int code = 0;
    p->height = g->out[1], p->width = g->out[2], p->outputs = g->channels / g->groups, p->step_y = p->step_x = 1;
    j->step_o = tgx_conv_count(g->kernel), j->step_c = p->outputs * j->step_o;
    j->scatter = g->stride[1] > 1 || g->stride[2] > 1, j->out_step = g->stride[0];
    j->out_d = g->size[0], j->out_h = g->size[1], j->out_w = g->size[2];
    for (j->first_z = 0; j->first_z < at_most(g->stride[0], g->size[0]); j->first_z++) {
        const taps_t z = taps_reaching(g->kernel[0], j->first_z + g->pad[0], g->dilation[0], g->stride[0]);
        for (int64_t a = 0; a < at_most(g->stride[1], g->size[1]) && !code; a++) {
            const taps_t y = taps_reaching(g->kernel[1], a + g->pad[1], g->dilation[1], g->stride[1]);
            j->first_y = a, p->rows = parts(g->size[1] - a, g->stride[1]);
            code = each_column(c, j, &z, &y, weight, fn);
        }
    }
    return code;
}

static int need_class(tgx_call *c, job_t *j, const taps_t *y, const taps_t *x, const char *weight) { return need_apply(c, j); }

int tgx_conv_input_grad_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    job_t j;
    if (tgx_is_half(dtype)) return tgx_conv_bf16_room(c, g, dtype, TGX_CONV_INPUT_GRAD);
    if (c->meta) return 0;
    c->notes[0] = c->services->num_threads();
    if (tgx_conv_is_product(c, g, dtype)) {
        tgx_conv_product_room(c, g, dtype);
        return 0;
    }
    if (tgx_conv_is_overlaps(c, g, dtype)) {
        tgx_conv_overlaps_room(c, g, dtype);
        return 0;
    }
    if (tgx_conv_is_pairs(c, g, dtype)) {
        tgx_conv_pairs_room(c, g, dtype);
        return 0;
    }
    begin(c, &j, g, dtype);
    return each_class(c, &j, NULL, need_class);
}

int tgx_conv_input_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w) {
    const tgx_tensor *out = tgx_out(c, 0);
    job_t j;
    if (out->count == 0) return 0;
    if (grad->count == 0 || w->count == 0) {    /* no position to gather from */
        memset(out->data, 0, (size_t)out->count * (size_t)tgx_itemsize[out->dtype]);
        return 0;
    }
    if (grad->dtype == TGX_BF16) return tgx_conv_bf16_input_grad(c, g, grad, w);
    if (tgx_conv_is_product(c, g, grad->dtype)) return tgx_conv_product_input_grad(c, g, grad, w);
    if (tgx_conv_is_overlaps(c, g, grad->dtype)) return tgx_conv_overlaps(c, g, grad, w);
    if (tgx_conv_is_pairs(c, g, grad->dtype)) return tgx_conv_pairs(c, g, grad, w);
    begin(c, &j, g, grad->dtype);
    j.src = grad->data, j.out = out->data;
    const int gaps = g->stride[0] > 1 || g->stride[1] > 1 || g->stride[2] > 1 || tgx_conv_count(g->kernel) == 0;
    if (gaps) memset(j.out, 0, (size_t)out->count * (size_t)j.size);
    return each_class(c, &j, w->data, apply_all);
}
