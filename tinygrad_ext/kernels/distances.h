/* Distances between the rows of two matrices, for each of a batch. */
#ifndef TGX_DISTANCES_H
#define TGX_DISTANCES_H
#include <stddef.h>
#include "tgx.h"

#define TGX_DISTANCE_ROWS 4 /* rows of x1 that share what is loaded of x2 */
#define TGX_DISTANCE_CHUNK 512 /* rows of x2 whose slopes are added up before they meet those of others */

typedef struct {
    char *out;                  /* [batch, rows, columns] */
    const char *x1;             /* [batch, rows, depth] */
    const char *turned;         /* [batch, whole / lanes, depth, lanes]: x2 with its rows along vectors of 64 bytes, then zeros */
    ptrdiff_t rows, columns, whole, depth;
    double p;                   /* of powers */
    const char *weight, *distances; /* [batch, rows, columns]: of slopes */
    ptrdiff_t step[2];          /* of them from column to column: 1, or rows where they lie transposed */
    const char *other;          /* of products: [batch, rows, depth] of the other differences, */
    ptrdiff_t apart;            /* whose second rows lie so far behind those of x2 */
} tgx_distance_job;

/* Groups lo to hi of TGX_DISTANCE_ROWS rows each, counted through all batches; for float and double. */
typedef int (*tgx_distance_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);
/* The back_ ones write slopes by the coordinates of x1: [batch, rows, depth]. Of dots a group is one row. */
typedef struct {
    tgx_distance_fn euclid[2], city[2], most[2], powers[2], back_sums[2], back_city[2], back_most[2], back_powers[2], dots[2];
} tgx_distance_table;
extern const tgx_distance_table tgx_distance_base, tgx_distance_avx2, tgx_distance_avx512;
#endif
