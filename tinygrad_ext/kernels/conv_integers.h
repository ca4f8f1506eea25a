/* Convolution of int64, exact modulo 2**64. See conv_integers.c. */
#ifndef TGX_CONV_INTEGERS_H
#define TGX_CONV_INTEGERS_H
#include "conv_geometry.h"

int tgx_conv_integers(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias);
#endif
