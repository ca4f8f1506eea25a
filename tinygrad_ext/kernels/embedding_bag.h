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

typedef struct { int (*bags[2])(void *job, ptrdiff_t lo, ptrdiff_t hi); } tgx_bags_table;    /* float, double */
extern const tgx_bags_table tgx_bags_base, tgx_bags_avx2, tgx_bags_avx512;
#endif
