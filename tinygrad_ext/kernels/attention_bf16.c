/* The plan is that of attention.c, with the products of product_bf16.h. Keys and values of a head are laid out once, as columns of
 * pairs: keys by their elements for the scores, values by keys for the means. The scores of a block of rows are scaled, masked and
 * brought to weights in float32; the weights are rounded before the second product, as they are in other libraries, and their sum is
 * divided by afterwards, of weights that are not rounded.
 *
 * The derivative adds to the gradients of keys and values the products of a block's queries and gradient, turned, with slopes and
 * weights, whose rows are interleaved as they are rounded. So these sums lie turned, in float32, until the head is through. Rejected:
 * to turn slopes and weights instead, which are larger. */
#include "attention_bf16.h"
#include "product_bf16.h"

#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC optimize("O2", "no-tree-vectorize")     /* vectors are written out */
#include "product_bf16_parts.h"

enum {
    LEAST_DEPTH = 16,          /* of queries, values, rows and keys */
    SCORES = 1 << 16,          /* of a block of rows; the second cache holds them beside keys and values */
    MOST_ROWS = 48,
    SHORT = 16,                /* rows of no more are divided by their sum at once, and their largest weight would not stay 1 */
};

/* Where in the room of a share what lies, and bytes between rows. */
typedef struct {
    const tgx_bf16_panels *w;
    int64_t keys, values, across, q, seen, scores, slopes, rounded, sums, columns, turned_q, turned_seen, of_k, of_v, size;
    int64_t q_row, seen_row, rounded_row, turned_row;
    int64_t deep, wide, by_keys;       /* pairs of queries, of values and of keys */
} places_t;

static int64_t row_bytes(int64_t pairs) { return (parts(4 * pairs, 64) | 1) * 64; }
static int64_t padded_lines(int64_t n) { return parts(n, LANES) * LANES; }

static places_t places(const tgx_attention *j) {
    places_t p = {.w = tgx_bf16_panels_here()};
    const int64_t d = p.w->deep, rows = padded_lines(j->step), panels = parts(j->keys, p.w->columns);
    int64_t at = 0;
    p.deep = parts(pairs(j->depth), d) * d, p.wide = parts(pairs(j->width), d) * d, p.by_keys = parts(pairs(j->keys), d) * d;
    p.q_row = row_bytes(p.deep), p.seen_row = row_bytes(p.wide), p.rounded_row = row_bytes(p.by_keys);
    p.turned_row = row_bytes(parts(pairs(rows), d) * d);
    p.keys = next(&at, padded_lines(j->keys) * p.deep, 4);
    p.values = next(&at, j->back ? padded_lines(j->keys) * p.wide : padded_lines(j->width) * p.by_keys, 4);
    p.q = next(&at, rows, p.q_row), p.scores = next(&at, rows * j->stride, 4), p.rounded = next(&at, rows, p.rounded_row);
    p.sums = next(&at, tgx_bf16_sums_count(p.w, rows), 4);
    if (j->back) {
        p.across = next(&at, padded_lines(j->depth) * p.by_keys, 4), p.seen = next(&at, rows, p.seen_row);
        p.slopes = next(&at, rows * j->stride, 4), p.columns = next(&at, parts(pairs(rows), d) * d * p.w->columns, 4);
        p.turned_q = next(&at, padded_lines(j->depth), p.turned_row), p.turned_seen = next(&at, padded_lines(j->width), p.turned_row);
        p.of_k = next(&at, panels * tgx_bf16_sums_count(p.w, j->depth), 4);
        p.of_v = next(&at, panels * tgx_bf16_sums_count(p.w, j->width), 4);
    }
    p.size = at;
    return p;
}

int tgx_attention_bf16_gains(const tgx_attention *j) {
    return tgx_bf16_panels_here() && j->rows >= LEAST_DEPTH && j->keys >= LEAST_DEPTH && j->depth >= LEAST_DEPTH
        && j->width == j->depth;
}

