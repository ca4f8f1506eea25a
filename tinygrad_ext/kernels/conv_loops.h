/* Loops of convolution for one element type T in one instruction set; included by conv_isa.h. See conv.h.
 *
 * `apply` keeps a tile of OUT_ROWS outputs by OUT_VECTORS vectors of positions in registers, `collect` one of
 * SUM_ROWS taps by SUM_VECTORS vectors of outputs. Each element is summed in one fixed order whatever the tile, so
 * its bits depend neither on its place nor on the number of threads. */
typedef T NAME(vec) __attribute__((vector_size(VECTOR_BYTES)));
typedef INT NAME(order) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(loose) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
#define V NAME(vec)
#define LANES ((ptrdiff_t)(VECTOR_BYTES / sizeof(T)))
#define READ(p) (*(const NAME(loose) *)(p))
#define WRITE(p, v) (*(NAME(loose) *)(p) = (NAME(loose))(v))

#include "conv_moves.h"

/* ---- out = weights . windows ---- */

/* Where a tile lies: its vectors are `gap` elements apart in the buffer and `out_gap` in out, and `valid` positions of
 * the first exist, `less` fewer of each further one. */
typedef struct { const T *buf, *w, *bias; T *out; ptrdiff_t gap, out_gap, valid, less; int real; } NAME(place);

/* `rows` outputs, of which `real` exist, by `vectors` vectors of positions. What is the same for all tiles but the last, or
 * for all layers of 1 x 1, is constant in copies of the loop: with few channels the rest of a tile took a quarter of its time. */
INLINE void NAME(products)(const int rows, const int vectors, const ptrdiff_t gap, const int single, const ptrdiff_t weight_row,
                           const tgx_conv *p, const tgx_conv_part *part, const NAME(place) *at, V sum[OUT_ROWS][OUT_VECTORS]) {
    const ptrdiff_t taps = single ? 1 : p->taps_x * p->taps_y, *offset = p->offset;
    const ptrdiff_t to_row = weight_row ? weight_row : 1, next = weight_row ? 1 : rows;
    const T *w = at->w, *buf = at->buf;
    for (ptrdiff_t c = 0; c < part->channels; c++, buf += p->plane)
        for (ptrdiff_t t = 0; t < taps; t++, w += next) {
            const T *x = single ? buf : buf + offset[t];
            V in[OUT_VECTORS];
            for (int q = 0; q < vectors; q++) in[q] = READ(x + q * gap);
            for (int r = 0; r < rows; r++) {
                V factor = SPLAT(w[r * to_row]);
                for (int q = 0; q < vectors; q++) sum[r][q] = FMA(factor, in[q], sum[r][q]);
            }
        }
}

INLINE void NAME(tile)(const int rows, const int vectors, const tgx_conv *p, const tgx_conv_part *part, const NAME(place) *at) {
    V sum[OUT_ROWS][OUT_VECTORS];
    T *out = at->out;
    const ptrdiff_t plane = part->out_plane, gap = at->out_gap;
    const int whole = at->real >= rows && at->less == LANES && at->valid >= vectors * LANES;
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) sum[r][q] = SPLAT(at->bias && r < at->real ? at->bias[r] : 0);
    if (part->channel && whole)
        for (int r = 0; r < rows; r++)
            for (int q = 0; q < vectors; q++) sum[r][q] = READ(out + r * plane + q * LANES);
    else if (part->channel)
        for (int r = 0; r < rows && r < at->real; r++)
            for (int q = 0; q < vectors; q++) sum[r][q] = NAME(get)(out + r * plane + q * gap, at->valid - q * at->less);
    if (rows == OUT_ROWS && p->weight_row && at->gap != LANES) NAME(products)(rows, vectors, at->gap, 0, p->weight_row, p, part, at, sum);
    else if (rows == OUT_ROWS && p->weight_row) NAME(products)(rows, vectors, LANES, 0, p->weight_row, p, part, at, sum);
    else if (at->gap != LANES) NAME(products)(rows, vectors, at->gap, 0, 0, p, part, at, sum);
    else if (p->taps_x * p->taps_y == 1) NAME(products)(rows, vectors, LANES, 1, 0, p, part, at, sum);
    else NAME(products)(rows, vectors, LANES, 0, 0, p, part, at, sum);
    if (whole)
        for (int r = 0; r < rows; r++)
            for (int q = 0; q < vectors; q++) WRITE(out + r * plane + q * LANES, sum[r][q]);
    else
        for (int r = 0; r < rows && r < at->real; r++)
            for (int q = 0; q < vectors; q++) NAME(put)(out + r * plane + q * gap, sum[r][q], at->valid - q * at->less);
}

