/* Products that are too large for product_tiny.h and small enough that BLAS spends much of its time on preparing; for one
 * floating type T; included by product_isa.h.
 *
 * A panel of columns of B lies in the first cache, in order, while all rows of A pass it: MIDDLE_ROWS rows by two vectors of
 * columns are summed in registers. A is read where it is. The sum over k runs in order and with fused steps for every element,
 * in full tiles and in what is left over, so an element has the same bits wherever it stands.
 *
 * Measured on one core of a machine whose peak is 116 GFLOP/s, against OpenBLAS 0.3: 64 x 64 times 64 x 64 transposed 5.5 us and
 * 7.9, 128 38 and 48; not transposed 5.1 and 5.0, 37 and 42. Larger ones take it piece by piece, see is_wide in product.c: 512 x 128
 * times 128 x 384 transposed, with a bias, 493 and 526, 256 x 640 times 640 x 64 192 and 214. */
enum { NAME(LANES) = VECTOR_BYTES / sizeof(T), NAME(WIDTH) = 2 * VECTOR_BYTES / sizeof(T) };

/* `rows` rows of A times `vectors` vectors of so many bytes of columns of B, whose rows are b_row apart. */
#define BLOCK(bytes)                                                                                                    \
    typedef T NAME(vec##bytes) __attribute__((vector_size(bytes)));                                                     \
    typedef T NAME(loose##bytes) __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));                    \
    static inline __attribute__((always_inline)) void NAME(block##bytes)(const int rows, const int vectors, ptrdiff_t depth, \
        const T *a, ptrdiff_t a_row, ptrdiff_t a_col, const T *b, ptrdiff_t b_row, const T *start, ptrdiff_t start_row, \
        T *to, ptrdiff_t to_row) {                                                                                      \
        enum { LANES = bytes / sizeof(T) };                                                                             \
        NAME(vec##bytes) sum[MIDDLE_ROWS][2];                                                                           \
        for (int r = 0; r < rows; r++)                                                                                  \
            for (int q = 0; q < vectors; q++) sum[r][q] = (NAME(vec##bytes)){0};                                        \
        for (ptrdiff_t p = 0; p < depth; p++, a += a_col, b += b_row) {                                                 \
            NAME(vec##bytes) columns[2];                                                                                \
            for (int q = 0; q < vectors; q++) columns[q] = *(const NAME(loose##bytes) *)(b + q * LANES);                \
            for (int r = 0; r < rows; r++)                                                                              \
                for (int q = 0; q < vectors; q++) sum[r][q] = FUSED(bytes, a[r * a_row], columns[q], sum[r][q]);        \
        }                                                                                                               \
        for (int r = 0; r < rows; r++)                                                                                  \
            for (int q = 0; q < vectors; q++) {                                                                         \
                if (start) sum[r][q] = sum[r][q] + *(const NAME(loose##bytes) *)(start + r * start_row + q * LANES);    \
                *(NAME(loose##bytes) *)(to + r * to_row + q * LANES) = sum[r][q];                                       \
            }                                                                                                           \
    }
BLOCK(16)
#if VECTOR_BYTES > 16
BLOCK(32)
#endif
#if VECTOR_BYTES > 32
BLOCK(64)
#endif
#undef BLOCK

/* Columns of B next to each other, up to `filled` with zeros. */
static void NAME(lay)(const tgx_shape *s, const T *b, ptrdiff_t columns, ptrdiff_t filled, T *panel) {
    const ptrdiff_t width = NAME(WIDTH), fours = s->b_row == 1 ? columns / 4 * 4 : 0, depth = s->k;
    ptrdiff_t k = 0;
    for (; fours && k + 4 <= depth; k += 4)
        for (ptrdiff_t j = 0; j < fours; j += 4) TURN(b + j * s->b_col + k, s->b_col, panel + k * width + j, width);
    for (; k < depth; k++)
        for (ptrdiff_t j = 0; j < fours; j++) panel[k * width + j] = b[j * s->b_col + k * s->b_row];
    if (s->b_col == 1 && columns == NAME(WIDTH)) {     /* two moves each, where a loop of unknown length takes four times as long */
        for (k = 0; k < depth; k++) memcpy(panel + k * width, b + k * s->b_row, NAME(WIDTH) * sizeof(T));
    } else if (s->b_col == 1) {
        for (k = 0; k < depth; k++)
            for (ptrdiff_t j = fours; j < columns; j++) panel[k * width + j] = b[k * s->b_row + j];
    } else {
        for (ptrdiff_t j = fours; j < columns; j++)
            for (k = 0; k < depth; k++) panel[k * width + j] = b[k * s->b_row + j * s->b_col];
    }
    for (k = 0; k < depth; k++)
        for (ptrdiff_t j = columns; j < filled; j++) panel[k * width + j] = 0;
}

/* Sums of one row go where they belong. */
static inline void NAME(finish)(const tgx_small *p, ptrdiff_t i, ptrdiff_t j, ptrdiff_t columns, const T *restrict sums) {
    const tgx_shape *s = &p->s;
    T *to = (T *)p->c + i * s->c_row + j * s->c_col;
    const T *start = (const T *)p->start;
    if (start) start += i * p->start_row + j * p->start_col;
    if (s->c_col == 1 && p->alpha == 1 && !start) 
        for (ptrdiff_t q = 0; q < columns; q++) to[q] = sums[q];
    else if (s->c_col == 1 && p->alpha == 1 && p->beta == 1 && p->start_col == 1)
        for (ptrdiff_t q = 0; q < columns; q++) to[q] = sums[q] + start[q];
    else
        for (ptrdiff_t q = 0; q < columns; q++) to[q * s->c_col] = NAME(end)(p, i, j + q, sums[q]);
}

/* All rows times a panel, so many at a time. */
#define MIDDLE_ROWS_OF(rows, bytes, vectors)                                                                             \
    for (; i + (rows) <= s->m; i += (rows)) {                                                                            \
        T *to = direct ? (T *)p->c + i * s->c_row + j : sums;                                                            \
        NAME(block##bytes)(rows, vectors, s->k, a + i * s->a_row, s->a_row, s->a_col, b, b_row, from ? from + i * p->start_row : NULL, \
                           p->start_row, to, direct ? s->c_row : NAME(WIDTH));                                           \
        for (ptrdiff_t r = 0; !direct && r < (rows); r++) NAME(finish)(p, i + r, j, columns, sums + r * NAME(WIDTH));    \
    }
#define MIDDLE_PASS(bytes, vectors)                                                                                      \
    do {                                                                                                                 \
        MIDDLE_ROWS_OF(MIDDLE_ROWS, bytes, vectors)                                                                      \
        MIDDLE_ROWS_OF(4, bytes, vectors)                                                                                \
        MIDDLE_ROWS_OF(1, bytes, vectors)                                                                                \
    } while (0)

static void NAME(middle)(const tgx_small *p) {
    enum { L = NAME(LANES), W = NAME(WIDTH) };
    const tgx_shape *s = &p->s;
    tgx_small flipped;
    if (s->c_col != 1 && s->c_row == 1) { /* by columns, which are the rows of the product of the transposed */
        flipped = tgx_flipped(p);
        p = &flipped, s = &p->s;
    }
    const T *a = p->a;
    T panel[TGX_MIDDLE_DEPTH * W] __attribute__((aligned(64))), sums[MIDDLE_ROWS * W];
    for (ptrdiff_t j = 0, columns; j < s->n; j += columns) {
        const ptrdiff_t left = s->n - j, quarter = 16 / (ptrdiff_t)sizeof(T);
        const ptrdiff_t width = left > L + L / 2 ? W : left > L / 2 || L == quarter ? L : left > quarter ? L / 2 : quarter;
        columns = left < width ? left : width;
        const int adds = p->start && p->beta == 1 && p->start_col == 1;
        const int direct = columns == width && s->c_col == 1 && p->alpha == 1 && (adds || !p->start);
        const T *from = direct && adds ? (const T *)p->start + j : NULL;
        const T *b = (const T *)p->b + j * s->b_col;
        ptrdiff_t b_row = s->b_row, i = 0;
        if (s->b_col != 1 || columns < width || (s->m >= MANY_ROWS && s->b_row * (ptrdiff_t)sizeof(T) >= FAR)) {
            NAME(lay)(s, b, columns, width, panel);
            b = panel, b_row = W;
        }
#if VECTOR_BYTES == 64
        if (width == W) MIDDLE_PASS(64, 2);
        else if (width == L) MIDDLE_PASS(64, 1);
#elif VECTOR_BYTES == 32
        if (width == W) MIDDLE_PASS(32, 2);
        else if (width == L) MIDDLE_PASS(32, 1);
#else
        if (width == W) MIDDLE_PASS(16, 2);
        else MIDDLE_PASS(16, 1);
#endif
#if VECTOR_BYTES > 32
        else if (width == L / 2) MIDDLE_PASS(32, 1);
#endif
#if VECTOR_BYTES > 16
        else MIDDLE_PASS(16, 1);
#endif
    }
}
#undef MIDDLE_PASS
#undef MIDDLE_ROWS_OF
