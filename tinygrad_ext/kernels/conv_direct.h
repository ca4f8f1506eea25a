/* Planes one by one where they lie: those with rows of a vector at most and few taps, for which laying them out takes longer than
 * the products; wider ones take 1.3 to 2 times as long this way. Included by conv_loops.h.
 *
 * Elements outside the image are zeros, and are multiplied as such, as the laid out ones of conv_planes.h are. */

static const T NAME(zeros)[TGX_CONV_DIRECT_REACH + 2 * LANES];

INLINE V NAME(tap)(const int step, const T *x, const NAME(window) *in) {
    if (step == 1) return in ? NAME(masked)(x, in->first) : (V)READ(x);
    if (in) return EVENS(NAME(masked)(x, in->first), NAME(masked)(x + LANES, in->second));
    return EVENS(READ(x), READ(x + LANES));
}

/* A vector of `rows` rows of out, whose windows begin in row y of src; in: for each column of taps, or NULL where
 * all of them lie inside. */
INLINE void NAME(direct_tile)(const int rows, const int step, const ptrdiff_t taps_y, const ptrdiff_t taps_x, const tgx_conv *p,
                              const T *src, ptrdiff_t y, const NAME(window) *in, const T *w, T bias, T *out, ptrdiff_t room) {
    V sum[4];
    for (int r = 0; r < rows; r++) sum[r] = SPLAT(bias);
    for (ptrdiff_t v = 0; v < taps_y; v++) {
        const T *line[4];
        for (int r = 0; r < rows; r++) {
            const ptrdiff_t at = y + r * p->step_y + p->at_y[v];
            line[r] = !in || (at >= 0 && at < p->height) ? src + at * p->width : NAME(zeros) - p->base_x;
        }
        for (ptrdiff_t u = 0; u < taps_x; u++, w++) {
            const ptrdiff_t at = p->at_x[u];
            const V factor = SPLAT(*w);
            for (int r = 0; r < rows; r++) sum[r] = FMA(factor, NAME(tap)(step, line[r] + at, in ? in + u : 0), sum[r]);
        }
    }
    for (int r = 0; r < rows; r++) NAME(put)(out + r * p->cols, sum[r], room - r * p->cols);
}

/* All rows, four at a time; the last four may hold some rows once more. A row that is shorter than a vector ends in later ones,
 * which are written later. */
INLINE void NAME(direct_plane)(const int step, const ptrdiff_t taps_y, const ptrdiff_t taps_x, const tgx_conv *p,
                               const tgx_conv_part *part, const T *src, const NAME(window) *in, const int inside, const T *w, T bias, T *out) {
    for (ptrdiff_t row = 0, rows; row < part->rows; row += rows) {
        rows = part->rows >= 4 ? 4 : 1;
        if (row + rows > part->rows) row = part->rows - rows;
        const ptrdiff_t y = (part->row + row) * p->step_y, top = y + p->base_y, room = (part->rows - row) * p->cols;
        const int whole = inside && top >= 0 && top + (rows - 1) * p->step_y + p->reach < p->height;
        T *to = out + row * p->cols;
        if (rows == 4 && whole) NAME(direct_tile)(4, step, taps_y, taps_x, p, src, y, 0, w, bias, to, room);
        else if (rows == 4) NAME(direct_tile)(4, step, taps_y, taps_x, p, src, y, in, w, bias, to, room);
        else NAME(direct_tile)(1, step, taps_y, taps_x, p, src, y, in, w, bias, to, room);
    }
}

