/* Products of matrices of complex numbers of parts T, included by product_isa.h. It needs T, NAME, FUSED and NAME(LANES).
 *
 * Numbers stay as they lie, real part beside imaginary part. For each row of A and each k two numbers are spread over vectors: of
 * B's vectors the real part's products go to one sum, the imaginary part's to another, whose parts are exchanged at the end. Where
 * columns of B are no vector, or far from each other, they are laid out first in panels of two vectors, row behind row. A is read
 * where it lies, or, if its rows do not lie in one piece, copied, k behind k. The sum over k runs in order, in parts, for each
 * element alike, wherever it stands.
 *
 * Measured on one core whose peak is 117 GFLOP/s of float32 and 58 of float64, 512 x 512 times 512 x 512: 111 and 55; OpenBLAS
 * 105 and 48. */
#if VECTOR_BYTES == 64
#define COMPLEX_ROWS 6           /* 24 of 32 registers hold sums */
#elif VECTOR_BYTES == 32
#define COMPLEX_ROWS 3           /* 12 of 16 */
#else
#define COMPLEX_ROWS 2
#endif

static inline void NAME(complex_copy)(T *to, const T *from) { memcpy(to, from, 2 * sizeof(T)); }

/* Columns of B as panels, the last one filled up with zeros. */
static void NAME(complex_lay)(const tgx_shape *s, const void *from, void *to) {
    enum { L = NAME(LANES) };
    const ptrdiff_t panel = 2 * L * s->k, whole = s->b_col == 1 ? s->n / L * L : 0;
    for (ptrdiff_t k = 0; whole && k < s->k; k++) {
        const T *b = (const T *)from + 2 * k * s->b_row;
        T *at = (T *)to + 2 * L * k;
        for (ptrdiff_t j = 0; j < whole; j += L, b += 2 * L, at += panel) memcpy(at, b, 2 * L * sizeof(T));
    }
    for (ptrdiff_t j = whole; j < (s->n + L - 1) / L * L; j++) {
        const T *b = (const T *)from + 2 * j * s->b_col;
        T *at = (T *)to + j / L * panel + j % L * 2;
        for (ptrdiff_t k = 0; k < s->k; k++, b += 2 * s->b_row, at += 2 * L) {
            if (j < s->n) NAME(complex_copy)(at, b);
            else at[0] = at[1] = 0;
        }
    }
}

/* `rows` rows of A times `vectors` vectors of B's columns; steps are in parts. */
static inline __attribute__((always_inline)) void NAME(complex_block)(const int rows, const int vectors, ptrdiff_t depth, const T *a,
    ptrdiff_t a_row, ptrdiff_t a_col, const T *b, ptrdiff_t b_row, T *to, ptrdiff_t to_row, int add) {
    enum { L = NAME(LANES) };
    NAME(full) straight[COMPLEX_ROWS][2], turned[COMPLEX_ROWS][2], sign;
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) {
            straight[r][q] = turned[r][q] = (NAME(full)){0};
            __builtin_prefetch(to + r * to_row + q * L, 1);
        }
    for (ptrdiff_t k = 0; k < depth; k++, a += a_col, b += b_row) {
        NAME(full) x[2];
        for (int q = 0; q < vectors; q++) x[q] = *(const NAME(open) *)(b + q * L);
        for (int r = 0; r < rows; r++)
            for (int q = 0; q < vectors; q++) {
                straight[r][q] = FUSED(VECTOR_BYTES, a[r * a_row], x[q], straight[r][q]);
                turned[r][q] = FUSED(VECTOR_BYTES, a[r * a_row + 1], x[q], turned[r][q]);
            }
    }
    for (int l = 0; l < L; l++) sign[l] = l % 2 ? 1 : -1;
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) {
            NAME(full) other, sum;
            for (int l = 0; l < L; l++) other[l] = turned[r][q][l ^ 1];
            sum = straight[r][q] + sign * other;
            if (add) sum += *(const NAME(open) *)(to + r * to_row + q * L);
            *(NAME(open) *)(to + r * to_row + q * L) = sum;
        }
}

/* By themselves: gcc finds a register for each sum only so. */
typedef void NAME(complex_tile)(ptrdiff_t depth, const T *a, ptrdiff_t a_row, ptrdiff_t a_col, const T *b, ptrdiff_t b_row, T *to,
                                ptrdiff_t to_row, int add);
#define COMPLEX_TILE(rows, vectors)                                                                                     \
    static __attribute__((noinline)) void NAME(complex_tile_##rows##_##vectors)(ptrdiff_t depth, const T *a,            \
        ptrdiff_t a_row, ptrdiff_t a_col, const T *b, ptrdiff_t b_row, T *to, ptrdiff_t to_row, int add) {              \
        NAME(complex_block)(rows, vectors, depth, a, a_row, a_col, b, b_row, to, to_row, add);                          \
    }
