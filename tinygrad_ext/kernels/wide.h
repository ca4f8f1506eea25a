/* Loops over float16 and bfloat16 from those over float32: block by block widened, computed, rounded once.
 *
 * Serves float16 in every pointwise op that has no expression of its own for halves, and bfloat16 where the record says nothing about
 * halves: they are dtypes like others for whoever runs a loop, the interpreter, a plan's groups, a program without Python.
 * Rejected: bodies of their own for all. Of bfloat16, whose conversion is a shift, the common arithmetic has them; of float16 they took
 * four to eight times as long as this, since compilers do not find the processor's conversion in its formula. */
#ifndef TGX_WIDE_H
#define TGX_WIDE_H
#include <string.h>
#include "types.h"

/* What a loop of float32 writes and reads: `out` is TGX_F32, TGX_BF16 where that is one of bfloat16 and the upper half of its bits is
 * taken, or a dtype that needs no rounding; bits of `masks` are operands that are bools. */
typedef struct { tgx_loop loop; uint8_t half, out, operands, masks; } tgx_wide;

/* Kernels over rows of halves widen some rows at a time, compute in place and round them, all in the first cache. Rows of more than
 * TGX_WIDE_ROW elements are widened by whole tensors, as halves.h says. */
enum { TGX_WIDE_ROW = 4096 };
static inline ptrdiff_t tgx_wide_rows(ptrdiff_t n) { return n >= 2048 ? 1 : 2048 / n; }
void tgx_widen(int half, const void *from, float *to, ptrdiff_t n);
void tgx_narrow(int half, const float *from, void *to, ptrdiff_t n);

/* The bits of each element as they are, or `all` where that is not negative. */
static inline int tgx_keep_halves(char **data, const ptrdiff_t *s, ptrdiff_t count, int all) {
    char *to = data[0], *from = data[1];
    const ptrdiff_t step = s[0], from_step = s[1];
    const uint16_t bits = (uint16_t)all;
    if (all >= 0 && step == 2) for (ptrdiff_t i = 0; i < count; i++) ((uint16_t *)to)[i] = bits;
    else if (all < 0 && step == 2 && from_step == 2) memmove(to, from, (size_t)count * 2);
    else for (ptrdiff_t i = 0; i < count; i++) memcpy(to + i * step, all >= 0 ? (const char *)&bits : from + i * from_step, 2);
    return 0;
}

int tgx_wide_loop(const tgx_wide *w, char **data, const ptrdiff_t *s, ptrdiff_t count, const tgx_scalar *aux);
#endif
