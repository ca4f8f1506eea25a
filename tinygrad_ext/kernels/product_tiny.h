/* Tiny products for one floating type T; included by product_isa.h.
 *
 * The sum over k runs in order for every element, whatever the steps and the instruction set, so an element has the same
 * bits however its operands lie in memory. */
typedef T NAME(wide) __attribute__((vector_size(TINY_BYTES), aligned(sizeof(T)), may_alias));
typedef T NAME(four) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef T NAME(half) __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));

/* One row times a matrix, with a row `start` added to it, or NULL: k numbers `step` apart, n columns. The same sums as below, found
 * with few questions, because the work is hardly more than they are. */
#define ROW_VECTORS(V, n)                                                                              \
    do {                                                                                               \
        enum { LANES = sizeof(V) / sizeof(T) };                                                        \
        V sum[n];                                                                                      \
        const T *u = x, *y = b + j;                                                                    \
        for (int q = 0; q < (n); q++) sum[q] = (V){0};                                                 \
        for (ptrdiff_t i = 0; i < k; i++, u += step, y += b_row)                                       \
            for (int q = 0; q < (n); q++) sum[q] += *u * *(const V *)(y + q * LANES);                  \
        for (int q = 0; q < (n); q++, j += LANES) {                                                    \
            if (start) sum[q] += *(const V *)(start + j);                                              \
            *(V *)(c + j) = sum[q];                                                                    \
        }                                                                                              \
    } while (0)

static void NAME(row)(const void *left, ptrdiff_t step, const void *right, ptrdiff_t b_row, ptrdiff_t b_col, ptrdiff_t n, ptrdiff_t k,
                      const void *added, void *result) {
    enum { WIDE = TINY_BYTES / sizeof(T), HALF = 16 / sizeof(T) };
    const T *x = left, *b = right, *start = added;
    T *c = result;
    ptrdiff_t j = 0;
    if (b_col == 1) {
        while (n - j >= 4 * WIDE) ROW_VECTORS(NAME(wide), 4);
        while (n - j >= WIDE) ROW_VECTORS(NAME(wide), 1);
        while (n - j >= HALF) ROW_VECTORS(NAME(half), 1);
    }
    for (; n - j >= 4; j += 4) {
        const T *u = x, *y = b + j * b_col;
        NAME(four) sum = {0};
        ptrdiff_t i = 0;
        for (; b_row == 1 && k - i >= 4; i += 4, u += 4 * step, y += 4) {
            T turned[16];
            TURN(y, b_col, turned, 4);
            for (int o = 0; o < 4; o++) sum += u[o * step] * *(const NAME(four) *)(turned + 4 * o);
        }
        for (; i < k; i++, u += step, y += b_row)
            sum += *u * (NAME(four)){*y, y[b_col], y[2 * b_col], y[3 * b_col]};
        if (start) sum += *(const NAME(four) *)(start + j);
        *(NAME(four) *)(c + j) = sum;
    }
    for (; j < n; j++) {
        const T *u = x, *y = b + j * b_col;
        T sum = 0;
        for (ptrdiff_t i = 0; i < k; i++, u += step, y += b_row) sum += *u * *y;
        c[j] = start ? sum + start[j] : sum;
    }
}
#undef ROW_VECTORS

/* Where the result of an element goes: alpha times its sum, and beta times what it starts with, if there is something. */
static inline T NAME(end)(const tgx_small *p, ptrdiff_t i, ptrdiff_t j, T sum) {
    const T *start = p->start;
    if (!start) return (T)p->alpha * sum;
    return (T)p->alpha * sum + (T)p->beta * start[i * p->start_row + j * p->start_col];
}

/* `r` rows and `n` vectors of neighbouring columns, in so many words: of plain loops compilers make no vectors. Several rows
 * share what is read of B, and their sums do not wait for each other. */
#define TINY_VECTORS(V, r, n)                                                                          \
    do {                                                                                               \
        enum { LANES = sizeof(V) / sizeof(T) };                                                        \
        V sum[r][n];                                                                                   \
        const T *x = a + i * s->a_row, *y = b + j;                                                     \
        for (int o = 0; o < (r); o++)                                                                  \
            for (int q = 0; q < (n); q++) sum[o][q] = (V){0};                                          \
        for (ptrdiff_t k = 0; k < s->k; k++, x += s->a_col, y += b_row)                                \
            for (int o = 0; o < (r); o++)                                                              \
                for (int q = 0; q < (n); q++) sum[o][q] += x[o * s->a_row] * *(const V *)(y + q * LANES);\
        for (int o = 0; o < (r); o++, i++) {                                                           \
            if (plain) {                                                                               \
                for (int q = 0; q < (n); q++) *(V *)(c + i * s->c_row + j + q * LANES) = sum[o][q];    \
            } else if (begun) {                                                                        \
                const T *start = (const T *)p->start + i * p->start_row + j;                           \
                for (int q = 0; q < (n); q++)                                                          \
                    *(V *)(c + i * s->c_row + j + q * LANES) = sum[o][q] + *(const V *)(start + q * LANES);\
            } else {                                                                                   \
                const T *each = (const T *)sum[o];                                                     \
                for (ptrdiff_t q = 0; q < (n) * LANES; q++)                                            \
                    c[i * s->c_row + (j + q) * s->c_col] = NAME(end)(p, i, j + q, each[q]);            \
            }                                                                                          \
        }                                                                                              \
    } while (0)

