/* Windows of a pooling, read from the arguments of a call and checked as PyTorch does. */
#ifndef TGX_POOLING_H
#define TGX_POOLING_H
#include "tgx.h"

/* Depth, height, width; a signal is an image of height one, an image a volume of depth one. */
typedef struct {
    int dims;
    const char *op;            /* as messages name it */
    int64_t size[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
} tgx_window;

/* Begin for an op with arguments kernel_size, stride (default: the kernel size), padding from number `first` on. */
int tgx_window_read(tgx_call *c, tgx_window *w, int dims, const char *op, int first);
int tgx_window_dilation(tgx_call *c, tgx_window *w, int arg);
/* The input's planes or volumes; only the batch may be empty. */
int tgx_window_input(tgx_call *c, tgx_window *w, const tgx_tensor *x);
int tgx_window_check(tgx_call *c, const tgx_window *w);
/* Sizes of the result for an input (or another tensor with its channels) x. */
int tgx_window_outputs(tgx_call *c, tgx_window *w, int ceil_mode, const tgx_tensor *x);
/* Windows that spread the input evenly over output_size; a missing number keeps the input's. */
int tgx_window_adaptive(tgx_call *c, tgx_window *w, int dims, const char *op, int arg);
#endif
