/* Vectors along the outputs: a tile is some positions by some vectors of outputs, and a tap multiplies a vector of weights with one
 * element of the laid out images for each position. Included by conv_loops.h.
 *
 * Images of a batch are laid out element by element in turn, so that the positions of a tile are the same one of several images: a tap
 * outside of them is left out, of 7 x 7 positions a fifth of all, and no position of a tile is empty whatever the width. Of few images
 * a tile has several positions of a row, as even as they can be, with zeros beside the row. The weights of some channels stay in the
 * first cache while several tiles go by.
 *
 * Rejected: loops over rows and columns of taps in a tile instead of a list of those it meets (a sixth longer, three turns of a loop
 * each); to lay wide images in turn, of which a part reads so few rows of each plane that they are waited for (128 channels at 28 x 28
 * 5 to 10 % longer than where they lie); to write the sums of a tile before the next is computed, a quarter of a line at a time. */

/* A tile: its taps from src on, and its sums, which are of so many positions. */
typedef struct { const T *src; T *sums; const tgx_conv_met *taps, *end; ptrdiff_t rows; } NAME(laid_piece);

/* By itself, for one copy. */
static __attribute__((noinline)) void NAME(turn_laid)(T *to, ptrdiff_t to_step, const T *from, ptrdiff_t from_step, ptrdiff_t rows,
                                                      ptrdiff_t cols) {
    NAME(transpose)(to, to_step, from, from_step, rows, cols);
}

#define UNROLLED _Pragma("GCC unroll 16")
INLINE void NAME(laid_tile)(const int rows, const int vectors, const tgx_conv *p, const NAME(laid_piece) *at, ptrdiff_t channel,
                            ptrdiff_t channels, const T *w) {
    const ptrdiff_t taps = p->taps_x * p->taps_y, plane = p->plane * p->images;
    const T *src = at->src + channel * plane;
    V sum[MOST_POSITIONS][MOST_VECTORS], by[MOST_VECTORS];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int q = 0; q < vectors; q++) sum[r][q] = READ(at->sums + (r * vectors + q) * LANES);
    for (ptrdiff_t c = 0; c < channels; c++, src += plane, w += taps * vectors * LANES)
        for (const tgx_conv_met *t = at->taps; t < at->end; t++) {
            const T *x = src + t->offset, *factors = w + t->weight;
            UNROLLED for (int q = 0; q < vectors; q++) by[q] = READ(factors + q * LANES);
            UNROLLED for (int r = 0; r < rows; r++) {
                const V one = SPLAT(x[r]);
                UNROLLED for (int q = 0; q < vectors; q++) sum[r][q] = FMA(one, by[q], sum[r][q]);
            }
        }
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int q = 0; q < vectors; q++) WRITE(at->sums + (r * vectors + q) * LANES, sum[r][q]);
}
#undef UNROLLED

/* By themselves: see any_tile. */
#define TILE(rows, vectors) \
    static __attribute__((noinline)) void NAME(laid_##rows##_##vectors)(const tgx_conv *p, const NAME(laid_piece) *at, ptrdiff_t channel, \
                                                                        ptrdiff_t channels, const T *w) { \
        NAME(laid_tile)(rows, vectors, p, at, channel, channels, w); \
    }
#define OF(rows, vectors) NAME(laid_##rows##_##vectors)
#if VECTOR_BYTES == 64
#define EACH(DO) DO(1), DO(2), DO(3), DO(4), DO(5), DO(6), DO(7), DO(8), DO(9), DO(10), DO(11), DO(12), DO(13), DO(14)
#define BOTH(rows) TILE(rows, 1) TILE(rows, 2)
#define ALL(rows) {OF(rows, 1), OF(rows, 2)}
BOTH(1) BOTH(2) BOTH(3) BOTH(4) BOTH(5) BOTH(6) BOTH(7) BOTH(8) BOTH(9) BOTH(10) BOTH(11) BOTH(12) BOTH(13) BOTH(14)
#else
#define EACH(DO) DO(1), DO(2), DO(3), DO(4)
#define BOTH(rows) TILE(rows, 1) TILE(rows, 2) TILE(rows, 3)
#define ALL(rows) {OF(rows, 1), OF(rows, 2), OF(rows, 3)}
BOTH(1) BOTH(2) BOTH(3) BOTH(4)
#endif
typedef void NAME(laid_loop)(const tgx_conv *, const NAME(laid_piece) *, ptrdiff_t, ptrdiff_t, const T *);
static NAME(laid_loop) *const NAME(laid_loops)[MOST_POSITIONS][MOST_VECTORS] = {EACH(ALL)};
#undef TILE
#undef OF
#undef EACH
#undef BOTH
#undef ALL

