/* The gradient by its weights of a convolution that conv_bf16.h takes. See conv_bf16_sums.c. */
#ifndef TGX_CONV_BF16_SUMS_H
#define TGX_CONV_BF16_SUMS_H
#include "conv_geometry.h"

int64_t tgx_conv_bf16_sums_room(const tgx_call *c, const tgx_conv_sizes *g);
int tgx_conv_bf16_weight_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x);
#endif
