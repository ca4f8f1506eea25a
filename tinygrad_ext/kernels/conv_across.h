/* Vectors along the outputs: a tile is some positions of a row by some vectors of outputs, and a tap multiplies a vector of weights
 * with one element of src for each position. Included by conv_loops.h.
 *
 * Elements are read where they lie, so that nothing is laid out, and taps that lie outside of the image are left out: of 7 x 7
 * positions a fifth of all, of a dilation of half an image half. Sums run in the order of the other loops. */

/* The positions of a tile that a tap has inside of a row, a bit each. */
typedef struct { uint32_t of[TGX_CONV_ACROSS_TAPS]; } NAME(reached);

#define UNROLLED _Pragma("GCC unroll 16")
/* One tap at the positions [lo, hi) of a tile. */
INLINE void NAME(across_tap)(const int lo, const int hi, const int vectors, const T *x, ptrdiff_t step, const T *factors,
                             V sum[MOST_POSITIONS][MOST_VECTORS]) {
    V by[MOST_VECTORS];
    UNROLLED for (int q = 0; q < vectors; q++) by[q] = READ(factors + q * LANES);
    UNROLLED for (int r = lo; r < hi; r++) {
        const V one = SPLAT(x[r * step]);
        UNROLLED for (int q = 0; q < vectors; q++) sum[r][q] = FMA(one, by[q], sum[r][q]);
    }
}

/* All channels, and the rows of taps [first, last) that lie in the image; src: the row of tap row 0 and the tile's first position.
 * At most the first or the last position lies outside for most taps; where others do, the row is copied with zeros for them. */
INLINE void NAME(across_sums)(const int rows, const int vectors, const tgx_conv *p, ptrdiff_t channels, const T *src, ptrdiff_t first,
                              ptrdiff_t last, const NAME(reached) *inside, const T *w, V sum[MOST_POSITIONS][MOST_VECTORS]) {
    const ptrdiff_t taps_x = p->taps_x, step = p->step_x, row = taps_x * vectors * LANES;
    const uint32_t all = (1u << rows) - 1;
    for (ptrdiff_t c = 0; c < channels; c++, src += p->src_channel, w += p->taps_y * row)
        for (ptrdiff_t v = first; v < last; v++) {
            const T *line = src + p->at_y[v] * p->width, *factors = w + v * row;
            for (ptrdiff_t u = 0; u < taps_x; u++, factors += vectors * LANES) {
                const T *x = line + p->at_x[u];
                const uint32_t reached = inside->of[u];
                if (reached == all) NAME(across_tap)(0, rows, vectors, x, step, factors, sum);
                else if (reached == (all & ~1u)) NAME(across_tap)(1, rows, vectors, x, step, factors, sum);
                else if (reached == all >> 1) NAME(across_tap)(0, rows - 1, vectors, x, step, factors, sum);
                else if (reached) {
                    T copy[MOST_POSITIONS];
                    UNROLLED for (int r = 0; r < rows; r++) copy[r] = reached >> r & 1 ? x[r * step] : 0;
                    NAME(across_tap)(0, rows, vectors, copy, 1, factors, sum);
                }
            }
        }
}

/* A tile: the taps of some channels at some positions of a row, of which `to` points to the first, for `real` outputs. */
typedef struct {
    const T *src, *w, *bias;            /* bias: NULL for zeros */
    T *to;
    ptrdiff_t first, last, real, known; /* rows of taps inside of the image; positions that another tile has */
    NAME(reached) inside;
} NAME(strip);

INLINE void NAME(across_tile)(const int rows, const int vectors, const tgx_conv *p, const tgx_conv_part *part, const NAME(strip) *at) {
    T tile[MOST_POSITIONS * MOST_VECTORS * LANES] __attribute__((aligned(VECTOR_BYTES)));
    V sum[MOST_POSITIONS][MOST_VECTORS];
    T *own = tile + at->known * vectors * LANES, *to = at->to + at->known;
    if (!part->fresh) {
        if (at->real < vectors * LANES || at->known) memset(tile, 0, sizeof tile);
        NAME(transpose)(own, vectors * LANES, to, part->out_plane, at->real, rows - at->known);
        UNROLLED for (int r = 0; r < rows; r++)
            UNROLLED for (int q = 0; q < vectors; q++) sum[r][q] = READ(tile + (r * vectors + q) * LANES);
    } else UNROLLED for (int q = 0; q < vectors; q++) {
        sum[0][q] = at->bias ? NAME(get)(at->bias + q * LANES, at->real - q * LANES) : SPLAT(0);
        UNROLLED for (int r = 1; r < rows; r++) sum[r][q] = sum[0][q];
    }
    NAME(across_sums)(rows, vectors, p, part->channels, at->src, at->first, at->last, &at->inside, at->w, sum);
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int q = 0; q < vectors; q++) WRITE(tile + (r * vectors + q) * LANES, sum[r][q]);
    NAME(transpose)(to, part->out_plane, own, vectors * LANES, rows - at->known, at->real);
}

/* By themselves: see any_tile. */
#define ACROSS(rows) \
    static __attribute__((noinline)) void NAME(across_##rows)(const tgx_conv *p, const tgx_conv_part *part, const NAME(strip) *at) { \
        NAME(across_tile)(rows, MOST_VECTORS, p, part, at); \
    }
ACROSS(14)
#undef ACROSS
#undef UNROLLED

/* Some channels of a part for one image, where they lie. The last tile of a row begins with positions of the one before. */
static void NAME(apply_across)(const tgx_conv *p, const tgx_conv_part *part, const void *from, const void *packed, const void *bias,
                               void *to) {
    const ptrdiff_t taps = p->taps_x * p->taps_y, rows = MOST_POSITIONS, some = MOST_VECTORS * LANES;
    const int upwards = taps > p->taps_x && p->at_y[1] < p->at_y[0]; /* rows go the way of the taps, as processors expect */
    NAME(strip) at;
    for (ptrdiff_t o = 0; o < p->outputs; o += some) {
        at.real = p->outputs - o < some ? p->outputs - o : some;
        at.w = (const T *)packed + (o * p->channels + part->channel * some) * taps, at.bias = bias ? (const T *)bias + o : 0;
        for (ptrdiff_t x = 0; x < part->cols; x += rows) {
            const ptrdiff_t start = x + rows <= part->cols ? x : part->cols - rows, column = (part->col + start) * p->step_x;
            at.known = x - start;
            for (ptrdiff_t u = 0; u < p->taps_x; u++) {
                ptrdiff_t lo, hi;
                NAME(bounds)(column + p->at_x[u], p->step_x, p->width, rows, &lo, &hi);
                at.inside.of[u] = (1u << hi) - (1u << lo);
            }
            for (ptrdiff_t k = 0; k < part->rows; k++) {
                const ptrdiff_t r = upwards ? part->rows - 1 - k : k, y = (part->row + r) * p->step_y;
                at.src = (const T *)from + y * p->width + column;
                at.to = (T *)to + o * part->out_plane + r * part->cols + start;
                at.first = 0, at.last = p->taps_y;
                while (at.first < at.last && (y + p->at_y[at.first] < 0 || y + p->at_y[at.first] >= p->height)) at.first++;
                while (at.first < at.last && (y + p->at_y[at.last - 1] < 0 || y + p->at_y[at.last - 1] >= p->height)) at.last--;
                NAME(across_14)(p, part, &at);
            }
        }
    }
}
