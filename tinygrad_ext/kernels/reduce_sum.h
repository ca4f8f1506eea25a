/* Reducers that add or multiply. Lane l of a block takes elements l, l + 16, ...; see reduce.h for the order. */

#define ADD(x, y) ((x) + (y))
#define MUL(x, y) ((x) * (y))

/* What does not fill the lanes. With masks a vector is filled up with what changes nothing: one by one, the fold would wait. */
#ifdef __AVX2__
#define REST_OF_LANES(S, START, STEP) \
    const int left = (int)(n - i); \
    if (left) { SIMD for (int l = 0; l < LANES; l++) lane[l] = STEP(lane[l], l < left ? GET_##S(x[i + l]) : NOTHING_##STEP(START)); }
#else
#define REST_OF_LANES(S, START, STEP) for (int l = 0; i + l < n; l++) lane[l] = STEP(lane[l], GET_##S(x[i + l]));
#endif

/* A: accumulator type, M: member of tgx_acc, START: neutral value, STEP(acc, x): take in one element of storage S.
 * In `rows`, lanes are rows of a table; a first row is stored instead of added to START, which gives the same bits. */
#define LANED(NAME, S, A, M, START, STEP, OP) \
BLOCK_FN(NAME) { \
    const S_##S *x = (const S_##S *)p; \
    A lane[LANES]; \
    int64_t i = 0; \
    for (int l = 0; l < LANES; l++) lane[l] = START; \
    for (; i + LANES <= n; i += LANES) { \
        SIMD for (int l = 0; l < LANES; l++) lane[l] = STEP(lane[l], GET_##S(x[i + l])); } \
    REST_OF_LANES(S, START, STEP) \
    FOLD(lane, OP); \
    acc->M[0] = lane[0]; } \
ROWS_FN(NAME) { \
    A lane[LANES][TGX_TILE]; \
    int used = n < LANES ? (int)n : LANES; \
    for (int l = 0; l < used; l++) { \
        const S_##S *x = (const S_##S *)rows[l]; \
        SIMD for (int c = 0; c < w; c++) lane[l][c] = STEP((A)START, GET_##S(x[c])); } \
    for (int64_t r = LANES; r < n; r++) { \
        const S_##S *x = (const S_##S *)rows[r]; \
        A *to = lane[r % LANES]; \
        SIMD for (int c = 0; c < w; c++) to[c] = STEP(to[c], GET_##S(x[c])); } \
    for (int h = LANES / 2; h; h /= 2) \
        for (int l = 0; l < h && l + h < used; l++) { \
            SIMD for (int c = 0; c < w; c++) lane[l][c] = OP(lane[l][c], lane[l + h][c]); } \
    SIMD for (int c = 0; c < w; c++) acc->M[c] = lane[0][c]; }

#define STEP_SUM(a, x) ((a) + (x))
#define STEP_NANSUM(a, x) ((a) + ((x) == (x) ? (x) : 0))
#define STEP_PROD(a, x) ((a) * (x))
#define STEP_ABS(a, x) ((a) + fabs((double)(x)))
#define STEP_SQUARE(a, x) ((a) + (double)(x) * (double)(x))
#define STEP_POWER(a, x) ((a) + vm_pow_f64(fabs((double)(x)), aux[0].f))
#define STEP_COUNT(a, x) ((a) + ((x) != 0))

/* An element that changes nothing. */
#define NOTHING_STEP_SUM(start) (start)
#define NOTHING_STEP_NANSUM(start) (start)
#define NOTHING_STEP_PROD(start) (start)
#define NOTHING_STEP_ABS(start) (start)
#define NOTHING_STEP_SQUARE(start) (start)
#define NOTHING_STEP_COUNT(start) (start)
#define NOTHING_STEP_POWER(start) (aux[0].f > 0 ? 0 : INFINITY)
#define NOTHING_STEP_CABS NOTHING_STEP_ABS
#define NOTHING_STEP_CSQUARE NOTHING_STEP_SQUARE
#define NOTHING_STEP_CPOWER NOTHING_STEP_POWER

#define INT_FOLDS(S) \
    LANED(sum_##S, S, uint64_t, i, 0, STEP_SUM, ADD) LANED(prod_##S, S, uint64_t, i, 1, STEP_PROD, MUL) \
    LANED(count_##S, S, int64_t, i, 0, STEP_COUNT, ADD)
INT_FOLDS(b8) INT_FOLDS(u8) INT_FOLDS(i8) INT_FOLDS(i16) INT_FOLDS(i32) INT_FOLDS(i64)

LANED(count_f16, f16, int64_t, i, 0, STEP_COUNT, ADD)
LANED(count_bf16, bf16, int64_t, i, 0, STEP_COUNT, ADD)
LANED(count_c64, c64, int64_t, i, 0, STEP_COUNT, ADD)
LANED(count_c128, c128, int64_t, i, 0, STEP_COUNT, ADD)

LANED(lanes_f64, f64, double, a, 0, STEP_SUM, ADD)
#define sum_f64_block lanes_f64_block
ROWS_FN(sum_f64) {
    if (n && n <= LANES) {
        few_rows_double(rows, (int)n, w, acc->a);
        return;
    }
    IF_MANY(double, 16, w, acc->a)
    lanes_f64_rows(rows, n, w, start, aux, acc);
}

/* float32: four elements, 16 apart, are added in float before they go to their double lane. One rounding or two
 * in float cost less than half an ulp of the result's, and the conversion to double is not the bottleneck. */
#define FOUR(x, l, step) ((x[l] + x[(l) + (step)]) + (x[(l) + 2 * (step)] + x[(l) + 3 * (step)]))
#define GROUP (4 * LANES)

HALF_WIDTH BLOCK_FN(sum_f32) {
    const float *x = (const float *)p;
    double lane[LANES];
    int64_t i = 0;
    if (n >= GROUP) {                                       /* zeros stored first cost as much as a group */
        SIMD for (int l = 0; l < LANES; l++) lane[l] = 0.0 + (double)FOUR(x, l, LANES);
        i = GROUP, x += GROUP;
    } else memset(lane, 0, sizeof lane);
    for (; i + GROUP <= n; i += GROUP, x += GROUP) {
        SIMD for (int l = 0; l < LANES; l++) lane[l] = lane[l] + (double)FOUR(x, l, LANES);
    }
    for (; i + LANES <= n; i += LANES, x += LANES) {
        SIMD for (int l = 0; l < LANES; l++) lane[l] = lane[l] + (double)x[l];
    }
    double *to = lane;                                      /* the rest by pieces: one by one, the fold would wait for each */
    const int64_t left = n - i;
#define PIECE(w) if (left & (w)) { SIMD for (int l = 0; l < (w); l++) to[l] = to[l] + (double)x[l]; to += (w), x += (w); }
    PIECE(8) PIECE(4) PIECE(2) PIECE(1)
    FOLD(lane, ADD);
    acc->a[0] = lane[0];
}

/* Halves: the same in lanes of float, whose 24 bits are enough for a block of numbers of 8 or 11. PART lanes at a time: sixteen
 * would be converted as two parts of one vector and then taken apart. */
#ifdef TGX_HALF_VECTORS
#define PART 8
#define PART_f16 widen_8
#define PART_bf16 widen_8_bf16
#else
#define widen_16(to, x) for (int l = 0; l < 16; l++) (to)[l] = tgx_f16_to_f32((x)[l])
#define PART LANES
#define PART_f16 WIDEN_f16
#define PART_bf16 WIDEN_bf16
#endif
#define WIDEN_f16(to, x) widen_16(to, x)
#define WIDEN_bf16(to, x) SIMD for (int l = 0; l < 16; l++) (to)[l] = tgx_bf16_to_f32((x)[l])

/* Rows lie apart. In strips of two cache lines each load goes by the same step from row to row, which processors foresee where the
 * step is short; beyond that, and for few rows, whole tiles are quicker. */
#define STRIP 32
#define HALF_STRIP 64
static inline int near_rows(const char *const *rows, int64_t n, int w) {
    return n > GROUP && w % HALF_STRIP == 0 && rows[1] - rows[0] <= 4096;
}

#define STRIPS(S, T, A, WIDTH) \
static void strips_##S(const T *const *at, int64_t n, int w, double *sum) { \
    for (int c = 0; c < w; c += WIDTH) { \
        A lane[LANES][WIDTH]; \
        int64_t r = 0; \
        memset(lane, 0, sizeof lane); \
        for (; r + GROUP <= n; r += GROUP) \
            for (int l = 0; l < LANES; l++) \
                add_four_##S(at[r + l] + c, at[r + l + LANES] + c, at[r + l + 2 * LANES] + c, at[r + l + 3 * LANES] + c, lane[l], WIDTH); \
        for (; r < n; r++) add_row_##S(at[r] + c, lane[r % LANES], WIDTH); \
        for (int h = LANES / 2; h; h /= 2) \
            for (int l = 0; l < h; l++) { \
                SIMD for (int k = 0; k < WIDTH; k++) lane[l][k] = lane[l][k] + lane[l + h][k]; } \
        SIMD for (int k = 0; k < WIDTH; k++) sum[c + k] = lane[0][k]; \
    } \
}

#define HALF_SUM(S) \
HALF_WIDTH BLOCK_FN(sum_##S) { \
    const uint16_t *x = (const uint16_t *)p; \
    float lane[LANES] = {0}; \
    int64_t i = 0; \
    for (; i + GROUP <= n; i += GROUP, x += GROUP) { \
        _Pragma("GCC unroll 2") for (int k = 0; k < LANES; k += PART) { \
            float a[PART], b[PART], c[PART], d[PART]; \
            PART_##S(a, x + k); PART_##S(b, x + k + LANES); PART_##S(c, x + k + 2 * LANES); PART_##S(d, x + k + 3 * LANES); \
            SIMD for (int l = 0; l < PART; l++) lane[k + l] = lane[k + l] + ((a[l] + b[l]) + (c[l] + d[l])); \
        } \
    } \
    for (; i + LANES <= n; i += LANES, x += LANES) { \
        float a[LANES]; \
        WIDEN_##S(a, x); \
        SIMD for (int l = 0; l < LANES; l++) lane[l] = lane[l] + a[l]; \
    } \
    for (int l = 0; i + l < n; l++) lane[l] = lane[l] + GET_##S(x[l]); \
    FOLD(lane, ADD); \
    acc->a[0] = lane[0]; } \
static inline void add_four_##S(const uint16_t *a, const uint16_t *b, const uint16_t *c, const uint16_t *d, float *to, int w) { \
    for (; w >= 16; w -= 16, a += 16, b += 16, c += 16, d += 16, to += 16) { \
        float p[16], q[16], r[16], s[16]; \
        WIDEN_##S(p, a); WIDEN_##S(q, b); WIDEN_##S(r, c); WIDEN_##S(s, d); \
        SIMD for (int l = 0; l < 16; l++) to[l] = to[l] + ((p[l] + q[l]) + (r[l] + s[l])); \
    } \
    for (int k = 0; k < w; k++) to[k] = to[k] + ((GET_##S(a[k]) + GET_##S(b[k])) + (GET_##S(c[k]) + GET_##S(d[k]))); \
} \
static inline void add_row_##S(const uint16_t *x, float *to, int w) { \
    for (; w >= 16; w -= 16, x += 16, to += 16) { \
        float p[16]; \
        WIDEN_##S(p, x); \
        SIMD for (int l = 0; l < 16; l++) to[l] = to[l] + p[l]; \
    } \
    for (int k = 0; k < w; k++) to[k] = to[k] + GET_##S(x[k]); \
} \
STRIPS(S, uint16_t, float, HALF_STRIP) \
ROWS_FN(sum_##S) { \
    float lane[LANES][TGX_TILE]; \
    const uint16_t *const *at = (const uint16_t *const *)rows; \
    if (near_rows(rows, n, w)) { \
        strips_##S(at, n, w, acc->a); \
        return; \
    } \
    int used = n < LANES ? (int)n : LANES; \
    int64_t r = 0; \
    for (int l = 0; l < used; l++) memset(lane[l], 0, w * sizeof(float)); \
    for (; r + GROUP <= n; r += GROUP) \
        for (int l = 0; l < LANES; l++) \
            add_four_##S(at[r + l], at[r + l + LANES], at[r + l + 2 * LANES], at[r + l + 3 * LANES], lane[l], w); \
    for (; r < n; r++) add_row_##S(at[r], lane[r % LANES], w); \
    for (int h = LANES / 2; h; h /= 2) \
        for (int l = 0; l < h && l + h < used; l++) { \
            SIMD for (int c = 0; c < w; c++) lane[l][c] = lane[l][c] + lane[l + h][c]; } \
    SIMD for (int c = 0; c < w; c++) acc->a[c] = lane[0][c]; }
HALF_SUM(f16) HALF_SUM(bf16)

/* Whole rows of float32. */
static inline void add_four_f32(const float *a, const float *b, const float *c, const float *d, double *to, int w) {
    SIMD for (int k = 0; k < w; k++) to[k] = to[k] + (double)((a[k] + b[k]) + (c[k] + d[k]));
}
static inline void add_row_f32(const float *x, double *to, int w) { SIMD for (int k = 0; k < w; k++) to[k] = to[k] + x[k]; }
STRIPS(f32, float, double, STRIP)

#define PACKED 32 /* columns up to which 16 rows are taken as one */

/* Rows behind each other: lane l of column c is element l * w + c of 16 rows. */
static void packed_rows(const float *x, int64_t n, int w, double *sum) {
    double lane[LANES * PACKED] = {0};
    int width = LANES * w;
    int64_t r = 0;
    for (; r + GROUP <= n; r += GROUP, x += 4 * width)
        add_four_f32(x, x + width, x + 2 * width, x + 3 * width, lane, width);
    for (; r < n; r++, x += w)
        for (int c = 0; c < w; c++) lane[r % LANES * w + c] += x[c];
    for (int h = width / 2; h >= w; h /= 2) {
        const double *upper = lane + h;
        SIMD for (int k = 0; k < h; k++) lane[k] = lane[k] + upper[k];
    }
    memcpy(sum, lane, w * sizeof(double));
}

ROWS_FN(sum_f32) {
    double lane[LANES][TGX_TILE];
    if (n && n <= LANES) {
        few_rows_float(rows, (int)n, w, acc->a);
        return;
    }
    IF_MANY(float, 16, w, acc->a)
    if (near_rows(rows, n, w)) {
        strips_f32((const float *const *)rows, n, w, acc->a);
        return;
    }
    if (w <= PACKED && n > LANES && rows[n - 1] - rows[0] == (n - 1) * w * (ptrdiff_t)sizeof(float)
        && rows[1] - rows[0] == w * (ptrdiff_t)sizeof(float)) {
        packed_rows((const float *)rows[0], n, w, acc->a);
        return;
    }
    int used = n < LANES ? (int)n : LANES;
    int64_t r = 0;
    if (n < GROUP) { /* the first rows are stored, which gives the bits of adding them to zero */
        for (; r < used; r++) {
            const float *x = (const float *)rows[r];
            SIMD for (int c = 0; c < w; c++) lane[r][c] = 0.0 + x[c];
        }
    } else {
        for (int l = 0; l < LANES; l++) memset(lane[l], 0, w * sizeof(double));
    }
    for (; r + GROUP <= n; r += GROUP)
        for (int l = 0; l < LANES; l++) {
            const float *const *at = (const float *const *)rows + r + l;
            add_four_f32(at[0], at[LANES], at[2 * LANES], at[3 * LANES], lane[l], w);
        }
    for (; r < n; r++) {
        const float *x = (const float *)rows[r];
        double *to = lane[r % LANES];
        SIMD for (int c = 0; c < w; c++) to[c] = to[c] + x[c];
    }
    for (int h = LANES / 2; h; h /= 2)
        for (int l = 0; l < h && l + h < used; l++) {
            SIMD for (int c = 0; c < w; c++) lane[l][c] = lane[l][c] + lane[l + h][c];
        }
    memcpy(acc->a, lane[0], w * sizeof(double));
}

#define FLOAT_FOLDS(S) \
    LANED(prod_##S, S, double, a, 1, STEP_PROD, MUL) LANED(count_##S, S, int64_t, i, 0, STEP_COUNT, ADD) \
    LANED(norm1_##S, S, double, a, 0, STEP_ABS, ADD) LANED(norm2_##S, S, double, a, 0, STEP_SQUARE, ADD) \
    LANED(normp_##S, S, double, a, 0, STEP_POWER, ADD)
FLOAT_FOLDS(f32) FLOAT_FOLDS(f64)

/* Complex numbers: lanes take real and imaginary parts in turn, so that half as many numbers share a block's lanes. */
#define PAIR_LANES (LANES / 2)

static void put_pairs(const double *sum, int w, tgx_acc *acc) {
    SIMD for (int c = 0; c < w; c++) acc->a[c] = sum[2 * c], acc->b[c] = sum[2 * c + 1];
}

static void fold_pairs(double (*lane)[2 * TGX_TILE], int w, tgx_acc *acc) {
    for (int h = PAIR_LANES / 2; h; h /= 2)
        for (int l = 0; l < h; l++) {
            SIMD for (int c = 0; c < 2 * w; c++) lane[l][c] = lane[l][c] + lane[l + h][c];
        }
    put_pairs(lane[0], w, acc);
}

/* GROUPS(x): what is added up before it goes to the lanes. */
#define COMPLEX_SUM(S, F, BLOCK_GROUPS, ROW_GROUPS) \
BLOCK_FN(sum_##S) { \
    const F *x = (const F *)p; \
    double lane[LANES] = {0}; \
    int64_t i = 0; \
    n *= 2; \
    BLOCK_GROUPS \
    for (; i + LANES <= n; i += LANES, x += LANES) { SIMD for (int l = 0; l < LANES; l++) lane[l] = lane[l] + x[l]; } \
    for (; i < n; i++, x++) lane[i % LANES] += *x; \
    HALVE(lane, 8, ADD); HALVE(lane, 4, ADD); HALVE(lane, 2, ADD); \
    acc->a[0] = lane[0], acc->b[0] = lane[1]; } \
ROWS_FN(sum_##S) { \
    double lane[PAIR_LANES][2 * TGX_TILE]; \
    int64_t r = 0; \
    if (n && n <= LANES) { \
        few_rows_##F(rows, (int)n, 2 * w, lane[0]); \
        put_pairs(lane[0], w, acc); \
        return; \
    } \
    IF_MANY(F, 8, 2 * w, lane[0], put_pairs(lane[0], w, acc)) \
    for (int l = 0; l < PAIR_LANES; l++) memset(lane[l], 0, 2 * w * sizeof(double)); \
    ROW_GROUPS \
    for (; r < n; r++) { \
        const F *x = (const F *)rows[r]; \
        double *to = lane[r % PAIR_LANES]; \
        SIMD for (int c = 0; c < 2 * w; c++) to[c] = to[c] + x[c]; } \
    fold_pairs(lane, w, acc); }
#define FOURS_OF_BLOCK for (; i + GROUP <= n; i += GROUP, x += GROUP) { \
        SIMD for (int l = 0; l < LANES; l++) lane[l] = lane[l] + (double)FOUR(x, l, LANES); }
#define FOURS_OF_ROWS for (; r + GROUP / 2 <= n; r += GROUP / 2) \
        for (int l = 0; l < PAIR_LANES; l++) { \
            const float *const *at = (const float *const *)rows + r + l; \
            add_four_f32(at[0], at[PAIR_LANES], at[2 * PAIR_LANES], at[3 * PAIR_LANES], lane[l], 2 * w); }
COMPLEX_SUM(c64, float, FOURS_OF_BLOCK, FOURS_OF_ROWS) COMPLEX_SUM(c128, double, , )

/* Products keep real and imaginary parts in lanes of their own. A first number is stored: one times it would turn parts of an
 * infinite number into nan. */
#define TIMES_INTO(re, im, c, d) do { const double a_ = re, b_ = im, c_ = c, d_ = d; re = a_ * c_ - b_ * d_, im = a_ * d_ + b_ * c_; } while (0)
#define COMPLEX_PROD(S, F) \
BLOCK_FN(prod_##S) { \
    const F *x = (const F *)p; \
    const int used = n < LANES ? (int)n : LANES; \
    double re[LANES], im[LANES]; \
    int64_t i = LANES; \
    for (int l = 0; l < LANES; l++) re[l] = 1, im[l] = 0; \
    for (int l = 0; l < used; l++) re[l] = x[2 * l], im[l] = x[2 * l + 1]; \
    for (; i + LANES <= n; i += LANES) { \
        SIMD for (int l = 0; l < LANES; l++) TIMES_INTO(re[l], im[l], x[2 * (i + l)], x[2 * (i + l) + 1]); } \
    for (int l = 0; i + l < n; l++) TIMES_INTO(re[l], im[l], x[2 * (i + l)], x[2 * (i + l) + 1]); \
    for (int h = LANES / 2; h; h /= 2) \
        for (int l = 0; l < h && l + h < used; l++) TIMES_INTO(re[l], im[l], re[l + h], im[l + h]); \
    acc->a[0] = re[0], acc->b[0] = im[0]; } \
ROWS_FN(prod_##S) { \
    double re[LANES][TGX_TILE], im[LANES][TGX_TILE]; \
    const int used = n < LANES ? (int)n : LANES; \
    for (int l = 0; l < used; l++) { \
        const F *x = (const F *)rows[l]; \
        SIMD for (int c = 0; c < w; c++) re[l][c] = x[2 * c], im[l][c] = x[2 * c + 1]; } \
    for (int64_t r = LANES; r < n; r++) { \
        const F *x = (const F *)rows[r]; \
        double *at = re[r % LANES], *bt = im[r % LANES]; \
        SIMD for (int c = 0; c < w; c++) TIMES_INTO(at[c], bt[c], x[2 * c], x[2 * c + 1]); } \
    for (int h = LANES / 2; h; h /= 2) \
        for (int l = 0; l < h && l + h < used; l++) { \
            SIMD for (int c = 0; c < w; c++) TIMES_INTO(re[l][c], im[l][c], re[l + h][c], im[l + h][c]); } \
    for (int c = 0; c < w; c++) acc->a[c] = n ? re[0][c] : 1, acc->b[c] = n ? im[0][c] : 0; }
COMPLEX_PROD(c64, float) COMPLEX_PROD(c128, double)

/* Norms of complex numbers are those of their absolute values. */
#define SQUARED(x) ((double)__real__(x) * (double)__real__(x) + (double)__imag__(x) * (double)__imag__(x))
#define STEP_CABS(a, x) ((a) + cabs((tgx_c128)(x)))
#define STEP_CSQUARE(a, x) ((a) + SQUARED(x))
#define STEP_CPOWER(a, x) ((a) + pow(cabs((tgx_c128)(x)), aux[0].f))
#define COMPLEX_NORMS(S) \
    LANED(norm1_##S, S, double, a, 0, STEP_CABS, ADD) LANED(norm2_##S, S, double, a, 0, STEP_CSQUARE, ADD) \
    LANED(normp_##S, S, double, a, 0, STEP_CPOWER, ADD)
COMPLEX_NORMS(c64) COMPLEX_NORMS(c128)

/* ---- merging and writing ---- */

MERGE_FN(add_a) { SIMD for (int c = 0; c < w; c++) acc->a[c] += later->a[c]; }
MERGE_FN(mul_a) { SIMD for (int c = 0; c < w; c++) acc->a[c] *= later->a[c]; }
MERGE_FN(add_i) { SIMD for (int c = 0; c < w; c++) acc->i[c] = (int64_t)((uint64_t)acc->i[c] + (uint64_t)later->i[c]); }
MERGE_FN(mul_i) { SIMD for (int c = 0; c < w; c++) acc->i[c] = (int64_t)((uint64_t)acc->i[c] * (uint64_t)later->i[c]); }
MERGE_FN(add_ab) { for (int c = 0; c < w; c++) { acc->a[c] += later->a[c]; acc->b[c] += later->b[c]; } }

MERGE_FN(mul_ab) { for (int c = 0; c < w; c++) TIMES_INTO(acc->a[c], acc->b[c], later->a[c], later->b[c]); }

#define PUT(NAME, S, VALUE) FINISH_FN(NAME) { \
    if (stride == sizeof(S_##S)) { SIMD for (int c = 0; c < w; c++) ((S_##S *)out)[c] = PUT_##S(VALUE); } \
    else for (int c = 0; c < w; c++) *(S_##S *)(out + c * stride) = PUT_##S(VALUE); }
#define PUT_FLOAT(S) PUT(put_a_##S, S, acc->a[c]) PUT(mean_##S, S, acc->a[c] / count)
PUT_FLOAT(f16) PUT_FLOAT(bf16)
PUT_FLOAT(f32) PUT_FLOAT(f64)
PUT(put_i, i64, acc->i[c]) PUT(put_i_f32, f32, acc->i[c]) PUT(put_i_f64, f64, acc->i[c])
PUT(put_i_b8, b8, acc->i[c]) PUT(put_i_u8, u8, acc->i[c]) PUT(put_i_i8, i8, acc->i[c])
PUT(put_i_i16, i16, acc->i[c]) PUT(put_i_i32, i32, acc->i[c]) PUT(put_i_i64, i64, acc->i[c])
PUT(put_ab_c64, c64, __builtin_complex((float)acc->a[c], (float)acc->b[c])) PUT(put_ab_c128, c128, __builtin_complex(acc->a[c], acc->b[c]))
PUT(mean_c64, c64, __builtin_complex((float)(acc->a[c] / count), (float)(acc->b[c] / count)))
PUT(mean_c128, c128, __builtin_complex(acc->a[c] / count, acc->b[c] / count))
PUT(root_f32, f32, sqrt(acc->a[c])) PUT(root_f64, f64, sqrt(acc->a[c]))
PUT(rootp_f32, f32, pow(acc->a[c], 1 / aux[0].f)) PUT(rootp_f64, f64, pow(acc->a[c], 1 / aux[0].f))
