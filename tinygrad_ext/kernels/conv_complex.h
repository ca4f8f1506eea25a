/* Convolutions of complex numbers by those of their parts: a map that is linear in both operands, four times over. */
#ifndef TGX_CONV_COMPLEX_H
#define TGX_CONV_COMPLEX_H
#include "complex_part.h"
#include "conv_geometry.h"

typedef int (*tgx_conv_map)(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *a, const tgx_tensor *b);

/* Add to the scratch of the real map what the parts of complex operands need; nothing for others. Result 0 has its sizes. */
int tgx_conv_complex_room(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b);
int tgx_conv_complex(tgx_call *c, const tgx_conv_sizes *g, tgx_conv_map map, const tgx_tensor *bias);
/* The map itself, or that over parts, by the dtype of argument 0. */
static inline int tgx_conv_parts(tgx_call *c, const tgx_conv_sizes *g, tgx_conv_map map) {
    if (tgx_is_complex(tgx_in(c, 0)->dtype)) return tgx_conv_complex(c, g, map, NULL);
    return map(c, g, tgx_in(c, 0), tgx_in(c, 1));
}
#endif
