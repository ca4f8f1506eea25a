/* Products of dropout. See random_drop.h.
 *
 * With AVX-512 the words of the stream are tempered, compared and used in registers: of a million float32 0.64 ms, where the words, the
 * factors and the product each in a loop take 0.73. The compiler makes nothing of the kind from plain C: for the sake of the bytes it
 * takes 64 numbers at a time, which leaves half of a block of the stream to the loops for what is left over. */
#include "random_drop.h"
#include "isa.h"
#if defined(__x86_64__)
#include <immintrin.h>
#define FOR_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw")))
#endif

enum { BLOCK = 512 };

#define DROPS(T) \
static inline __attribute__((always_inline)) void drop_##T(const T *factors, const T *x, T *out, uint8_t *restrict kept, int64_t n) { \
    for (int64_t i = 0; i < n; i++) kept[i] = factors[i] != 0; \
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * factors[i]; \
} \
static inline __attribute__((always_inline)) void times_##T(const T *x, T *out, const uint8_t *kept, int64_t n, T value) { \
    T factors[BLOCK]; \
    for (int64_t at = 0; at < n; at += BLOCK, x += BLOCK, out += BLOCK, kept += BLOCK) { \
        const int64_t some = n - at < BLOCK ? n - at : BLOCK; \
        for (int64_t i = 0; i < some; i++) factors[i] = kept[i] ? value : 0; \
        for (int64_t i = 0; i < some; i++) out[i] = x[i] * factors[i]; \
    } \
}
DROPS(float)
DROPS(double)

static inline __attribute__((always_inline)) void drop(int type, const double *factors, const char *x, char *out, uint8_t *kept,
                                                       int64_t n) {
    if (type == TGX_F32) drop_float((const float *)factors, (const float *)x, (float *)out, kept, n);
    else drop_double(factors, (const double *)x, (double *)out, kept, n);
}

static inline __attribute__((always_inline)) void times_kept(int type, const void *x, void *out, const uint8_t *kept, int64_t n,
                                                             double value) {
    if (type == TGX_F32) times_float(x, out, kept, n, (float)value);
    else times_double(x, out, kept, n, value);
}

#if defined(__x86_64__)
__attribute__((target("avx2")))
static void times_kept_avx2(int type, const void *x, void *out, const uint8_t *kept, int64_t n, double value) {
    times_kept(type, x, out, kept, n, value);
}

__attribute__((target("avx2")))
static void drop_avx2(int type, const double *factors, const char *x, char *out, uint8_t *kept, int64_t n) {
    drop(type, factors, x, out, kept, n);
}

FOR_AVX512 static inline __m512i tempered(__m512i y) {
    y = _mm512_xor_si512(y, _mm512_srli_epi32(y, 11));
    y = _mm512_xor_si512(y, _mm512_and_si512(_mm512_slli_epi32(y, 7), _mm512_set1_epi32((int)0x9d2c5680u)));
    y = _mm512_xor_si512(y, _mm512_and_si512(_mm512_slli_epi32(y, 15), _mm512_set1_epi32((int)0xefc60000u)));
    return _mm512_xor_si512(y, _mm512_srli_epi32(y, 18));
}

/* The bound is in steps of 2^-53, and is compared in halves, high and low, so that nothing is widened. */
FOR_AVX512 static void drop_wide(const uint32_t *w, const float *x, float *out, uint8_t *kept, int64_t n, int64_t below, float value) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512i high = _mm512_set1_epi32((int)(below >> 32)), low = _mm512_set1_epi32((int)(uint32_t)below);
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 some = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
        const uint64_t words = n - i < 16 ? ((uint64_t)1 << 2 * (n - i)) - 1 : 0xffffffffu;
        const __m512i a = _mm512_maskz_loadu_epi32((__mmask16)words, w + 2 * i);
        const __m512i b = _mm512_maskz_loadu_epi32((__mmask16)(words >> 16), w + 2 * i + 16);
        const __m512i first = _mm512_and_si512(tempered(_mm512_permutex2var_epi32(a, even, b)), _mm512_set1_epi32(0x1fffff));
        const __m512i second = tempered(_mm512_permutex2var_epi32(a, odd, b));
        const __mmask16 same = _mm512_cmpeq_epi32_mask(first, high);
        const __mmask16 keep = _mm512_cmplt_epu32_mask(first, high) | _mm512_mask_cmplt_epu32_mask(same, second, low);
        const __m512 factors = _mm512_maskz_mov_ps(keep, _mm512_set1_ps(value));
        _mm512_mask_storeu_ps(out + i, some, _mm512_mul_ps(_mm512_maskz_loadu_ps(some, x + i), factors));
        _mm_mask_storeu_epi8(kept + i, some, _mm_maskz_set1_epi8(keep, 1));
    }
}

static int level_of(void) {
    static int level = -1;
    if (level < 0) level = tgx_cpu_level();
    return level;
}

static void drop_floats(tgx_stream *s, const float *x, float *out, uint8_t *kept, int64_t n, double p, float value) {
    const int64_t below = (int64_t)__builtin_ceil(p * 0x1p53);
    const uint32_t *words;
    uint32_t cut[2];
    for (int64_t done = 0, take; done < n; done += take) {
        take = tgx_random_draws(s, n - done, &words, cut);
        drop_wide(words, x + done, out + done, kept + done, take, below, value);
    }
}
#endif

void tgx_random_drop(tgx_stream *s, int type, const void *x, void *out, uint8_t *kept, int64_t n, double p, double value) {
    double factors[BLOCK];
#if defined(__x86_64__)
    if (type == TGX_F32 && level_of() == 2) {
        drop_floats(s, x, out, kept, n, p, (float)value);
        return;
    }
#endif
    const int64_t size = tgx_itemsize[type];
    for (int64_t done = 0; done < n; done += BLOCK) {
        const int64_t some = n - done < BLOCK ? n - done : BLOCK;
        const char *from = (const char *)x + done * size;
        char *to = (char *)out + done * size;
        tgx_random_choice(s, type, factors, some, p, value);
#if defined(__x86_64__)
        if (level_of()) {
            drop_avx2(type, factors, from, to, kept + done, some);
            continue;
        }
#endif
        drop(type, factors, from, to, kept + done, some);
    }
}

void tgx_random_kept(int type, const void *x, void *out, const uint8_t *kept, int64_t n, double value) {
#if defined(__x86_64__)
    if (level_of()) {
        times_kept_avx2(type, x, out, kept, n, value);
        return;
    }
#endif
    times_kept(type, x, out, kept, n, value);
}
