/* The loops of product_blocks.c for one floating type T, whose vectors of 64 bytes are V. */
enum { NAME(LANES) = 64 / sizeof(T), NAME(SIDE) = 32 / sizeof(T) };

/* to[q to_row + i] = from[i from_row + q] for `lines` lines of `count` numbers, a square at a time. */
LONG ONCE void NAME(turn)(T *restrict to, int64_t to_row, const T *restrict from, int64_t from_row,
                     int64_t lines, int64_t count) {
    enum { S = NAME(SIDE) };
    int64_t i = 0;
    for (; i + S <= lines; i += S) {
        const T *x = from + i * from_row;
        int64_t q = 0;
        for (; q + S <= count; q += S) NAME(square)(to + q * to_row + i, to_row, x + q, from_row);
        for (; q < count; q++)
            for (int64_t l = 0; l < S; l++) to[q * to_row + i + l] = x[l * from_row + q];
    }
    for (; i < lines; i++)
        for (int64_t q = 0; q < count; q++) to[q * to_row + i] = from[i * from_row + q];
}

/* `real` of `all` lines, `line` apart, side by side: number 0 of all, then number 1, ..., which lie `step` apart; zeros for lines
 * that are not there. */
ONCE void NAME(lay)(T *to, int64_t all, int64_t real, const T *from, int64_t line, int64_t step, int64_t count) {
    enum { L = NAME(LANES) };
    if (line == 1) {
        for (int64_t i = 0; i < all; i += L) {
            const MASK_OF_LANES in = MASK(real - i), out = MASK(all - i);
            for (int64_t k = 0; k < count; k++) STORE(to + k * all + i, out, LOAD(from + k * step + i, in));
        }
        return;
    }
    if (step == 1) NAME(turn)(to, all, from, line, real, count);
    else
        for (int64_t k = 0; k < count; k++)
            for (int64_t i = 0; i < real; i++) to[k * all + i] = from[i * line + k * step];
    for (int64_t k = 0; k < count && real < all; k++)
        for (int64_t i = real; i < all; i++) to[k * all + i] = 0;
}

/* Sums of a tile on their way to C: to a part of it, scaled, or to columns that lie apart, as those of a transposed one. */
ONCE void NAME(put)(const T *sums, int64_t vectors, const target_t *t) {
    enum { L = NAME(LANES) };
    T turned[ROWS * VECTORS * L] __attribute__((aligned(64)));
    const int64_t width = vectors * L;
    const MASK_OF_LANES side = MASK(t->rows);
    const V alpha = SPREAD((T)t->alpha), beta = SPREAD((T)t->beta);
    if (t->col == 1) {
        for (int64_t q = 0; q < vectors; q++) {
            const MASK_OF_LANES mask = MASK(t->cols - q * L);
            for (int64_t r = 0; r < t->rows; r++) {
                T *to = (T *)t->c + r * t->row + q * L;
                V v = *(const V *)(sums + (r * vectors + q) * L) * alpha;
                if (t->beta != 0) v = FUSED(beta, LOAD(to, mask), v);
                STORE(to, mask, v);
            }
        }
        return;
    }
    NAME(turn)(turned, ROWS, sums, width, ROWS, width);
    for (int64_t j = 0; j < at_most(t->cols, width); j++) {
        T *to = (T *)t->c + j * t->col, lanes[L];
        V v = LOAD(turned + j * ROWS, side) * alpha;
        if (t->row != 1) {
            if (t->beta != 0)
                for (int64_t r = 0; r < t->rows; r++) lanes[r] = to[r * t->row];
            if (t->beta != 0) v = FUSED(beta, LOAD(lanes, side), v);
            STORE(lanes, side, v);
            for (int64_t r = 0; r < t->rows; r++) to[r * t->row] = lanes[r];
        } else {
            if (t->beta != 0) v = FUSED(beta, LOAD(to, side), v);
            STORE(to, side, v);
        }
    }
}

/* Every sum, in so many words: of loops gcc makes an array in memory, of which only the inner one is in registers. */
#define OF_ROW(DO, r) DO(r, 0) DO(r, 1) DO(r, 2)
#define OF_TILE(DO) OF_ROW(DO, 0) OF_ROW(DO, 1) OF_ROW(DO, 2) OF_ROW(DO, 3) OF_ROW(DO, 4) OF_ROW(DO, 5) OF_ROW(DO, 6) OF_ROW(DO, 7)
#define IS_THERE(r, q) ((r) < height && (q) < vectors)
#define ZERO(r, q) sum[r][q] = (V){0};
#define TAKE(r, q) if (q < vectors) { \
        in[q] = WHOLE((const T *)(b + q * 64)); \
        _mm_prefetch(b + ahead + q * 64, _MM_HINT_T0); \
        if (copies) *(V *)(copy + q * L) = in[q]; \
    }
