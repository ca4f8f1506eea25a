/* Convolution of planes one by one: a group has one channel and one output. Included by conv_loops.h.
 *
 * A tap is one multiplication for an element that is read, so a copy of the source for each tap took four times as long as
 * the products. Rows are laid out once, with zeros around them, and with a step each residue of columns by itself. */

/* The rows [top, bottom) of n, of one residue of columns, and zeros for the others. If it is the only residue, a row may end
 * in the next one, which is written later. */
INLINE void NAME(lay_rows)(const tgx_conv *p, T *dst, const T *src, ptrdiff_t top, ptrdiff_t bottom, ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi) {
    const ptrdiff_t line = p->line, room = line + (p->residues == 1) * LANES;
    const uint32_t first = NAME(lanes)(lo, hi), second = NAME(lanes)(lo - LANES, hi - LANES);
    const int two = line <= 2 * LANES && p->step_x == 1;
    for (ptrdiff_t r = 0; r < n; r++, dst += p->residues * line, src += p->width)
        if (r < top || r >= bottom)
            for (ptrdiff_t i = 0; i < line; i += LANES) NAME(put)(dst + i, (V){0}, room - i);
        else if (two) {
            WRITE(dst, NAME(inside)(src, first));
            WRITE(dst + LANES, NAME(inside)(src + LANES, second));
        } else NAME(row)(dst, src, p->step_x, lo, hi, line, room);
}

/* Both residues of a step of 2, in turn, so that a row may end in the next. */
INLINE void NAME(lay_halves)(const tgx_conv *p, T *dst, const T *src, ptrdiff_t column, ptrdiff_t top, ptrdiff_t bottom, ptrdiff_t n) {
    const ptrdiff_t line = p->line;
    const int two = line <= 2 * LANES;
    ptrdiff_t lo[2], hi[2];
    uint32_t inside[2][4];
    for (int f = 0; f < 2; f++) {
        NAME(bounds)(column + f, 2, p->width, line, &lo[f], &hi[f]);
        for (int i = 0; i < 4; i++) inside[f][i] = NAME(lanes)(2 * lo[f] - i * LANES, 2 * hi[f] - 1 - i * LANES);
    }
    for (ptrdiff_t r = 0; r < n; r++, src += p->width)
        for (int f = 0; f < 2; f++, dst += line)
            if (r < top || r >= bottom)
                for (ptrdiff_t i = 0; i < line; i += LANES) WRITE(dst + i, (V){0});
            else if (two) {
                const T *at = src + f;
                WRITE(dst, EVENS(NAME(inside)(at, inside[f][0]), NAME(inside)(at + LANES, inside[f][1])));
                WRITE(dst + LANES, EVENS(NAME(inside)(at + 2 * LANES, inside[f][2]), NAME(inside)(at + 3 * LANES, inside[f][3])));
            } else NAME(row)(dst, src + f, 2, lo[f], hi[f], line, line + LANES);
}

/* `n` rows from src on, of which [top, bottom) exist, from a column on that may lie before the first. */
static __attribute__((noinline)) void NAME(lay_lines)(const tgx_conv *p, const T *src, ptrdiff_t column, ptrdiff_t top, ptrdiff_t bottom, ptrdiff_t n, T *buf) {
    ptrdiff_t lo, hi;
    src += column;
    if (p->step_x == 2 && p->residues == 2) {
        NAME(lay_halves)(p, buf, src, column, top, bottom, n);
        return;
    }
    for (ptrdiff_t f = 0; f < p->residues; f++) {
        NAME(bounds)(column + f, p->step_x, p->width, p->line, &lo, &hi);
        NAME(lay_rows)(p, buf + f * p->line, src + f, top, bottom, n, lo, hi);
    }
}

static void NAME(lay)(const tgx_conv *p, const tgx_conv_part *part, const void *from, void *buf) {
    const ptrdiff_t y = part->row * p->step_y + p->base_y, n = (part->rows - 1) * p->step_y + p->reach + 1;
    ptrdiff_t top, bottom;
    NAME(bounds)(y, 1, p->height, n, &top, &bottom);
    NAME(lay_lines)(p, (const T *)from + y * p->width, p->base_x, top, bottom, n, buf);
}

