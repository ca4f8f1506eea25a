/* Convolution of int64. The loops are in conv_integers_isa.h. */
#ifndef TGX_CONV_INTEGERS_H
#define TGX_CONV_INTEGERS_H
#include "conv.h"

/* At most so many outputs for int64; src, weight, bias and out begin with theirs, and tap numbers the weights of one tap plane. */
enum { TGX_CONV_INTEGERS = 4 };
/* Tap planes that count, and elements between those of src, channels of the weights, and outputs. */
typedef struct { int64_t first, end; ptrdiff_t src_step, weight_channel, out_plane; } tgx_conv_integer_planes;
typedef struct {
    void (*some_outputs)(const tgx_conv *p, const tgx_conv_integer_planes *at, ptrdiff_t outs, const int64_t *src,
                         const int64_t *weight, const ptrdiff_t *tap, const int64_t *bias, int64_t *out);
} tgx_conv_integer_table;
extern const tgx_conv_integer_table tgx_conv_integers_base, tgx_conv_integers_avx2, tgx_conv_integers_avx512;
#endif
