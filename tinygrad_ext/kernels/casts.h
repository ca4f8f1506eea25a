/* The loop that copies elements of dtype `from` to dtype `to`: data[0] out, data[1] in. */
#ifndef TGX_CASTS_H
#define TGX_CASTS_H
#include "types.h"
tgx_loop tgx_cast_loop(int from, int to);
/* All of them, half a megabyte: one library that is loaded has them (cast_tables.c), and others are told where. */
typedef struct { const tgx_loop (*between)[TGX_NTYPES], *copies; } tgx_casts;
void tgx_use_casts(const tgx_casts *casts);
const tgx_casts *tgx_casts_in_use(void);
/* complex32, two float16 side by side, to complex64 and back. */
int tgx_pairs_widen(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux);
int tgx_pairs_narrow(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux);
#endif
