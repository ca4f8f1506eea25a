/* The three maps of a convolution of bfloat16 as products of bfloat16 (product_bf16.h), where the processor has these and the shape
 * gains by them. See conv_bf16.c; elsewhere operands are widened, and the maps are those of float32. */
#ifndef TGX_CONV_BF16_H
#define TGX_CONV_BF16_H
#include "conv_geometry.h"

enum tgx_conv_which { TGX_CONV_FORWARD, TGX_CONV_INPUT_GRAD, TGX_CONV_WEIGHT_GRAD };

/* For shape, once sizes are checked: refuses halves that are to be widened, by sizes and processor alone, and asks for the scratch of
 * those that are not. */
int tgx_conv_bf16_room(tgx_call *c, const tgx_conv_sizes *g, int dtype, int which);
int tgx_conv_bf16_forward(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias);
int tgx_conv_bf16_input_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w);
#endif
