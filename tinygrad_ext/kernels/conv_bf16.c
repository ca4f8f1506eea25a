/* The forward map of a convolution of bfloat16 and the gradient of its input, as products: weights (outputs, taps of all channels)
 * times columns (taps of all channels, positions), of which product_bf16.h multiplies some at a time.
 *
 * Planes that need padding, or whose windows move by more than one, are copied with it, a line for each residue of the columns: then
 * what one tap meets lies side by side for all windows of a row. Of the columns some 48 positions (images one after the other) and
 * some hundred pairs of depth exist at a time, in the second cache level: a pair of rows is loaded, interleaved and stored in the
 * order in which the product reads it, and serves all outputs. The sums of these positions stay in float32 until the depth is
 * through, and are rounded once, with the bias. The gradient of the input is the same map over the planes of the gradient, for each
 * residue of rows and columns by the stride (conv_maps.c) with the taps that reach it and the weights turned.
 *
 * Each element is summed in the order of its pairs, wherever it stands. Rejected: positions in the rows of the product and outputs in
 * the lanes, which would need results turned; tiles that read the planes themselves, whose rows of 7 or 14 fill no vector. */
#include "conv_bf16.h"

#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC optimize("O2", "no-tree-vectorize")     /* vectors are written out */
#include "conv_bf16_laid.h"
#include "conv_bf16_sums.h"

static const double MOST_WORK = 1e15;     /* 63 bits count every size then */
enum {
    LEAST_LINES = 5,           /* rows of a product, or its columns; with fewer half of a tile and more is empty */
    LEAST_DEPTH = 16,
    LEAST_POSITIONS = 4,       /* columns of a product, and depth of the one that sums over them */
    LEAST_SUM = 32,
    LEAST_WORK = 1 << 18,      /* multiplications; a quarter of what the gradient of the weights needs */
    MOST_CLASSES = 16,         /* of positions of the input's gradient */
    MOST_SPREAD = 16,          /* times the elements of a plane that its padded copy may have */
    STRETCH = 512,             /* pairs of depth at a time */
    FEW_UNITS = 16,            /* of work, below which outputs are cut too, into parts of PART_ROWS or more */
    PART_ROWS = 128,
    MOST_PIECES = 64,
    GATHERED = 32,             /* taps that one instruction puts into another order */
};

typedef struct {
    const tgx_bf16_panels *w;
    const tgx_conv_sizes *g;
    int which;
    laid_t l;
    taps_t y, x;               /* of this class of positions */
    int64_t groups, channels, outputs, depth, pairs, a_row, kernel;
    int64_t out_h, out_w, first_y, first_x, out_y, out_x;      /* the result's planes, and where the positions lie in them */
    int64_t panels, parts, part_rows, shares, most_shares, room_size;
    const char *left;
    const uint16_t *weight, *bias;
    uint16_t *out;
    int64_t *places;
    char *room;
} job_t;

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static int64_t classes(const job_t *j) { return j->which == TGX_CONV_FORWARD ? 1 : j->g->stride[1] * j->g->stride[2]; }

/* Positions of class k; whether there are any, and taps that reach them. */
static int enter_class(job_t *j, int64_t k) {
    const tgx_conv_sizes *g = j->g;
    if (j->which == TGX_CONV_FORWARD) {
        j->y = all_taps(g->kernel[1], -g->pad[1], g->dilation[1]), j->x = all_taps(g->kernel[2], -g->pad[2], g->dilation[2]);
        j->l.rows = g->out[1], j->l.cols = g->out[2], j->l.step_y = g->stride[1], j->l.step_x = g->stride[2];
        return 1;
    }
    j->first_y = k / g->stride[2], j->first_x = k % g->stride[2], j->l.step_y = j->l.step_x = 1;
    if (j->first_y >= g->size[1] || j->first_x >= g->size[2]) return 0;
    j->y = taps_reaching(g->kernel[1], j->first_y + g->pad[1], g->dilation[1], g->stride[1]);
    j->x = taps_reaching(g->kernel[2], j->first_x + g->pad[2], g->dilation[2], g->stride[2]);
    j->l.rows = parts(g->size[1] - j->first_y, g->stride[1]), j->l.cols = parts(g->size[2] - j->first_x, g->stride[2]);
    return j->y.count && j->x.count;
}

