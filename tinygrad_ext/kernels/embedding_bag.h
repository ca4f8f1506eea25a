/* What bags of rows are added up from: the arguments of the kernel, and one of its calls. See embedding_bag.c. */
#ifndef TGX_EMBEDDING_BAG_H
#define TGX_EMBEDDING_BAG_H
#include "tgx.h"

enum { WEIGHT, INDICES, OFFSETS, FACTORS, MODE, LAST, PADDING, PERIOD };
enum { SUM, MEAN, MOST };

typedef struct {
    tgx_call *c;
    int64_t bags, count, rows, width;
    int mode;
} tgx_bags_job;

/* The way back: each row of `to` gets the gradients of the bags it is in. Threads share the columns, TGX_BAG_COLUMNS at least. */
enum { TGX_BAG_COLUMNS = 64 };
typedef struct {
    char *to;
    const char *grad, *factors;         /* factors may be NULL */
    const int64_t *at, *bag;            /* the row and the bag of each index, -1 for none */
    int64_t count, rows, bags, width;
} tgx_bags_spread;

typedef int (*tgx_bags_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);
typedef struct { tgx_bags_fn bags[2], spread[2]; } tgx_bags_table;      /* float, double */
extern const tgx_bags_table tgx_bags_base, tgx_bags_avx2, tgx_bags_avx512;
#endif
