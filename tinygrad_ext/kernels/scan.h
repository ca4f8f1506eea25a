/* Scans: running sums, products and extremes along one dimension.
 *
 * A scan loop serves lines one by one, or side by side, one row of them after another; what lies otherwise is turned piece by piece
 * first. Each line runs from its first element to its last in double or int64, in fours that its
 * places alone decide, so layout and threads do not change a result. */
#ifndef TGX_SCAN_H
#define TGX_SCAN_H
#include "types.h"

#define TGX_SCAN_TILE 64

/* Strides of x in bytes, of out and out2 in elements: `along` from element to element of a line, `across` from line to line. Either all
 * of w lines, wherever they lie, or a piece of w lines that lie side by side, which are taken together. `run` has room for the
 * running values, of 16 bytes at most, `places` for their indices: they are kept from one piece to the next, and begin with the one
 * whose `first` place is 0; pieces but the last have a multiple of four rows. */
typedef struct {
    const char *x;
    char *out, *out2;
    ptrdiff_t along, across, out_along, out_across;
    void *run;
    int64_t *places, first;
    int together;
} tgx_lines;

typedef void (*tgx_scan)(const tgx_lines *at, int w, int64_t n);

enum tgx_scan_op { TGX_CUMSUM, TGX_CUMPROD, TGX_CUMMAX, TGX_CUMMIN, TGX_NSCANS };

typedef tgx_scan tgx_scan_table[TGX_NSCANS][TGX_NTYPES];

/* A planned scan over a contiguous output of the operand's shape; the dimensions but the scanned one, outermost first. */
typedef struct {
    tgx_scan scan;
    const char *x;
    char *out, *out2;
    int ndim, itemsize, osize;
    int64_t n;
    ptrdiff_t along, out_along;
    int64_t sizes[TGX_MAX_DIMS];
    ptrdiff_t strides[TGX_MAX_DIMS], out_strides[TGX_MAX_DIMS];
    int64_t ntiles;
} tgx_scan_plan;

/* Along the middle of three dimensions, all contiguous; no integers. The product of the other elements; with
 * weights its derivative: for each element the sum over the others of their weight times the product of all but the two,
 * with room for tgx_prod_room elements. */
int64_t tgx_prod_room(int64_t n, int64_t inner, int64_t outer);
void tgx_prod_others(const char *weight, const char *x, char *out, void *room, int64_t n, int64_t inner, int64_t outer, int dtype);
/* h[k] = x[k] + decay[k] * h[k - 1] along the same; decay[0] is not read. */
void tgx_linear_scan(const char *x, const char *decay, char *h, int64_t n, int64_t inner, int64_t lo, int64_t hi, int dtype);

void tgx_plan_scan(tgx_scan_plan *p, const int64_t *sizes, const int64_t *strides, int ndim, int dim, int itemsize);
void tgx_scan_tiles(const tgx_scan_plan *p, int64_t lo, int64_t hi);
#endif