/* Lanes of the elements that a tap has inside a row; with a step of 2 those of two vectors. */
typedef struct { NAME(mask) first, second; } NAME(window);

/* Where a tile of DOWN rows begins: its lines, and the lanes that a tap has of them. Outside of the image there are zeros, or NULL where
 * there are more than three rows of taps, which adds nothing. Or, of a laid out plane, the first line, and how far it is to the next. at: of
 * the taps of a row. w: the topmost row of taps. */
typedef struct {
    const T *line[DOWN + 6], *buf, *w;
    const NAME(window) *in;
    const ptrdiff_t *at;
    ptrdiff_t down, taps_x, w_row, cols;
    T bias;
} NAME(rows_of);

/* DOWN rows by one vector, whose taps lie row below row. Each line is read once for a column of taps, not once for each tap: loads that
 * cross lines of the cache took as long as the products. */
INLINE void NAME(down_tile)(const int taps, const int laid, const NAME(rows_of) *of, T *out, ptrdiff_t room) {
    V sum[DOWN], factor[7];
    ALL_OF for (int r = 0; r < DOWN; r++) sum[r] = SPLAT(of->bias);
#pragma GCC unroll 1
    for (ptrdiff_t u = 0; u < of->taps_x; u++) {
        const ptrdiff_t at = of->at[u];
        ALL_OF for (int v = 0; v < taps; v++) factor[v] = SPLAT(of->w[v * of->w_row + u]);
        ALL_OF for (int j = 0; j < DOWN + taps - 1; j++) {
            if (!laid && taps > 3 && !of->line[j]) continue;
            V x = laid ? (V)READ(of->buf + j * of->down + at) : NAME(masked)(of->line[j] + at, of->in[u].first);
            IN_REGISTER(x);
            ALL_OF for (int r = 0; r < DOWN; r++)
                if (j >= r && j - r < taps) sum[r] = FMA(factor[j - r], x, sum[r]);
        }
    }
    const ptrdiff_t cols = of->cols;
    if (room >= (DOWN - 1) * cols + LANES) {
        ALL_OF for (int r = 0; r < DOWN; r++) WRITE(out + r * cols, sum[r]);
        return;
    }
    V last[DOWN]; /* a loop that is not written out */
    ALL_OF for (int r = 0; r < DOWN; r++) last[r] = sum[r];
#pragma GCC unroll 1
    for (int r = 0; r < DOWN; r++) NAME(put)(out + r * cols, last[r], room - r * cols);
}

#define TILE(taps, name, laid)                                                                                   \
    static __attribute__((noinline)) void NAME(name##_##taps)(const NAME(rows_of) *of, T *out, ptrdiff_t room) { \
        NAME(down_tile)(taps, laid, of, out, room);                                                              \
    }
