/* The forward map of a convolution, and the gradient of its input. See conv_maps.h.
 *
 * The gradient of a convolution with stride is one dense convolution for each residue of rows and columns. Rejected: one
 * over the gradient with zeros put between, stride times stride as many multiplications, nearly all by zero. */
#include "conv_maps.h"
#include "conv_integers.h"
#include "conv_job.h"
#include "conv_overlaps.h"
#include "conv_pairs.h"
#include "conv_products.h"
#include "isa.h"

/* Outputs of a tile; positions for which packing the weights does not pay, for one tap and for more; of planes that go together. */
enum { MOST_ROWS = 8, FEW_POSITIONS = 64, SOME_POSITIONS = 256, FEW_BYTES = 8 << 10 };

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static int64_t packed_bytes(const job_t *j) { return padded(j->packed_group * j->g->groups * j->size); }

/* The plan of one call of `apply_all`, and its scratch behind the tables. */
static int64_t plan_apply(job_t *j) {
    tgx_conv *p = &j->p;
    const int64_t kernel = j->g->kernel[0] * j->g->kernel[1];
    const int few = j->g->n * p->rows * p->cols <= (kernel == 1 ? FEW_POSITIONS : SOME_POSITIONS);
    p->weight_row = j->step_c == kernel && p->outputs % MOST_ROWS == 0 && few ? j->step_o : 0;
    tgx_conv_plan(p, j->size, parts(j->g->n, j->most_shares));
    tgx_conv_plan_across(p, j->size);
    j->blocks = parts(p->rows, p->block) * parts(p->cols, p->span);
    j->packed_group = p->taps_x * p->taps_y * p->channels * p->pad_outputs;
    j->room_size = p->images * (p->buffer + (j->scatter ? p->outputs * p->block * p->span : 0)) * j->size;
    return packed_bytes(j) + j->room_size * j->most_shares;
}

/* Add to c->scratch_bytes what a call of `apply_all` needs, if it is more than what others need that come before. */
static int need_apply(tgx_call *c, job_t *j) {
    if (j->p.rows <= 0 || j->p.cols <= 0 || j->g->n == 0) return 0;
    switch (limit(j)) {
    case TOO_LARGE: return 0; /* nobody finds memory for the result */
    case TOO_FAR: return too_far(c, j);
    }
    int64_t bytes = tables(j->g) + plan_apply(j);
    if (bytes > c->scratch_bytes) c->scratch_bytes = bytes;
    return 0;
}

/* ---- forward, and the gradient of the input ---------------------------------------------------------------------- */

/* Rows of a block to every stride-th row and column of the result. */
static void scatter(const job_t *j, const tgx_conv_part *part, const char *block, char *planes) {
    int64_t size = j->size, step = j->g->stride[1] * size;
    for (int64_t i = 0; i < part->images; i++, planes += j->g->groups * j->p.outputs * j->out_h * j->out_w * size)
        for (int64_t o = 0; o < j->p.outputs; o++)
            for (int64_t y = 0; y < part->rows; y++, block += part->cols * size) {
                char *to = planes + ((o * j->out_h + j->first_y + (part->row + y) * j->g->stride[0]) * j->out_w + j->first_x) * size
                           + part->col * step;
                for (int64_t x = 0; x < part->cols; x++) {
                    if (size == 4) *(float *)(to + x * step) = ((const float *)block)[x];
                    else *(double *)(to + x * step) = ((const double *)block)[x];
                }
            }
}

/* Some rows of some images in one group, a few channels of the source at a time. */
static void apply_part(const job_t *j, tgx_conv_part *part, int64_t image, int64_t group, char *buf) {
    const tgx_conv *p = &j->p;
    int64_t plane = p->height * p->width * j->size;
    char *result = buf + p->images * p->buffer * j->size;
    char *planes = j->out + (image * j->g->groups + group) * p->outputs * j->out_h * j->out_w * j->size;
    const char *bias = j->bias ? j->bias + group * p->outputs * j->size : NULL;
    const char *src = j->src + (image * j->g->groups + group) * p->channels * plane;
    part->channel = 0;
    if (p->plane_by_plane) {
        char *to = j->scatter ? result : planes + (part->row * p->cols + part->col) * j->size;
        const char *weight = j->packed + group * j->packed_group * j->size;
        if (p->direct) {
            j->k->apply_direct(p, part, src, weight, bias, to);
        } else {
            j->k->lay(p, part, src, buf);
            j->k->apply_plane(p, part, buf, weight, bias, to);
        }
    } else do {
        const char *packed = j->packed + group * j->packed_group * j->size, *from = src + part->channel * plane;
        char *to = j->scatter ? result : planes + (part->row * p->cols + part->col) * j->size;
        part->channels = at_most(p->depth, p->channels - part->channel);
        if (p->across) {
            j->k->apply_across(p, part, from, packed, bias, to);
        } else {
            j->k->load(p, part, from, buf);
            j->k->apply(p, part, buf, packed, bias, to);
        }
        part->channel += part->channels;
    } while (part->channel < p->channels);
    if (j->scatter) scatter(j, part, result, planes);
}