#define COMPLEX_TILES(rows) COMPLEX_TILE(rows, 1) COMPLEX_TILE(rows, 2)
#define COMPLEX_OF(rows) {NAME(complex_tile_##rows##_1), NAME(complex_tile_##rows##_2)}
COMPLEX_TILES(1)
COMPLEX_TILES(2)
#if COMPLEX_ROWS > 2
COMPLEX_TILES(3)
#endif
#if COMPLEX_ROWS > 3
COMPLEX_TILES(6)
#endif

/* Sums of one row that do not go where they belong as they are. */
static void NAME(complex_end)(const tgx_complex_rows *p, ptrdiff_t columns, const T *sums, T *c) {
    const T x = (T)p->alpha[0], y = (T)p->alpha[1], u = (T)p->beta[0], v = (T)p->beta[1];
    const int plain = x == 1 && y == 0, begun = u != 0 || v != 0, whole = u == 1 && v == 0;
    for (ptrdiff_t q = 0; q < columns; q++, sums += 2, c += 2 * p->s.c_col) {
        const T re = plain ? sums[0] : x * sums[0] - y * sums[1], im = plain ? sums[1] : x * sums[1] + y * sums[0];
        const T from = whole ? c[0] : begun ? u * c[0] - v * c[1] : 0, turned = whole ? c[1] : begun ? u * c[1] + v * c[0] : 0;
        c[0] = re + from, c[1] = im + turned;
    }
}

static void NAME(complex_times)(const tgx_complex_rows *p) {
#if COMPLEX_ROWS == 6
    static NAME(complex_tile) *const tiles[][2] = {COMPLEX_OF(1), COMPLEX_OF(2), COMPLEX_OF(3), COMPLEX_OF(3), COMPLEX_OF(3),
                                                   COMPLEX_OF(6)};
    static const int taken[] = {1, 2, 3, 3, 3, 6};
#elif COMPLEX_ROWS == 3
    static NAME(complex_tile) *const tiles[][2] = {COMPLEX_OF(1), COMPLEX_OF(2), COMPLEX_OF(3)};
    static const int taken[] = {1, 2, 3};
#else
    static NAME(complex_tile) *const tiles[][2] = {COMPLEX_OF(1), COMPLEX_OF(2)};
    static const int taken[] = {1, 2};
#endif
    enum { L = NAME(LANES) };
    const tgx_shape *s = &p->s;
    const int begun = p->beta[0] != 0 || p->beta[1] != 0;
    const int plain = p->alpha[0] == 1 && p->alpha[1] == 0 && s->c_col == 1 && (!begun || (p->beta[0] == 1 && p->beta[1] == 0));
    const T *a = p->a, *laid = p->packed;
    T copied[TGX_COMPLEX_DEPTH * 2 * TGX_COMPLEX_ROWS], sums[COMPLEX_ROWS * 2 * L];
    ptrdiff_t a_row = 2 * s->a_row, a_col = 2;
    if (s->a_col != 1) {
        T *to = copied;
        for (ptrdiff_t k = 0; k < s->k; k++, a += 2 * s->a_col, to += 2 * TGX_COMPLEX_ROWS)
            if (s->a_row == 1 && s->m == TGX_COMPLEX_ROWS) memcpy(to, a, 2 * TGX_COMPLEX_ROWS * sizeof(T));
            else for (ptrdiff_t r = 0; r < s->m; r++) NAME(complex_copy)(to + 2 * r, a + 2 * r * s->a_row);
        a = copied, a_row = 2, a_col = 2 * TGX_COMPLEX_ROWS;
    }
    for (ptrdiff_t j = 0, columns; j < s->n; j += columns) {
        columns = s->n - j < L ? s->n - j : L;
        const int vectors = columns > L / 2 ? 2 : 1, even = columns == vectors * L / 2, there = p->b && even, direct = plain && even;
        const T *b = there ? (const T *)p->b + 2 * j : laid;
        if (!there) laid += 2 * L * s->k;
        for (ptrdiff_t r = 0, rows; r < s->m; r += rows) {
            const ptrdiff_t most = s->m - r < COMPLEX_ROWS ? s->m - r : COMPLEX_ROWS;
            T *to = (T *)p->c + 2 * (r * s->c_row + j * s->c_col);
            rows = taken[most - 1];
            tiles[most - 1][vectors - 1](s->k, a + r * a_row, a_row, a_col, b, there ? 2 * s->b_row : 2 * L,
                                         direct ? to : sums, direct ? 2 * s->c_row : 2 * L, direct && begun);
            for (ptrdiff_t i = 0; !direct && i < rows; i++) NAME(complex_end)(p, columns, sums + i * 2 * L, to + 2 * i * s->c_row);
        }
    }
}
#undef COMPLEX_ROWS
#undef COMPLEX_TILE
#undef COMPLEX_TILES
#undef COMPLEX_OF