/* Scratch of a class beside the planes. */
static int64_t plan_class(job_t *j) {
    const int64_t deep = j->w->deep;
    j->depth = j->channels * j->y.count * j->x.count, j->pairs = parts(pairs(j->depth), deep) * deep;
    j->a_row = (parts(4 * j->pairs, 64) | 1) * 64;
    j->panels = parts(j->l.images * j->l.rows * j->l.cols, j->w->columns);
    j->parts = j->groups * j->panels >= FEW_UNITS ? 1 : most(1, at_most(j->outputs / PART_ROWS, FEW_UNITS / (j->groups * j->panels)));
    j->part_rows = parts(parts(j->outputs, j->parts), 2 * LANES) * 2 * LANES, j->parts = parts(j->outputs, j->part_rows);
    j->shares = at_most(j->most_shares, j->groups * j->panels * j->parts);
    j->room_size = lines_of_cache(4 * (at_most(j->pairs, STRETCH) * j->w->columns + tgx_bf16_sums_count(j->w, j->part_rows)));
    return lines_of_cache(8 * 2 * j->pairs) + j->groups * parts(j->outputs, LANES) * LANES * j->a_row + j->shares * j->room_size;
}

/* What all classes share; the scratch beside the planes. */
static int64_t plan(job_t *j, const tgx_conv_sizes *g, int which, int64_t most_shares) {
    const int back = which == TGX_CONV_INPUT_GRAD;
    int64_t bytes = 0;
    *j = (job_t){.w = tgx_bf16_panels_here(), .g = g, .which = which, .groups = g->groups, .most_shares = most_shares,
                 .kernel = g->kernel[1] * g->kernel[2], .out_y = back ? g->stride[1] : 1, .out_x = back ? g->stride[2] : 1};
    j->channels = (back ? g->outputs : g->channels) / g->groups, j->outputs = (back ? g->channels : g->outputs) / g->groups;
    j->out_h = back ? g->size[1] : g->out[1], j->out_w = back ? g->size[2] : g->out[2];
    j->l = (laid_t){.images = g->n, .planes = j->channels * g->groups, .height = back ? g->out[1] : g->size[1],
                    .width = back ? g->out[2] : g->size[2], .low_y = INT64_MAX, .high_y = INT64_MIN, .low_x = INT64_MAX,
                    .high_x = INT64_MIN};
    for (int64_t k = 0; k < classes(j); k++) {
        if (!enter_class(j, k)) continue;
        reach(&j->l.low_y, &j->l.high_y, &j->y, (j->l.rows - 1) * j->l.step_y);
        reach(&j->l.low_x, &j->l.high_x, &j->x, (j->l.cols - 1) * j->l.step_x);
        bytes = most(bytes, plan_class(j));
    }
    if (j->l.high_y >= j->l.low_y) plan_laid(&j->l);
    return bytes;
}

static int has_sizes(const tgx_conv_sizes *g) {
    return g->n > 0 && g->channels > 0 && g->outputs > 0 && g->kernel[1] > 0 && g->kernel[2] > 0 && g->out[1] > 0 && g->out[2] > 0
           && g->size[1] > 0 && g->size[2] > 0;
}

/* Whether padded planes are not much larger than they were; 63 bits can count them then. */
static int are_near(const tgx_conv_sizes *g, int which) {
    double times = 1;
    for (int d = 1; d < 3; d++) {
        const double reach = (double)(g->kernel[d] - 1) * (double)g->dilation[d], step = (double)g->stride[d];
        if (which == TGX_CONV_INPUT_GRAD) times *= (((double)g->size[d] + reach) / step + 2) / (double)g->out[d];
        else times *= (((double)g->out[d] - 1) * step + reach + 1) / (double)g->size[d];
    }
    return times < MOST_SPREAD;
}