#define DOWN_LOOPS(name, laid)                                     \
    TILE(3, name, laid) TILE(5, name, laid) TILE(7, name, laid)    \
    static void (*const NAME(name)[3])(const NAME(rows_of) *, T *, ptrdiff_t) = {NAME(name##_3), NAME(name##_5), NAME(name##_7)};
DOWN_LOOPS(laid_down, 1)
DOWN_LOOPS(down, 0)
#undef TILE
#undef DOWN_LOOPS

/* Whether rows of taps lie row below row: 1 from the first one on, -1 from the last one. Of shorter vectors, and of doubles, a row has
 * many, and the tiles of plane_tile are less code. */
INLINE int NAME(order_down)(const tgx_conv *p) {
    const ptrdiff_t step = p->taps_y > 1 ? p->at_y[1] - p->at_y[0] : 0;
    return VECTOR_BYTES >= 32 && sizeof(T) == 4 && p->step_y == 1 && p->taps_x <= TGX_CONV_DIRECT_TAPS && p->taps_y <= 7 && p->taps_y % 2 && (step == 1 || step == -1) ? (int)step : 0;
}

/* What is the same for all tiles of a plane; at: of the taps of the first row. */
INLINE void NAME(all_rows_of)(const tgx_conv *p, const ptrdiff_t *at, const T *w, T bias, NAME(rows_of) *of) {
    const ptrdiff_t order = NAME(order_down)(p), to_top = order < 0 ? (p->taps_y - 1) * p->taps_x : 0;
    of->w = w + to_top, of->w_row = order * p->taps_x, of->at = at, of->taps_x = p->taps_x, of->cols = p->cols, of->bias = bias;
}

/* All rows of a laid out plane, DOWN at a time; the last ones may hold some rows once more. */
static void NAME(plane_down)(const tgx_conv *p, const tgx_conv_part *part, const T *buf, const T *w, T bias, T *to) {
    const ptrdiff_t cols = p->cols, down = p->residues * p->line;
    NAME(rows_of) of;
    NAME(all_rows_of)(p, p->offset + (NAME(order_down)(p) < 0 ? (p->taps_y - 1) * p->taps_x : 0), w, bias, &of);
    of.down = down;
    for (ptrdiff_t row = 0; row < part->rows; row += DOWN) {
        if (row + DOWN > part->rows) row = part->rows - DOWN;
        for (ptrdiff_t x = 0; x < cols; x += LANES) {
            if (x && x + LANES > cols) x = cols - LANES;
            of.buf = buf + row * down + x;
            NAME(laid_down)[p->taps_y / 2 - 1](&of, to + row * cols + x, (part->rows - row) * cols - x);
        }
    }
}

/* `rows` rows by `vectors` vectors; at most `room` elements of out exist. */
INLINE void NAME(plane_tile)(const int rows, const int vectors, const tgx_conv *p, const T *buf, const T *w, T bias, T *out,
                             ptrdiff_t room) {
    const ptrdiff_t taps = p->taps_x * p->taps_y, down = p->step_y * p->residues * p->line, *offset = p->offset;
    V sum[4][2];
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) sum[r][q] = SPLAT(bias);
    for (ptrdiff_t t = 0; t < taps; t++) {
        V factor = SPLAT(w[t]);
        const T *x = buf + offset[t];
        for (int r = 0; r < rows; r++)
            for (int q = 0; q < vectors; q++) sum[r][q] = FMA(factor, READ(x + r * down + q * LANES), sum[r][q]);
    }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) NAME(put)(out + r * p->cols + q * LANES, sum[r][q], room - r * p->cols - q * LANES);
}

/* The last vector of a row begins earlier, or, where a row is shorter than one, ends in later rows, written later. */
static void NAME(apply_plane)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *weight, const void *bias,
                              void *to) {
    const ptrdiff_t cols = p->cols, down = p->step_y * p->residues * p->line;
    const T *w = weight, b = bias ? *(const T *)bias : 0;
    if (part->rows >= DOWN && NAME(order_down)(p)) {
        NAME(plane_down)(p, part, buffer, w, b, to);
        return;
    }
    for (ptrdiff_t row = 0, rows; row < part->rows; row += rows) {
        rows = part->rows >= 4 ? 4 : 1;
        if (row + rows > part->rows) row = part->rows - rows; /* some rows once more */
        const T *buf = (const T *)buffer + row * down;
        T *out = (T *)to + row * cols;
        const ptrdiff_t left = (part->rows - row) * cols;
        for (ptrdiff_t x = 0, vectors; x < cols; x += vectors * LANES) {
            vectors = x + 2 * LANES <= cols ? 2 : 1;
            if (x && x + LANES > cols) x = cols - LANES;
            if (rows == 4 && vectors == 2) NAME(plane_tile)(4, 2, p, buf + x, w, b, out + x, left - x);
            else if (rows == 4) NAME(plane_tile)(4, 1, p, buf + x, w, b, out + x, left - x);
            else if (vectors == 2) NAME(plane_tile)(1, 2, p, buf + x, w, b, out + x, left - x);
            else NAME(plane_tile)(1, 1, p, buf + x, w, b, out + x, left - x);
        }
    }
}