#define STEP(r, q) if (q == 0 && IS_THERE(r, q)) factor = SPREAD(*(const T *)(a + r * row)); \
    if (IS_THERE(r, q)) sum[r][q] = FUSED(factor, in[q], sum[r][q]);
#define WRITE(r, q) if (IS_THERE(r, q)) PUT((T *)t->c + r * t->row + q * L, sum[r][q]);
#define ADD(r, q) if (IS_THERE(r, q)) PUT((T *)t->c + r * t->row + q * L, WHOLE((T *)t->c + r * t->row + q * L) + sum[r][q]);
#define KEEP(r, q) if (IS_THERE(r, q)) *(V *)(each + (r * vectors + q) * L) = sum[r][q];

/* `copy`: a stretch of B as it lies in its matrix is laid out on the way. */
INLINE void NAME(tile)(const int height, const int vectors, const int copies, int64_t count, const char *a, int64_t row, int64_t step,
                       const char *b, int64_t b_row, T *copy, const target_t *t) {
    enum { L = NAME(LANES) };
    const int64_t ahead = AHEAD * b_row;
    V sum[ROWS][VECTORS];
    OF_TILE(ZERO)
    if (t->col == 1)
        for (int64_t r = 0; r < t->rows; r++)
            for (int q = 0; q < vectors; q++) _mm_prefetch((const char *)((const T *)t->c + r * t->row + q * L), _MM_HINT_T0);
    else
        for (int64_t i = 0; i < at_most(t->cols, vectors * L); i++)
            _mm_prefetch((const char *)((const T *)t->c + i * t->col), _MM_HINT_T0);
    for (int64_t k = 0; k < count; k++, a += step, b += b_row, copy += vectors * L) {
        V in[VECTORS], factor;
        OF_ROW(TAKE, 0)
        OF_TILE(STEP)
    }
    if (t->whole) {
        if (t->beta == 0) { OF_TILE(WRITE) } else { OF_TILE(ADD) }
        return;
    }
    T each[ROWS * VECTORS * L] __attribute__((aligned(64)));
    OF_TILE(KEEP)
    NAME(put)(each, vectors, t);
}
#undef ZERO
#undef TAKE
#undef STEP
#undef WRITE
#undef ADD
#undef KEEP

/* By themselves: gcc finds a register for each sum only so. Steps are in bytes: of elements it would make loops for steps of 1. */
typedef void NAME(tile_fn)(int64_t count, const char *a, int64_t row, int64_t step, const char *b, int64_t b_row, T *copy,
                           const target_t *t);
#define TILE(name, height, vectors, copies)                                                                                    \
    ONCE void NAME(name)(int64_t count, const char *a, int64_t row, int64_t step, const char *b, int64_t b_row, T *copy,        \
                         const target_t *t) {                                                                                  \
        NAME(tile)(height, vectors, copies, count, a, row, step, b, b_row, copy, t);                                           \
    }
TILE(low_1, ROWS / 2, 1, 0)
TILE(low_2, ROWS / 2, 2, 0)
TILE(low_3, ROWS / 2, 3, 0)
TILE(tile_1, ROWS, 1, 0)
TILE(tile_2, ROWS, 2, 0)
TILE(tile_3, ROWS, 3, 0)
TILE(copy_3, ROWS, 3, 1)
#undef TILE

static NAME(tile_fn) *const NAME(tiles)[2][VECTORS] = {{NAME(tile_1), NAME(tile_2), NAME(tile_3)},
                                                       {NAME(low_1), NAME(low_2), NAME(low_3)}};

/* Eight rows of A, or what is left of them, laid out in `to` if their numbers are no neighbours. */
SHORT ONCE strip_t NAME(strip_of)(const job_t *j, int64_t item, int64_t top, T *to) {
    const tgx_shape *s = &j->s;
    const int64_t place = (top * s->a_row + j->k * s->a_col) * (int64_t)sizeof(T);
    const char *a = j->a + tgx_item_place(j->p, j->a_step, item) + place;
    const strip_t there = {a, s->a_row * (int64_t)sizeof(T), sizeof(T), at_most(s->m - top, ROWS)};
    if ((there.rows == ROWS || there.rows == ROWS / 2) && s->a_col == 1) {
        if (there.row % ALIKE) return there;
        for (int64_t r = 0; r < there.rows; r++)
            memcpy(to + r * j->depth, there.a + r * there.row, (size_t)j->depth * sizeof(T));
        return (strip_t){(const char *)to, j->depth * (int64_t)sizeof(T), sizeof(T), there.rows};
    }
    NAME(lay)(to, ROWS, there.rows, (const T *)there.a, s->a_row, s->a_col, j->depth);
    return (strip_t){(const char *)to, sizeof(T), ROWS * sizeof(T), there.rows};
}