/* Columns j and those behind it that `n` vectors hold, of all rows. */
#define TINY_COLUMNS(V, n)                                                                             \
    do {                                                                                               \
        ptrdiff_t i = 0;                                                                               \
        while (i + 4 <= s->m) TINY_VECTORS(V, 4, n);                                                   \
        while (i < s->m) TINY_VECTORS(V, 1, n);                                                        \
        j += (n) * (ptrdiff_t)(sizeof(V) / sizeof(T));                                                 \
    } while (0)

/* `r` rows of one column. */
#define TINY_COLUMN(r)                                                                                 \
    do {                                                                                               \
        const T *x = a + i * s->a_row, *y = b + j * b_col;                                             \
        T sum[r] = {0};                                                                                \
        for (ptrdiff_t k = 0; k < s->k; k++, x += s->a_col, y += b_row)                                \
            for (int o = 0; o < (r); o++) sum[o] += x[o * s->a_row] * *y;                              \
        for (int o = 0; o < (r); o++, i++) c[i * s->c_row + j * s->c_col] = NAME(end)(p, i, j, sum[o]); \
    } while (0)

/* Columns that do not lie next to each other, as those of a transposed weight, are first put so where several rows need
 * them; four by four where they can be read so. */
static void NAME(pack)(const tgx_shape *s, const T *b, T *packed) {
    ptrdiff_t n = s->n, j = 0;
    for (; s->b_row == 1 && j + 4 <= n; j += 4) {
        const T *from = b + j * s->b_col;
        T *to = packed + j;
        ptrdiff_t k = 0;
        for (; k + 4 <= s->k; k += 4, from += 4, to += 4 * n) TURN(from, s->b_col, to, n);
        for (; k < s->k; k++, from++, to += n)
            for (int o = 0; o < 4; o++) to[o] = from[o * s->b_col];
    }
    for (; j < n; j++)
        for (ptrdiff_t k = 0; k < s->k; k++) packed[k * n + j] = b[k * s->b_row + j * s->b_col];
}

static void NAME(tiny)(const tgx_small *p) {
    enum { WIDE = TINY_BYTES / sizeof(T), HALF = 16 / sizeof(T) };
    const tgx_shape *s = &p->s;
    tgx_small flipped;
    if (s->n == 1 && s->m >= 4 && s->a_col == 1) { /* a matrix times a vector, as the vector times its transpose */
        flipped = tgx_flipped(p);
        p = &flipped, s = &p->s;
    }
    const T *a = p->a, *b = p->b;
    T *c = p->c, packed[TGX_TINY_PACKED];
    ptrdiff_t b_row = s->b_row, b_col = s->b_col;
    int plain = s->c_col == 1 && p->alpha == 1 && !p->start;
    int begun = s->c_col == 1 && p->alpha == 1 && p->start && p->beta == 1 && p->start_col == 1;
    if (s->m < 4 && (plain || begun)) {
        for (ptrdiff_t i = 0; i < s->m; i++)
            NAME(row)(a + i * s->a_row, s->a_col, b, b_row, b_col, s->n, s->k,
                      begun ? (const T *)p->start + i * p->start_row : NULL, c + i * s->c_row);
        return;
    }
    if (b_col != 1 && s->n >= 4 && s->m > 2) {
        NAME(pack)(s, b, packed);
        b = packed, b_row = s->n, b_col = 1;
    }
    for (ptrdiff_t j = 0; j < s->n;) {
        ptrdiff_t left = s->n - j, i = 0;
        if (b_col == 1 && left >= 2 * WIDE) TINY_COLUMNS(NAME(wide), 2);
        else if (b_col == 1 && left >= WIDE) TINY_COLUMNS(NAME(wide), 1);
        else if (b_col == 1 && left >= HALF) TINY_COLUMNS(NAME(half), 1);
        else {
            while (i + 4 <= s->m) TINY_COLUMN(4);
            while (i < s->m) TINY_COLUMN(1);
            j++;
        }
    }
}

/* Single sums, of `count` items that lie steps[0 to 2] apart: the same as each alone, several at once, for each number of a sum
 * waits for the one before. */
#define TINY_SUMS(r)                                                                                   \
    do {                                                                                               \
        const T *x = a, *y = b;                                                                        \
        T sum[r] = {0};                                                                                \
        for (ptrdiff_t k = 0; k < s->k; k++, x += s->a_col, y += s->b_row)                             \
            for (int o = 0; o < (r); o++) sum[o] += x[o * steps[0]] * y[o * steps[1]];                 \
        for (int o = 0; o < (r); o++) c[o * steps[2]] = (T)p->alpha * sum[o];                          \
        a += (r) * steps[0], b += (r) * steps[1], c += (r) * steps[2], count -= (r);                   \
    } while (0)

static void NAME(sums)(const tgx_small *p, ptrdiff_t count, const ptrdiff_t *steps) {
    const tgx_shape *s = &p->s;
    const T *a = p->a, *b = p->b;
    T *c = p->c;
    while (count >= 8) TINY_SUMS(8);
    while (count > 0) TINY_SUMS(1);
}

#undef TINY_SUMS
#undef TINY_VECTORS
#undef TINY_COLUMNS
#undef TINY_COLUMN
