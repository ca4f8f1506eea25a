/* What a mask selects: counts, positions, compressed and expanded copies. All memory here is contiguous.
 *
 * A mask is counted in one pass and used in another; another thread may write to it between the two. So each pass keeps
 * to the sizes it is given, and what a mask that lost elements leaves open becomes zero. */
#ifndef TGX_MASKS_H
#define TGX_MASKS_H
#include "tgx.h"

typedef struct {
    int64_t (*count_true)(const char *p, int dtype, int64_t n);
    /* Coordinates of the `room` elements at lo to hi that are not zero: out[d * pitch + k] is that of element k in dimension d. */
    void (*true_coordinates)(const char *p, int dtype, const int64_t *sizes, int ndim, int64_t lo, int64_t hi, int64_t pitch,
                             int64_t room, int64_t *out);
    /* The `count` elements of x (of n) whose mask byte is not 0, in order. */
    void (*compress)(char *out, const char *x, const uint8_t *mask, int64_t n, int64_t count, int width);
    /* x[i] = the next of the `have` elements of src where the mask byte is not 0. */
    void (*expand)(char *x, const char *src, const uint8_t *mask, int64_t n, int64_t have, int width);
    /* out = mask ? value : x, for elements of 1, 2, 4, 8, 16 bytes. */
    tgx_loop fill[5];
} tgx_mask_table;

const tgx_mask_table *tgx_mask_loops(void);
/* compress, by several threads where there is much of it. */
void tgx_compress(tgx_call *c, char *out, const char *x, const uint8_t *mask, int64_t n, int64_t count, int width);
#endif