#define TILES(rows)                                           \
    if (vectors == 3) NAME(tile)(rows, 3, p, part, at);       \
    else if (vectors == 2) NAME(tile)(rows, 2, p, part, at);  \
    else NAME(tile)(rows, 1, p, part, at)

static void NAME(any_tile)(ptrdiff_t rows, ptrdiff_t vectors, const tgx_conv *p, const tgx_conv_part *part, const NAME(place) *at) {
    if (rows == 1) { TILES(1); }
    else if (rows == 4) { TILES(4); }
    else { TILES(OUT_ROWS); }
}

/* Vectors of the next tile: full tiles, but no lone vector at the end. */
INLINE ptrdiff_t NAME(next)(ptrdiff_t left) { return left == OUT_VECTORS + 1 ? 2 : left < OUT_VECTORS ? left : OUT_VECTORS; }

/* All positions of the part for the outputs of one tile row. Where an image fills less than a vector, the vectors of a
 * tile come from several images. */
static void NAME(apply_rows)(ptrdiff_t rows, const tgx_conv *p, const tgx_conv_part *part, const NAME(place) *start) {
    const ptrdiff_t n = part->rows * part->cols, vectors = (n + LANES - 1) / LANES;
    NAME(place) at = *start;
    if (vectors == 1) {
        at.gap = p->buffer, at.out_gap = part->out_image, at.valid = n, at.less = 0;
        for (ptrdiff_t i = 0, some; i < part->images; i += some) {
            some = NAME(next)(part->images - i);
            at.buf = start->buf + i * p->buffer, at.out = start->out + i * part->out_image;
            NAME(any_tile)(rows, some, p, part, &at);
        }
        return;
    }
    at.gap = at.out_gap = at.less = LANES;
    for (ptrdiff_t i = 0; i < part->images; i++)
        for (ptrdiff_t q = 0, some; q < vectors; q += some) {
            some = NAME(next)(vectors - q);
            at.valid = n - q * LANES;
            at.buf = start->buf + i * p->buffer + q * LANES, at.out = start->out + i * part->out_image + q * LANES;
            NAME(any_tile)(rows, some, p, part, &at);
        }
}

static void NAME(apply)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *packed, const void *bias,
                        void *out) {
    const ptrdiff_t taps = p->taps_x * p->taps_y;
    NAME(place) at = {0};
    at.buf = buffer;
    for (ptrdiff_t o = 0, rows; o < p->outputs; o += rows) {
        rows = NAME(together)(p->outputs - o);
        at.w = (const T *)packed + (o * p->channels + part->channel * (p->weight_row ? 1 : rows)) * taps;
        at.bias = bias ? (const T *)bias + o : 0;
        at.out = (T *)out + o * part->out_plane;
        at.real = (int)(p->outputs - o < rows ? p->outputs - o : rows);
        NAME(apply_rows)(rows, p, part, &at);
    }
}

/* ---- gradient of the weights ---- */

/* `rows` taps by `vectors` panels of outputs; g_gap and sums_gap lie between panels. */
INLINE void NAME(sums)(const int rows, const int vectors, const tgx_conv *p, const tgx_conv_part *part, const T *const *x,
                       const T *g, ptrdiff_t g_gap, T *sums, ptrdiff_t sums_gap) {
    const ptrdiff_t n = part->rows * part->cols;
    V sum[SUM_ROWS][SUM_VECTORS];
    const T *at[SUM_ROWS];
    for (int r = 0; r < rows; r++) {
        at[r] = x[r];
        for (int q = 0; q < vectors; q++) {
            sum[r][q] = (V){0};
            if (!part->fresh) sum[r][q] = READ(sums + r * LANES + q * sums_gap);
        }
    }
    for (ptrdiff_t image = 0; image < part->images; image++) {
        for (ptrdiff_t i = 0; i < n; i++, g += LANES) {
            V in[SUM_VECTORS];
            for (int q = 0; q < vectors; q++) in[q] = READ(g + q * g_gap);
            for (int r = 0; r < rows; r++) {
                V factor = SPLAT(at[r][i]);
                for (int q = 0; q < vectors; q++) sum[r][q] = FMA(factor, in[q], sum[r][q]);
            }
        }
        for (int r = 0; r < rows; r++) at[r] += p->buffer;
    }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) WRITE(sums + r * LANES + q * sums_gap, sum[r][q]);
}

