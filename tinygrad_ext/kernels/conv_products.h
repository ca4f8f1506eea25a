/* Convolutions whose windows lie side by side, as matrix products. See conv_products.c. */
#ifndef TGX_CONV_PRODUCTS_H
#define TGX_CONV_PRODUCTS_H
#include "conv_geometry.h"

/* Whether this one is; and the scratch that its maps need. `dtype` is that of the parts of complex numbers. Asks for the BLAS. */
int tgx_conv_is_product(const tgx_call *c, const tgx_conv_sizes *g, int dtype);
int tgx_conv_is_forward_product(const tgx_call *c, const tgx_conv_sizes *g, int dtype); /* and forward is best one */
void tgx_conv_product_room(tgx_call *c, const tgx_conv_sizes *g, int dtype);
int tgx_conv_product(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias);
int tgx_conv_product_input_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w);
int tgx_conv_product_weight_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x);
#endif
