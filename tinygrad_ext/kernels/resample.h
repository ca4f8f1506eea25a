/* A dimension read at other places: sums of one, two or four elements with weights, or of a window. See resample.c. */
#ifndef TGX_RESAMPLE_H
#define TGX_RESAMPLE_H
#include "tgx.h"

enum { TGX_TAPS = 4 };

/* Memory seen as (outer, small or large, inner). Tap k of place i takes element at[k][i] times weight[k][i]. With `window`
 * not zero place i takes at[1][i] elements from at[0][i] on, by the weights from weight[0][at[2][i]] on; only `read` knows that. */
typedef struct {
    char *to;
    const char *from;
    ptrdiff_t places, size, inner;      /* length of the dimension as read, and as it was */
    int taps;
    ptrdiff_t window;
    const int64_t *at[TGX_TAPS];
    const void *weight[TGX_TAPS];       /* of nearest elements none */
} tgx_resample_job;

typedef struct { int (*read[2])(void *job, ptrdiff_t lo, ptrdiff_t hi), (*spread[2])(void *job, ptrdiff_t lo, ptrdiff_t hi); } tgx_resample_table;
extern const tgx_resample_table tgx_resample_base, tgx_resample_avx2, tgx_resample_avx512;
#endif
