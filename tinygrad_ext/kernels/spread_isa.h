/* An operand of a small group brought into its scratch, whose parts are sixteen words at most: see plan.h. */
#include "plan.h"
#include "vector_bytes.h"

/* Lane i of the result is word index[i]; whole vectors are written, of which the scratch has room. One store for each is
 * what the group's loops can read at once: they would wait for one that was made of several. */
void ISA(tgx_spread)(uint32_t *to, const tgx_operand *o) {
    const uint8_t *index = o->index;
    const uint32_t *from = (const uint32_t *)o->from;
#if VECTOR_BYTES == 64
    const __m512i few = _mm512_maskz_loadu_epi32((__mmask16)((1u << o->reach) - 1), from);
    for (int i = 0; i < o->words; i += 16) {
        const __m512i lanes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(index + i)));
        _mm512_storeu_si512(to + i, _mm512_permutexvar_epi32(lanes, few));
    }
#elif VECTOR_BYTES == 32
    const __m256i count = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), reach = _mm256_set1_epi32(o->reach);
    const __m256i low = _mm256_maskload_epi32((const int *)from, _mm256_cmpgt_epi32(reach, count));
    const __m256i beyond = _mm256_cmpgt_epi32(reach, _mm256_add_epi32(count, _mm256_set1_epi32(8)));
    const __m256i high = o->reach > 8 ? _mm256_maskload_epi32((const int *)from + 8, beyond) : low;
    for (int i = 0; i < o->words; i += 8) {
        const __m256i lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(index + i)));
        const __m256 a = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, lanes));
        const __m256 b = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, lanes));
        _mm256_storeu_ps((float *)to + i, _mm256_blendv_ps(a, b, _mm256_castsi256_ps(_mm256_slli_epi32(lanes, 28))));
    }
#else
    for (int i = 0; i < o->words; i++) to[i] = from[index[i]];
#endif
}
