/* The gradient by the input with a column step of 2, plane by plane: its plan and its loop over planes. See conv_pairs.h. */
#include "conv_pairs.h"
#include "conv_job.h"

enum { MOST_STEP = 8, MOST_BYTES = 256 << 10 };

typedef struct {
    job_t job; /* first: its functions get a job */
    const char *weight;
    taps_t y[MOST_STEP], x[2];
    tgx_conv_columns pair[MOST_STEP];
} pairs_t;

/* The extent of the places of some taps for `count` positions, as its least and greatest place. */
static void extend(const taps_t *t, int64_t count, int64_t *least, int64_t *most) {
    int64_t a = t->at, b = t->at + (t->count - 1) * t->at_step;
    if (t->count == 0 || count <= 0) return;
    if ((a < b ? a : b) < *least) *least = a < b ? a : b;
    if ((a > b ? a : b) + count - 1 > *most) *most = (a > b ? a : b) + count - 1;
}

/* Fills in what does not need the scratch; returns whether a plane fits. */
static int plan(tgx_call *c, pairs_t *q, const tgx_conv_sizes *g, int dtype) {
    tgx_conv *p = &q->job.p;
    int64_t top = INT64_MAX, bottom = INT64_MIN, left = INT64_MAX, right = INT64_MIN, cols = parts(g->size[2], 2);
    if (g->dims == 3 || g->channels != g->groups || g->outputs != g->groups || g->stride[2] != 2 || g->stride[1] > MOST_STEP) return 0;
    begin(c, &q->job, g, dtype);
    for (int64_t a = 0; a < g->stride[1]; a++) {
        q->y[a] = taps_reaching(g->kernel[1], a + g->pad[1], g->dilation[1], g->stride[1]);
        extend(&q->y[a], parts(g->size[1] - a, g->stride[1]), &top, &bottom);
    }
    for (int b = 0; b < 2; b++) {
        q->x[b] = taps_reaching(g->kernel[2], b + g->pad[2], g->dilation[2], 2);
        extend(&q->x[b], cols, &left, &right);
    }
    if (bottom < top || right < left) return 0; /* no taps, or nothing to compute */
    if (bottom - top >= MOST_BYTES || right - left >= MOST_BYTES) return 0;
    p->channels = p->outputs = p->step_y = p->step_x = p->residues = 1;
    p->height = g->out[1], p->width = g->out[2];
    p->base_y = top, p->reach = bottom - top, p->base_x = left;
    p->line = right - left + 1 + p->lanes; /* the last vector of a row may end beyond it */
    p->buffer = (p->reach + 1) * p->line + 4 * p->lanes;
    q->job.room_size = padded(p->buffer * q->job.size);
    return q->job.room_size <= MOST_BYTES;
}

static int64_t table_bytes(const tgx_conv_sizes *g) {
    return padded(2 * g->kernel[1] * g->kernel[2] * (int64_t)sizeof(ptrdiff_t));
}

int tgx_conv_is_pairs(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    pairs_t q;
    return plan(c, &q, g, dtype);
}

void tgx_conv_pairs_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    pairs_t q;
    plan(c, &q, g, dtype);
    c->scratch_bytes = table_bytes(g) + q.job.room_size * q.job.most_shares;
}

/* Every tap belongs to one class of rows and one of columns. */
static void place_taps(pairs_t *q, ptrdiff_t *offset, ptrdiff_t *number) {
    const tgx_conv *p = &q->job.p;
    for (int64_t a = 0; a < q->job.g->stride[1]; a++)
        for (int b = 0; b < 2; b++) {
            const taps_t *y = &q->y[a], *x = &q->x[b];
            tgx_conv_columns *pair = &q->pair[a];
            pair->offset[b] = offset, pair->number[b] = number, pair->taps[b] = y->count * x->count;
            for (int64_t v = 0; v < y->count; v++)
                for (int64_t u = 0; u < x->count; u++) {
                    *offset++ = (y->at + v * y->at_step - p->base_y) * p->line + x->at + u * x->at_step - p->base_x;
                    *number++ = (y->which + v * y->which_step) * q->job.g->kernel[2] + x->which + u * x->which_step;
                }
        }
}

/* Items are planes. */
static void planes(job_t *j, char *buf, int64_t lo, int64_t hi) {
    const pairs_t *q = (const pairs_t *)j;
    const tgx_conv_sizes *g = j->g;
    tgx_conv_part part = {0};
    part.rows = 1; /* and all rows that its window reaches */
    for (int64_t i = lo; i < hi; i++) {
        const char *weight = q->weight + i % g->groups * g->kernel[1] * g->kernel[2] * j->size;
        char *out = j->out + i * g->size[1] * g->size[2] * j->size;
        j->k->lay(&j->p, &part, j->src + i * j->p.height * j->p.width * j->size, buf);
        for (int64_t a = 0; a < at_most(g->stride[1], g->size[1]); a++)
            j->k->apply_pair(&j->p, &q->pair[a], buf, weight, parts(g->size[1] - a, g->stride[1]), g->size[2],
                             out + a * g->size[2] * j->size, g->stride[1] * g->size[2]);
    }
}

int tgx_conv_pairs(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w) {
    pairs_t q;
    int64_t taps = g->kernel[1] * g->kernel[2];
    plan(c, &q, g, grad->dtype);
    place_taps(&q, c->scratch, (ptrdiff_t *)c->scratch + taps);
    q.job.src = grad->data, q.job.out = tgx_out(c, 0)->data, q.weight = w->data;
    q.job.room = (char *)c->scratch + table_bytes(g);
    return deal(c, &q.job, planes, g->n * g->groups, taps * g->out[1] * g->out[2] + 1);
}
