/* The gradient of a convolution of bfloat16 by its weights, as a product: lines (taps of all channels, positions of all images) times
 * the gradient, turned (positions, outputs). See conv_bf16.c for the planes that lines are taken from.
 *
 * The gradient is laid out once, for it serves all lines. Some lines at a time are copied for a stretch of positions, a row of a
 * plane after the other, and meet all outputs; their sums stay in float32 until the last image is through, and are turned when they
 * are rounded, so that weights are written in their order. Threads get lines, so each sum runs in the order of its pairs. Positions of
 * an image fill whole pairs. Rejected: outputs in the rows of the product, for which the columns, not the gradient, would be turned. */
#include "conv_bf16_sums.h"

#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC optimize("O2", "no-tree-vectorize")     /* vectors are written out */
#include "conv_bf16_laid.h"

enum {
    STRETCH = 512,             /* pairs of positions at a time */
    BLOCK_LINES = 64,          /* lines at a time */
    BLOCK_PANELS = 6,          /* panels of outputs that one unit takes */
};

typedef struct {
    const tgx_bf16_panels *w;
    laid_t l;
    int64_t groups, channels, outputs, lines, positions, pairs, chunk;     /* pairs: of an image; chunk: images at a time, if several */
    int64_t panels, panel_blocks, line_blocks, shares, room_size, a_row;
    const uint16_t *grad;
    uint16_t *out;
    uint32_t *turned;
    int64_t *places;
    char *room;
} job_t;

static int64_t panel_wide(const job_t *j, int64_t panel) {
    return parts(at_most(j->outputs - panel * j->w->columns, j->w->columns), LANES) * LANES;
}
static int64_t turned_group(const job_t *j) { return parts(j->outputs, LANES) * LANES * j->l.images * j->pairs; }

static int64_t plan(job_t *j, const tgx_conv_sizes *g, int64_t most_shares) {
    const taps_t y = all_taps(g->kernel[1], -g->pad[1], g->dilation[1]), x = all_taps(g->kernel[2], -g->pad[2], g->dilation[2]);
    *j = (job_t){.w = tgx_bf16_panels_here(), .groups = g->groups, .channels = g->channels / g->groups,
                 .outputs = g->outputs / g->groups, .positions = g->out[1] * g->out[2]};
    j->l = (laid_t){.images = g->n, .planes = g->channels, .height = g->size[1], .width = g->size[2], .rows = g->out[1],
                    .cols = g->out[2], .step_y = g->stride[1], .step_x = g->stride[2], .low_y = INT64_MAX, .high_y = INT64_MIN,
                    .low_x = INT64_MAX, .high_x = INT64_MIN};
    reach(&j->l.low_y, &j->l.high_y, &y, (g->out[1] - 1) * g->stride[1]);
    reach(&j->l.low_x, &j->l.high_x, &x, (g->out[2] - 1) * g->stride[2]);
    plan_laid(&j->l);
    j->lines = j->channels * y.count * x.count;
    j->pairs = parts(pairs(j->positions), j->w->deep) * j->w->deep;
    j->chunk = most(1, at_most(STRETCH / j->pairs, g->n));
    j->a_row = (parts(4 * most(at_most(j->pairs, STRETCH), j->chunk * j->pairs), 64) | 1) * 64;
    j->panels = parts(j->outputs, j->w->columns), j->panel_blocks = parts(j->panels, BLOCK_PANELS);
    j->line_blocks = parts(j->lines, BLOCK_LINES);
    j->shares = at_most(most_shares, j->groups * j->panel_blocks * j->line_blocks);
    j->room_size = BLOCK_LINES * j->a_row + 4 * BLOCK_PANELS * tgx_bf16_sums_count(j->w, BLOCK_LINES);
    return laid_bytes(&j->l) + lines_of_cache(8 * j->lines) + lines_of_cache(4 * j->groups * turned_group(j))
           + j->shares * j->room_size;
}

int64_t tgx_conv_bf16_sums_room(const tgx_call *c, const tgx_conv_sizes *g) {
    job_t j;
    return plan(&j, g, c->notes[0]);
}

/* Items are (group, panel, image): its pairs of positions of each output. */
INSTRUCTIONS static int turn_grad(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = given;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t image = i % j->l.images, panel = i / j->l.images % j->panels, group = i / j->l.images / j->panels;
        const int64_t first = panel * j->w->columns, wide = panel_wide(j, panel), all = j->l.images * j->pairs;
        uint32_t *to = j->turned + group * turned_group(j) + first * all + image * j->pairs * wide;
        const uint16_t *from = j->grad + ((image * j->groups + group) * j->outputs + first) * j->positions;
        tgx_bf16_lay(to, wide, at_most(j->outputs - first, j->w->columns), from, j->positions, 1, j->positions);
        memset(to + pairs(j->positions) * wide, 0, (size_t)(4 * wide * (j->pairs - pairs(j->positions))));
    }
    return 0;
}

/* Positions [first, last) of a line of an image, in rows of a laid plane. */
INLINE void copy_line(const job_t *j, const uint16_t *from, int64_t first, int64_t last, uint16_t *to) {
    const laid_t *l = &j->l;
    if (l->direct && l->cols == l->line && l->step_y == 1) {
        copy_lanes(to, from + first, last - first);
        return;
    }
    for (int64_t y = first / l->cols, x = first % l->cols; first < last; y++, x = 0) {
        const int64_t n = at_most(l->cols - x, last - first);
        copy_lanes(to, from + y * l->step_y * l->phases * l->line + x, n);
        to += n, first += n;
    }
}