void tgx_attention_bf16_plan(tgx_attention *j) {
    const int64_t fit = SCORES / j->keys / LANES * LANES;
    j->step = at_most(fit < LANES ? LANES : fit, MOST_ROWS);
    j->stride = padded_lines(j->keys) + LANES;
    j->blocks = parts(j->rows, j->step);
    j->room_size = places(j).size;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Some rows of a matrix behind each other, with zeros up to whole lines. */
INSTRUCTIONS static void copy_rows(const uint16_t *from, int64_t rows, int64_t row, int64_t columns, int64_t col, char *to,
                                   int64_t to_row) {
    for (int64_t r = 0; r < rows; r++, from += row, to += to_row) {
        memset(to, 0, (size_t)to_row);
        if (col == 1 || columns == 1) memcpy(to, from, (size_t)(2 * columns));
        else for (int64_t i = 0; i < columns; i++) ((uint16_t *)to)[i] = from[i * col];
    }
}

/* All columns of a matrix (deep, n) in panels of pairs. */
INSTRUCTIONS static __attribute__((noinline)) void lay_panels(const tgx_bf16_panels *w, const uint16_t *from, int64_t n, int64_t line,
                                                              int64_t deep, int64_t step, int64_t all, uint32_t *to) {
    for (int64_t at = 0; at < n; at += w->columns) {
        const int64_t real = at_most(n - at, w->columns), wide = padded_lines(real);
        tgx_bf16_lay(to, wide, real, from + at * line, line, step, deep);
        memset(to + pairs(deep) * wide, 0, (size_t)(4 * wide * (all - pairs(deep))));
        to += wide * all;
    }
}

/* `columns` lanes of some rows as rows of pairs of these rows. */
INSTRUCTIONS static void turn_rows(const char *from, int64_t row, int64_t rows, int64_t columns, char *to, int64_t to_row) {
    uint32_t laid[MOST_ROWS * LANES];
    const int64_t all = parts(pairs(rows), 8) * 8;
    for (int64_t at = 0; at < columns; at += LANES, to += LANES * to_row) {
        memset(laid + pairs(rows) * LANES, 0, (size_t)(4 * LANES * (all - pairs(rows))));
        tgx_bf16_lay(laid, LANES, LANES, (const uint16_t *)from + at, 1, row / 2, rows);
        memset(to, 0, (size_t)(LANES * to_row));
        for (int64_t q = 0; q < all; q += 8)
            for (int i = 0; i < LANES; i += 8)
                turn((uint32_t *)(to + i * to_row) + q, to_row / 4, (const uint16_t *)(laid + q * LANES + i), 2 * LANES);
    }
}

INLINE __m512i both(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

/* Rows of floats, rounded: n of them, and zeros up to `end`. */
INSTRUCTIONS static void round_rows(const float *from, int64_t stride, int64_t rows, int64_t end, char *to, int64_t to_row) {
    for (int64_t r = 0; r < rows; r++, from += stride, to += to_row)
        for (int64_t i = 0; i < end; i += 2 * LANES)
            _mm512_storeu_si512(to + 2 * i, both(_mm512_loadu_ps(from + i), _mm512_loadu_ps(from + i + LANES)));
}

/* Vectors of lanes of some rows of floats, rounded: a pair of rows after the other. */
INSTRUCTIONS static void round_pairs(const float *from, int64_t stride, int64_t rows, int64_t wide, int64_t all, uint32_t *to) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i in_turn = _mm512_or_si512(lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(LANES)), 16));
    for (int64_t q = 0; q < all; q++, from += 2 * stride, to += wide)
        for (int64_t i = 0; i < wide; i += LANES) {
            const __m512 low = 2 * q < rows ? _mm512_loadu_ps(from + i) : _mm512_setzero_ps();
            const __m512 high = 2 * q + 1 < rows ? _mm512_loadu_ps(from + stride + i) : _mm512_setzero_ps();
            _mm512_storeu_si512(to + i, _mm512_permutexvar_epi16(in_turn, both(low, high)));
        }
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* The sums of row r and vector i. */
static inline const float *sum_of(const tgx_bf16_panels *w, const float *sums, int64_t r, int64_t i) {
    return sums + r / LANES * w->strip + r % LANES * w->row + i / LANES * w->vector;
}

INLINE __m512 scaled(const float *sums, float scale) { return _mm512_mul_ps(_mm512_loadu_ps(sums), _mm512_set1_ps(scale)); }

