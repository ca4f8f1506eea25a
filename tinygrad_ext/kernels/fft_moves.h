/* Pairs (real, imaginary) of sixteen lanes, brought apart and together by vectors of 16 bytes: of lanes that lie side by side,
 * and of lanes that lie apart, whose pairs follow one another (TOGETHER of them at once). */
#ifndef TGX_FFT_MOVES_H
#define TGX_FFT_MOVES_H
#include "fft.h"
#include "vector_bytes.h"

typedef float quad __attribute__((vector_size(16), may_alias, aligned(4)));
typedef double two __attribute__((vector_size(16), may_alias, aligned(8)));
typedef int32_t quad_order __attribute__((vector_size(16)));
typedef int64_t two_order __attribute__((vector_size(16)));
#define QUAD(p) (*(quad *)(p))
#define TWO(p) (*(two *)(p))
#define OF_QUADS(a, b, ...) __builtin_shuffle((a), (b), (quad_order){__VA_ARGS__})
#define OF_TWOS(a, b, ...) __builtin_shuffle((a), (b), (two_order){__VA_ARGS__})
enum { TOGETHER_f32 = 2, TOGETHER_f64 = 1 };

/* So many pairs as a vector has numbers, parts by themselves. */
static inline void part_f32(const float *pairs, quad *re, quad *im) {
    quad a = QUAD(pairs), b = QUAD(pairs + 4);
    *re = OF_QUADS(a, b, 0, 2, 4, 6), *im = OF_QUADS(a, b, 1, 3, 5, 7);
}
static inline void join_f32(quad re, quad im, float *pairs) {
    QUAD(pairs) = OF_QUADS(re, im, 0, 4, 1, 5), QUAD(pairs + 4) = OF_QUADS(re, im, 2, 6, 3, 7);
}
static inline void part_f64(const double *pairs, two *re, two *im) {
    two a = TWO(pairs), b = TWO(pairs + 2);
    *re = OF_TWOS(a, b, 0, 2), *im = OF_TWOS(a, b, 1, 3);
}
static inline void join_f64(two re, two im, double *pairs) {
    TWO(pairs) = OF_TWOS(re, im, 0, 2), TWO(pairs + 2) = OF_TWOS(re, im, 1, 3);
}

static inline void apart_f32(const float *pairs, float *re, float *im) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 4) part_f32(pairs + 2 * lane, (quad *)(re + lane), (quad *)(im + lane));
}
static inline void apart_f64(const double *pairs, double *re, double *im) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2) part_f64(pairs + 2 * lane, (two *)(re + lane), (two *)(im + lane));
}
static inline void joined_f32(const float *re, const float *im, float *pairs) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 4) join_f32(QUAD(re + lane), QUAD(im + lane), pairs + 2 * lane);
}
static inline void joined_f64(const double *re, const double *im, double *pairs) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2) join_f64(TWO(re + lane), TWO(im + lane), pairs + 2 * lane);
}

/* `n` pairs of each lane, a multiple of TOGETHER; `step` numbers from a lane to the next. */
static inline void gathered_f32(const float *pairs, ptrdiff_t step, ptrdiff_t n, float *re, float *im) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 4, pairs += 4 * step)
        for (ptrdiff_t k = 0, at = lane; k < n; k += 2, at += 2 * TGX_FFT_LANES) {
            const float *p = pairs + 2 * k;
            quad a = QUAD(p), b = QUAD(p + step), c = QUAD(p + 2 * step), d = QUAD(p + 3 * step);
            quad ab = OF_QUADS(a, b, 0, 4, 1, 5), cd = OF_QUADS(c, d, 0, 4, 1, 5);
            QUAD(re + at) = OF_QUADS(ab, cd, 0, 1, 4, 5), QUAD(im + at) = OF_QUADS(ab, cd, 2, 3, 6, 7);
            ab = OF_QUADS(a, b, 2, 6, 3, 7), cd = OF_QUADS(c, d, 2, 6, 3, 7);
            QUAD(re + at + TGX_FFT_LANES) = OF_QUADS(ab, cd, 0, 1, 4, 5), QUAD(im + at + TGX_FFT_LANES) = OF_QUADS(ab, cd, 2, 3, 6, 7);
        }
}
static inline void gathered_f64(const double *pairs, ptrdiff_t step, ptrdiff_t n, double *re, double *im) {
#ifdef __AVX2__
    if (n % 2 == 0) { /* two pairs of four lanes at once */
        for (int lane = 0; lane < TGX_FFT_LANES; lane += 4, pairs += 4 * step)
            for (ptrdiff_t k = 0, at = lane; k < n; k += 2, at += 2 * TGX_FFT_LANES) {
                const double *p = pairs + 2 * k;
                __m256d a = _mm256_loadu_pd(p), b = _mm256_loadu_pd(p + step);
                __m256d c = _mm256_loadu_pd(p + 2 * step), d = _mm256_loadu_pd(p + 3 * step);
                __m256d ac = _mm256_permute2f128_pd(a, c, 0x20), bd = _mm256_permute2f128_pd(b, d, 0x20);
                _mm256_storeu_pd(re + at, _mm256_unpacklo_pd(ac, bd)), _mm256_storeu_pd(im + at, _mm256_unpackhi_pd(ac, bd));
                ac = _mm256_permute2f128_pd(a, c, 0x31), bd = _mm256_permute2f128_pd(b, d, 0x31);
                _mm256_storeu_pd(re + at + TGX_FFT_LANES, _mm256_unpacklo_pd(ac, bd));
                _mm256_storeu_pd(im + at + TGX_FFT_LANES, _mm256_unpackhi_pd(ac, bd));
            }
        return;
    }
#endif
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2, pairs += 2 * step)
        for (ptrdiff_t k = 0; k < n; k++) {
            two a = TWO(pairs + 2 * k), b = TWO(pairs + 2 * k + step);
            TWO(re + k * TGX_FFT_LANES + lane) = OF_TWOS(a, b, 0, 2), TWO(im + k * TGX_FFT_LANES + lane) = OF_TWOS(a, b, 1, 3);
        }
}