#define SUMS(rows, vectors) NAME(sums)(rows, vectors, p, part, x, g, g_gap, sums, sums_gap)
#define SUMS_OF(rows)                                      \
    if (some == SUM_VECTORS) SUMS(rows, SUM_VECTORS);      \
    else if (some == 2) SUMS(rows, 2);                     \
    else SUMS(rows, 1)

/* A few panels of outputs at a time, which stay in the first cache while all taps go by. */
static void NAME(collect)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *turned, void *to) {
    const ptrdiff_t taps = p->taps_x * p->taps_y, depth = part->channels * taps, sums_gap = p->channels * taps * LANES;
    const ptrdiff_t g_gap = part->images * part->rows * part->cols * LANES, panels = (p->outputs + LANES - 1) / LANES;
    for (ptrdiff_t panel = 0, some; panel < panels; panel += some) {
        const T *g = (const T *)turned + panel * g_gap, *plane = buffer;
        T *sums = (T *)to + panel * sums_gap + part->channel * taps * LANES;
        ptrdiff_t t = 0;
        some = panels - panel >= SUM_VECTORS ? SUM_VECTORS : panels - panel >= 2 ? 2 : 1;
        for (ptrdiff_t k = 0, rows; k < depth; k += rows, sums += rows * LANES) {
            const T *x[SUM_ROWS];
            rows = depth - k >= SUM_ROWS ? SUM_ROWS : depth - k >= 3 ? 3 : 1;
            for (ptrdiff_t r = 0; r < rows; r++) {
                x[r] = plane + p->offset[t];
                if (++t == taps) t = 0, plane += p->plane;
            }
            if (rows == SUM_ROWS) { SUMS_OF(SUM_ROWS); }
            else if (rows == 3) { SUMS_OF(3); }
            else { SUMS_OF(1); }
        }
    }
}

/* `rows` taps against one output, vectors along the positions. */
INLINE void NAME(dots)(const int rows, const T *const *x, const T *g, ptrdiff_t n, int fresh, T *sums) {
    V sum[SUM_ROWS];
    T rest[SUM_ROWS];
    ptrdiff_t i = 0;
    for (int r = 0; r < rows; r++) sum[r] = (V){0}, rest[r] = 0;
    for (; i + LANES <= n; i += LANES) {
        V in = READ(g + i);
        for (int r = 0; r < rows; r++) sum[r] = FMA(in, READ(x[r] + i), sum[r]);
    }
    for (; i < n; i++)
        for (int r = 0; r < rows; r++) rest[r] += x[r][i] * g[i];
    for (int r = 0; r < rows; r++) {
        for (int q = 0; q < LANES; q++) rest[r] += sum[r][q];
        sums[r * LANES] = fresh ? rest[r] : sums[r * LANES] + rest[r];
    }
}

static void NAME(collect_few)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *grad, void *to) {
    const ptrdiff_t n = part->rows * part->cols, taps = p->taps_x * p->taps_y, depth = part->channels * taps;
    for (ptrdiff_t k = 0, rows; k < depth; k += rows) {
        const T *x[SUM_ROWS];
        T *sums = (T *)to + (part->channel * taps + k) * LANES;
        rows = depth - k >= 3 ? 3 : 1;
        for (ptrdiff_t r = 0; r < rows; r++) x[r] = (const T *)buffer + (k + r) / taps * p->plane + p->offset[(k + r) % taps];
        for (ptrdiff_t o = 0; o < p->outputs; o++) {
            const T *g = (const T *)grad + o * part->out_plane;
            if (rows == 3) NAME(dots)(3, x, g, n, part->fresh, sums + o);
            else NAME(dots)(1, x, g, n, part->fresh, sums + o);
        }
    }
}

#include "conv_planes.h"

#undef V
#undef LANES
#undef READ
#undef WRITE
#undef TILES
#undef SUMS
#undef SUMS_OF
