/* Sums of eight outputs at once, whose elements lie behind each other: of each the lanes of a block in two registers of AVX-512, in
 * the order of sum_f32_block and lanes_f64_block, and one fold for all eight. Folded one by one, rows of 100 took three times as
 * long as their additions. */
#ifdef __AVX512F__
#define INLINE static inline __attribute__((always_inline))

INLINE void lanes_of_float(const float *x, int64_t n, __m512d lane[2]) {
    lane[0] = lane[1] = _mm512_setzero_pd();
    for (; n >= GROUP; n -= GROUP, x += GROUP) {
        _Pragma("GCC unroll 2") for (int half = 0; half < 2; half++) {
            const float *from = x + 8 * half;
            const __m256 low = _mm256_add_ps(_mm256_loadu_ps(from), _mm256_loadu_ps(from + LANES));
            const __m256 high = _mm256_add_ps(_mm256_loadu_ps(from + 2 * LANES), _mm256_loadu_ps(from + 3 * LANES));
            lane[half] = _mm512_add_pd(lane[half], _mm512_cvtps_pd(_mm256_add_ps(low, high)));
        }
    }
    for (; n >= LANES; n -= LANES, x += LANES) {
        lane[0] = _mm512_add_pd(lane[0], _mm512_cvtps_pd(_mm256_loadu_ps(x)));
        lane[1] = _mm512_add_pd(lane[1], _mm512_cvtps_pd(_mm256_loadu_ps(x + 8)));
    }
    const unsigned left = (1u << n) - 1;
    const __m512 rest = _mm512_maskz_loadu_ps((__mmask16)left, x);
    lane[0] = _mm512_mask_add_pd(lane[0], (__mmask8)left, lane[0], _mm512_cvtps_pd(_mm512_castps512_ps256(rest)));
    lane[1] = _mm512_mask_add_pd(lane[1], (__mmask8)(left >> 8), lane[1],
                                 _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(rest), 1))));
}

INLINE void lanes_of_double(const double *x, int64_t n, __m512d lane[2]) {
    lane[0] = lane[1] = _mm512_setzero_pd();
    for (; n >= LANES; n -= LANES, x += LANES) {
        lane[0] = _mm512_add_pd(lane[0], _mm512_loadu_pd(x));
        lane[1] = _mm512_add_pd(lane[1], _mm512_loadu_pd(x + 8));
    }
    const unsigned left = (1u << n) - 1;
    lane[0] = _mm512_mask_add_pd(lane[0], (__mmask8)left, lane[0], _mm512_maskz_loadu_pd((__mmask8)left, x));
    lane[1] = _mm512_mask_add_pd(lane[1], (__mmask8)(left >> 8), lane[1], _mm512_maskz_loadu_pd((__mmask8)(left >> 8), x + 8));
}

/* Halves of two outputs after halves, until eight sums fill a register. */
INLINE __m512d folded(const __m512d *x) {
    __m512d four[4], two[2];
    for (int k = 0; k < 4; k++) {
        const __m512d a = x[2 * k], b = x[2 * k + 1];
        four[k] = _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x44), _mm512_shuffle_f64x2(a, b, 0xee));
    }
    for (int k = 0; k < 2; k++) {
        const __m512d a = four[2 * k], b = four[2 * k + 1];
        two[k] = _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x88), _mm512_shuffle_f64x2(a, b, 0xdd));
    }
    const __m512d mixed = _mm512_add_pd(_mm512_unpacklo_pd(two[0], two[1]), _mm512_unpackhi_pd(two[0], two[1]));
    return _mm512_permutexvar_pd(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), mixed);
}

#define SUM_SEVERAL(S, T) \
static int several_##S(const char *x, int64_t n, ptrdiff_t step, int outputs, tgx_acc *acc) { \
    int o = 0; \
    for (; o + 8 <= outputs; o += 8) { \
        __m512d sum[8]; \
        _Pragma("GCC unroll 8") for (int k = 0; k < 8; k++, x += step) { \
            __m512d lane[2]; \
            lanes_of_##T((const T *)x, n, lane); \
            sum[k] = _mm512_add_pd(lane[0], lane[1]); \
        } \
        _mm512_storeu_pd(acc->a + o, folded(sum)); \
    } \
    return o; \
}
SUM_SEVERAL(f32, float) SUM_SEVERAL(f64, double)
#define SEVERAL(S) several_##S
#undef INLINE
#else
#define SEVERAL(S) NULL
#endif
