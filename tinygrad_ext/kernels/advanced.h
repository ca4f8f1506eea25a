/* Moves blocks between a table (strided, addressed by index) and dense memory in the order of the result.
 *
 * A result has outer dimensions, then the points of the index, then the block of inner dimensions that one
 * point stands for. `offset[k]` says where point k lies in the table. All strides are in bytes. */
#ifndef TGX_ADVANCED_H
#define TGX_ADVANCED_H
#include "types.h"

enum tgx_move { TGX_READ, TGX_WRITE, TGX_ADD };

typedef struct {
    char *table, *dense;
    int64_t points;
    const int64_t *offset;
    int nouter, ninner, width, dtype;
    int64_t outer[TGX_MAX_DIMS], inner[TGX_MAX_DIMS];             /* sizes, outermost first */
    ptrdiff_t outer_table[TGX_MAX_DIMS], inner_table[TGX_MAX_DIMS];
    ptrdiff_t outer_dense[TGX_MAX_DIMS], inner_dense[TGX_MAX_DIMS];
    ptrdiff_t point_dense;
} tgx_picks;

enum { TGX_NEGATIVE = 1, TGX_FIRST = 2 };     /* negative indices count from the end; offsets are set, not added to */

typedef struct {
    int64_t (*offsets)(int64_t *offset, const int64_t *index, int64_t n, int64_t size, ptrdiff_t stride, int flags);
    void (*run)(const tgx_picks *p, int move, int64_t lo, int64_t hi);
} tgx_picks_table;

/* offset[k] += index[k] * stride. Position k of the first index outside the bounds, which offset[k] then holds, or -1. */
int64_t tgx_index_offsets(int64_t *offset, const int64_t *index, int64_t n, int64_t size, ptrdiff_t stride, int flags);
/* Merge inner dimensions that lie behind each other on both sides. */
void tgx_picks_plan(tgx_picks *p);
/* Units lo..hi of outer x points. */
void tgx_picks_run(const tgx_picks *p, int move, int64_t lo, int64_t hi);
#endif