/* The same DOWN rows at a time; `more` elements behind the plane may be overwritten. */
INLINE void NAME(plane_direct_down)(const int three, const tgx_conv *p, const tgx_conv_part *part, const T *src, const T *outside,
                                    NAME(rows_of) *of, T *out, ptrdiff_t more) {
    for (ptrdiff_t row = 0; row < part->rows; row += DOWN) {
        if (row + DOWN > part->rows) row = part->rows - DOWN;
#pragma GCC unroll 1
        for (ptrdiff_t j = 0; j < DOWN + p->taps_y - 1; j++) {
            const ptrdiff_t at = part->row + row + p->base_y + j;
            of->line[j] = at >= 0 && at < p->height ? src + at * p->width : outside;
        }
        const ptrdiff_t room = (part->rows - row) * p->cols + more;
        if (three) NAME(down_tile)(3, 0, of, out + row * p->cols, room);
        else NAME(down)[p->taps_y / 2 - 1](of, out + row * p->cols, room);
    }
}

static __attribute__((noinline)) void NAME(direct_down)(const tgx_conv *p, const tgx_conv_part *part, const T *src, const T *weight,
                                                        const T *bias, T *out) {
    const T *outside = p->taps_y > 3 ? NULL : NAME(zeros) - p->base_x;
    const ptrdiff_t taps = p->taps_x * p->taps_y;
    const int three = p->taps_x == 3 && p->taps_y == 3;
    NAME(window) in[TGX_CONV_DIRECT_TAPS];
    NAME(rows_of) of;
    for (ptrdiff_t u = 0; u < p->taps_x; u++) in[u].first = NAME(make_mask)(NAME(lanes)(-p->at_x[u], p->width - p->at_x[u]));
    for (ptrdiff_t i = 0; i < part->planes; i++, src += p->height * p->width, weight += taps * p->pad_outputs, out += part->out_plane) {
        const ptrdiff_t more = i + 1 < part->planes && part->out_plane >= LANES ? LANES : 0; /* written later */
        NAME(all_rows_of)(p, p->at_x, weight, bias ? bias[i] : 0, &of);
        of.in = in;
        if (three) of.taps_x = 3, NAME(plane_direct_down)(1, p, part, src, outside, &of, out, more);
        else NAME(plane_direct_down)(0, p, part, src, outside, &of, out, more);
    }
}

INLINE void NAME(direct)(const int step, const ptrdiff_t taps_y, const ptrdiff_t taps_x, const tgx_conv *p, const tgx_conv_part *part,
                         const T *src, const T *weight, const T *bias, T *out) {
    NAME(window) in[TGX_CONV_DIRECT_TAPS];
    for (ptrdiff_t u = 0; u < taps_x; u++) {
        const ptrdiff_t left = p->width - p->at_x[u];
        in[u].first = NAME(make_mask)(NAME(lanes)(-p->at_x[u], left));
        if (step == 2) in[u].second = NAME(make_mask)(NAME(lanes)(-p->at_x[u] - LANES, left - LANES));
    }
    const int inside = p->base_x >= 0 && p->base_x + p->reach_x + step * LANES <= p->width;
    for (ptrdiff_t i = 0; i < part->planes; i++)
        NAME(direct_plane)(step, taps_y, taps_x, p, part, src + i * p->height * p->width, in, inside,
                           weight + i * taps_y * taps_x * p->pad_outputs, bias ? bias[i] : 0, out + i * part->out_plane);
}

static void NAME(apply_direct)(const tgx_conv *p, const tgx_conv_part *part, const void *src, const void *weight, const void *bias, void *out) {
    const int three = p->taps_x == 3 && p->taps_y == 3;
    if (p->step_x == 1 && part->rows >= DOWN && NAME(order_down)(p)) NAME(direct_down)(p, part, src, weight, bias, out);
    else if (three && p->step_x == 1) NAME(direct)(1, 3, 3, p, part, src, weight, bias, out);
    else if (three) NAME(direct)(2, 3, 3, p, part, src, weight, bias, out);
    else if (p->step_x == 1) NAME(direct)(1, p->taps_y, p->taps_x, p, part, src, weight, bias, out);
    else NAME(direct)(2, p->taps_y, p->taps_x, p, part, src, weight, bias, out);
}
