/* Sizes of a convolution, read from its arguments and checked as PyTorch does. Functions that return int give 0 or TGX_FAILED. */
#ifndef TGX_CONV_GEOMETRY_H
#define TGX_CONV_GEOMETRY_H
#include "tgx.h"

typedef struct {
    int dims, batched;         /* dims: 1 or 2 */
    int64_t n, channels, outputs, groups;
    int64_t size[2];           /* of the input: height, width; a signal is an image of height one */
    int64_t kernel[2], out[2], stride[2];
    int64_t pad[2];            /* in front; what is needed behind follows from `out` */
    int64_t dilation[2];
} tgx_conv_sizes;

/* Argument number `arg`: one number, or one for each dimension; a signal gets a neutral first dimension. */
int tgx_conv_pair(tgx_call *c, int arg, int dims, const char *name, int64_t *into);
int tgx_conv_window(tgx_call *c, tgx_conv_sizes *g, int stride, int dilation, int groups);
/* Batch and image size from the shape of an input, of rank dims + 1 or dims + 2. */
void tgx_conv_planes(tgx_conv_sizes *g, const int64_t *sizes, int rank);
/* All but padding and output size; dimensions are counted from the weight. */
int tgx_conv_operands(tgx_call *c, tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, int stride, int dilation, int groups);
/* Padding given as numbers or as 'same' or 'valid', and the size of the output. */
int tgx_conv_padding(tgx_call *c, tgx_conv_sizes *g, int arg);
int tgx_conv_check_operands(tgx_call *c, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias, int dims);
int tgx_conv_check_sizes(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias);

/* The numbers for the dimensions there are, for messages. */
static inline const char *tgx_conv_text(const tgx_conv_sizes *g, const int64_t *pair) { return tgx_sizes_text(pair + 2 - g->dims, g->dims); }
#endif
