/* A pointwise loop over strided operands, cut over threads; and the copy that every caller of kernels needs. */
#ifndef TGX_WALK_H
#define TGX_WALK_H
#include "iterate.h"
#include "tgx.h"

/* Plan and run: 0 or the loop's code. Begin `it` and add operands before. */
int tgx_walk(const tgx_services *services, tgx_iter *it, tgx_loop loop, const tgx_scalar *aux);
/* Whether from can be repeated to to's sizes. */
int tgx_broadcasts(const tgx_tensor *from, const tgx_tensor *to);
/* Copy with conversion; from broadcasts to to, and does not overlap it. */
int tgx_copy(const tgx_services *services, const tgx_tensor *to, const tgx_tensor *from);
/* Every element becomes the one at `value`, which is of the tensor's dtype. */
int tgx_fill(const tgx_services *services, const tgx_tensor *to, const void *value);
#endif
