/* A layer of recurrent units in one direction, over all steps. The loops stand in recurrent_steps.h.
 *
 * What comes from the inputs is one product over all steps, and so are the gradients of inputs and of weights: what a layer computes
 * is one call forward and one backward, as for short sequences twenty calls of ops took as long as the work.
 *
 * Rows of the batch are independent of each other, so threads share them, each over all steps. The product with the weights of the
 * state is one of product_packed.h: they are laid out once for all steps.
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
    const void *bias;                      /* forward: what is added to a row of acts (of Elman's units, of out) */
    const void *first, *first_cell;        /* what the states start with, or their gradients end with; NULL: zeros */
    void *state, *state_cell;
    void *out, *cells, *acts;              /* of all steps; acts: gates, forward at first what comes from the inputs */
    const void *hidden, *cell;             /* backward: the first states of forward */
    const void *out_grad, *cells_grad, *acts_grad, *zeros;     /* of all steps; where one is NULL, zeros is read */
    void *gates_grad, *kept_grad;
    const int64_t *sizes;                  /* NULL: `batch` in all steps */
    int64_t steps, batch, total, n;
    int reverse, relu;
} tgx_recurrent_job;

typedef int (*tgx_recurrent_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);       /* some rows of the batch */
typedef struct { tgx_recurrent_fn lstm[2], lstm_back[2], gru[2], gru_back[2], elman[2], elman_back[2]; } tgx_recurrent_table;

/* One step: its number, its first row in what is stored of all steps, the rows [lo, hi) that are computed, and where the state
 * before them is stored, as far as it is not the first one. */
typedef struct { ptrdiff_t t, at, count, before, before_count; } tgx_place;

static inline ptrdiff_t tgx_rows_at(const tgx_recurrent_job *job, ptrdiff_t t) { return job->sizes ? job->sizes[t] : job->batch; }

/* Step number s in the order of the computation, which goes up or down; p is that of the step before. */
static inline tgx_place tgx_next_place(const tgx_recurrent_job *job, ptrdiff_t s, int up, tgx_place p) {
    const ptrdiff_t t = up ? s : job->steps - 1 - s, count = tgx_rows_at(job, t);
    tgx_place found = {t, up ? (s ? p.at + p.count : 0) : (s ? p.at : job->total) - count, count, 0, 0};
    const ptrdiff_t other = job->reverse ? t + 1 : t - 1;
    if (other >= 0 && other < job->steps) {
        found.before_count = tgx_rows_at(job, other);
        found.before = job->reverse ? found.at + count : found.at - found.before_count;
    }
    return found;
}

extern const tgx_recurrent_table tgx_recurrent_base, tgx_recurrent_avx2, tgx_recurrent_avx512;
#endif
