/* A long fill of one stream, shared by threads: the same numbers and the same stream behind them for any number of these. */
#ifndef TGX_RANDOM_PARTS_H
#define TGX_RANDOM_PARTS_H
#include "random.h"
#include "tgx.h"

/* A fill of n elements: what it draws is read from `what`. */
typedef void tgx_random_fill(const void *what, tgx_stream *s, void *out, int64_t n);

/* One fill of n elements of `size` bytes, shared by threads; an element takes `words` of the stream. */
void tgx_random_shared(tgx_call *c, tgx_stream *s, tgx_random_fill *fill, const void *what, void *out, int size, int64_t n, int words);
#endif
