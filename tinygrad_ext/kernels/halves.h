/* Kernels and loops that have nothing for float16 and bfloat16 are run in float32, and what they make is rounded once.
 *
 * The caller asks for shape by tgx_ask. A kernel that refuses a half is asked again about tensors of float32 that lie as wide
 * copies would; what it then needs is said by `needs`, `want` and `via`, which every caller of kernels reads anyway, so plans
 * and programs without Python have no way of their own. Left out: kernels that draw numbers, since the same seed would give
 * others than a native draw, windows, which would be on the copy, and kernels whose shape reads elements.
 *
 * Rejected: half bodies of every kernel, which would make compiling take half as long again; and conversion in the front ends,
 * which are three. */
#ifndef TGX_HALVES_H
#define TGX_HALVES_H
#include "tgx.h"

/* shape of a kernel, for halves too. Of a list among the arguments, `needs` means its halves. What is in `needs` and in `changes`
 * is copied back after run. */
int tgx_ask(const tgx_kernel *kernel, tgx_call *c);
#endif
