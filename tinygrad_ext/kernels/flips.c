/* What flips.h promises, by exclusive or with a mask of the sign bits. */
#include "flips.h"

/* The loop again with constant steps, where elements lie side by side: the compiler makes vectors of that one. */
#define DENSE(size, loop)                                                        \
    if (strides[0] == (size) && strides[1] == (size)) {                          \
        const ptrdiff_t to_step = (size), from_step = (size);                    \
        loop                                                                     \
    } else {                                                                     \
        const ptrdiff_t to_step = strides[0], from_step = strides[1];            \
        loop                                                                     \
    }                                                                            \
    return 0;

#define FLIP(word, sign)                                                                                          \
    static int flip_##word(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {           \
        const word mask = aux->i & TGX_FLIP_NEG ? sign : 0;                                                       \
        char *to = data[0];                                                                                       \
        const char *from = data[1];                                                                               \
        DENSE(sizeof(word), for (ptrdiff_t i = 0; i < n; i++) {                                                   \
            word w;                                                                                               \
            memcpy(&w, from + i * from_step, sizeof w);                                                           \
            w ^= mask;                                                                                            \
            memcpy(to + i * to_step, &w, sizeof w);                                                               \
        })                                                                                                        \
    }                                                                                                             \
    static int flip_pair_##word(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {      \
        const word real = aux->i & TGX_FLIP_NEG ? sign : 0, imag = aux->i & TGX_FLIP_CONJ ? real ^ sign : real;   \
        char *to = data[0];                                                                                       \
        const char *from = data[1];                                                                               \
        DENSE(2 * sizeof(word), for (ptrdiff_t i = 0; i < n; i++) {                                               \
            word re; word im;                                                                                     \
            memcpy(&re, from + i * from_step, sizeof re);                                                         \
            memcpy(&im, from + i * from_step + sizeof re, sizeof im);                                             \
            re ^= real; im ^= imag;                                                                               \
            memcpy(to + i * to_step, &re, sizeof re);                                                             \
            memcpy(to + i * to_step + sizeof re, &im, sizeof im);                                                 \
        })                                                                                                        \
    }

#define NEGATE(word) \
    static int negate_##word(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {         \
        const int negative = !!(aux->i & TGX_FLIP_NEG);                                                           \
        char *to = data[0];                                                                                       \
        const char *from = data[1];                                                                               \
        DENSE(sizeof(word), for (ptrdiff_t i = 0; i < n; i++) {                                                   \
            word w;                                                                                               \
            memcpy(&w, from + i * from_step, sizeof w);                                                           \
            w = negative ? (word)(0 - w) : w;                                                                     \
            memcpy(to + i * to_step, &w, sizeof w);                                                               \
        })                                                                                                        \
    }

NEGATE(uint8_t)
NEGATE(uint16_t)
NEGATE(uint32_t)
NEGATE(uint64_t)
FLIP(uint16_t, 0x8000)
FLIP(uint32_t, 0x80000000u)
FLIP(uint64_t, 0x8000000000000000u)

tgx_loop tgx_flip_loop(int dtype) {
    switch (dtype) {
    case TGX_U8: case TGX_I8: return negate_uint8_t;
    case TGX_U16: case TGX_I16: return negate_uint16_t;
    case TGX_U32: case TGX_I32: return negate_uint32_t;
    case TGX_U64: case TGX_I64: return negate_uint64_t;
    case TGX_F16: case TGX_BF16: return flip_uint16_t;
    case TGX_F32: return flip_uint32_t;
    case TGX_F64: return flip_uint64_t;
    case TGX_C32: return flip_pair_uint16_t;
    case TGX_C64: return flip_pair_uint32_t;
    case TGX_C128: return flip_pair_uint64_t;
    default: return NULL;
    }
}
