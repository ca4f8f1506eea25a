/* The largest or smallest of several outputs at once, whose elements lie behind each other: a vector for each, then all folded
 * together, halves after halves. Folded one by one, rows of 64 took twice as long. Order and repetition change nothing, so what is left
 * of a row is its last vector once more. A NaN stays. */
#if defined(__AVX512F__) || defined(__AVX2__)
#ifdef __AVX512F__
typedef __m512 best_f32;
typedef __m512d best_f64;
enum { BEST_f32 = 16, BEST_f64 = 8 };
#define BEST(f) _mm512_##f
/* of the new one x, if it is NaN; if the old one is, that */
#define KEEP_f32(m, x, PICK) _mm512_mask_mov_ps(_mm512_##PICK##_ps(m, x), _mm512_cmp_ps_mask(m, m, _CMP_UNORD_Q), m)
#define KEEP_f64(m, x, PICK) _mm512_mask_mov_pd(_mm512_##PICK##_pd(m, x), _mm512_cmp_pd_mask(m, m, _CMP_UNORD_Q), m)
#else
typedef __m256 best_f32;
typedef __m256d best_f64;
enum { BEST_f32 = 8, BEST_f64 = 4 };
#define BEST(f) _mm256_##f
#define KEEP_f32(m, x, PICK) _mm256_blendv_ps(_mm256_##PICK##_ps(m, x), m, _mm256_cmp_ps(m, m, _CMP_UNORD_Q))
#define KEEP_f64(m, x, PICK) _mm256_blendv_pd(_mm256_##PICK##_pd(m, x), m, _mm256_cmp_pd(m, m, _CMP_UNORD_Q))
#endif
#define LOAD_f32 BEST(loadu_ps)
#define LOAD_f64 BEST(loadu_pd)

/* Parts of 16 bytes hold what remains of the outputs; they are brought together. */
#ifdef __AVX512F__
#define PARTS_OF(S, PICK, SHUFFLE) \
    for (int k = 0; k < 2; k++) r[k] = KEEP_##S(SHUFFLE(r[2 * k], r[2 * k + 1], 0x44), SHUFFLE(r[2 * k], r[2 * k + 1], 0xee), PICK); \
    r[0] = KEEP_##S(SHUFFLE(r[0], r[1], 0x88), SHUFFLE(r[0], r[1], 0xdd), PICK);
#define PARTS_f32(PICK) PARTS_OF(f32, PICK, _mm512_shuffle_f32x4)
#define PARTS_f64(PICK) PARTS_OF(f64, PICK, _mm512_shuffle_f64x2)
#define STORE_f32(to, x) do { \
    _mm512_storeu_pd(to, _mm512_cvtps_pd(_mm512_castps512_ps256(x))); \
    _mm512_storeu_pd((to) + 8, _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)))); \
} while (0)
#else
#define PARTS_f32(PICK) r[0] = KEEP_f32(_mm256_permute2f128_ps(r[0], r[1], 0x20), _mm256_permute2f128_ps(r[0], r[1], 0x31), PICK);
#define PARTS_f64(PICK) r[0] = KEEP_f64(_mm256_permute2f128_pd(r[0], r[1], 0x20), _mm256_permute2f128_pd(r[0], r[1], 0x31), PICK);
#define STORE_f32(to, x) do { \
    _mm256_storeu_pd(to, _mm256_cvtps_pd(_mm256_castps256_ps128(x))); \
    _mm256_storeu_pd((to) + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))); \
} while (0)
#endif
#define STORE_f64(to, x) BEST(storeu_pd)(to, x)

/* Pairs of single elements, of floats pairs of those as well. */
#define CAST(x) BEST(castps_pd)(x)
#define SINGLES_f32(PICK) \
    for (int k = 0; k < BEST_f32 / 2; k++) \
        r[k] = KEEP_f32(BEST(unpacklo_ps)(r[2 * k], r[2 * k + 1]), BEST(unpackhi_ps)(r[2 * k], r[2 * k + 1]), PICK); \
    for (int k = 0; k < BEST_f32 / 4; k++) { \
        const best_f64 p = CAST(r[2 * k]), q = CAST(r[2 * k + 1]); \
        r[k] = KEEP_f32(BEST(castpd_ps)(BEST(unpacklo_pd)(p, q)), BEST(castpd_ps)(BEST(unpackhi_pd)(p, q)), PICK); \
    }
#define SINGLES_f64(PICK) \
    for (int k = 0; k < BEST_f64 / 2; k++) \
        r[k] = KEEP_f64(BEST(unpacklo_pd)(r[2 * k], r[2 * k + 1]), BEST(unpackhi_pd)(r[2 * k], r[2 * k + 1]), PICK);

#define SEVERAL_BEST(NAME, S, PICK) \
static int several_##NAME##_##S(const char *p, int64_t n, ptrdiff_t step, int outputs, tgx_acc *acc) { \
    int o = 0; \
    if (n < BEST_##S) return 0; \
    for (; o + BEST_##S <= outputs; o += BEST_##S) { \
        best_##S r[BEST_##S]; \
        _Pragma("GCC unroll 16") for (int k = 0; k < BEST_##S; k++, p += step) { \
            const S_##S *x = (const S_##S *)p; \
            best_##S best = LOAD_##S(x); \
            for (int64_t i = BEST_##S; i < n; i += BEST_##S) { \
                const best_##S next = LOAD_##S(x + (i + BEST_##S <= n ? i : n - BEST_##S)); \
                best = KEEP_##S(best, next, PICK); \
            } \
            r[k] = best; \
        } \
        _Pragma("GCC unroll 16") SINGLES_##S(PICK) \
        PARTS_##S(PICK) \
        STORE_##S(acc->a + o, r[0]); \
    } \
    return o; \
}
SEVERAL_BEST(max, f32, max) SEVERAL_BEST(min, f32, min) SEVERAL_BEST(max, f64, max) SEVERAL_BEST(min, f64, min)
#define SEVERAL_OF(name) several_##name
#undef CAST
#undef BEST
#else
#define SEVERAL_OF(name) NULL
#endif