/* Tiles that use the weights one after the other, of `vectors` vectors of the outputs from o on: consecutive positions of a part, of
 * which `begin` is the first. */
typedef struct {
    T sums[LAID_TILES * MOST_POSITIONS * MOST_VECTORS * LANES] __attribute__((aligned(VECTOR_BYTES)));
    NAME(laid_piece) piece[LAID_TILES];
    tgx_conv_met met[LAID_TILES * TGX_CONV_LAID_TAPS];
    ptrdiff_t tiles, begin, positions, vectors, real; /* real: outputs that exist */
} NAME(laid_group);

/* The taps that lie in the image for some positions of a row of a part, of which column x is the first: written from `to` on, or
 * those of the tile before where they are the same. */
static tgx_conv_met *NAME(meet)(const tgx_conv *p, const tgx_conv_part *part, ptrdiff_t row, ptrdiff_t x, ptrdiff_t positions, ptrdiff_t some,
                                tgx_conv_range *before, NAME(laid_piece) *at, tgx_conv_met *to) {
    const ptrdiff_t y = (part->row + row) * p->step_y, left = (part->col + x) * p->step_x, right = left + (positions - 1) * p->step_x;
    tgx_conv_range in = {0, p->taps_y, 0, p->taps_x};
    while (in.first < in.last && (y + p->at_y[in.first] < 0 || y + p->at_y[in.first] >= p->height)) in.first++;
    while (in.first < in.last && (y + p->at_y[in.last - 1] < 0 || y + p->at_y[in.last - 1] >= p->height)) in.last--;
    while (in.left < in.right && (right + p->at_x[in.left] < 0 || left + p->at_x[in.left] >= p->width)) in.left++;
    while (in.left < in.right && (right + p->at_x[in.right - 1] < 0 || left + p->at_x[in.right - 1] >= p->width)) in.right--;
    if (!memcmp(&in, before, sizeof in)) {
        at->taps = at[-1].taps, at->end = at[-1].end;
        return to;
    }
    at->taps = to, *before = in;
    for (ptrdiff_t v = in.first; v < in.last; v++)
        for (ptrdiff_t t = v * p->taps_x + in.left; t < v * p->taps_x + in.right; t++)
            *to++ = (tgx_conv_met){(int32_t)p->offset[t], (int32_t)(t * some)};
    at->end = to;
    return to;
}

/* Rows of src that the part's windows meet and that exist: [*top, *bottom) of those from its first tap on. Returns that row's number. */
INLINE ptrdiff_t NAME(lines)(const tgx_conv *p, const tgx_conv_part *part, ptrdiff_t *top, ptrdiff_t *bottom) {
    const ptrdiff_t y = part->row * p->step_y + p->base_y;
    NAME(bounds)(y, 1, p->height, (part->rows - 1) * p->step_y + p->reach + 1, top, bottom);
    return y;
}

/* The first column of tile k of a row. */
INLINE ptrdiff_t NAME(cut_at)(const tgx_conv_cuts *cuts, ptrdiff_t k) {
    int z = 0;
    for (; z < 2 && k >= cuts->pieces[z]; z++) k -= cuts->pieces[z];
    return cuts->pieces[z] ? cuts->at[z] + (cuts->at[z + 1] - cuts->at[z]) * k / cuts->pieces[z] : cuts->at[z];
}

/* Zones that end at these columns, and the time that a row of taps takes, in products of vectors. */
static ptrdiff_t NAME(cut_row)(const tgx_conv *p, const tgx_conv_part *part, ptrdiff_t first, ptrdiff_t second, tgx_conv_cuts *cuts) {
    const ptrdiff_t at[4] = {0, first, second, part->cols}, vectors = NAME(vectors)(p, p->outputs);
    ptrdiff_t time = 0;
    cuts->all = 0;
    for (int z = 0; z < 4; z++) cuts->at[z] = at[z];
    for (int z = 0; z < 3; z++) cuts->all += cuts->pieces[z] = (at[z + 1] - at[z] + p->laid - 1) / p->laid;
    for (ptrdiff_t k = 0; k < cuts->all; k++) {
        const ptrdiff_t x = NAME(cut_at)(cuts, k), end = NAME(cut_at)(cuts, k + 1);
        const ptrdiff_t left = (part->col + x) * p->step_x, right = (part->col + end - 1) * p->step_x;
        for (ptrdiff_t u = 0; u < p->taps_x; u++)
            if (right + p->at_x[u] >= 0 && left + p->at_x[u] < p->width) time += (end - x) * p->images * vectors + TAP_TIME;
    }
    return time;
}