INLINE target_t NAME(target_of)(const job_t *j, int64_t item, int64_t top, int64_t rows, panel_t panel) {
    const tgx_shape *s = &j->s;
    const int64_t col = panel.first * NAME(LANES), width = panel.count * NAME(LANES);
    char *c = j->c + tgx_item_place(j->p, j->p->c_step, item) + (top * s->c_row + (j->col + col) * s->c_col) * (int64_t)sizeof(T);
    const double alpha = j->p->alpha.f, beta = j->k ? 1 : j->p->beta.f;
    const int whole = rows % (ROWS / 2) == 0 && col + width <= j->cols && s->c_col == 1 && alpha == 1 && (beta == 0 || beta == 1);
    return (target_t){c, s->c_row, s->c_col, rows, j->cols - col, alpha, beta, whole};
}

static const T *NAME(place_in_b)(const job_t *j, int64_t item, int64_t first) {
    return (const T *)(j->b + tgx_item_place(j->p, j->b_step, item)) + (j->col + first * NAME(LANES)) * j->s.b_col + j->k * j->s.b_row;
}

/* Lays out panels of B, and multiplies them by the first strip of A on the way. Units are (item, panel). */
SHORT INSTRUCTIONS static int NAME(begin)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    enum { L = NAME(LANES) };
    const job_t *j = context;
    T room[ROWS * STRETCH] __attribute__((aligned(64)));
    strip_t strip = {0};
    for (int64_t unit = lo; unit < hi; unit++) {
        const int64_t item = j->item + unit / j->panels;
        const panel_t panel = panel_of(j->vectors, unit % j->panels);
        if (unit == lo || unit % j->panels == 0) strip = NAME(strip_of)(j, item, 0, room);
        const target_t t = NAME(target_of)(j, item, 0, strip.rows, panel);
        const T *from = NAME(place_in_b)(j, item, panel.first);
        T *to = (T *)j->room + (unit / j->panels * j->vectors + panel.first) * L * j->depth;
        const int64_t real = at_most(t.cols, panel.count * L);
        NAME(tile_fn) *tile = NAME(tiles)[strip.rows <= ROWS / 2][panel.count - 1];
        int64_t b_row = j->s.b_row;
        if (j->s.b_col != 1 || real < panel.count * L || (panel.count < VECTORS && !j->direct)) {
            NAME(lay)(to, panel.count * L, real, from, j->s.b_col, b_row, j->depth);
            from = to, b_row = panel.count * L;
        } else if (!j->direct) tile = NAME(copy_3);
        tile(j->depth, strip.a, strip.row, strip.step, (const char *)from, b_row * (int64_t)sizeof(T), to, &t);
    }
    return 0;
}

/* What is left. Units are (item, strip, panel). */
SHORT INSTRUCTIONS static int NAME(multiply)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    enum { L = NAME(LANES) };
    const job_t *j = context;
    T room[ROWS * STRETCH] __attribute__((aligned(64)));
    strip_t strip = {0};
    for (int64_t unit = lo, next; unit < hi; unit = next) {
        const int64_t place = unit / j->panels, item = place / j->strips, top = place % j->strips * ROWS;
        next = at_most((place + 1) * j->panels, hi);
        if (top == 0 && (item == 0 || !j->one_b)) continue;
        strip = NAME(strip_of)(j, j->item + item, top, room);
        NAME(tile_fn) *const *tiles = NAME(tiles)[strip.rows <= ROWS / 2];
        for (; unit < next; unit++) {
            const panel_t panel = panel_of(j->vectors, unit % j->panels);
            const target_t t = NAME(target_of)(j, j->item + item, top, strip.rows, panel);
            const T *b = (const T *)j->room + ((j->one_b ? 0 : item) * j->vectors + panel.first) * L * j->depth;
            int64_t b_row = panel.count * L;
            if (j->direct && t.cols >= b_row) b = NAME(place_in_b)(j, j->item + item, panel.first), b_row = j->s.b_row;
            tiles[panel.count - 1](j->depth, strip.a, strip.row, strip.step, (const char *)b, b_row * (int64_t)sizeof(T), NULL, &t);
        }
    }
    return 0;
}
