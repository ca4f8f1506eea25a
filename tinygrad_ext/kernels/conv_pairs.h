/* The gradient of a convolution by its input, plane by plane with a column step of 2.
 *
 * As classes of rows and columns (conv_maps.c) each plane was gone through four times, and every other element written: that
 * was two thirds of the time, the products a tenth. Here the even and the odd columns of a row are computed side by side. */
#ifndef TGX_CONV_PAIRS_H
#define TGX_CONV_PAIRS_H
#include "conv_geometry.h"

/* Whether it is a case for it; then `tgx_conv_pairs_room` has set the scratch, in the `shape` of a call. */
int tgx_conv_is_pairs(tgx_call *c, const tgx_conv_sizes *g, int dtype);
void tgx_conv_pairs_room(tgx_call *c, const tgx_conv_sizes *g, int dtype);
int tgx_conv_pairs(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w);
#endif
