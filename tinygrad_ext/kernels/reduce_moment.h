/* Variance: sum and sum of squares of the distance to the block's first element, in double.
 *
 * That element belongs to the data, so the sum of squares is at most (n + 1) times the wanted one and cancellation
 * costs at most log2(2048) bits; one pass does. Blocks merge by Chan's formula. State: a mean, b sum of squared
 * deviations, i number of elements. */

#define VAR(S) \
BLOCK_FN(var_##S) { \
    const S_##S *x = (const S_##S *)p; \
    double sum[LANES] = {0}, square[LANES] = {0}, shift = n ? x[0] : 0; \
    int64_t i = 0; \
    for (; i + LANES <= n; i += LANES) { \
        SIMD for (int l = 0; l < LANES; l++) { \
            double d = x[i + l] - shift; sum[l] = sum[l] + d; square[l] = square[l] + d * d; } } \
    for (int l = 0; i + l < n; l++) { double d = x[i + l] - shift; sum[l] += d; square[l] += d * d; } \
    FOLD(sum, ADD); \
    FOLD(square, ADD); \
    var_state(acc, 0, shift, sum[0], square[0], n); } \
ROWS_FN(var_##S) { \
    double sum[LANES][TGX_TILE], square[LANES][TGX_TILE], shift[TGX_TILE]; \
    int used = n < LANES ? (int)n : LANES; \
    for (int c = 0; c < w; c++) shift[c] = ((const S_##S *)rows[0])[c]; \
    for (int l = 0; l < used; l++) { \
        const S_##S *x = (const S_##S *)rows[l]; \
        SIMD for (int c = 0; c < w; c++) { double d = x[c] - shift[c]; sum[l][c] = 0.0 + d; square[l][c] = d * d; } } \
    for (int64_t r = LANES; r < n; r++) { \
        const S_##S *x = (const S_##S *)rows[r]; \
        double *s = sum[r % LANES], *q = square[r % LANES]; \
        SIMD for (int c = 0; c < w; c++) { double d = x[c] - shift[c]; s[c] = s[c] + d; q[c] = q[c] + d * d; } } \
    for (int h = LANES / 2; h; h /= 2) \
        for (int l = 0; l < h && l + h < used; l++) \
            for (int c = 0; c < w; c++) { sum[l][c] += sum[l + h][c]; square[l][c] += square[l + h][c]; } \
    for (int c = 0; c < w; c++) var_state(acc, c, shift[c], sum[0][c], square[0][c], n); }

static inline void var_state(tgx_acc *acc, int c, double shift, double sum, double square, int64_t n) {
    double mean = n ? sum / n : 0, rest = square - sum * mean;
    acc->a[c] = shift + mean;
    acc->b[c] = rest < 0 ? 0 : rest; /* a NaN stays */
    acc->i[c] = n;
}
VAR(f32) VAR(f64)

/* Complex numbers: the variances of both parts added up. State: a and at (as a double) the mean, b and i as above. */
#define MEAN_IM(acc, c) (*(double *)&(acc)->at[c])

#define COMPLEX_VAR(S, F) \
static void var_one_##S(const char *p, ptrdiff_t stride, int64_t n, int c, tgx_acc *acc) { \
    double sum_re = 0, sum_im = 0, square = 0, re = n ? ((const F *)p)[0] : 0, im = n ? ((const F *)p)[1] : 0; \
    for (int64_t i = 0; i < n; i++, p += stride) { \
        double x = ((const F *)p)[0] - re, y = ((const F *)p)[1] - im; \
        sum_re += x, sum_im += y, square += x * x + y * y; } \
    var_state(acc, c, re, sum_re, square, n); \
    var_imaginary(acc, c, im, sum_im, square - (n ? sum_re / n * sum_re : 0), n); } \
BLOCK_FN(var_##S) { var_one_##S(p, sizeof(S_##S), n, 0, acc); } \
ROWS_FN(var_##S) { \
    S_##S column[TGX_BLOCK]; \
    for (int c = 0; c < w; c++) { \
        for (int64_t r = 0; r < n; r++) column[r] = ((const S_##S *)rows[r])[c]; \
        var_one_##S((const char *)column, sizeof(S_##S), n, c, acc); } }

static inline void var_imaginary(tgx_acc *acc, int c, double shift, double sum, double square, int64_t n) {
    double mean = n ? sum / n : 0, rest = square - sum * mean;
    MEAN_IM(acc, c) = shift + mean;
    acc->b[c] = rest < 0 ? 0 : rest;
}
COMPLEX_VAR(c64, float) COMPLEX_VAR(c128, double)

MERGE_FN(merge_var_pairs) {
    for (int c = 0; c < w; c++) {
        double n = acc->i[c], m = later->i[c], d = later->a[c] - acc->a[c], e = MEAN_IM(later, c) - MEAN_IM(acc, c);
        acc->a[c] += d * (m / (n + m)), MEAN_IM(acc, c) += e * (m / (n + m));
        acc->b[c] += later->b[c] + (d * d + e * e) * (n * m / (n + m));
        acc->i[c] += later->i[c];
    }
}

MERGE_FN(merge_var) {
    for (int c = 0; c < w; c++) {
        double n = acc->i[c], m = later->i[c], d = later->a[c] - acc->a[c];
        acc->a[c] += d * (m / (n + m));
        acc->b[c] += later->b[c] + d * d * (n * m / (n + m));
        acc->i[c] += later->i[c];
    }
}

/* aux[0].f: correction; aux[1].i: the root is wanted. out2, if there is one, takes the mean. */
#define PUT_VAR(NAME, S, MEAN, WHOLE) FINISH_FN(put_var_##NAME) { \
    double freedom = count - aux[0].f; \
    if (freedom < 0) freedom = 0; \
    for (int c = 0; c < w; c++) { \
        double v = count ? acc->b[c] / freedom : NAN; \
        *(S_##S *)(out + c * stride) = (S_##S)(aux[1].i ? sqrt(v) : v); \
        if (out2) *(S_##MEAN *)(out2 + c * stride2) = (S_##MEAN)(count ? WHOLE : NAN); } }
PUT_VAR(f32, f32, f32, acc->a[c]) PUT_VAR(f64, f64, f64, acc->a[c])
#define WHOLE_MEAN __builtin_complex(acc->a[c], *(const double *)&acc->at[c])
PUT_VAR(c64, f32, c64, WHOLE_MEAN) PUT_VAR(c128, f64, c128, WHOLE_MEAN)
