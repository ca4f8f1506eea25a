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
 * the first exist, `less` fewer of each further one. step: elements between windows that lie in a row, else 0. */
typedef struct { const T *buf, *w, *bias; T *out; ptrdiff_t gap, out_gap, valid, less, step; int real; } NAME(place);

/* `rows` outputs, of which `real` exist, by `vectors` vectors of positions. What is the same for all tiles but the last, or
 * where all windows lie in a row, is constant in copies of the loop: with few channels the rest of a tile took a quarter of its
 * time. */
INLINE void NAME(products)(const int rows, const int vectors, const ptrdiff_t gap, const int in_a_row, const ptrdiff_t weight_row,
                           const tgx_conv *p, const tgx_conv_part *part, const NAME(place) *at, V sum[OUT_ROWS][OUT_VECTORS]) {
    const ptrdiff_t all = p->taps_x * p->taps_y, taps = in_a_row ? 1 : all, *offset = p->offset;
    const ptrdiff_t planes = in_a_row ? part->channels * all : part->channels, plane = in_a_row ? at->step : p->plane;
    const ptrdiff_t to_row = weight_row ? weight_row : 1, next = weight_row ? 1 : rows;
    const T *w = at->w, *buf = at->buf;
    for (ptrdiff_t c = 0; c < planes; c++, buf += plane)
        for (ptrdiff_t t = 0; t < taps; t++, w += next) {
            const T *x = in_a_row ? buf : buf + offset[t];
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
    if (!part->fresh && whole)
        for (int r = 0; r < rows; r++)
            for (int q = 0; q < vectors; q++) sum[r][q] = READ(out + r * plane + q * LANES);
    else if (!part->fresh)
        for (int r = 0; r < rows && r < at->real; r++)
            for (int q = 0; q < vectors; q++) sum[r][q] = NAME(get)(out + r * plane + q * gap, at->valid - q * at->less);
    if (rows == OUT_ROWS && p->weight_row && at->gap != LANES) NAME(products)(rows, vectors, at->gap, 0, p->weight_row, p, part, at, sum);
    else if (rows == OUT_ROWS && p->weight_row) NAME(products)(rows, vectors, LANES, 0, p->weight_row, p, part, at, sum);
    else if (at->gap != LANES) NAME(products)(rows, vectors, at->gap, 0, 0, p, part, at, sum);
    else if (at->step) NAME(products)(rows, vectors, LANES, 1, 0, p, part, at, sum);
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

/* By itself: as a part of a larger function gcc finds no register for each sum. */
static __attribute__((noinline)) void NAME(any_tile)(ptrdiff_t rows, ptrdiff_t vectors, const tgx_conv *p, const tgx_conv_part *part,
                                                     const NAME(place) *at) {
    if (rows == 1) { TILES(1); }
    else if (rows == 4) { TILES(4); }
    else { TILES(OUT_ROWS); }
}

/* Vectors of the next tile: full tiles, but no lone vector at the end. */
INLINE ptrdiff_t NAME(next)(ptrdiff_t left) { return left == OUT_VECTORS + 1 ? 2 : left < OUT_VECTORS ? left : OUT_VECTORS; }

/* Positions of one image that lie in a tile: where they are in the buffer, in the tile and in out, and their number. */
typedef struct { ptrdiff_t from, at, out, count; } NAME(piece);
enum { NAME(PIECES) = OUT_VECTORS + 1, NAME(TILE) = OUT_VECTORS * LANES }; /* an image has a vector of positions at least */

/* Those of the tile that begins with a position; returns their number. */
static ptrdiff_t NAME(cut)(const tgx_conv *p, const tgx_conv_part *part, ptrdiff_t first, ptrdiff_t last, NAME(piece) *piece) {
    const ptrdiff_t n = part->rows * part->cols;
    ptrdiff_t pieces = 0;
    for (ptrdiff_t i = first, count; i < last; i += count) {
        count = n - i % n < last - i ? n - i % n : last - i;
        piece[pieces++] = (NAME(piece)){i / n * p->buffer + i % n, i - first, tgx_conv_out(part, i / n) + i % n, count};
    }
    return pieces;
}

/* Between out and a tile whose rows lie in one piece. What lies behind a piece of the tile may be overwritten. */
static void NAME(take_pieces)(const NAME(piece) *piece, ptrdiff_t pieces, ptrdiff_t rows, ptrdiff_t plane, const T *out, T *tile) {
    for (ptrdiff_t r = 0; r < rows; r++, out += plane, tile += NAME(TILE))
        for (ptrdiff_t k = 0; k < pieces; k++)
            for (ptrdiff_t i = 0; i < piece[k].count; i += LANES)
                WRITE(tile + piece[k].at + i, NAME(get)(out + piece[k].out + i, piece[k].count - i));
}

static void NAME(give_pieces)(const NAME(piece) *piece, ptrdiff_t pieces, ptrdiff_t rows, ptrdiff_t plane, const T *tile, T *out) {
    for (ptrdiff_t r = 0; r < rows; r++, out += plane, tile += NAME(TILE))
        for (ptrdiff_t k = 0; k < pieces; k++)
            for (ptrdiff_t i = 0; i < piece[k].count; i += LANES)
                NAME(put)(out + piece[k].out + i, READ(tile + piece[k].at + i), piece[k].count - i);
}

/* Some vectors of positions for the outputs [first, last); `at` says where those of output 0 lie. Of several pieces it is where
 * image 0 lies. */
static void NAME(apply_outputs)(ptrdiff_t first, ptrdiff_t last, ptrdiff_t vectors, const tgx_conv *p, const tgx_conv_part *part,
                                const T *packed, const T *bias, NAME(place) at, const NAME(piece) *piece, ptrdiff_t pieces) {
    const ptrdiff_t taps = p->taps_x * p->taps_y;
    T *out = at.out, tile[OUT_ROWS * NAME(TILE) + LANES] __attribute__((aligned(VECTOR_BYTES)));
    tgx_conv_part apart = *part;
    if (pieces > 1) apart.out_plane = NAME(TILE), at.valid = vectors * LANES;
    for (ptrdiff_t o = first, rows; o < last; o += rows) {
        rows = NAME(together)(p->outputs - o);
        at.w = packed + (o * p->channels + part->channel * (p->weight_row ? 1 : rows)) * taps;
        at.bias = bias ? bias + o : 0;
        at.out = out + o * part->out_plane;
        at.real = (int)(p->outputs - o < rows ? p->outputs - o : rows);
        if (pieces <= 1) {
            NAME(any_tile)(rows, vectors, p, part, &at);
            continue;
        }
        if (!part->fresh) NAME(take_pieces)(piece, pieces, at.real, part->out_plane, at.out, tile);
        at.out = tile;
        NAME(any_tile)(rows, vectors, p, &apart, &at);
        NAME(give_pieces)(piece, pieces, at.real, part->out_plane, tile, out + o * part->out_plane);
    }
}

/* The windows of a tile side by side: taken from planes they cross lines of the cache, of which more are touched than the first
 * level holds. `gap` elements lie between its vectors in the buffer. */
static void NAME(fill_panel)(ptrdiff_t vectors, const tgx_conv *p, const tgx_conv_part *part, const T *buf, ptrdiff_t gap, T *panel) {
    for (ptrdiff_t c = 0; c < part->channels; c++, buf += p->plane)
        for (ptrdiff_t t = 0; t < p->taps_x * p->taps_y; t++)
            for (ptrdiff_t q = 0; q < vectors; q++, panel += LANES) WRITE(panel, READ(buf + p->offset[t] + q * gap));
}

/* The same of pieces. What is written behind one is the next one's, or the next window's. */
static void NAME(fill_pieces)(ptrdiff_t vectors, const tgx_conv *p, const tgx_conv_part *part, const T *buf, const NAME(piece) *piece,
                              ptrdiff_t pieces, T *panel) {
    for (ptrdiff_t c = 0; c < part->channels; c++, buf += p->plane)
        for (ptrdiff_t t = 0; t < p->taps_x * p->taps_y; t++, panel += vectors * LANES)
            for (ptrdiff_t k = 0; k < pieces; k++)
                for (ptrdiff_t i = 0; i < piece[k].count; i += LANES)
                    WRITE(panel + piece[k].at + i, READ(buf + p->offset[t] + piece[k].from + i));
}

/* The outputs [first, last) of all positions, of one image after the other, or of all images in a row. Where an image fills less
 * than a vector, the vectors of a tile come from several images. */
static void NAME(apply_positions)(ptrdiff_t first, ptrdiff_t last, const int panels, const tgx_conv *p, const tgx_conv_part *part,
                                  const T *buffer, const T *packed, const T *bias, T *to) {
    const int joined = panels && p->joined;
    const ptrdiff_t n = part->rows * part->cols * (joined ? part->images : 1), vectors = (n + LANES - 1) / LANES, several = vectors == 1;
    const ptrdiff_t images = several || joined ? 1 : part->images, tiles = several && !joined ? part->images : vectors;
    T panel[TGX_CONV_PANEL(VECTOR_BYTES) / sizeof(T) + LANES] __attribute__((aligned(VECTOR_BYTES)));
    NAME(piece) piece[NAME(PIECES)];
    NAME(place) at = {0};
    at.out_gap = !several ? LANES : part->run > 1 ? part->out_next : part->out_image, at.less = several ? 0 : LANES;
    for (ptrdiff_t i = 0; i < images; i++)
        for (ptrdiff_t q = 0, some, pieces = 1; q < tiles; q += some) {
            const ptrdiff_t same = part->run - (part->skip + q) % part->run; /* images of one volume */
            some = NAME(next)(several && part->run > 1 && same < tiles - q ? same : tiles - q);
            at.gap = several ? p->buffer : LANES, at.valid = several ? n : n - q * LANES;
            at.step = p->taps_x * p->taps_y == 1 && !several ? p->plane : 0;
            at.buf = buffer + i * p->buffer + q * at.gap, at.out = to + (several ? tgx_conv_out(part, q) : tgx_conv_out(part, i) + q * LANES);
            if (joined) {
                pieces = NAME(cut)(p, part, q * LANES, n - q * LANES < some * LANES ? n : (q + some) * LANES, piece);
                NAME(fill_pieces)(some, p, part, buffer, piece, pieces, panel);
                at.out = pieces > 1 ? to : to + piece->out;
            } else if (panels) {
                NAME(fill_panel)(some, p, part, at.buf, at.gap, panel);
            }
            if (panels) at.buf = panel, at.gap = LANES, at.step = some * LANES;
            NAME(apply_outputs)(first, last, some, p, part, packed, bias, at, piece, pieces);
        }
}

/* As many outputs at a time as share a panel and have their weights in the second cache level, or those of a tile. */
static void NAME(apply)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *packed, const void *bias,
                        void *out) {
    const int panels = p->panel && !p->weight_row;
    ptrdiff_t some = OUT_ROWS;
    if (panels) some += TGX_CONV_WEIGHTS(VECTOR_BYTES) / (ptrdiff_t)sizeof(T) / (part->channels * p->taps_x * p->taps_y + 1) / OUT_ROWS * OUT_ROWS;
    for (ptrdiff_t o = 0; o < p->outputs; o += some)
        NAME(apply_positions)(o, p->outputs - o < some ? p->outputs : o + some, panels, p, part, buffer, packed, bias, out);
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
#if VECTOR_BYTES == 64
#include "conv_across.h"
#endif
#if VECTOR_BYTES >= 32
#include "conv_laid.h"
#endif
#include "conv_direct.h"

#undef V
#undef LANES
#undef READ
#undef WRITE
#undef TILES
#undef SUMS
#undef SUMS_OF
