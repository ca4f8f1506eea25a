/* Softmax, log-softmax and their derivatives over the middle dimension of (outer, n, inner), all dense. */
#ifndef TGX_SOFTMAX_H
#define TGX_SOFTMAX_H
#include "tgx.h"

/* Columns that are worked on together when inner > 1; a unit of work is then one such block, else one row. */
#define TGX_SOFTMAX_COLUMNS 64

typedef struct {
    char *out;
    const char *a, *b, *c;  /* forward, lse: input; backward: gradient and output; scaled: input, lse, scale */
    char *scales;           /* forward of rows: what the exponentials are still to be multiplied by goes here, or NULL */
    int64_t n, inner;
    int log, half;          /* half: the dtype of out, a and b where they are halves, in rows of at most TGX_WIDE_ROW */
} tgx_softmax_job;

typedef int (*tgx_softmax_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);
typedef struct { tgx_softmax_fn forward[2], backward[2], lse[2], scaled[2]; } tgx_softmax_table;   /* float, double */

extern const tgx_softmax_table tgx_softmax_base, tgx_softmax_avx2, tgx_softmax_avx512;

const tgx_softmax_table *tgx_softmax_loops(void);
/* All rows, or blocks of columns, of a contiguous t with `dim` in the middle. */
int tgx_softmax_rows(tgx_call *c, const tgx_softmax_fn *fns, tgx_softmax_job *job, const tgx_tensor *t, int64_t dim);
#endif
