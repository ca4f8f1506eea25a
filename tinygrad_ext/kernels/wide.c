/* Runs a loop over float32 on halves, block by block; see wide.h. */
#include "wide.h"
#include "casts.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Of 512 it takes a tenth longer. Rows lie APART more than pages do, whose same places would be taken for each other. */
enum { BLOCK = 1024, APART = 64 };

void tgx_widen(int half, const void *from, float *to, ptrdiff_t n) {
    tgx_cast_loop(half, TGX_F32)((char *[]){(char *)to, (char *)from}, (const ptrdiff_t[]){sizeof(float), 2}, n, NULL);
}

void tgx_narrow(int half, const float *from, void *to, ptrdiff_t n) {
    tgx_cast_loop(TGX_F32, half)((char *[]){to, (char *)from}, (const ptrdiff_t[]){2, sizeof(float)}, n, NULL);
}

/* The upper halves of floats; eight at a time by a pack that would saturate, were they not in its range. */
static void upper_halves(const float *from, char *to, ptrdiff_t step, ptrdiff_t n) {
    ptrdiff_t i = 0;
#ifdef __SSE2__
    if (step == 2)
        for (; i + 8 <= n; i += 8) {
            const __m128i a = _mm_loadu_si128((const __m128i *)(from + i)), b = _mm_loadu_si128((const __m128i *)(from + i + 4));
            _mm_storeu_si128((__m128i *)(to + 2 * i), _mm_packs_epi32(_mm_srai_epi32(a, 16), _mm_srai_epi32(b, 16)));
        }
#endif
    for (; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        *(uint16_t *)(to + i * step) = (uint16_t)(bits >> 16);
    }
}

int tgx_wide_loop(const tgx_wide *w, char **data, const ptrdiff_t *s, ptrdiff_t count, const tgx_scalar *aux) {
    float room[TGX_MAX_OPERANDS][BLOCK + APART] __attribute__((aligned(64)));
    char *at[TGX_MAX_OPERANDS];
    ptrdiff_t strides[TGX_MAX_OPERANDS], conversion[2];
    const tgx_loop widen = tgx_cast_loop(w->half, TGX_F32), narrow = tgx_cast_loop(TGX_F32, w->half);
    const int rounds = w->out == TGX_F32, halves = rounds || w->out == TGX_BF16;
    for (ptrdiff_t i = 0; i < count; i += BLOCK) {
        const ptrdiff_t n = count - i < BLOCK ? count - i : BLOCK;
        int code;
        for (int k = halves ? 0 : 1; k <= w->operands; k++) at[k] = (char *)room[k], strides[k] = sizeof(float);
        if (!halves) at[0] = data[0] + i * s[0], strides[0] = s[0];
        for (int k = 1; k <= w->operands; k++) {
            char *from = data[k] + i * s[k];
            if (w->masks >> (k - 1) & 1) {
                at[k] = from, strides[k] = s[k];
                continue;
            }
            if (s[k] == 0) strides[k] = 0; /* a number stays one, which loops have bodies for */
            conversion[0] = sizeof(float), conversion[1] = s[k];
            widen((char *[]){at[k], from}, conversion, s[k] ? n : 1, NULL);
        }
        code = w->loop(at, strides, n, aux);
        if (code) return code;
        if (!halves) continue;
        if (!rounds) {
            upper_halves((const float *)at[0], data[0] + i * s[0], s[0], n);
            continue;
        }
        conversion[0] = s[0], conversion[1] = sizeof(float);
        narrow((char *[]){data[0] + i * s[0], at[0]}, conversion, n, NULL);
    }
    return 0;
}
