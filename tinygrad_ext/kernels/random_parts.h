/* A long fill of one stream, shared by threads: the same numbers and the same stream behind them for any number of these. */
#ifndef TGX_RANDOM_PARTS_H
#define TGX_RANDOM_PARTS_H
#include "random.h"
#include "tgx.h"

/* A fill of n elements, or rows of some: what it draws is read from `what`. */
typedef void tgx_random_fill(const void *what, tgx_stream *s, void *out, int64_t n);

/* One fill of n elements of `size` bytes, shared by threads; an element takes `words` of the stream, 0 if that varies. Of rows none
 * is cut; of elements parts begin at a multiple of the 16 that normal numbers are made of. */
typedef struct { void *out; int64_t n, size, words; int rows; } tgx_random_whole;
void tgx_random_shared(tgx_call *c, tgx_stream *s, const tgx_random_whole *whole, tgx_random_fill *fill, const void *what);
#endif
