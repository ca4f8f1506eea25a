/* The ABI of reductions, and the walk over strided operands.
 *
 * A reducer folds the elements of one logical order into accumulators. The order is fixed by the logical index
 * alone: it is cut into blocks of TGX_BLOCK, element r of a block goes to lane r % 16, the lanes are folded in
 * halves, the blocks one after the other to spans of TGX_SPAN blocks, and the spans one after the other. Both
 * inner loops, `block` (one output, its elements behind each other) and `rows` (a tile of neighbouring outputs,
 * one row of elements after another), keep this order. So a result depends neither on strides nor on threads.
 * Accumulators are wide (double, int64), so that a float32 sum of any length keeps its digits. */
#ifndef TGX_REDUCE_H
#define TGX_REDUCE_H
#include "types.h"

#define TGX_BLOCK 2048
#define TGX_TILE 128
#define TGX_SPAN 32
#define TGX_SHORT 128 /* bytes of one output's elements up to which whole tiles of outputs may be gathered */

/* State of up to TGX_TILE outputs; each reducer uses the members it needs. */
typedef struct {
    double a[TGX_TILE], b[TGX_TILE];
    int64_t i[TGX_TILE], at[TGX_TILE];
} tgx_acc;

typedef struct {
    /* n <= TGX_BLOCK elements behind each other into output 0; start is the logical index of the first. */
    void (*block)(const char *x, int64_t n, int64_t start, const tgx_scalar *aux, tgx_acc *acc);
    /* n <= TGX_BLOCK rows of w <= TGX_TILE elements into outputs 0..w-1. */
    void (*rows)(const char *const *x, int64_t n, int w, int64_t start, const tgx_scalar *aux, tgx_acc *acc);
    /* Fold the state of a later block into acc. */
    void (*merge)(tgx_acc *acc, const tgx_acc *later, int w);
    /* Write w results of `count` elements each; strides in bytes; out or out2 may be NULL where an op allows. */
    void (*finish)(const tgx_acc *acc, int w, int64_t count, const tgx_scalar *aux,
                   char *out, ptrdiff_t stride, char *out2, ptrdiff_t stride2);
    int packs; /* `rows` is quick for few columns too when the rows lie behind each other */
    int any_order; /* the order of elements changes no bit; 2: nor how often each is taken */
    /* `block` of outputs whose elements lie `step` bytes apart, as many as are done at once: how many. Or NULL. */
    int (*several)(const char *x, int64_t n, ptrdiff_t step, int outputs, tgx_acc *acc);
    int tiled; /* elements of an output up to which whole tiles of outputs are gathered instead */
} tgx_reducer;

enum tgx_reduction_op {
    TGX_SUM, TGX_MEAN, TGX_NANSUM, TGX_PROD, TGX_VAR, TGX_MAX, TGX_MIN, TGX_ARGMAX, TGX_ARGMIN, TGX_ANY, TGX_ALL,
    TGX_COUNT, TGX_NORM0, TGX_NORM1, TGX_NORM2, TGX_NORMP, TGX_ABSMAX, TGX_ABSMIN, TGX_NREDUCTIONS
};

typedef tgx_reducer tgx_reducer_table[TGX_NREDUCTIONS][TGX_NTYPES];

/* One reduction, planned. Kept and reduced dimensions stand outermost first in logical order, merged where possible. */
typedef struct {
    const tgx_reducer *reducer;
    const tgx_scalar *aux;
    const char *x;
    char *out, *out2;
    int itemsize, osize, osize2;
    int nkept, nred, unit;                 /* unit: kept dimension walked in tiles, or -1 */
    int skip;                              /* elements from one output of a tile to the next: what lies between is reduced too */
    int64_t ksize[TGX_MAX_DIMS], rsize[TGX_MAX_DIMS];
    ptrdiff_t kstride[TGX_MAX_DIMS], rstride[TGX_MAX_DIMS], kout[TGX_MAX_DIMS];
    int64_t count, outputs;                /* elements per output; outputs */
    int64_t times;                         /* how often each of them is taken */
    int64_t ntiles, nspans;
} tgx_reduction;

/* Dimensions with a bit in `mask` are reduced; strides in elements. Set reducer before; aux, out, ...
 * before or after. */
void tgx_reduction_plan(tgx_reduction *p, const char *x, const int64_t *sizes, const int64_t *strides, int ndim,
                        uint64_t mask, int itemsize);
/* All of a small one without gaps whose reduced dimensions stand before or behind the others, without a plan: whether it was
 * one. Set reducer, aux, itemsize, out, ... before. */
int tgx_reduction_at_once(const tgx_reduction *p, const char *x, const int64_t *sizes, int ndim, uint64_t mask);
/* The elements of a block lie far apart: large operands are better copied into order first. */
int tgx_reduction_scattered(const tgx_reduction *p);
/* All of a matrix of not too long rows that lies turned, which spans bring into order themselves. */
int tgx_reduction_turned(const tgx_reduction *p);
/* Whole tiles [lo, hi). */
void tgx_reduction_tiles(const tgx_reduction *p, int64_t lo, int64_t hi);
/* Spans [lo, hi) of one tile into parts[lo..hi), and their fold into the tile's outputs. */
void tgx_reduction_spans(const tgx_reduction *p, int64_t tile, int64_t lo, int64_t hi, tgx_acc *parts);
void tgx_reduction_fold(const tgx_reduction *p, int64_t tile, tgx_acc *parts);
#endif
