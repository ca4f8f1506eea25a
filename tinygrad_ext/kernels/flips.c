/* What flips.h promises, by exclusive or with a mask of the sign bits. */
#include "flips.h"

#define FLIP(word, sign)                                                                                                     \
    static int flip_##word(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {                      \
        const word mask = aux->i & TGX_FLIP_NEG ? sign : 0;                                                                  \
        char *to = data[0];                                                                                                  \
        const char *from = data[1];                                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                                  \
            word w;                                                                                                          \
            memcpy(&w, from + i * strides[1], sizeof w);                                                                     \
            w ^= mask;                                                                                                       \
            memcpy(to + i * strides[0], &w, sizeof w);                                                                       \
        }                                                                                                                    \
        return 0;                                                                                                            \
    }                                                                                                                        \
    static int flip_pair_##word(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {                 \
        const word real = aux->i & TGX_FLIP_NEG ? sign : 0, imag = aux->i & TGX_FLIP_CONJ ? real ^ sign : real;              \
        char *to = data[0];                                                                                                  \
        const char *from = data[1];                                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                                  \
            word w[2];                                                                                                       \
            memcpy(w, from + i * strides[1], sizeof w);                                                                      \
            w[0] ^= real, w[1] ^= imag;                                                                                      \
            memcpy(to + i * strides[0], w, sizeof w);                                                                        \
        }                                                                                                                    \
        return 0;                                                                                                            \
    }                                                                                                                        \
    static int negate_##word(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {                    \
        char *to = data[0];                                                                                                  \
        const char *from = data[1];                                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                                  \
            word w;                                                                                                          \
            memcpy(&w, from + i * strides[1], sizeof w);                                                                     \
            if (aux->i & TGX_FLIP_NEG) w = (word)(0 - w);                                                                    \
            memcpy(to + i * strides[0], &w, sizeof w);                                                                       \
        }                                                                                                                    \
        return 0;                                                                                                            \
    }

FLIP(uint16_t, 0x8000)
FLIP(uint32_t, 0x80000000u)
FLIP(uint64_t, 0x8000000000000000u)

static int negate_uint8_t(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {
    for (ptrdiff_t i = 0; i < n; i++) {
        uint8_t w = (uint8_t)data[1][i * strides[1]];
        data[0][i * strides[0]] = (char)(aux->i & TGX_FLIP_NEG ? (uint8_t)(0 - w) : w);
    }
    return 0;
}

tgx_loop tgx_flip_loop(int dtype) {
    switch (dtype) {
    case TGX_U8: case TGX_I8: return negate_uint8_t;
    case TGX_I16: return negate_uint16_t;
    case TGX_I32: return negate_uint32_t;
    case TGX_I64: return negate_uint64_t;
    case TGX_F16: case TGX_BF16: return flip_uint16_t;
    case TGX_F32: return flip_uint32_t;
    case TGX_F64: return flip_uint64_t;
    case TGX_C32: return flip_pair_uint16_t;
    case TGX_C64: return flip_pair_uint32_t;
    case TGX_C128: return flip_pair_uint64_t;
    default: return NULL;
    }
}