#ifdef __AVX2__
/* Eight lanes and four pairs are a square of eight numbers, four lanes and two pairs one of four: turned in registers. */
static inline void square_f32(const float *re, const float *im, float *pairs, ptrdiff_t step) {
    __m256 r[8], t[8];
    for (int k = 0; k < 4; k++) {
        __m256 a = _mm256_loadu_ps(re + k * TGX_FFT_LANES), b = _mm256_loadu_ps(im + k * TGX_FFT_LANES);
        r[2 * k] = _mm256_unpacklo_ps(a, b), r[2 * k + 1] = _mm256_unpackhi_ps(a, b); /* pair k of lanes 0 1 | 4 5 and of 2 3 | 6 7 */
    }
    for (int h = 0; h < 2; h++)
        for (int k = 0; k < 2; k++) {
            __m256d a = _mm256_castps_pd(r[4 * k + h]), b = _mm256_castps_pd(r[4 * k + 2 + h]);
            t[4 * h + k] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), t[4 * h + 2 + k] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
        }
    for (int lane = 0; lane < 4; lane++) {
        _mm256_storeu_ps(pairs + lane * step, _mm256_permute2f128_ps(t[2 * lane], t[2 * lane + 1], 0x20));
        _mm256_storeu_ps(pairs + (lane + 4) * step, _mm256_permute2f128_ps(t[2 * lane], t[2 * lane + 1], 0x31));
    }
}
static inline void square_f64(const double *re, const double *im, double *pairs, ptrdiff_t step) {
    __m256d a = _mm256_loadu_pd(re), b = _mm256_loadu_pd(im), c = _mm256_loadu_pd(re + TGX_FFT_LANES), d = _mm256_loadu_pd(im + TGX_FFT_LANES);
    __m256d ab = _mm256_unpacklo_pd(a, b), ba = _mm256_unpackhi_pd(a, b), cd = _mm256_unpacklo_pd(c, d), dc = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(pairs, _mm256_permute2f128_pd(ab, cd, 0x20)), _mm256_storeu_pd(pairs + step, _mm256_permute2f128_pd(ba, dc, 0x20));
    _mm256_storeu_pd(pairs + 2 * step, _mm256_permute2f128_pd(ab, cd, 0x31)), _mm256_storeu_pd(pairs + 3 * step, _mm256_permute2f128_pd(ba, dc, 0x31));
}
#define SQUARES(square, WIDE, DEEP)                                                                 \
    if (n % DEEP == 0) {                                                                               \
        for (ptrdiff_t k = 0; k < n; k += DEEP)                                                        \
            for (int lane = 0; lane < TGX_FFT_LANES; lane += WIDE)                                     \
                square(re + k * TGX_FFT_LANES + lane, im + k * TGX_FFT_LANES + lane, pairs + 2 * k + lane * step, step); \
        return;                                                                                        \
    }
#else
#define SQUARES(square, WIDE, DEEP)
#endif

static inline void scattered_f32(const float *re, const float *im, ptrdiff_t n, float *pairs, ptrdiff_t step) {
    SQUARES(square_f32, 8, 4)
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 4, pairs += 4 * step)
        for (ptrdiff_t k = 0, at = lane; k < n; k += 2, at += 2 * TGX_FFT_LANES) {
            float *p = pairs + 2 * k;
            quad r = QUAD(re + at), i = QUAD(im + at), r2 = QUAD(re + at + TGX_FFT_LANES), i2 = QUAD(im + at + TGX_FFT_LANES);
            quad ab = OF_QUADS(r, i, 0, 4, 1, 5), cd = OF_QUADS(r, i, 2, 6, 3, 7);
            quad ab2 = OF_QUADS(r2, i2, 0, 4, 1, 5), cd2 = OF_QUADS(r2, i2, 2, 6, 3, 7);
            QUAD(p) = OF_QUADS(ab, ab2, 0, 1, 4, 5), QUAD(p + step) = OF_QUADS(ab, ab2, 2, 3, 6, 7);
            QUAD(p + 2 * step) = OF_QUADS(cd, cd2, 0, 1, 4, 5), QUAD(p + 3 * step) = OF_QUADS(cd, cd2, 2, 3, 6, 7);
        }
}
static inline void scattered_f64(const double *re, const double *im, ptrdiff_t n, double *pairs, ptrdiff_t step) {
    SQUARES(square_f64, 4, 2)
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2, pairs += 2 * step)
        for (ptrdiff_t k = 0; k < n; k++) {
            two r = TWO(re + k * TGX_FFT_LANES + lane), i = TWO(im + k * TGX_FFT_LANES + lane);
            TWO(pairs + 2 * k) = OF_TWOS(r, i, 0, 2), TWO(pairs + 2 * k + step) = OF_TWOS(r, i, 1, 3);
        }
}
#undef SQUARES
#undef QUAD
#undef TWO
#undef OF_QUADS
#undef OF_TWOS
#endif
