/* The gradient of a convolution with a step by an input whose windows overlap, by products. See conv_overlaps.c. */
#ifndef TGX_CONV_OVERLAPS_H
#define TGX_CONV_OVERLAPS_H
#include "conv_geometry.h"

int tgx_conv_is_overlaps(const tgx_call *c, const tgx_conv_sizes *g, int dtype);
void tgx_conv_overlaps_room(tgx_call *c, const tgx_conv_sizes *g, int dtype);
int tgx_conv_overlaps(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w);
#endif
