/* Two of the three maps of a convolution; conv_sums.h is the third. Each is linear in both operands, so that the derivative of
 * each is made of the other two.
 *
 * `tgx_conv_*_room` says in shape what scratch a map needs, the map itself runs in it; sizes and dtypes were checked
 * before. All tensors are contiguous and, but for the forward map of int64, float32 or float64, or bfloat16 where conv_bf16.h takes
 * it: `room` refuses halves that have to be widened. */
#ifndef TGX_CONV_MAPS_H
#define TGX_CONV_MAPS_H
#include "conv_geometry.h"

int tgx_conv_forward_room(tgx_call *c, const tgx_conv_sizes *g, int dtype);
int tgx_conv_forward(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias);
int tgx_conv_input_grad_room(tgx_call *c, const tgx_conv_sizes *g, int dtype);
int tgx_conv_input_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w);
#endif
