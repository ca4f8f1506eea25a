/* Sums that leave nan out: four floats are added as in sum_f32 before they are converted. */
#define NUMBER(x) ((x) == (x) ? (x) : 0)
#define FOUR_NUMBERS(a, b, c, d) (double)((NUMBER(a) + NUMBER(b)) + (NUMBER(c) + NUMBER(d)))
LANED(nansum_f64, f64, double, a, 0, STEP_NANSUM, ADD)
BLOCK_FN(nansum_f32) {
    const float *x = (const float *)p;
    double lane[LANES] = {0};
    int64_t i = 0;
    for (; i + GROUP <= n; i += GROUP) {
        SIMD for (int l = 0; l < LANES; l++)
            lane[l] = lane[l] + FOUR_NUMBERS(x[i + l], x[i + l + LANES], x[i + l + 2 * LANES], x[i + l + 3 * LANES]);
    }
    for (; i + LANES <= n; i += LANES) { SIMD for (int l = 0; l < LANES; l++) lane[l] = STEP_NANSUM(lane[l], x[i + l]); }
    REST_OF_LANES(f32, 0, STEP_NANSUM)
    FOLD(lane, ADD);
    acc->a[0] = lane[0];
}
ROWS_FN(nansum_f32) {
    const float *const *at = (const float *const *)rows;
    double lane[LANES][TGX_TILE];
    const int used = n < LANES ? (int)n : LANES;
    int64_t r = 0;
    for (int l = 0; l < used; l++) memset(lane[l], 0, w * sizeof(double));
    for (; r + GROUP <= n; r += GROUP)
        for (int l = 0; l < LANES; l++) {
            const float *a = at[r + l], *b = at[r + l + LANES], *c = at[r + l + 2 * LANES], *d = at[r + l + 3 * LANES];
            SIMD for (int k = 0; k < w; k++) lane[l][k] = lane[l][k] + FOUR_NUMBERS(a[k], b[k], c[k], d[k]);
        }
    for (; r < n; r++) {
        double *to = lane[r % LANES];
        SIMD for (int k = 0; k < w; k++) to[k] = STEP_NANSUM(to[k], at[r][k]);
    }
    for (int h = LANES / 2; h; h /= 2)
        for (int l = 0; l < h && l + h < used; l++) {
            SIMD for (int c = 0; c < w; c++) lane[l][c] = lane[l][c] + lane[l + h][c];
        }
    memcpy(acc->a, lane[0], w * sizeof(double));
}
