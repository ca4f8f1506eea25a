/* Integer products for one type T; included by product_isa.h. Sums wrap, so their order does not matter. */
typedef T NAME(vec) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(loose) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
#define LANES ((ptrdiff_t)(VECTOR_BYTES / sizeof(T)))

static void NAME(scale)(const tgx_shape *s, T beta, T *c) {
    if (beta == 1) return;
    for (ptrdiff_t i = 0; i < s->m; i++)
        for (ptrdiff_t j = 0; j < s->n; j++) {
            T *out = c + i * s->c_row + j * s->c_col;
            *out = beta ? (T)(beta * *out) : 0;
        }
}

/* Some columns of B that lie side by side, and what they become: `rows` rows and `cols` columns from c on, whole vectors of which
 * count at most. */
typedef struct { const tgx_shape *s; ptrdiff_t depth, step; T alpha; const T *b; ptrdiff_t cols; } NAME(panel);

/* `rows` rows of A by so many vectors. */
static inline __attribute__((always_inline)) void NAME(tile)(const int rows, const int vectors, const NAME(panel) *p, const T *a, T *c) {
    NAME(vec) sum[ROWS][VECTORS];
    memset(sum, 0, sizeof sum);
    const tgx_shape *s = p->s;
    const T *b = p->b;
    for (ptrdiff_t k = 0; k < p->depth; k++, b += p->step)
        for (int r = 0; r < rows; r++) {
            const T factor = a[r * s->a_row + k * s->a_col];
            for (int q = 0; q < vectors; q++) sum[r][q] += factor * (NAME(vec))*(const NAME(loose) *)(b + q * LANES);
        }
    for (int r = 0; r < rows; r++) {
        T *out = c + r * s->c_row, spare[VECTORS * LANES];
        if (p->cols == vectors * LANES && s->c_col == 1)
            for (int q = 0; q < vectors; q++) {
                NAME(loose) *to = (NAME(loose) *)(out + q * LANES);
                *to = (NAME(loose))((NAME(vec))*to + sum[r][q] * p->alpha);
            }
        else {
            for (int q = 0; q < vectors; q++) *(NAME(loose) *)(spare + q * LANES) = (NAME(loose))(sum[r][q] * p->alpha);
            for (ptrdiff_t j = 0; j < p->cols; j++) out[j * s->c_col] += spare[j];
        }
    }
}

/* All rows of A by the columns of a panel. */
static void NAME(rows)(const NAME(panel) *p, const T *a, T *c) {
    const tgx_shape *s = p->s;
    const int narrow = p->cols <= LANES;
    ptrdiff_t i = 0;
    for (; i + ROWS <= s->m; i += ROWS) {
        if (narrow) NAME(tile)(ROWS, 1, p, a + i * s->a_row, c + i * s->c_row);
        else NAME(tile)(ROWS, VECTORS, p, a + i * s->a_row, c + i * s->c_row);
    }
    for (; i < s->m; i++) {
        if (narrow) NAME(tile)(1, 1, p, a + i * s->a_row, c + i * s->c_row);
        else NAME(tile)(1, VECTORS, p, a + i * s->a_row, c + i * s->c_row);
    }
}

/* Few rows by columns that do not lie side by side: each element's sum in registers. */
static void NAME(plain)(const tgx_shape *s, ptrdiff_t cols, ptrdiff_t depth, T alpha, const T *a, const T *b, T *c) {
    const int near = s->a_col == 1 && s->b_row == 1;
    for (ptrdiff_t i = 0; i < s->m; i++)
        for (ptrdiff_t j = 0; j < cols; j++) {
            const T *x = a + i * s->a_row, *y = b + j * s->b_col;
            T sum = 0;
            if (near)
                for (ptrdiff_t p = 0; p < depth; p++) sum += (T)(x[p] * y[p]);
            else
                for (ptrdiff_t p = 0; p < depth; p++) sum += (T)(x[p * s->a_col] * y[p * s->b_row]);
            c[i * s->c_row + j * s->c_col] += (T)(alpha * sum);
        }
}

static void NAME(product)(const tgx_shape *s, T alpha, const T *a, const T *b, T beta, T *c) {
    const ptrdiff_t wide = VECTORS * LANES;
    const tgx_shape turned = {s->n, s->m, s->k, s->b_col, s->b_row, s->a_col, s->a_row, s->c_col, s->c_row};
    if (s->n < FEW_COLUMNS && s->m >= wide && s->a_row == 1 && s->a_col != 1) { /* rows side by side by few columns */
        const T *left = a;
        s = &turned, a = b, b = left;
    }
    NAME(vec) room[DEPTH * VECTORS];
    T *copy = (T *)room;
    NAME(scale)(s, beta, c);
    for (ptrdiff_t k = 0; k < s->k; k += DEPTH) {
        const ptrdiff_t depth = s->k - k < DEPTH ? s->k - k : DEPTH;
        const T *x = a + k * s->a_col;
        for (ptrdiff_t j = 0; j < s->n; j += wide) {
            const T *y = b + k * s->b_row + j * s->b_col;
            NAME(panel) panel = {s, depth, s->b_row, alpha, y, s->n - j < wide ? s->n - j : wide};
            if (panel.cols < wide || s->b_col != 1) {
                if (s->n < FEW_COLUMNS || (s->m < FEW_ROWS && s->b_col != 1)) {
                    NAME(plain)(s, panel.cols, depth, alpha, x, y, c + j * s->c_col);
                    continue;
                }
                /* an empty lane would read beyond B: the columns are copied, with zeros there */
                for (ptrdiff_t p = 0; p < depth; p++)
                    for (ptrdiff_t q = 0; q < wide; q++) copy[p * wide + q] = q < panel.cols ? y[p * s->b_row + q * s->b_col] : 0;
                panel.b = copy, panel.step = wide;
            }
            NAME(rows)(&panel, x, c + j * s->c_col);
        }
    }
}

#undef LANES
