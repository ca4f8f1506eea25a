/* Distances between the rows of two matrices, for each of a batch. */
#ifndef TGX_DISTANCES_H
#define TGX_DISTANCES_H
#include <stddef.h>
#include "tgx.h"

#define TGX_DISTANCE_ROWS 4 /* rows of x1 that share what is loaded of x2 */

typedef struct {
    char *out;                  /* [batch, rows, columns] */
    const char *x1;             /* [batch, rows, depth] */
    const char *turned;         /* [batch, depth, whole]: x2 with its rows along the vectors, zeros after the last */
    ptrdiff_t rows, columns, whole, depth;
    double p;                   /* of powers */
    const char *weight, *distances; /* [batch, rows, columns]: of slopes */
} tgx_distance_job;

/* Groups lo to hi of TGX_DISTANCE_ROWS rows each, counted through all batches; for float and double. */
typedef int (*tgx_distance_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);
/* Of the back_ ones a group is one row, whose slopes by its coordinates go to out: [batch, rows, depth]. */
typedef struct {
    tgx_distance_fn euclid[2], city[2], most[2], powers[2], back_city[2], back_most[2], back_powers[2];
} tgx_distance_table;
extern const tgx_distance_table tgx_distance_base, tgx_distance_avx2, tgx_distance_avx512;
#endif
