/* Sixteen numbers of float16 to float32 and back, by the processor's own conversion, for loops that compute in registers.
 *
 * TGX_HALF_VECTORS says that there is one. Compilers find it in no formula, so what computes between the two is written as a loop
 * over sixteen, which they lay out as vectors without going through memory. */
#ifndef TGX_HALF_VECTORS_H
#define TGX_HALF_VECTORS_H
#include <stdint.h>

#ifdef __AVX2__
#include <immintrin.h>
#pragma GCC target("f16c")
#define TGX_HALF_VECTORS 1
static inline __attribute__((always_inline)) void widen_8(float *to, const uint16_t *x) {
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x)));
}
static inline __attribute__((always_inline)) void widen_8_bf16(float *to, const uint16_t *x) {
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x)), 16);
    _mm256_storeu_ps(to, _mm256_castsi256_ps(bits));
}
static inline __attribute__((always_inline)) void widen_16(float *to, const uint16_t *x) {
#ifdef __AVX512F__
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)x)));
#else
    widen_8(to, x), widen_8(to + 8, x + 8);
#endif
}
static inline __attribute__((always_inline)) void narrow_16(uint16_t *to, const float *x) {
#ifdef __AVX512F__
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph(_mm512_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
#else
    _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(to + 8), _mm256_cvtps_ph(_mm256_loadu_ps(x + 8), _MM_FROUND_TO_NEAREST_INT));
#endif
}
#endif
#endif