/* Some lines for pairs [first, last) of an image, or for all pairs of several images; behind an odd number of positions zeros. */
INSTRUCTIONS static void lay_lines(const job_t *j, int64_t group, int64_t line, int64_t n, int64_t image, int64_t images,
                                   int64_t first, int64_t last, char *to) {
    const int64_t end = at_most(2 * last, j->positions), behind = 2 * last - end;
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < images; i++) {
            const uint16_t *plane = j->l.to + ((image + i) * j->groups + group) * j->channels * j->l.plane;
            uint16_t *own = (uint16_t *)(to + r * j->a_row) + 2 * i * j->pairs;
            copy_line(j, plane + j->places[line + r], 2 * first, end, own);
            memset(own + end - 2 * first, 0, (size_t)(2 * behind));
        }
}

/* Sums of some lines and outputs, rounded, to the weights of these outputs. */
INSTRUCTIONS static void take(const job_t *j, const float *sums, int64_t lines, int64_t outputs, uint16_t *to) {
    const tgx_bf16_panels *w = j->w;
    float turned[LANES * LANES];
    for (int64_t r = 0; r < lines; r += LANES)
        for (int64_t o = 0; o < outputs; o += LANES) {
            const float *own = sums + r / LANES * w->strip + o / LANES * w->vector;
            const __mmask16 mask = (__mmask16)((1u << at_most(lines - r, LANES)) - 1);
            for (int i = 0; i < LANES; i += 8)
                for (int q = 0; q < LANES; q += 8)
                    turn((uint32_t *)turned + q * LANES + i, LANES, (const uint16_t *)(own + i * w->row + q), 2 * w->row);
            for (int64_t q = 0; q < at_most(outputs - o, LANES); q++)
                _mm256_mask_storeu_epi16(to + (o + q) * j->lines + r, mask, round_sums(_mm512_loadu_ps(turned + q * LANES)));
        }
}

/* Units are (group, block of panels, block of lines). */
static void run_unit(const job_t *j, int64_t unit, char *room) {
    const int64_t line = unit % j->line_blocks * BLOCK_LINES, group = unit / j->line_blocks / j->panel_blocks;
    const int64_t panel = unit / j->line_blocks % j->panel_blocks * BLOCK_PANELS, last = at_most(panel + BLOCK_PANELS, j->panels);
    const int64_t lines = at_most(j->lines - line, BLOCK_LINES), all = j->l.images * j->pairs;
    const int64_t each = tgx_bf16_sums_count(j->w, BLOCK_LINES);
    const uint32_t *own = j->turned + group * turned_group(j);
    float *sums = (float *)(room + BLOCK_LINES * j->a_row);
    for (int64_t image = 0; image < j->l.images; image += j->chunk)
        for (int64_t first = 0; first < j->pairs; first += STRETCH) {
            const int64_t images = at_most(j->chunk, j->l.images - image), end = at_most(first + STRETCH, j->pairs);
            lay_lines(j, group, line, lines, image, images, first, end, room);
            for (int64_t p = panel; p < last; p++) {
                const int64_t wide = panel_wide(j, p);
                const tgx_bf16_panel x = {.a = room, .a_row = j->a_row, .rows = lines, .wide = wide,
                                          .pairs = images == 1 ? end - first : images * j->pairs,
                                          .b = own + p * j->w->columns * all + (image * j->pairs + first) * wide,
                                          .sums = sums + (p - panel) * each, .first = image + first == 0};
                j->w->multiply(&x);
            }
        }
    for (int64_t p = panel; p < last; p++)
        take(j, sums + (p - panel) * each, lines, at_most(j->outputs - p * j->w->columns, j->w->columns),
             j->out + (group * j->outputs + p * j->w->columns) * j->lines + line);
}

static int run_shares(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = given;
    const int64_t units = j->groups * j->panel_blocks * j->line_blocks;
    for (; lo < hi; lo++) {
        char *room = j->room + lo * j->room_size;
        memset(room, 0, (size_t)(BLOCK_LINES * j->a_row));     /* rows that are no lines are multiplied too */
        for (int64_t unit = units * lo / j->shares; unit < units * (lo + 1) / j->shares; unit++) run_unit(j, unit, room);
    }
    return 0;
}

int tgx_conv_bf16_weight_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x) {
    const taps_t down = all_taps(g->kernel[1], -g->pad[1], g->dilation[1]), across = all_taps(g->kernel[2], -g->pad[2], g->dilation[2]);
    job_t j;
    int code;
    plan(&j, g, c->notes[0]);
    j.l.from = (const uint16_t *)x->data, j.l.to = j.l.direct ? (uint16_t *)x->data : c->scratch;
    j.grad = (const uint16_t *)grad->data, j.out = (uint16_t *)tgx_out(c, 0)->data;
    j.places = (int64_t *)((char *)c->scratch + laid_bytes(&j.l));
    j.turned = (uint32_t *)((char *)j.places + lines_of_cache(8 * j.lines));
    j.room = (char *)j.turned + lines_of_cache(4 * j.groups * turned_group(&j));
    fill_places(&j.l, j.channels, &down, &across, j.places);
    if ((code = tgx_conv_bf16_lay_planes(c, &j.l))) return code;
    const int64_t grain = TGX_SMALL / (j.positions * j.w->columns) + 1;
    if ((code = tgx_range(c, turn_grad, &j, j.groups * j.panels * j.l.images, grain))) return code;
    return tgx_range(c, run_shares, &j, j.shares, 1);
}
#else
int64_t tgx_conv_bf16_sums_room(const tgx_call *c, const tgx_conv_sizes *g) { return 0; }
int tgx_conv_bf16_weight_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x) { return TGX_FAILED; }
#endif