/* Items are (images, group, block of rows). */
static void apply_items(job_t *j, char *buf, int64_t lo, int64_t hi) {
    const tgx_conv *p = &j->p;
    tgx_conv_part part;
    part.src_image = j->g->groups * p->channels * p->height * p->width;
    for (int64_t item = lo; item < hi; item += part.planes) {
        int64_t image = item / j->blocks / j->g->groups * p->images;
        part.images = at_most(p->images, j->g->n - image);
        int64_t block = item % j->blocks; /* of rows, or of columns if there is one row */
        part.row = p->rows > 1 ? block * p->block : 0, part.rows = at_most(p->block, p->rows - part.row);
        part.col = p->rows > 1 ? 0 : block * p->span, part.cols = at_most(p->span, p->cols - part.col);
        part.out_plane = j->scatter ? part.rows * part.cols : j->out_h * j->out_w;
        part.out_image = (j->scatter ? 1 : j->g->groups) * p->outputs * part.out_plane;
        int64_t group = item / j->blocks % j->g->groups;
        part.planes = 1;
        if (p->plane_by_plane && p->direct && j->blocks == 1 && !j->scatter)
            part.planes = at_most(at_most(hi - item, j->g->groups - group), parts(FEW_BYTES, p->height * p->width * j->size));
        apply_part(j, &part, image, group, buf);
    }
}

/* Plan, pack the weights of every group, and go through the images. */
static int apply_all(tgx_call *c, job_t *j, const taps_t *y, const taps_t *x, const char *weight) {
    tgx_conv *p = &j->p;
    const int64_t kernel = j->g->kernel[0] * j->g->kernel[1];
    if (p->rows <= 0 || p->cols <= 0 || j->g->n == 0) return 0;
    if (limit(j) != FINE) return TGX_NO_MEMORY;
    const ptrdiff_t *tap = fill_tables(c, j, y, x);
    plan_apply(j);
    tgx_conv_place_taps(p);
    j->packed = (char *)c->scratch + tables(j->g);
    j->room = j->packed + packed_bytes(j);
    if (p->weight_row) j->packed = (char *)weight, j->packed_group = p->outputs * p->weight_row; /* in the order of the loops */
    else for (int64_t group = 0; group < j->g->groups; group++)
        j->k->pack(p, weight + group * p->outputs * p->channels * kernel * j->size, j->step_o, j->step_c, tap,
                   j->packed + group * j->packed_group * j->size);
    int64_t work = p->images * p->block * p->span * p->taps_x * p->taps_y * p->channels * p->outputs + 1;
    return deal(c, j, apply_items, parts(j->g->n, p->images) * j->g->groups * j->blocks, work);
}

int tgx_conv_forward_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    job_t j;
    taps_t y, x;
    if (c->meta) return 0;
    if (tgx_conv_is_product(c, g, dtype)) {
        tgx_conv_product_room(c, g, dtype);
        return 0;
    }
    c->notes[0] = c->services->num_threads();
    begin(c, &j, g, dtype);
    forward_windows(&j, &y, &x);
    if (dtype != TGX_I64) return need_apply(c, &j);
    if (limit(&j) != TOO_LARGE) c->scratch_bytes = tables(g);
    return 0;
}

typedef struct { const job_t *j; const int64_t *weight; const ptrdiff_t *tap; } integers_t;