/* The choice between products of bfloat16 and operands that are widened, by what took less time. */
static int gains(const tgx_conv_sizes *g, int which) {
    if (g->dims > 2 || !tgx_bf16_panels_here() || !has_sizes(g) || !are_near(g, which)) return 0;
    const int64_t outputs = g->outputs / g->groups, channels = g->channels / g->groups, kernel = g->kernel[1] * g->kernel[2];
    const double positions = (double)g->n * (double)g->out[1] * (double)g->out[2];
    const double work = positions * (double)g->outputs * (double)channels * (double)kernel;
    if (work >= MOST_WORK) return 0;
    if (which == TGX_CONV_WEIGHT_GRAD)
        return outputs >= LEAST_LINES && channels * kernel >= LEAST_DEPTH && positions >= LEAST_SUM && work >= 4 * LEAST_WORK;
    if (positions < LEAST_POSITIONS || work < LEAST_WORK) return 0;
    if (which == TGX_CONV_FORWARD) return outputs >= LEAST_LINES && channels * kernel >= LEAST_DEPTH;
    const int64_t each = g->stride[1] * g->stride[2];      /* classes of positions, which share the taps */
    return each <= MOST_CLASSES && channels >= LEAST_LINES && outputs * kernel >= (each > 1 ? 2 * each : 1) * LEAST_DEPTH;
}

int tgx_conv_bf16_room(tgx_call *c, const tgx_conv_sizes *g, int dtype, int which) {
    job_t j;
    if (dtype != TGX_BF16 || !gains(g, which))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "convolution is not computed in '%s': convert the operands, for "
                        "example with .float()",
                        tgx_dtype_title(dtype));
    if (c->meta) return 0;
    c->notes[0] = c->services->num_threads();
    if (which == TGX_CONV_WEIGHT_GRAD) c->scratch_bytes = tgx_conv_bf16_sums_room(c, g);
    else c->scratch_bytes = plan(&j, g, which, c->notes[0]), c->scratch_bytes += laid_bytes(&j.l);
    return 0;
}

/* ---- planes ------------------------------------------------------------------------------------------------------ */

/* n elements that lie `step` apart. */
INLINE void copy_apart(uint16_t *to, const uint16_t *from, int64_t n, int64_t step) {
    if (step == 1) copy_lanes(to, from, n);
    else if (step != 2) for (int64_t i = 0; i < n; i++) to[i] = from[i * step];
    else for (; n > 0; n -= LANES, to += LANES, from += 2 * LANES) {
        const int64_t left = at_most(n, LANES);
        const __m512i both = _mm512_maskz_loadu_epi16((__mmask32)(((uint64_t)1 << (2 * left - 1)) - 1), from);
        _mm256_mask_storeu_epi16(to, (__mmask16)((1u << left) - 1), _mm512_cvtepi32_epi16(both));
    }
}

INSTRUCTIONS static int lay_some(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const laid_t *l = given;
    const int64_t met = l->high_y - l->low_y - (l->rows - 1) * l->step_y + 1;     /* rows of a window */
    for (ptrdiff_t i = lo; i < hi; i++) {
        uint16_t *to = l->to + i * l->plane;
        for (int64_t r = 0; r < l->tall; r++) {
            const int64_t y = l->low_y + r;
            if (r % l->step_y >= met) {
                to += l->phases * l->line;
                continue;
            }
            for (int64_t phase = 0; phase < l->phases; phase++, to += l->line) {
                const int64_t x = l->low_x + phase, first = x < 0 ? at_most(parts(-x, l->step_x), l->line) : 0;
                const int64_t inside = y >= 0 && y < l->height && x < l->width ? at_most(l->line, parts(l->width - x, l->step_x)) : 0;
                const int64_t last = most(first, inside);
                memset(to, 0, (size_t)(2 * first));
                copy_apart(to + first, l->from + (i * l->height + y) * l->width + x + first * l->step_x, last - first, l->step_x);
                memset(to + last, 0, (size_t)(2 * (l->line - last)));
            }
        }
    }
    return 0;
}