/* Tiles of even size, or columns at the edges that the outermost taps are not inside for by themselves, as takes less time: of few
 * columns and distant taps these are many. */
static void NAME(find_cuts)(const tgx_conv *p, const tgx_conv_part *part, tgx_conv_cuts *cuts) {
    const ptrdiff_t cols = part->cols, last = p->base_x + p->reach_x, inner = p->width - last;
    ptrdiff_t first = p->base_x < 0 ? (-p->base_x + p->step_x - 1) / p->step_x - part->col : 0;
    ptrdiff_t second = (inner > 0 ? (inner + p->step_x - 1) / p->step_x : 0) - part->col;
    tgx_conv_cuts zones;
    const ptrdiff_t time = NAME(cut_row)(p, part, cols, cols, cuts);
    first = first < 0 ? 0 : first > cols ? cols : first, second = second < first ? first : second > cols ? cols : second;
    if (p->laid > 1 && NAME(cut_row)(p, part, first, second, &zones) < time) *cuts = zones;
}

/* The tiles [k, n). */
static void NAME(cut_tiles)(const tgx_conv *p, const tgx_conv_part *part, const T *buffer, ptrdiff_t k, ptrdiff_t n,
                            const tgx_conv_cuts *cuts, NAME(laid_group) *of) {
    const ptrdiff_t pieces = cuts->all, some = of->vectors * LANES, step = p->laid == 1 ? p->step_x : 1;
    tgx_conv_range before = {-1, 0, 0, 0};
    tgx_conv_met *met = of->met;
    ptrdiff_t top, bottom;
    NAME(lines)(p, part, &top, &bottom);
    of->begin = k / pieces * part->cols + NAME(cut_at)(cuts, k % pieces), of->positions = 0;
    for (of->tiles = 0; k < n; of->tiles++, k++) {
        NAME(laid_piece) *at = of->piece + of->tiles;
        const ptrdiff_t row = k / pieces, x = NAME(cut_at)(cuts, k % pieces), own = NAME(cut_at)(cuts, k % pieces + 1) - x;
        met = NAME(meet)(p, part, row, x, own, some, &before, at, met);
        at->src = buffer + ((row * p->step_y - top) * p->residues * p->line + x * step) * p->images;
        at->sums = of->sums + of->positions * p->images * some, at->rows = own * p->images, of->positions += own;
    }
}

/* What the sums begin with; out: of the first output and position. */
static void NAME(begin_sums)(const tgx_conv *p, const tgx_conv_part *part, const T *bias, const T *out, NAME(laid_group) *of) {
    const ptrdiff_t some = of->vectors * LANES, rows = of->positions * p->images;
    if (part->fresh) {
        for (ptrdiff_t q = 0; q < of->vectors; q++) {
            const V first = bias ? NAME(get)(bias + q * LANES, of->real - q * LANES) : SPLAT(0);
            for (ptrdiff_t r = 0; r < rows; r++) WRITE(of->sums + r * some + q * LANES, first);
        }
        return;
    }
    if (of->real < some || part->images < p->images) memset(of->sums, 0, (size_t)(rows * some) * sizeof(T));
    for (ptrdiff_t i = 0; i < part->images; i++)
        NAME(turn_laid)(of->sums + i * some, p->images * some, out + tgx_conv_out(part, i), part->out_plane, of->real, of->positions);
}

/* Ask for the lines that the sums of some images are written to. */
static void NAME(fetch_lines)(const tgx_conv_part *part, ptrdiff_t first, ptrdiff_t last, const T *out, const NAME(laid_group) *of) {
    for (ptrdiff_t i = first; i < last; i++)
        for (ptrdiff_t q = 0; q < of->real; q++) {
            const T *line = out + tgx_conv_out(part, i) + q * part->out_plane;
            __builtin_prefetch(line, 1), __builtin_prefetch(line + of->positions - 1, 1);
        }
}

static void NAME(add_products)(const tgx_conv *p, const tgx_conv_part *part, const T *w, const T *out, const NAME(laid_group) *of) {
    const ptrdiff_t weights = p->taps_x * p->taps_y * of->vectors * LANES, most = LAID_WEIGHTS / (ptrdiff_t)sizeof(T) / weights;
    const ptrdiff_t together = most > 0 ? most : 1;
    for (ptrdiff_t c = 0; c < part->channels; c += together) {
        const ptrdiff_t channels = part->channels - c < together ? part->channels - c : together;
        for (ptrdiff_t s = 0; s < of->tiles; s++) {
            if (c == 0) NAME(fetch_lines)(part, s * part->images / of->tiles, (s + 1) * part->images / of->tiles, out, of);
            NAME(laid_loops)[of->piece[s].rows - 1][of->vectors - 1](p, of->piece + s, c, channels, w + c * weights);
        }
    }
}

