/* A layer of recurrent units in one direction, over all steps. The loops stand in recurrent_steps.h.
 *
 * Rows of the batch are independent of each other, so threads share them, each over all steps. The product with the weights of the
 * state is one of product_packed.h: they are laid out once for all steps. What comes from the inputs, and the derivatives by
 * weights, are single products over all steps, which the ops make outside.
 *
 * Of packed sequences sizes[t] rows go on at step t. A state has a row for each sequence, which it takes part with from its first
 * step to its last: so a sequence that has ended keeps its last state, and one that joins from behind has its first. */
#ifndef TGX_RECURRENT_H
#define TGX_RECURRENT_H
#include "product.h"
#include "tgx.h"

typedef struct {
    const tgx_packed_products *products;
    const void *packed, *packed_new;       /* weights of the state; of gated units those of the new state apart, forward */
    const void *gates, *bias;              /* forward: what comes from the inputs */
    const void *first, *first_cell;        /* what the states start with, or their gradients end with; NULL: zeros */
    void *state, *state_cell;
    void *out, *cells, *acts;              /* of all steps; acts: gates after their activation */
    const void *hidden, *cell;             /* backward: the first states of forward */
    const void *out_grad, *cells_grad, *acts_grad, *zeros;     /* of all steps; where one is NULL, zeros is read */
    void *gates_grad, *kept_grad;
    const int64_t *sizes;                  /* NULL: `batch` in all steps */
    int64_t steps, batch, total, n;
    int reverse, relu;
} tgx_recurrent_job;

typedef int (*tgx_recurrent_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);       /* some rows of the batch */
typedef struct { tgx_recurrent_fn lstm[2], lstm_back[2], gru[2], gru_back[2], elman[2], elman_back[2]; } tgx_recurrent_table;

extern const tgx_recurrent_table tgx_recurrent_base, tgx_recurrent_avx2, tgx_recurrent_avx512;
#endif
