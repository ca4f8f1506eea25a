/* Sizes of a convolution, read from its arguments and checked as PyTorch does. Functions that return int give 0 or TGX_FAILED. */
#ifndef TGX_CONV_GEOMETRY_H
#define TGX_CONV_GEOMETRY_H
#include "tgx.h"

typedef struct {
    int dims, batched;         /* dims: 1, 2 or 3 */
    int64_t n, channels, outputs, groups;
    int64_t size[3];           /* of the input: depth, height, width; an image is a volume of depth one, a signal also of height one */
    int64_t kernel[3], out[3], stride[3];
    int64_t pad[3];            /* in front; what is needed behind follows from `out` */
    int64_t dilation[3];
} tgx_conv_sizes;

/* Argument number `arg`: one number, or one for each dimension; those that a signal or an image lacks get a neutral one. */
int tgx_conv_numbers(tgx_call *c, int arg, int dims, const char *name, int64_t *into);
int tgx_conv_window(tgx_call *c, tgx_conv_sizes *g, int stride, int dilation, int groups);
/* Batch and image size from the shape of an input, of rank dims + 1 or dims + 2. */
void tgx_conv_planes(tgx_conv_sizes *g, const int64_t *sizes, int rank);
/* All but padding and output size; dimensions are counted from the weight. */
int tgx_conv_operands(tgx_call *c, tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, int stride, int dilation, int groups);
/* Padding given as numbers or as 'same' or 'valid', and the size of the output. */
int tgx_conv_padding(tgx_call *c, tgx_conv_sizes *g, int arg);
/* Halves pass: whether they are computed in is decided by their sizes (conv_bf16.h). */
int tgx_conv_check_operands(tgx_call *c, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias, int dims);
int tgx_conv_check_sizes(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias);

/* The numbers for the dimensions there are, for messages. */
static inline const char *tgx_conv_text(const tgx_conv_sizes *g, const int64_t *numbers) {
    return tgx_sizes_text(numbers + 3 - g->dims, g->dims);
}
/* Elements of a plane or volume of these sizes. */
static inline int64_t tgx_conv_count(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }
/* The last sizes of a tensor of such images, with a neutral one for each dimension they lack. */
static inline void tgx_conv_spread(const tgx_conv_sizes *g, const int64_t *last, int64_t *into) {
    for (int d = 0; d < 3; d++) into[d] = d < 3 - g->dims ? 1 : last[d - 3 + g->dims];
}
#endif
