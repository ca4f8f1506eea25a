/* Integer products for one type T; included by product_isa.h. */
typedef T NAME(vec) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(loose) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
#define LANES ((ptrdiff_t)(VECTOR_BYTES / sizeof(T)))

static void NAME(scale)(const tgx_shape *s, T beta, T *c) {
    for (ptrdiff_t i = 0; i < s->m; i++)
        for (ptrdiff_t j = 0; j < s->n; j++) {
            T *out = c + i * s->c_row + j * s->c_col;
            *out = beta ? (T)(beta * *out) : 0;
        }
}

/* `rows` rows by two vectors of columns; the columns of B and C lie side by side. */
static inline __attribute__((always_inline)) void NAME(tile)(const int rows, const tgx_shape *s, ptrdiff_t depth, T alpha,
                                                             const T *a, const T *b, T *c) {
    NAME(vec) sum[ROWS][VECTORS];
    memset(sum, 0, sizeof sum);
    for (ptrdiff_t p = 0; p < depth; p++, b += s->b_row) {
        NAME(vec) left = *(const NAME(loose) *)b, right = *(const NAME(loose) *)(b + LANES);
        for (int r = 0; r < rows; r++) {
            T factor = (T)(alpha * a[r * s->a_row + p * s->a_col]);
            sum[r][0] += factor * left;
            sum[r][1] += factor * right;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < VECTORS; q++) {
            NAME(loose) *out = (NAME(loose) *)(c + r * s->c_row + q * LANES);
            *out = (NAME(loose))((NAME(vec))*out + sum[r][q]);
        }
}

/* What the tiles leave over: each element's sum in registers. */
static void NAME(plain)(const tgx_shape *s, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t depth, T alpha, const T *a, const T *b, T *c) {
    const int near = s->a_col == 1 && s->b_row == 1;
    for (ptrdiff_t i = 0; i < rows; i++)
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
    const ptrdiff_t wide = VECTORS * LANES, tiled = s->b_col == 1 && s->c_col == 1 ? s->n / wide * wide : 0;
    NAME(scale)(s, beta, c);
    for (ptrdiff_t p = 0; p < s->k; p += DEPTH) {
        const ptrdiff_t depth = s->k - p < DEPTH ? s->k - p : DEPTH;
        const T *x = a + p * s->a_col, *y = b + p * s->b_row;
        for (ptrdiff_t j = 0; j < tiled; j += wide) {
            ptrdiff_t i = 0;
            for (; i + ROWS <= s->m; i += ROWS) NAME(tile)(ROWS, s, depth, alpha, x + i * s->a_row, y + j, c + i * s->c_row + j);
            for (; i < s->m; i++) NAME(tile)(1, s, depth, alpha, x + i * s->a_row, y + j, c + i * s->c_row + j);
        }
        NAME(plain)(s, s->m, s->n - tiled, depth, alpha, x, y + tiled * s->b_col, c + tiled * s->c_col);
    }
}

#undef LANES
