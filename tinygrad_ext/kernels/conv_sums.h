/* The gradient of a convolution by its weights; see conv_maps.h. */
#ifndef TGX_CONV_SUMS_H
#define TGX_CONV_SUMS_H
#include "conv_geometry.h"

int tgx_conv_weight_grad_room(tgx_call *c, const tgx_conv_sizes *g, int dtype);
int tgx_conv_weight_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x);
#endif