/* Some rows times the columns of all panels as far as n, times a number, into rows of floats. */
INSTRUCTIONS static void to_floats(const places_t *p, char *room, const tgx_bf16_panel *given, int64_t n, int64_t lines, float scale,
                                   float *to, int64_t stride) {
    tgx_bf16_panel x = *given;
    x.sums = (float *)(room + p->sums), x.first = 1;
    for (int64_t at = 0; at < n; at += p->w->columns, x.b += x.wide * x.pairs) {
        x.wide = padded_lines(at_most(lines - at, p->w->columns));
        p->w->multiply(&x);
        for (int64_t r = 0; r < x.rows; r++)
            for (int64_t i = 0; i < x.wide; i += LANES)
                _mm512_storeu_ps(to + r * stride + at + i, scaled(sum_of(p->w, x.sums, r, i), scale));
    }
}

/* Some rows of weights or slopes times `columns` columns whose depth are all keys; `pairs` of them are met. scales: a number for each
 * row, or NULL: one for all. */
INSTRUCTIONS static void to_halves(const places_t *p, char *room, const tgx_bf16_panel *given, int64_t columns, const float *scales,
                                   float scale, uint16_t *to) {
    tgx_bf16_panel x = *given;
    x.sums = (float *)(room + p->sums), x.first = 1;
    for (int64_t at = 0; at < columns; at += p->w->columns, x.b += x.wide * p->by_keys) {
        const int64_t real = at_most(columns - at, p->w->columns);
        x.wide = padded_lines(real);
        p->w->multiply(&x);
        for (int64_t r = 0; r < x.rows; r++)
            for (int64_t i = 0; i < real; i += LANES) {
                const __mmask16 mask = (__mmask16)((1u << at_most(real - i, LANES)) - 1);
                const __m512 sum = scaled(sum_of(p->w, x.sums, r, i), scales ? scales[r] : scale);
                _mm256_mask_storeu_epi16(to + r * columns + at + i, mask, round_lanes(sum));
            }
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void lay_head(const tgx_attention *j, const places_t *p, char *room, int64_t head) {
    const uint16_t *k = (const uint16_t *)head_of(j, j->k, head), *v = (const uint16_t *)head_of(j, j->v, head);
    lay_panels(p->w, k, j->keys, step_of(j->k, 1), j->depth, step_of(j->k, 0), p->deep, (uint32_t *)(room + p->keys));
    if (!j->back)
        lay_panels(p->w, v, j->width, step_of(j->v, 0), j->keys, step_of(j->v, 1), p->by_keys, (uint32_t *)(room + p->values));
    else {
        lay_panels(p->w, v, j->keys, step_of(j->v, 1), j->width, step_of(j->v, 0), p->wide, (uint32_t *)(room + p->values));
        lay_panels(p->w, k, j->depth, step_of(j->k, 0), j->keys, step_of(j->k, 1), p->by_keys, (uint32_t *)(room + p->across));
    }
}

/* As weights_float of attention.c, over bfloat16. */
static void weights(const tgx_attention *j, const places_t *p, char *room, const char *q, const char *mask, int64_t first,
                    int64_t rows, int64_t n, int64_t end, float *scales, uint8_t *blind) {
    float *scores = (float *)(room + p->scores);
    copy_rows((const uint16_t *)q + first * step_of(j->q, 1), rows, step_of(j->q, 1), j->depth, step_of(j->q, 0), room + p->q,
              p->q_row);
    const tgx_bf16_panel x = {.a = room + p->q, .a_row = p->q_row, .b = (uint32_t *)(room + p->keys), .rows = rows, .pairs = p->deep};
    to_floats(p, room, &x, n, j->keys, (float)j->scale, scores, j->stride);
    for (int64_t r = 0; r < rows; r++) {
        float *row = scores + r * j->stride;
        const int64_t seen = j->causal ? least(first + r + 1, n) : n;
        blind[r] = mask && !masked_float(j, row, seen, mask + (first + r) * step_of(j->mask, 1) * tgx_itemsize[j->mask->dtype]);
        if (blind[r]) {
            memset(row, 0, (size_t)end * sizeof *row);
            if (scales) scales[r] = 0;
            continue;
        }
        int64_t count = seen;
        for (; count <= SHORT; count++) row[count] = -INFINITY;
        tgx_softmax_job job = {.out = (char *)row, .a = (const char *)row, .scales = scales ? (char *)(scales + r) : NULL, .n = count,
                               .inner = 1};
        j->softmax(&job, 0, 1);
        memset(row + seen, 0, (size_t)(end - seen) * sizeof *row);
    }
}

/* Pairs of the first n keys that products meet. */
static int64_t pairs_met(const places_t *p, int64_t n) { return parts(pairs(n), p->w->deep) * p->w->deep; }

static void block(const tgx_attention *j, const places_t *p, char *room, const char *q, const char *mask, int64_t first, int64_t rows,
                  uint16_t *out) {
    const int64_t n = j->causal ? least(first + rows, j->keys) : j->keys, met = pairs_met(p, n);
    const int64_t end = parts(2 * met, 2 * LANES) * 2 * LANES;
    uint8_t blind[MOST_ROWS];
    float scales[MOST_ROWS];
    weights(j, p, room, q, mask, first, rows, n, end, scales, blind);
    round_rows((const float *)(room + p->scores), j->stride, rows, end, room + p->rounded, p->rounded_row);
    const tgx_bf16_panel x = {.a = room + p->rounded, .a_row = p->rounded_row, .b = (uint32_t *)(room + p->values), .rows = rows,
                              .pairs = met};
    to_halves(p, room, &x, j->width, scales, 1, out);
    for (int64_t r = 0; r < rows; r++)
        if (blind[r]) memset(out + r * j->width, 0, (size_t)(2 * j->width));
}

void tgx_attention_bf16_items(const tgx_attention *j, char *room, int64_t lo, int64_t hi) {
    const places_t p = places(j);
    int64_t laid = -1;
    for (int64_t item = lo; item < hi; item++) {
        const int64_t head = item / j->blocks, first = item % j->blocks * j->step, rows = least(j->step, j->rows - first);
        if (head != laid) lay_head(j, &p, room, laid = head);
        block(j, &p, room, head_of(j, j->q, head), j->mask ? head_of(j, j->mask, head) : NULL, first, rows,
              (uint16_t *)j->out + (head * j->rows + first) * j->width);
    }
}

/* ---- the derivative ---------------------------------------------------------------------------------------------- */

/* Adds to the turned gradient of keys or values: rows that were turned, times rows of floats as far as n. */
static void add_turned(const tgx_attention *j, const places_t *p, char *room, const char *turned, int64_t lines, int64_t rows,
                       int64_t n, const float *floats, float *sums) {
    const int64_t each = tgx_bf16_sums_count(p->w, lines);
    tgx_bf16_panel x = {.a = turned, .a_row = p->turned_row, .b = (uint32_t *)(room + p->columns), .rows = lines,
                        .pairs = parts(pairs(rows), p->w->deep) * p->w->deep, .sums = sums};
    for (int64_t at = 0; at < n; at += p->w->columns, x.sums += each) {
        x.wide = padded_lines(at_most(j->keys - at, p->w->columns));
        round_pairs(floats + at, j->stride, rows, x.wide, x.pairs, (uint32_t *)(room + p->columns));
        p->w->multiply(&x);
    }
}

/* These sums, turned back, times a number. */
INSTRUCTIONS static void give(const tgx_attention *j, const places_t *p, const float *sums, int64_t lines, float scale, uint16_t *out) {
    const int64_t each = tgx_bf16_sums_count(p->w, lines);
    float turned[LANES * LANES];
    for (int64_t key = 0; key < j->keys; key += LANES)
        for (int64_t r = 0; r < lines; r += LANES) {
            const float *own = sum_of(p->w, sums + key / p->w->columns * each, r, key % p->w->columns);
            for (int i = 0; i < LANES; i += 8)
                for (int q = 0; q < LANES; q += 8)
                    turn((uint32_t *)turned + q * LANES + i, LANES, (const uint16_t *)(own + i * p->w->row + q), 2 * p->w->row);
            for (int64_t q = 0; q < at_most(j->keys - key, LANES); q++)
                _mm256_mask_storeu_epi16(out + (key + q) * lines + r, (__mmask16)((1u << at_most(lines - r, LANES)) - 1),
                                         round_lanes(scaled(turned + q * LANES, scale)));
        }
}

/* Rows from `first` on: their own gradient, and their part of that of the keys and values they see. */
static void back_block(const tgx_attention *j, const places_t *p, char *room, const char *q, const char *grad, const char *mask,
                       int64_t first, int64_t rows, uint16_t *of_q) {
    const int64_t n = j->causal ? least(first + rows, j->keys) : j->keys, met = pairs_met(p, n);
    const int64_t whole = least(padded_lines(j->keys), parts(n, p->w->columns) * p->w->columns);        /* panels that are met */
    const int64_t end = parts(2 * met > whole ? 2 * met : whole, 2 * LANES) * 2 * LANES;
    float *scores = (float *)(room + p->scores), *slopes = (float *)(room + p->slopes);
    uint8_t blind[MOST_ROWS];
    weights(j, p, room, q, mask, first, rows, n, end, NULL, blind);
    copy_rows((const uint16_t *)grad + first * step_of(j->grad, 1), rows, step_of(j->grad, 1), j->width, step_of(j->grad, 0),
              room + p->seen, p->seen_row);
    for (int64_t r = 0; r < rows; r++)
        if (blind[r]) memset(room + p->seen + r * p->seen_row, 0, (size_t)p->seen_row);
    tgx_bf16_panel x = {.a = room + p->seen, .a_row = p->seen_row, .b = (uint32_t *)(room + p->values), .rows = rows, .pairs = p->wide};
    to_floats(p, room, &x, n, j->keys, 1, slopes, j->stride);
    for (int64_t r = 0; r < rows; r++) {
        float *row = slopes + r * j->stride;
        tgx_softmax_job job = {.out = (char *)row, .a = (const char *)row, .b = (const char *)(scores + r * j->stride), .n = n,
                               .inner = 1};
        j->slopes(&job, 0, 1);
        memset(row + n, 0, (size_t)(end - n) * sizeof *row);
    }
    round_rows(slopes, j->stride, rows, end, room + p->rounded, p->rounded_row);
    x.a = room + p->rounded, x.a_row = p->rounded_row, x.b = (uint32_t *)(room + p->across), x.pairs = met;
    to_halves(p, room, &x, j->depth, NULL, (float)j->scale, of_q);
    turn_rows(room + p->q, p->q_row, rows, j->depth, room + p->turned_q, p->turned_row);
    turn_rows(room + p->seen, p->seen_row, rows, j->width, room + p->turned_seen, p->turned_row);
    add_turned(j, p, room, room + p->turned_q, j->depth, rows, n, slopes, (float *)(room + p->of_k));
    add_turned(j, p, room, room + p->turned_seen, j->width, rows, n, scores, (float *)(room + p->of_v));
}

void tgx_attention_bf16_back_items(const tgx_attention *j, char *room, int64_t lo, int64_t hi) {
    const places_t p = places(j);
    for (int64_t head = lo; head < hi; head++) {
        const char *q = head_of(j, j->q, head), *grad = head_of(j, j->grad, head), *mask = j->mask ? head_of(j, j->mask, head) : NULL;
        uint16_t *of_q = (uint16_t *)j->out + head * j->rows * j->depth;
        lay_head(j, &p, room, head);
        memset(room + p.of_k, 0, (size_t)(p.size - p.of_k));
        for (int64_t first = 0; first < j->rows; first += j->step)
            back_block(j, &p, room, q, grad, mask, first, least(j->step, j->rows - first), of_q + first * j->depth);
        give(j, &p, (const float *)(room + p.of_k), j->depth, (float)j->scale, (uint16_t *)j->of_k + head * j->keys * j->depth);
        give(j, &p, (const float *)(room + p.of_v), j->width, 1, (uint16_t *)j->of_v + head * j->keys * j->width);
    }
}
#else
int tgx_attention_bf16_gains(const tgx_attention *j) { return 0; }
void tgx_attention_bf16_plan(tgx_attention *j) {}
void tgx_attention_bf16_items(const tgx_attention *j, char *room, int64_t lo, int64_t hi) {}
void tgx_attention_bf16_back_items(const tgx_attention *j, char *room, int64_t lo, int64_t hi) {}
#endif
