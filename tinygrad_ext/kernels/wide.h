/* Loops over float16 and bfloat16 from those over float32: block by block widened, computed, rounded once.
 *
 * Serves float16 in every pointwise op that has no expression of its own for halves, and bfloat16 where the record says nothing about
 * halves: they are dtypes like others for whoever runs a loop, the interpreter, a plan's groups, a program without Python.
 * Rejected: bodies of their own for all. Of bfloat16, whose conversion is a shift, the common arithmetic has them; of float16 they took
 * four to eight times as long as this, since compilers do not find the processor's conversion in its formula. */
#ifndef TGX_WIDE_H
#define TGX_WIDE_H
#include "types.h"

/* What a loop of float32 writes and reads: `out` is TGX_F32 or a dtype that needs no rounding, bits of `masks` are operands that are
 * bools. */
typedef struct { tgx_loop loop; uint8_t half, out, operands, masks; } tgx_wide;

/* Kernels over rows of halves widen some rows at a time, compute in place and round them, all in the first cache. Rows of more than
 * TGX_WIDE_ROW elements are widened by whole tensors, as halves.h says. */
enum { TGX_WIDE_ROW = 4096 };
static inline ptrdiff_t tgx_wide_rows(ptrdiff_t n) { return n >= 2048 ? 1 : 2048 / n; }
void tgx_widen(int half, const void *from, float *to, ptrdiff_t n);
void tgx_narrow(int half, const float *from, void *to, ptrdiff_t n);

int tgx_wide_loop(const tgx_wide *w, char **data, const ptrdiff_t *s, ptrdiff_t count, const tgx_scalar *aux);
#endif
