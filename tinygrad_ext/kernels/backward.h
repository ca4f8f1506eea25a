/* Rows of elements of so many bytes turned end for end: tgx_backward_1(o, a, n) sets o[i] = a[-i]. Of elements of a byte or two
 * compilers make no vectors. */
#ifndef TGX_BACKWARD_H
#define TGX_BACKWARD_H
#include <stdint.h>

typedef struct { uint64_t part[2]; } tgx_pair_16;
typedef uint8_t tgx_lanes_1 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t tgx_lanes_2 __attribute__((vector_size(16), aligned(2), may_alias));

#define BACKWARD(SIZE, T, WHOLE)                                                             \
    static inline void tgx_backward_##SIZE(char *to, const char *from, int64_t n) {          \
        T *o = (T *)to;                                                                      \
        const T *a = (const T *)from;                                                        \
        int64_t i = 0;                                                                       \
        WHOLE                                                                                \
        for (; i < n; i++) o[i] = a[-i];                                                     \
    }
#define WHOLE_VECTORS(SIZE, ...)                                                             \
    for (const int64_t lanes = 16 / SIZE; i + lanes <= n; i += lanes)                        \
        *(tgx_lanes_##SIZE *)(o + i) =                                                       \
            __builtin_shuffle(*(const tgx_lanes_##SIZE *)(a - i - (lanes - 1)), (tgx_lanes_##SIZE){__VA_ARGS__});
BACKWARD(1, uint8_t, WHOLE_VECTORS(1, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))
BACKWARD(2, uint16_t, WHOLE_VECTORS(2, 7, 6, 5, 4, 3, 2, 1, 0))
BACKWARD(4, uint32_t, )
BACKWARD(8, uint64_t, )
BACKWARD(16, tgx_pair_16, )
#undef BACKWARD
#undef WHOLE_VECTORS
#endif
