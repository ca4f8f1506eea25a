/* Runs a loop over float32 on halves, block by block; see wide.h. */
#include "wide.h"
#include "casts.h"

enum { BLOCK = 512 };

void tgx_widen(int half, const void *from, float *to, ptrdiff_t n) {
    tgx_cast_loop(half, TGX_F32)((char *[]){(char *)to, (char *)from}, (const ptrdiff_t[]){sizeof(float), 2}, n, NULL);
}

void tgx_narrow(int half, const float *from, void *to, ptrdiff_t n) {
    tgx_cast_loop(TGX_F32, half)((char *[]){to, (char *)from}, (const ptrdiff_t[]){2, sizeof(float)}, n, NULL);
}

int tgx_wide_loop(const tgx_wide *w, char **data, const ptrdiff_t *s, ptrdiff_t count, const tgx_scalar *aux) {
    float room[TGX_MAX_OPERANDS][BLOCK];
    char *at[TGX_MAX_OPERANDS];
    ptrdiff_t strides[TGX_MAX_OPERANDS], conversion[2];
    const tgx_loop widen = tgx_cast_loop(w->half, TGX_F32), narrow = tgx_cast_loop(TGX_F32, w->half);
    const int rounds = w->out == TGX_F32;
    for (ptrdiff_t i = 0; i < count; i += BLOCK) {
        const ptrdiff_t n = count - i < BLOCK ? count - i : BLOCK;
        int code;
        for (int k = rounds ? 0 : 1; k <= w->operands; k++) at[k] = (char *)room[k], strides[k] = sizeof(float);
        if (!rounds) at[0] = data[0] + i * s[0], strides[0] = s[0];
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
        if (!rounds) continue;
        conversion[0] = s[0], conversion[1] = sizeof(float);
        narrow((char *[]){data[0] + i * s[0], at[0]}, conversion, n, NULL);
    }
    return 0;
}