int tgx_conv_bf16_lay_planes(tgx_call *c, const laid_t *l) {
    return l->direct ? 0 : tgx_range(c, lay_some, (void *)l, l->images * l->planes, TGX_SMALL / l->plane + 1);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Weights of one position of the kernel, 16 outputs of the map at a time: rows of 32 channels, turned. */
INSTRUCTIONS static void turn_weights(const job_t *j, const uint16_t *from, int64_t output, char *to) {
    uint32_t laid[LANES * LANES];
    const int64_t real = at_most(j->outputs - output, LANES);
    for (int64_t at = 0; at < j->depth; at += 2 * LANES) {
        const int64_t n = at_most(j->depth - at, 2 * LANES), all = j->a_row / 4;
        if (n < 2 * LANES) memset(laid, 0, sizeof laid);
        tgx_bf16_lay(laid, LANES, real, from + at * j->outputs + output, 1, j->outputs, n);
        for (int i = 0; i < LANES; i += 8)
            for (int q = 0; q < LANES && 2 * q < n; q += 8)
                turn((uint32_t *)(to + i * j->a_row) + at / 2 + q, all, (const uint16_t *)(laid + q * LANES + i), 2 * LANES);
    }
}

/* The number in the kernel of tap t of a class. */
static inline int64_t number_of(const job_t *j, int64_t t) {
    const int64_t y = j->y.which + t / j->x.count * j->y.which_step;
    return y * j->g->kernel[2] + j->x.which + t % j->x.count * j->x.which_step;
}

/* Rows of weights for 16 outputs of the map; of the turned ones the taps that reach, from channel to channel. */
INSTRUCTIONS static void lay_outputs(const job_t *j, const uint16_t *from, int64_t output, char *to) {
    const int64_t real = at_most(j->outputs - output, LANES), taps = j->y.count * j->x.count;
    uint16_t order[GATHERED] = {0};
    memset(to, 0, (size_t)(LANES * j->a_row));
    if (j->which == TGX_CONV_FORWARD) {
        for (int64_t r = 0; r < real; r++) memcpy(to + r * j->a_row, from + (output + r) * j->depth, (size_t)(2 * j->depth));
        return;
    }
    if (j->kernel == 1) {
        turn_weights(j, from, output, to);
        return;
    }
    for (int64_t t = 0; t < at_most(taps, GATHERED); t++) order[t] = (uint16_t)number_of(j, t);
    const __m512i permuted = _mm512_loadu_si512(order);
    const __mmask32 given = (__mmask32)(((uint64_t)1 << at_most(j->kernel, GATHERED)) - 1);
    const __mmask32 reached = (__mmask32)(((uint64_t)1 << at_most(taps, GATHERED)) - 1);
    for (int64_t c = 0; c < j->channels; c++)
        for (int64_t r = 0; r < real; r++) {
            const uint16_t *own = from + (c * j->outputs + output + r) * j->kernel;
            uint16_t *row = (uint16_t *)(to + r * j->a_row) + c * taps;
            if (j->kernel > GATHERED) for (int64_t t = 0; t < taps; t++) row[t] = own[number_of(j, t)];
            else _mm512_mask_storeu_epi16(row, reached, _mm512_permutexvar_epi16(permuted, _mm512_maskz_loadu_epi16(given, own)));
        }
}

/* Items are 16 outputs of a group. */
static int lay_weights(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = given;
    const int64_t strips = parts(j->outputs, LANES);
    for (ptrdiff_t i = lo; i < hi; i++)
        lay_outputs(j, j->weight + i / strips * j->outputs * j->channels * j->kernel, i % strips * LANES,
                    (char *)j->left + i * LANES * j->a_row);
    return 0;
}

/* Whether they are read where they are; rows that are far apart by a power of two would meet in few places of the first cache. */
static int lies_in_rows(const job_t *j) {
    return j->which == TGX_CONV_FORWARD && j->depth % (2 * j->w->deep) == 0 && j->outputs % LANES == 0 && j->depth % 1024;
}

/* ---- columns and results ----------------------------------------------------------------------------------------- */

/* A vector of lanes from so many pieces, for `count` pairs of places. */
INLINE void lay_vector(const int n, const piece_t *piece, const uint16_t *from, const int64_t *place, int64_t count, int64_t wide,
                       uint32_t *to) {
    const __m512i in_turn = turns();
    for (int64_t i = 0; i < count; i++, place += 2, to += wide) {
        const uint16_t *even = from + place[0], *odd = from + place[1];
        __m256i low = _mm256_setzero_si256(), high = low;
        for (int k = 0; k < n; k++) {
            low = _mm256_mask_loadu_epi16(low, (__mmask16)piece[k].mask, even + piece[k].at);
            high = _mm256_mask_loadu_epi16(high, (__mmask16)piece[k].mask, odd + piece[k].at);
        }
        _mm512_storeu_si512(to, _mm512_permutex2var_epi16(_mm512_castsi256_si512(low), in_turn, _mm512_castsi256_si512(high)));
    }
}

/* Pairs [first, first + count) of the depth for the positions of some pieces. An odd depth ends with half a pair. */
INSTRUCTIONS static void lay_columns(const job_t *j, const uint16_t *from, const piece_t *piece, int64_t n, int64_t first,
                                     int64_t count, int64_t wide, uint32_t *to) {
    const int64_t *place = j->places + 2 * first, full = most(0, at_most(count, j->depth / 2 - first));
    memset(to + full * wide, 0, (size_t)(4 * (count - full) * wide));
    for (int64_t k = 0, last; k < n; k = last) {
        const int64_t own = piece[k].vector * LANES;
        for (last = k + 1; last < n && piece[last].vector == piece[k].vector;) last++;
        if (last - k == 1) lay_vector(1, piece + k, from, place, full, wide, to + own);
        else if (last - k == 2) lay_vector(2, piece + k, from, place, full, wide, to + own);
        else lay_vector((int)(last - k), piece + k, from, place, full, wide, to + own);
        if (j->depth % 2 && full < count && 2 * (first + full) < j->depth)
            for (int64_t i = k; i < last; i++)
                for (uint32_t left = piece[i].mask; left; left &= left - 1) {
                    const int lane = __builtin_ctz(left);
                    to[full * wide + own + lane] = from[place[2 * full] + piece[i].at + lane];
                }
    }
}

/* The sums of some rows, rounded, to their pieces of the result. */
INSTRUCTIONS static void take(const job_t *j, const float *sums, const piece_t *piece, int64_t n, int64_t rows, const uint16_t *bias,
                              uint16_t *out) {
    uint16_t lanes[LANES];
    for (int64_t r = 0; r < rows; r++, out += j->out_h * j->out_w) {
        const float *own = sums + r / LANES * j->w->strip + r % LANES * j->w->row;
        const __m512 more = _mm512_set1_ps(bias ? tgx_bf16_to_f32(bias[r]) : 0);
        for (int64_t k = 0; k < n;) {
            const uint32_t vector = piece[k].vector;
            const __m512 sum = _mm512_loadu_ps(own + vector * j->w->vector);
            const __m256i half = bias ? round_lanes(_mm512_add_ps(sum, more)) : round_sums(sum);
            if (j->out_x != 1) _mm256_storeu_si256((__m256i *)lanes, half);
            for (; k < n && piece[k].vector == vector; k++) {
                if (j->out_x == 1) _mm256_mask_storeu_epi16(out + piece[k].at, (__mmask16)piece[k].mask, half);
                else for (uint32_t left = piece[k].mask; left; left &= left - 1) {
                    const int lane = __builtin_ctz(left);
                    out[piece[k].at + lane * j->out_x] = lanes[lane];
                }
            }
        }
    }
}

/* Units are (group, panel of positions, part of the outputs). */
static void run_unit(const job_t *j, int64_t unit, char *room) {
    const laid_t *l = &j->l;
    const int64_t top = unit % j->parts * j->part_rows, group = unit / j->parts / j->panels;
    const int64_t first = unit / j->parts % j->panels * j->w->columns;
    const int64_t count = at_most(l->images * l->rows * l->cols - first, j->w->columns), rows = at_most(j->outputs - top, j->part_rows);
    const int joined = l->direct && l->cols == l->line && l->step_y == 1;
    const int together = j->out_x == 1 && j->out_y == 1 && l->cols == j->out_w;
    const int64_t strip = parts(j->outputs, LANES) * LANES, out_plane = j->out_h * j->out_w, first_output = group * j->outputs + top;
    piece_t in[MOST_PIECES], out[MOST_PIECES];
    const int64_t from = cut(in, first, count, joined ? 1 : l->rows, joined ? l->rows * l->cols : l->cols, l->planes * l->plane,
                             l->step_y * l->phases * l->line, 1);
    const int64_t to = cut(out, first, count, together ? 1 : l->rows, together ? l->rows * l->cols : l->cols,
                           j->groups * j->outputs * out_plane, j->out_y * j->out_w, j->out_x);
    tgx_bf16_panel x = {.a_row = j->a_row, .b = (uint32_t *)room, .rows = rows, .wide = parts(count, LANES) * LANES,
                        .sums = (float *)(room + 4 * at_most(j->pairs, STRETCH) * j->w->columns)};
    for (int64_t at = 0; at < j->pairs; at += STRETCH) {
        x.pairs = at_most(j->pairs - at, STRETCH), x.first = at == 0;
        x.a = j->left + (group * strip + top) * j->a_row + 4 * at;
        lay_columns(j, l->to + group * j->channels * l->plane, in, from, at, x.pairs, x.wide, (uint32_t *)room);
        j->w->multiply(&x);
    }
    take(j, x.sums, out, to, rows, j->bias ? j->bias + first_output : NULL,
         j->out + first_output * out_plane + j->first_y * j->out_w + j->first_x);
}

static int run_shares(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = given;
    const int64_t units = j->groups * j->panels * j->parts;
    for (; lo < hi; lo++)
        for (int64_t unit = units * lo / j->shares; unit < units * (lo + 1) / j->shares; unit++)
            run_unit(j, unit, j->room + lo * j->room_size);
    return 0;
}

static int run(tgx_call *c, const tgx_conv_sizes *g, int which, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    const tgx_tensor *out = tgx_out(c, 0);
    job_t j;
    int code;
    plan(&j, g, which, c->notes[0]);
    j.l.from = (const uint16_t *)x->data, j.l.to = j.l.direct ? (uint16_t *)x->data : c->scratch;
    j.weight = (const uint16_t *)w->data, j.bias = bias ? (const uint16_t *)bias->data : NULL, j.out = (uint16_t *)out->data;
    j.places = (int64_t *)((char *)c->scratch + laid_bytes(&j.l));
    if (classes(&j) > 1) memset(out->data, 0, (size_t)out->count * sizeof *j.out);
    if (j.l.high_y < j.l.low_y) return 0;    /* windows meet the padding alone */
    if ((code = tgx_conv_bf16_lay_planes(c, &j.l))) return code;
    for (int64_t k = 0; k < classes(&j); k++) {
        if (!enter_class(&j, k)) continue;
        plan_class(&j);
        j.left = (char *)j.places + lines_of_cache(8 * 2 * j.pairs);
        const int64_t strips = j.groups * parts(j.outputs, LANES);
        j.room = (char *)j.left + strips * LANES * j.a_row;
        fill_places(&j.l, j.channels, &j.y, &j.x, j.places);
        if (lies_in_rows(&j)) j.left = w->data, j.a_row = 2 * j.depth;
        else if ((code = tgx_range(c, lay_weights, &j, strips, TGX_SMALL / (LANES * j.depth) + 1))) return code;
        if ((code = tgx_range(c, run_shares, &j, j.shares, 1))) return code;
    }
    return 0;
}

int tgx_conv_bf16_forward(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    return run(c, g, TGX_CONV_FORWARD, x, w, bias);
}

int tgx_conv_bf16_input_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w) {
    return run(c, g, TGX_CONV_INPUT_GRAD, grad, w, NULL);
}
#else
int tgx_conv_bf16_room(tgx_call *c, const tgx_conv_sizes *g, int dtype, int which) {
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "convolution is not computed in '%s': convert the operands, for "
                    "example with .float()",
                    tgx_dtype_title(dtype));
}
int tgx_conv_bf16_forward(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    return TGX_FAILED;
}
int tgx_conv_bf16_input_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w) { return TGX_FAILED; }
#endif
