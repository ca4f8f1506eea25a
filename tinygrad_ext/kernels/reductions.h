/* What kernels of reductions share: which dimensions, which result, and the run of a planned reduction. */
#ifndef TGX_REDUCTIONS_H
#define TGX_REDUCTIONS_H
#include "reduce.h"
#include "tgx.h"

#define TGX_ALL_DIMS (~(uint64_t)0)

/* Bits of the dimensions that an argument names: an int, a list of ints, None and the empty list for all. */
int tgx_named_dims(tgx_call *c, int arg, uint64_t *mask);
static inline int tgx_dim_mask(tgx_call *c, int arg, uint64_t *mask) {
    *mask = TGX_ALL_DIMS;
    return tgx_given(c, arg) ? tgx_named_dims(c, arg, mask) : 0;
}
/* Result k: the sizes of t without the dimensions in mask, or with 1 in their place. */
tgx_output *tgx_reduced(tgx_call *c, int k, const tgx_tensor *t, uint64_t mask, int keepdim, int dtype);
/* In shape: whether argument 0 can be reduced so as a `dtype`, and what a large one needs. Notes op and mask. */
int tgx_reduction_shape(tgx_call *c, int op, int dtype, uint64_t mask);
/* In run: argument 0 into results, either of which may be NULL where the op allows. */
int tgx_reduction_run(tgx_call *c, const tgx_scalar *aux, tgx_tensor *out, tgx_tensor *out2);
/* IndexError when a reduced dimension has no elements to choose from. */
int tgx_look_for_empty(tgx_call *c, const tgx_tensor *t, uint64_t mask);
static inline int tgx_refuse_empty(tgx_call *c, const tgx_tensor *t, uint64_t mask) {
    return t->count ? 0 : tgx_look_for_empty(c, t, mask);
}
#endif