/* Even and odd elements of a row side by side. */
static void NAME(apply_pair)(const tgx_conv *p, const tgx_conv_columns *pair, const void *buffer, const void *weight, ptrdiff_t rows,
                             ptrdiff_t width, void *to, ptrdiff_t step) {
    const T *buf = buffer, *w = weight;
    T *out = to;
    for (; rows > 0; rows--, buf += p->line, out += step)
        for (ptrdiff_t x = 0; 2 * x < width; x += LANES) {
            V even = {0}, odd = {0};
            for (ptrdiff_t t = 0; t < pair->taps[0]; t++)
                even = FMA(SPLAT(w[pair->number[0][t]]), READ(buf + pair->offset[0][t] + x), even);
            for (ptrdiff_t t = 0; t < pair->taps[1]; t++)
                odd = FMA(SPLAT(w[pair->number[1][t]]), READ(buf + pair->offset[1][t] + x), odd);
            NAME(put)(out + 2 * x, FIRST(even, odd), width - 2 * x);
            if (width - 2 * x > LANES) NAME(put)(out + 2 * x + LANES, SECOND(even, odd), width - 2 * x - LANES);
        }
}

/* sums[t] += grad . windows, lane by lane, for some taps. Lanes beyond a row are cleared on both sides: 0 * nan is nan. */
INLINE void NAME(plane_sums)(const int taps, const tgx_conv *p, const tgx_conv_part *part, const T *buf, const ptrdiff_t *offset,
                             const T *grad, T *sums) {
    const ptrdiff_t cols = p->cols, down = p->step_y * p->residues * p->line, whole = cols - cols % LANES;
    const uint32_t rest = NAME(lanes)(0, cols - whole);
    V sum[9];
    for (int t = 0; t < taps; t++) {
        sum[t] = (V){0};
        if (!part->fresh) sum[t] = READ(sums + t * LANES);
    }
    for (ptrdiff_t row = 0; row < part->rows; row++, buf += down, grad += cols) {
        for (ptrdiff_t i = 0; i < whole; i += LANES) {
            V g = READ(grad + i);
            for (int t = 0; t < taps; t++) sum[t] = FMA(g, READ(buf + offset[t] + i), sum[t]);
        }
        if (rest) {
            V g = NAME(inside)(grad + whole, rest);
            for (int t = 0; t < taps; t++) sum[t] = FMA(g, NAME(inside)(buf + offset[t] + whole, rest), sum[t]);
        }
    }
    for (int t = 0; t < taps; t++) WRITE(sums + t * LANES, sum[t]);
}

static void NAME(collect_plane)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *grad, void *to) {
    const ptrdiff_t taps = p->taps_x * p->taps_y;
    for (ptrdiff_t t = 0, some; t < taps; t += some) {
        T *sums = (T *)to + t * LANES;
        some = taps - t >= 9 ? 9 : taps - t >= 5 ? 5 : taps - t >= 3 ? 3 : 1;
        if (some == 9) NAME(plane_sums)(9, p, part, buf, p->offset + t, grad, sums);
        else if (some == 5) NAME(plane_sums)(5, p, part, buf, p->offset + t, grad, sums);
        else if (some == 3) NAME(plane_sums)(3, p, part, buf, p->offset + t, grad, sums);
        else NAME(plane_sums)(1, p, part, buf, p->offset + t, grad, sums);
    }
}

static void NAME(settle)(const tgx_conv *p, const void *sums, void *out) {
    const T *from = sums;
    for (ptrdiff_t t = 0; t < p->taps_x * p->taps_y; t++, from += LANES) {
        T sum = 0;
        for (ptrdiff_t q = 0; q < LANES; q++) sum += from[q];
        ((T *)out)[t] = sum;
    }
}
