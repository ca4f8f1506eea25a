/* What products of bfloat16 by vectors and by tiles share: operands as pairs of depth, sums rounded into C. */
#ifndef TGX_PRODUCT_BF16_PARTS_H
#define TGX_PRODUCT_BF16_PARTS_H
#include "product_bf16.h"
#include <immintrin.h>
#include <string.h>

#define BF16_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,prefer-vector-width=512"
#define INSTRUCTIONS __attribute__((target(BF16_TARGET)))
#define INLINE static inline __attribute__((always_inline)) INSTRUCTIONS

enum { LANES = 16 };

static inline int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
static inline int64_t pairs(int64_t k) { return parts(k, 2); }
static inline int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }


/* to[q all + i] = from[i line + q] for 8 x 8 pairs. */
INLINE void turn(uint32_t *to, int64_t all, const uint16_t *from, int64_t line) {
    __m256i row[8], two[8];
    for (int i = 0; i < 8; i++) row[i] = _mm256_loadu_si256((const __m256i *)(from + i * line));
    for (int i = 0; i < 8; i += 2) two[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]), two[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
    for (int i = 0; i < 8; i += 4)
        for (int h = 0; h < 2; h++) {
            row[i + 2 * h] = _mm256_unpacklo_epi64(two[i + h], two[i + 2 + h]);
            row[i + 2 * h + 1] = _mm256_unpackhi_epi64(two[i + h], two[i + 2 + h]);
        }
    for (int q = 0; q < 4; q++) {
        _mm256_storeu_si256((__m256i *)(to + q * all), _mm256_permute2x128_si256(row[q], row[q + 4], 0x20));
        _mm256_storeu_si256((__m256i *)(to + (q + 4) * all), _mm256_permute2x128_si256(row[q], row[q + 4], 0x31));
    }
}

/* Numbers of one vector, which are 0 to 15, and of a second, which begin at 32, in turn. */
INLINE __m512i turns(void) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_or_si512(lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(32)), 16));
}

/* Pairs of `real` of `all` lines, `line` elements apart, side by side: pair 0 of all, then pair 1, ... `step` lies between elements,
 * of which there are k; what is no element is zero. */
void tgx_bf16_lay(uint32_t *to, int64_t all, int64_t real, const uint16_t *from, int64_t line, int64_t step, int64_t k);

/* Where the sums of a tile go. */
typedef struct {
    uint16_t *c;
    int64_t row, col, rows, cols;
    float alpha, beta;
    int plain;                 /* C = A B by rows */
} place_t;

/* As tgx_f32_to_bf16. */
INLINE __m256i round_lanes(__m512 v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(sum, nan, _mm512_set1_epi32(0x7fc00000)), 16));
}

/* The same of sums as the products leave them, of which none is subnormal. */
INLINE __m256i round_sums(__m512 v) {
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm256_mask_mov_epi16((__m256i)_mm512_cvtneps_pbh(v), nan, _mm256_set1_epi16(0x7fc0));
}

INLINE __m512 widen_lanes(__m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }

INLINE void put(const place_t *t, int64_t r, int64_t q, __m512 sum) {
    const int64_t valid = at_most(t->cols - q * LANES, LANES);
    const __mmask16 mask = (__mmask16)((1u << valid) - 1);
    uint16_t *c = t->c + r * t->row + q * LANES * t->col, lanes[LANES];
    if (t->plain) {
        _mm256_mask_storeu_epi16(c, mask, round_sums(sum));
        return;
    }
    if (t->alpha != 1) sum = _mm512_mul_ps(sum, _mm512_set1_ps(t->alpha));
    if (t->beta != 0) {
        __m256i old = _mm256_maskz_loadu_epi16(mask, c);
        if (t->col != 1) {
            for (int64_t i = 0; i < valid; i++) lanes[i] = c[i * t->col];
            old = _mm256_maskz_loadu_epi16(mask, lanes);
        }
        sum = _mm512_fmadd_ps(widen_lanes(old), _mm512_set1_ps(t->beta), sum);
    }
    if (t->col == 1) {
        _mm256_mask_storeu_epi16(c, mask, round_lanes(sum));
        return;
    }
    _mm256_storeu_si256((__m256i *)lanes, round_lanes(sum));
    for (int64_t i = 0; i < valid; i++) c[i * t->col] = lanes[i];
}
#endif
