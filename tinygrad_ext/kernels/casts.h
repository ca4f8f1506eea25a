/* The loop that copies elements of dtype `from` to dtype `to`: data[0] out, data[1] in. */
#ifndef TGX_CASTS_H
#define TGX_CASTS_H
#include "types.h"
tgx_loop tgx_cast_loop(int from, int to);

/* Copies n1 rows of n0 elements: the two innermost dimensions of a strided copy at once, where the walk row by row would
 * spend its time on calls (short rows) or on cache misses (transposed rows). The copy for elements of `size` bytes. */
typedef void (*tgx_plane)(char **data, const ptrdiff_t *inner, const ptrdiff_t *outer, int64_t n0, int64_t n1);
tgx_plane tgx_copy_plane(int size);

/* All of them, half a megabyte: one library that is loaded has them (cast_tables.c), and others are told where. */
typedef struct { const tgx_loop (*between)[TGX_NTYPES], *copies; const tgx_plane *planes; } tgx_casts;
void tgx_use_casts(const tgx_casts *casts);
const tgx_casts *tgx_casts_in_use(void);
/* complex32, two float16 side by side, to complex64 and back. */
int tgx_pairs_widen(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux);
int tgx_pairs_narrow(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux);
#endif
