/* Products by a matrix that is laid out once and used many times, as the weights of a recurrent layer; for one floating type T;
 * included by product_isa.h behind product_middle.h.
 *
 * Columns lie in panels of two vectors, row behind row, the last panel filled up with zeros. The sum over k runs in order, fused,
 * in parts of TGX_MIDDLE_DEPTH, for every element alike: it has the same bits whatever other rows are multiplied with it. One or
 * two rows take several panels at a time, because eight sums have to be under way to keep the multipliers busy.
 *
 * Measured on one core with a peak of 109 GFLOP/s, a busy machine, against a call of matmul, which lays out the weights each time:
 * 32 x 256 times 256 x 256 51 us and 59, 32 x 64 times 64 x 64 3.4 and 4.1, 1 x 256 times 256 x 256 2.8 and 4.9. */
typedef T NAME(full) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(open) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));

static inline __attribute__((always_inline)) void NAME(packed_block)(const int rows, const int panels, ptrdiff_t depth, const T *a,
    ptrdiff_t a_row, ptrdiff_t a_col, const T *b, ptrdiff_t panel, const T *start, ptrdiff_t start_row, T *c, ptrdiff_t c_row) {
    enum { L = NAME(LANES) };
    NAME(full) sum[6][8];
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < 2 * panels; q++) sum[r][q] = (NAME(full)){0};
    for (ptrdiff_t k = 0; k < depth; k++, a += a_col, b += 2 * L) {
        NAME(full) columns[8];
        for (int q = 0; q < 2 * panels; q++) columns[q] = *(const NAME(open) *)(b + q / 2 * panel + q % 2 * L);
        for (int r = 0; r < rows; r++)
            for (int q = 0; q < 2 * panels; q++) sum[r][q] = FUSED(VECTOR_BYTES, a[r * a_row], columns[q], sum[r][q]);
    }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < 2 * panels; q++) {
            if (start) sum[r][q] = *(const NAME(open) *)(start + r * start_row + q * L) + sum[r][q];
            *(NAME(open) *)(c + r * c_row + q * L) = sum[r][q];
        }
}

static void NAME(packed_lay)(const tgx_shape *s, const void *b, void *packed) {
    enum { W = NAME(WIDTH) };
    for (ptrdiff_t j = 0; j < s->n; j += W)
        NAME(lay)(s, (const T *)b + j * s->b_col, s->n - j < W ? s->n - j : W, W, (T *)packed + j * s->k);
}

/* Some rows of one panel, of which so many columns count. */
#define PACKED_ROWS(rows)                                                                                                   \
    do {                                                                                                                    \
        if (columns == W)                                                                                                   \
            NAME(packed_block)(rows, 1, depth, a + i * a_row, a_row, a_col, b, 0, from ? from + i * from_row + j : NULL, from_row, \
                               c + i * c_row + j, c_row);                                                                   \
        else {                                                                                                              \
            NAME(packed_block)(rows, 1, depth, a + i * a_row, a_row, a_col, b, 0, NULL, 0, sums, W);                               \
            for (int r = 0; r < (rows); r++)                                                                                \
                for (ptrdiff_t q = 0; q < columns; q++) {                                                                   \
                    T *to = c + (i + r) * c_row + j + q;                                                                    \
                    *to = from ? from[(i + r) * from_row + j + q] + sums[r * W + q] : sums[r * W + q];                      \
                }                                                                                                           \
        }                                                                                                                   \
        i += (rows);                                                                                                        \
    } while (0)

static void NAME(packed_times)(const void *packed, ptrdiff_t n, ptrdiff_t all, ptrdiff_t m, const void *left, ptrdiff_t a_row,
                               ptrdiff_t a_col, const void *start, ptrdiff_t start_row, void *result, ptrdiff_t c_row) {
    enum { W = NAME(WIDTH) };
    T sums[6 * W], *c = result;
    for (ptrdiff_t k = 0; k < all; k += TGX_MIDDLE_DEPTH) {
        const ptrdiff_t depth = all - k < TGX_MIDDLE_DEPTH ? all - k : TGX_MIDDLE_DEPTH, panel = W * all;
        const T *a = (const T *)left + k * a_col, *from = k ? c : start;
        const ptrdiff_t from_row = k ? c_row : start_row;
        ptrdiff_t j = 0;
        for (; m == 1 && j + 4 * W <= n; j += 4 * W)
            NAME(packed_block)(1, 4, depth, a, a_row, a_col, (const T *)packed + j * all + k * W, panel, from ? from + j : NULL, 0,
                               c + j, 0);
        for (; m == 2 && j + 2 * W <= n; j += 2 * W)
            NAME(packed_block)(2, 2, depth, a, a_row, a_col, (const T *)packed + j * all + k * W, panel, from ? from + j : NULL,
                               from_row, c + j, c_row);
        for (; j < n; j += W) {
            const T *b = (const T *)packed + j * all + k * W;
            const ptrdiff_t columns = n - j < W ? n - j : W;
            for (ptrdiff_t i = 0; i < m;) {
                ptrdiff_t rest = m - i;
                if (rest == 6 || rest > 8) PACKED_ROWS(6);
                else if (rest == 5) PACKED_ROWS(5);
                else if (rest > 6 || rest == 4) PACKED_ROWS(4);
                else if (rest == 3) PACKED_ROWS(3);
                else if (rest == 2) PACKED_ROWS(2);
                else PACKED_ROWS(1);
            }
        }
    }
}
#undef PACKED_ROWS
