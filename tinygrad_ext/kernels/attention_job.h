/* One call of attention or of its derivative, as attention.c and attention_bf16.c share it. */
#ifndef TGX_ATTENTION_JOB_H
#define TGX_ATTENTION_JOB_H
#include <math.h>
#include <string.h>
#include "product.h"
#include "softmax.h"
#include "tgx.h"

typedef struct {
    const tgx_tensor *q, *k, *v, *mask, *kept, *grad;
    int rank, wide, causal, back;           /* rank: of the batch */
    const int64_t *batch;
    int64_t rows, keys, depth, width, size, step, blocks, items, shares;
    int64_t stride, sharing;                /* stride: between rows of scores; sharing: heads with one mask */
    double scale, factor;                   /* factor: of the weights that dropout keeps */
    char *out, *room, *of_k, *of_v;         /* back: out is the gradient of the queries */
    int64_t values_at, part_at, scores_at, room_size, across_at, seen_at, slopes_at, block_at;
    const tgx_packed_products *products;
    tgx_softmax_fn softmax, slopes;
} tgx_attention;

static inline int64_t aligned(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t next(int64_t *at, int64_t numbers, int64_t size) {
    const int64_t here = *at;
    *at = aligned(here + numbers * size);
    return here;
}

/* Where a tensor's matrix of a head begins; NULL without a tensor. */
static inline const char *head_of(const tgx_attention *j, const tgx_tensor *t, int64_t head) {
    ptrdiff_t at = 0;
    if (!t) return NULL;
    for (int d = j->rank - 1; d >= 0; d--) {
        const int own = d - j->rank + t->rank - 2;
        if (own >= 0 && t->sizes[own] != 1) at += head % j->batch[d] * t->strides[own];
        head /= j->batch[d];
    }
    return t->data + at * tgx_itemsize[t->dtype];
}

/* The step of rows (1) or columns (0) of a matrix; none where there is one for all. */
static inline ptrdiff_t step_of(const tgx_tensor *t, int rows) {
    const int d = t->rank - 1 - rows;
    return t->sizes[d] == 1 ? 0 : t->strides[d];
}

#define MASKED(T) \
/* Hides from a row of scores what the mask hides; whether something is left. */ \
static inline int masked_##T(const tgx_attention *j, T *scores, int64_t n, const char *mask) { \
    const ptrdiff_t col = step_of(j->mask, 0); \
    int some = 0; \
    if (j->mask->dtype == TGX_BOOL) { \
        const uint8_t *seen = (const uint8_t *)mask; \
        for (int64_t i = 0; i < n; i++) { \
            some |= seen[i * col]; \
            scores[i] = seen[i * col] ? scores[i] : (T)-INFINITY; \
        } \
        return some; \
    } \
    const T *more = (const T *)mask; \
    for (int64_t i = 0; i < n; i++) { \
        some |= more[i * col] != (T)-INFINITY; \
        scores[i] += more[i * col]; \
    } \
    return some; \
}
MASKED(float)
MASKED(double)

#define KEPT(T) \
/* Multiplies those of a row of n numbers by `factor` that dropout keeps, a bit for each; the others become zeros. */ \
static inline void kept_##T(const tgx_attention *j, T *row, int64_t n, const char *bits, T factor) { \
    const ptrdiff_t col = step_of(j->kept, 0); \
    T by[8]; \
    for (; n > 0; n -= 8, row += 8, bits += col) { \
        const int these = (uint8_t)*bits; \
        for (int i = 0; i < 8; i++) by[i] = these >> i & 1 ? factor : 0; \
        if (n >= 8) for (int i = 0; i < 8; i++) row[i] *= by[i]; \
        else for (int i = 0; i < n; i++) row[i] *= by[i]; \
    } \
}
KEPT(float)
KEPT(double)
#endif