static void NAME(apply_laid)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *packed, const void *bias,
                             void *to) {
    const ptrdiff_t taps = p->taps_x * p->taps_y;
    tgx_conv_cuts cuts;
    NAME(find_cuts)(p, part, &cuts);
    const ptrdiff_t n = part->rows * cuts.all, groups = (n + LAID_TILES - 1) / LAID_TILES; /* as even as they can be */
    NAME(laid_group) of;
    for (ptrdiff_t o = 0, some; o < p->outputs; o += some) {
        of.vectors = NAME(vectors)(p, p->outputs - o), some = of.vectors * LANES, of.real = p->outputs - o < some ? p->outputs - o : some;
        for (ptrdiff_t k = 0; k < groups; k++) {
            NAME(cut_tiles)(p, part, buffer, n * k / groups, n * (k + 1) / groups, &cuts, &of);
            T *out = (T *)to + o * part->out_plane + of.begin;
            NAME(begin_sums)(p, part, bias ? (const T *)bias + o : 0, out, &of);
            NAME(add_products)(p, part, (const T *)packed + (o * p->channels + part->channel * some) * taps, out, &of);
            for (ptrdiff_t i = 0; i < part->images; i++)
                for (ptrdiff_t q = 0; q < of.real; q += 4) /* few at a time, whose lines of the cache are then complete */
                    NAME(turn_laid)(out + tgx_conv_out(part, i) + q * part->out_plane, part->out_plane, of.sums + i * some + q,
                                    p->images * some, of.positions, of.real - q < 4 ? of.real - q : 4);
        }
    }
}

/* Rows of a channel that move by one, element by element of one image after the other; those of image i are from[i][x]. */
static void NAME(lay_in_turn)(const tgx_conv *p, const T *const *from, ptrdiff_t images, ptrdiff_t rows, ptrdiff_t lo, ptrdiff_t hi, T *to) {
    const ptrdiff_t step = p->images, before = lo * step * (ptrdiff_t)sizeof(T), behind = (p->line - hi) * step * (ptrdiff_t)sizeof(T);
    for (ptrdiff_t r = 0, at = 0; r < rows; r++, at += p->width, to += p->line * step) {
        ptrdiff_t i = 0;
        memset(to, 0, (size_t)before), memset(to + hi * step, 0, (size_t)behind);
        for (; i + 4 <= images; i += 4) {
            ptrdiff_t x = lo;
            for (; x + 4 <= hi; x += 4) NAME(turn_rows)(to + x * step + i, step, from + i, at + x);
            for (; x < hi; x++)
                for (ptrdiff_t k = i; k < i + 4; k++) to[x * step + k] = from[k][at + x];
        }
        for (; i < images; i++)
            for (ptrdiff_t x = lo; x < hi; x++) to[x * step + i] = from[i][at + x];
    }
}

/* What the loops above read: of every channel the rows inside of the images, with zeros beside them, and with a step each residue of
 * columns by itself, but where a tile has one position of each image; then element by element of one image after the other. src: each image of a part; there may be fewer in the last. */
static void NAME(load_laid)(const tgx_conv *p, const tgx_conv_part *part, const void *const *src, void *room, void *buf) {
    const ptrdiff_t images = p->images, plane = p->plane, column = part->col * p->step_x + p->base_x;
    const int in_turn = images > 1 && (p->step_x == 1 || p->laid == 1);
    const T *from[MOST_POSITIONS];
    ptrdiff_t top, bottom, lo, hi;
    const ptrdiff_t y = NAME(lines)(p, part, &top, &bottom) + top, rows = bottom - top;
    NAME(bounds)(column, 1, p->width, p->line, &lo, &hi);
    for (ptrdiff_t c = 0; c < part->channels; c++) {
        T *to = (T *)buf + c * plane * images, *one = images > 1 ? room : to;
        for (ptrdiff_t i = 0; i < part->images; i++) {
            from[i] = (const T *)src[i] + c * p->src_channel + y * p->width;
            if (!in_turn) NAME(lay_lines)(p, from[i], column, 0, rows, rows, one + i * plane);
            from[i] += column;
        }
        if (in_turn) NAME(lay_in_turn)(p, from, part->images, rows, lo, hi, to);
        else if (images > 1) NAME(turn_laid)(to, images, one, plane, part->images, rows * p->residues * p->line);
    }
}
