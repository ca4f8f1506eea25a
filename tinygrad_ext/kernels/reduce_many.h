/* Sums of more rows than lanes in the registers of AVX-512: a cache line of each row at a time, first for eight lanes, then for the
 * others. Beyond the second cache tiles are quicker, which read more of a row at once. */
#ifdef __AVX512F__
#define INLINE static inline __attribute__((always_inline))

/* Numbers of row r from column k on, `half` a line further: as they are, or four rows of a lane added as floats, as in a block. */
INLINE __m256 floats_of(const void *const *at, int64_t r, int k, int half) { return _mm256_loadu_ps((const float *)at[r] + k + 8 * half); }
INLINE __m512d one_row(const void *const *at, int64_t r, int k, int half, const int wide) {
    return wide ? _mm512_loadu_pd((const double *)at[r] + k) : _mm512_cvtps_pd(floats_of(at, r, k, half));
}
INLINE __m512d four_rows(const void *const *at, int64_t r, int k, int half, const int lanes) {
    const __m256 low = _mm256_add_ps(floats_of(at, r, k, half), floats_of(at, r + lanes, k, half));
    return _mm512_cvtps_pd(_mm256_add_ps(low, _mm256_add_ps(floats_of(at, r + 2 * lanes, k, half), floats_of(at, r + 3 * lanes, k, half))));
}

INLINE void sum_rows(const void *const *at, int64_t n, const int lanes, const int wide, int w, double *sum) {
    const int columns = wide ? 8 : 16;
    for (int c = 0; c < w; c += columns) {
        const int k = c + columns <= w ? c : w - columns;
        __m512d first[8][2], lane[8][2];
        for (int side = 0; side < lanes / 8; side++) {
            int64_t r = 8 * side;
            _Pragma("GCC unroll 8") for (int l = 0; l < 8; l++) lane[l][0] = lane[l][1] = _mm512_setzero_pd();
            for (; !wide && r - 8 * side + 4 * lanes <= n; r += 4 * lanes) {
                _Pragma("GCC unroll 8") for (int l = 0; l < 8; l++) {
                    lane[l][0] = _mm512_add_pd(lane[l][0], four_rows(at, r + l, k, 0, lanes));
                    lane[l][1] = _mm512_add_pd(lane[l][1], four_rows(at, r + l, k, 1, lanes));
                }
            }
            for (; r < n; r += lanes) {
                _Pragma("GCC unroll 8") for (int l = 0; l < 8; l++) {
                    if (r + l >= n) continue;
                    lane[l][0] = _mm512_add_pd(lane[l][0], one_row(at, r + l, k, 0, wide));
                    if (!wide) lane[l][1] = _mm512_add_pd(lane[l][1], one_row(at, r + l, k, 1, wide));
                }
            }
            if (lanes > 8 && !side) memcpy(first, lane, sizeof first);
        }
        _Pragma("GCC unroll 2") for (int half = 0; half < columns / 8; half++) {
            __m512d x[8];
            _Pragma("GCC unroll 8") for (int l = 0; l < 8; l++) x[l] = lanes > 8 ? _mm512_add_pd(first[l][half], lane[l][half]) : lane[l][half];
            _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) x[l] = _mm512_add_pd(x[l], x[l + 4]);
            _mm512_storeu_pd(sum + k + 8 * half, _mm512_add_pd(_mm512_add_pd(x[0], x[2]), _mm512_add_pd(x[1], x[3])));
        }
    }
}

/* By themselves: the compiler finds registers for the sums only so. */
#define SUM_ROWS(name, lanes, wide) \
    static __attribute__((noinline)) void name(const void *const *at, int64_t n, int w, double *sum) { sum_rows(at, n, lanes, wide, w, sum); }
SUM_ROWS(sum_8_rows_of_float, 8, 0)
SUM_ROWS(sum_16_rows_of_float, 16, 0)
SUM_ROWS(sum_8_rows_of_double, 8, 1)
SUM_ROWS(sum_16_rows_of_double, 16, 1)
#undef INLINE

#define IF_MANY(T, lanes, w, to, ...) \
    if ((w) >= (int)(64 / sizeof(T)) && (uintptr_t)(rows[n - 1] - rows[0]) < 1 << 20) { \
        sum_##lanes##_rows_of_##T((const void *const *)rows, n, w, to); \
        __VA_ARGS__; \
        return; \
    }
#else
#define IF_MANY(T, lanes, w, to, ...)
#endif