/* Items are some outputs of a group, groups and images one after the other. */
static int integer_items(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const integers_t *t = given;
    const tgx_conv *p = &t->j->p;
    static const tgx_conv_integer_table *loops;
    if (!loops) loops = TGX_PICK(tgx_conv_integers);
    const int64_t items = parts(p->outputs, TGX_CONV_INTEGERS);
    for (ptrdiff_t k = lo; k < hi; k++) {
        const int64_t i = k / items, o = k % items * TGX_CONV_INTEGERS, own = i % t->j->g->groups * p->outputs + o;
        loops->some_outputs(p, at_most(TGX_CONV_INTEGERS, p->outputs - o), (const int64_t *)t->j->src + i * p->channels * p->height * p->width,
                            t->weight + own * p->channels * p->taps_x * p->taps_y, t->tap, t->j->bias ? (const int64_t *)t->j->bias + own : NULL,
                            (int64_t *)t->j->out + (i * p->outputs + o) * p->rows * p->cols);
    }
    return 0;
}

/* Convolution of int64: exact. */
static int integers(tgx_call *c, job_t *j, const taps_t *y, const taps_t *x, const char *weight) {
    const tgx_conv *p = &j->p;
    if (limit(j) == TOO_LARGE) return TGX_NO_MEMORY;
    integers_t t = {j, (const int64_t *)weight, fill_tables(c, j, y, x)};
    const int64_t work = p->rows * p->cols * p->channels * p->taps_x * p->taps_y;
    return tgx_range(c, integer_items, &t, j->g->n * j->g->groups * parts(p->outputs, TGX_CONV_INTEGERS), 1 + TGX_SMALL / (work + 1));
}

int tgx_conv_forward(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    job_t j;
    taps_t down, across;
    if (tgx_out(c, 0)->count == 0) return 0;
    if (tgx_conv_is_product(c, g, x->dtype)) return tgx_conv_product(c, g, x, w, bias);
    begin(c, &j, g, x->dtype);
    forward_windows(&j, &down, &across);
    j.src = x->data, j.out = tgx_out(c, 0)->data, j.bias = bias ? bias->data : NULL, j.out_h = g->out[0], j.out_w = g->out[1];
    if (x->dtype == TGX_I64) return integers(c, &j, &down, &across, w->data);
    return apply_all(c, &j, &down, &across, w->data);
}

/* Every position of the input gathers from the output positions whose windows hold it. With a stride the positions fall into
 * stride[0] * stride[1] classes, each with taps of its own. */
static int each_class(tgx_call *c, job_t *j, const char *weight, int (*fn)(tgx_call *, job_t *, const taps_t *, const taps_t *, const char *)) {
    const tgx_conv_sizes *g = j->g;
    tgx_conv *p = &j->p;
    int code = 0;
    p->channels = g->outputs / g->groups, p->height = g->out[0], p->width = g->out[1];
    p->outputs = g->channels / g->groups, p->step_y = p->step_x = 1;
    j->step_o = g->kernel[0] * g->kernel[1], j->step_c = p->outputs * j->step_o;
    j->scatter = g->stride[0] > 1 || g->stride[1] > 1, j->out_h = g->size[0], j->out_w = g->size[1];
    for (int64_t a = 0; a < at_most(g->stride[0], g->size[0]) && !code; a++) {
        taps_t y = taps_reaching(g->kernel[0], a + g->pad[0], g->dilation[0], g->stride[0]);
        for (int64_t b = 0; y.count && b < at_most(g->stride[1], g->size[1]) && !code; b++) {
            taps_t x = taps_reaching(g->kernel[1], b + g->pad[1], g->dilation[1], g->stride[1]);
            if (x.count == 0) continue;
            j->first_y = a, j->first_x = b, p->rows = parts(g->size[0] - a, g->stride[0]), p->cols = parts(g->size[1] - b, g->stride[1]);
            set_taps(p, &y, &x);
            code = fn(c, j, &y, &x, weight);
        }
    }
    return code;
}

static int need_class(tgx_call *c, job_t *j, const taps_t *y, const taps_t *x, const char *weight) { return need_apply(c, j); }

int tgx_conv_input_grad_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    job_t j;
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
    if (tgx_conv_is_product(c, g, grad->dtype)) return tgx_conv_product_input_grad(c, g, grad, w);
    if (tgx_conv_is_overlaps(c, g, grad->dtype)) return tgx_conv_overlaps(c, g, grad, w);
    if (tgx_conv_is_pairs(c, g, grad->dtype)) return tgx_conv_pairs(c, g, grad, w);
    begin(c, &j, g, grad->dtype);
    j.src = grad->data, j.out = out->data;
    if (g->stride[0] > 1 || g->stride[1] > 1 || g->kernel[0] * g->kernel[1] == 0) memset(j.out, 0, (size_t)out->count * (size_t)j.size);
    return each_class(c, &j, w->data, apply_all);
}
