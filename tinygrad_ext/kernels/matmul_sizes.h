/* Sizes of matrix products, and PyTorch's words for operands that do not fit each other. */
#ifndef TGX_MATMUL_SIZES_H
#define TGX_MATMUL_SIZES_H
#include "tgx.h"

static inline int64_t tgx_rows_of(const tgx_tensor *a) { return a->rank > 1 ? a->sizes[a->rank - 2] : 1; }
static inline int64_t tgx_cols_of(const tgx_tensor *b) { return b->rank > 1 ? b->sizes[b->rank - 1] : 1; }
static inline int64_t tgx_depth_of(const tgx_tensor *b) { return b->sizes[b->rank > 1 ? b->rank - 2 : 0]; }

/* Whether the matrices of all batches are one and the same. */
static inline int tgx_is_one_matrix(const tgx_tensor *b) {
    for (int i = 0; i < b->rank - 2; i++)
        if (b->sizes[i] != 1 && b->strides[i]) return 0;
    return 1;
}

/* The result of a product as a fresh one, or TGX_FAILED; start, when there is one, is added to it. */
int tgx_product_sizes(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, const tgx_tensor *start);

/* Scratch of a product of floats; its batch may become one tall matrix. */
int64_t tgx_product_room(int dtype, const tgx_tensor *a, const tgx_tensor *b, const tgx_output *o);
#endif
