/* Walks several strided operands together and hands rows to a loop.
 *
 * Fill shape and add operands, then call tgx_iter_plan once and tgx_iter_run. The plan sorts dimensions so that
 * the output is written in memory order, merges those that lie behind each other for all operands, and marks
 * inputs that lie the other way, which are turned tile by tile. A loop sees one row: n elements, one stride per operand.
 * The order of the walk never changes a pointwise result. Where a pure loop reads
 * one element for a whole row, it is asked once and the row is filled. */
#ifndef TGX_ITERATE_H
#define TGX_ITERATE_H
#include "casts.h"

typedef struct {
    int nop, ndim, tiled, pure;                           /* pure, set after tgx_iter_begin: what a loop writes to operand 0
                                                             follows from the others, and from nothing else */
    unsigned turned, spread, stays;                       /* bits of operands: lie the other way; at every second place; where a
                                                             loop goes beyond the element, and no copy serves */
    int size[TGX_MAX_OPERANDS];
    int64_t numel;
    int64_t shape[TGX_MAX_DIMS];                          /* innermost first after planning */
    ptrdiff_t strides[TGX_MAX_OPERANDS][TGX_MAX_DIMS];    /* bytes, same order as shape */
    char *data[TGX_MAX_OPERANDS];
    tgx_plane plane;                                      /* of the copy, or NULL: set after tgx_iter_begin */
} tgx_iter;

/* Start with the output's (or common) shape, outermost first. */
void tgx_iter_begin(tgx_iter *it, const int64_t *shape, int ndim);
/* Add an operand of own shape (right-aligned, sizes 1 are repeated); strides in elements. */
void tgx_iter_add(tgx_iter *it, char *data, const int64_t *shape, const int64_t *strides, int ndim, int itemsize);
void tgx_iter_plan(tgx_iter *it);
int tgx_iter_run(const tgx_iter *it, tgx_loop loop, const tgx_scalar *aux);
/* The dimension to cut for threads, and a copy of `it` that covers [lo, hi) of it. */
int tgx_iter_widest(const tgx_iter *it);
void tgx_iter_slice(const tgx_iter *it, tgx_iter *out, int dim, int64_t lo, int64_t hi);
#endif
