/* Pairs (real, imaginary) of sixteen lanes, brought apart and together by vectors of 16 bytes: of lanes that lie side by side,
 * and of lanes that lie apart, whose pairs follow one another (TOGETHER of them at once). */
#ifndef TGX_FFT_MOVES_H
#define TGX_FFT_MOVES_H
#include "fft.h"

typedef float quad __attribute__((vector_size(16), may_alias, aligned(4)));
typedef double two __attribute__((vector_size(16), may_alias, aligned(8)));
typedef int32_t quad_order __attribute__((vector_size(16)));
typedef int64_t two_order __attribute__((vector_size(16)));
#define QUAD(p) (*(quad *)(p))
#define TWO(p) (*(two *)(p))
#define OF_QUADS(a, b, ...) __builtin_shuffle((a), (b), (quad_order){__VA_ARGS__})
#define OF_TWOS(a, b, ...) __builtin_shuffle((a), (b), (two_order){__VA_ARGS__})
enum { TOGETHER_f32 = 2, TOGETHER_f64 = 1, NUMBERS_f32 = 4, NUMBERS_f64 = 2 };
typedef quad short_f32;
typedef two short_f64;

/* So many pairs as a vector has numbers, parts by themselves; `back`: the last pair comes first. */
static inline void part_f32(const float *pairs, quad *re, quad *im) {
    quad a = QUAD(pairs), b = QUAD(pairs + 4);
    *re = OF_QUADS(a, b, 0, 2, 4, 6), *im = OF_QUADS(a, b, 1, 3, 5, 7);
}
static inline void part_back_f32(const float *pairs, quad *re, quad *im) {
    quad a = QUAD(pairs), b = QUAD(pairs + 4);
    *re = OF_QUADS(b, a, 2, 0, 6, 4), *im = OF_QUADS(b, a, 3, 1, 7, 5);
}
static inline void join_f32(quad re, quad im, float *pairs) {
    QUAD(pairs) = OF_QUADS(re, im, 0, 4, 1, 5), QUAD(pairs + 4) = OF_QUADS(re, im, 2, 6, 3, 7);
}
static inline void join_back_f32(quad re, quad im, float *pairs) {
    QUAD(pairs) = OF_QUADS(re, im, 3, 7, 2, 6), QUAD(pairs + 4) = OF_QUADS(re, im, 1, 5, 0, 4);
}
static inline void part_f64(const double *pairs, two *re, two *im) {
    two a = TWO(pairs), b = TWO(pairs + 2);
    *re = OF_TWOS(a, b, 0, 2), *im = OF_TWOS(a, b, 1, 3);
}
static inline void part_back_f64(const double *pairs, two *re, two *im) {
    two a = TWO(pairs), b = TWO(pairs + 2);
    *re = OF_TWOS(b, a, 0, 2), *im = OF_TWOS(b, a, 1, 3);
}
static inline void join_f64(two re, two im, double *pairs) {
    TWO(pairs) = OF_TWOS(re, im, 0, 2), TWO(pairs + 2) = OF_TWOS(re, im, 1, 3);
}
static inline void join_back_f64(two re, two im, double *pairs) {
    TWO(pairs) = OF_TWOS(re, im, 1, 3), TWO(pairs + 2) = OF_TWOS(re, im, 0, 2);
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
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2, pairs += 2 * step)
        for (ptrdiff_t k = 0; k < n; k++) {
            two a = TWO(pairs + 2 * k), b = TWO(pairs + 2 * k + step);
            TWO(re + k * TGX_FFT_LANES + lane) = OF_TWOS(a, b, 0, 2), TWO(im + k * TGX_FFT_LANES + lane) = OF_TWOS(a, b, 1, 3);
        }
}

static inline void scattered_f32(const float *re, const float *im, ptrdiff_t n, float *pairs, ptrdiff_t step) {
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
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2, pairs += 2 * step)
        for (ptrdiff_t k = 0; k < n; k++) {
            two r = TWO(re + k * TGX_FFT_LANES + lane), i = TWO(im + k * TGX_FFT_LANES + lane);
            TWO(pairs + 2 * k) = OF_TWOS(r, i, 0, 2), TWO(pairs + 2 * k + step) = OF_TWOS(r, i, 1, 3);
        }
}
#undef QUAD
#undef TWO
#undef OF_QUADS
#undef OF_TWOS
#endif
