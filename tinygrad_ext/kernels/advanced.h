/* Moves blocks between a table (strided, addressed by index) and dense memory in the order of the result.
 *
 * A result has outer dimensions, then the points of the index, then the block of inner dimensions that one
 * point stands for. `offset[k]` says where point k lies in the table. All strides are in bytes.
 * Reading runs in several threads. Writing does by outer dimensions and by parts of a block, never by points: of two writes to one
 * place the later one wins, and sums add up in the order of the index, whatever the number of threads. */
#ifndef TGX_ADVANCED_H
#define TGX_ADVANCED_H
#include "tgx.h"

enum tgx_move { TGX_READ, TGX_WRITE, TGX_ADD };

typedef struct {
    char *table, *dense;
    int64_t points;
    const int64_t *offset;
    int nouter, ninner, width, dtype;
    int plain;                                                    /* elements of the table lie in places of their own */
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

/* How an index outside the bounds is reported. */
enum tgx_outside {
    TGX_OUT_INDEX,       /* IndexError "index 5 is out of bounds for dimension 0 with size 3" */
    TGX_OUT_RUNTIME,     /* the same as a RuntimeError */
    TGX_OUT_SELECT,      /* IndexError "index out of range in self" */
    TGX_OUT_COPY,        /* IndexError with the op's name in front */
    TGX_OUT_TAKE,        /* IndexError "out of range: tried to access index ..." */
};

enum { TGX_FEW = 32 };   /* offsets of so many points need no scratch */

/* Bytes of scratch for offsets that do not fit in TGX_FEW. */
static inline int64_t tgx_offsets_room(int64_t points) { return points <= TGX_FEW ? 0 : points * (int64_t)sizeof(int64_t); }

/* Add what index numbers (dense, as many as p->points) say about dimension `dim` to p's offsets, which lie at `offset`. */
int tgx_picks_aim(tgx_call *c, tgx_picks *p, int64_t *offset, const tgx_tensor *table, int dim, const int64_t *index, int flags,
                  int outside, const char *title);
/* The table's side of the plan: index tensors of p->points points stand for the dimensions dims[0..n), ascending. */
void tgx_picks_lay(tgx_picks *p, const tgx_tensor *table, const int *dims, int n);
/* Both for one index tensor. */
int tgx_picks_along(tgx_call *c, tgx_picks *p, int64_t *few, const tgx_tensor *table, int dim, const tgx_tensor *index, int flags,
                    int outside, const char *title);
/* All of that and the reading of what is aimed at: of small blocks the offsets of a few points at a time. */
int tgx_picks_read_along(tgx_call *c, const tgx_tensor *table, int dim, const tgx_tensor *index, int flags, int outside,
                         const char *title, tgx_tensor *out);
/* Fill a contiguous result; put contiguous values, or one for all, to the table. */
int tgx_picks_read(tgx_call *c, tgx_picks *p, tgx_tensor *out);
void tgx_picks_write(tgx_call *c, tgx_picks *p, const void *values, int64_t count, int move);
#endif
