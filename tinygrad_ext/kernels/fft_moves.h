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
enum { TOGETHER_f32 = 2, TOGETHER_f64 = 1 };

static inline void apart_f32(const float *pairs, float *re, float *im) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 4) {
        quad a = QUAD(pairs + 2 * lane), b = QUAD(pairs + 2 * lane + 4);
        QUAD(re + lane) = OF_QUADS(a, b, 0, 2, 4, 6), QUAD(im + lane) = OF_QUADS(a, b, 1, 3, 5, 7);
    }
}
static inline void apart_f64(const double *pairs, double *re, double *im) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2) {
        two a = TWO(pairs + 2 * lane), b = TWO(pairs + 2 * lane + 2);
        TWO(re + lane) = OF_TWOS(a, b, 0, 2), TWO(im + lane) = OF_TWOS(a, b, 1, 3);
    }
}

static inline void joined_f32(const float *re, const float *im, float *pairs) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 4) {
        quad r = QUAD(re + lane), i = QUAD(im + lane);
        QUAD(pairs + 2 * lane) = OF_QUADS(r, i, 0, 4, 1, 5), QUAD(pairs + 2 * lane + 4) = OF_QUADS(r, i, 2, 6, 3, 7);
    }
}
static inline void joined_f64(const double *re, const double *im, double *pairs) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2) {
        two r = TWO(re + lane), i = TWO(im + lane);
        TWO(pairs + 2 * lane) = OF_TWOS(r, i, 0, 2), TWO(pairs + 2 * lane + 2) = OF_TWOS(r, i, 1, 3);
    }
}

/* `step` numbers from a lane to the next. */
static inline void gathered_f32(const float *pairs, ptrdiff_t step, float *re, float *im) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 4, pairs += 4 * step) {
        quad a = QUAD(pairs), b = QUAD(pairs + step), c = QUAD(pairs + 2 * step), d = QUAD(pairs + 3 * step);
        quad ab = OF_QUADS(a, b, 0, 4, 1, 5), cd = OF_QUADS(c, d, 0, 4, 1, 5);
        QUAD(re + lane) = OF_QUADS(ab, cd, 0, 1, 4, 5), QUAD(im + lane) = OF_QUADS(ab, cd, 2, 3, 6, 7);
        ab = OF_QUADS(a, b, 2, 6, 3, 7), cd = OF_QUADS(c, d, 2, 6, 3, 7);
        QUAD(re + TGX_FFT_LANES + lane) = OF_QUADS(ab, cd, 0, 1, 4, 5), QUAD(im + TGX_FFT_LANES + lane) = OF_QUADS(ab, cd, 2, 3, 6, 7);
    }
}
static inline void gathered_f64(const double *pairs, ptrdiff_t step, double *re, double *im) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2, pairs += 2 * step) {
        two a = TWO(pairs), b = TWO(pairs + step);
        TWO(re + lane) = OF_TWOS(a, b, 0, 2), TWO(im + lane) = OF_TWOS(a, b, 1, 3);
    }
}

static inline void scattered_f32(const float *re, const float *im, float *pairs, ptrdiff_t step) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 4, pairs += 4 * step) {
        quad r = QUAD(re + lane), i = QUAD(im + lane), r2 = QUAD(re + TGX_FFT_LANES + lane), i2 = QUAD(im + TGX_FFT_LANES + lane);
        quad ab = OF_QUADS(r, i, 0, 4, 1, 5), cd = OF_QUADS(r, i, 2, 6, 3, 7);
        quad ab2 = OF_QUADS(r2, i2, 0, 4, 1, 5), cd2 = OF_QUADS(r2, i2, 2, 6, 3, 7);
        QUAD(pairs) = OF_QUADS(ab, ab2, 0, 1, 4, 5), QUAD(pairs + step) = OF_QUADS(ab, ab2, 2, 3, 6, 7);
        QUAD(pairs + 2 * step) = OF_QUADS(cd, cd2, 0, 1, 4, 5), QUAD(pairs + 3 * step) = OF_QUADS(cd, cd2, 2, 3, 6, 7);
    }
}
static inline void scattered_f64(const double *re, const double *im, double *pairs, ptrdiff_t step) {
    for (int lane = 0; lane < TGX_FFT_LANES; lane += 2, pairs += 2 * step) {
        two r = TWO(re + lane), i = TWO(im + lane);
        TWO(pairs) = OF_TWOS(r, i, 0, 2), TWO(pairs + step) = OF_TWOS(r, i, 1, 3);
    }
}
#undef QUAD
#undef TWO
#undef OF_QUADS
#undef OF_TWOS
#endif
