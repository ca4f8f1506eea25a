/* What kernels that make tensors have in common.
 *
 * The options dtype, layout, device, pin_memory, requires_grad stand in every factory's schema in this order. Kernels
 * read dtype alone; where a result lies and whether it records is their caller's business. */
#ifndef TGX_MAKE_H
#define TGX_MAKE_H
#include "tgx.h"

/* The dtype in argument `arg`, else that of out=, else `own`; -1 and a message where the first two contradict. */
int tgx_made_dtype(tgx_call *c, int arg, int own);
/* dtype that a number gives a tensor. */
int tgx_dtype_of_number(const tgx_call *c, const tgx_value *v);
/* Result 0 of the sizes in argument `arg`; 0 or TGX_FAILED. */
int tgx_made(tgx_call *c, int arg, int dtype);
/* Result 0 like a tensor, whose order of dimensions is kept unless the memory format in argument `format` says otherwise. */
int tgx_made_like(tgx_call *c, const tgx_tensor *t, int dtype, int format);
/* Every element of result 0 becomes a number, or zero. */
int tgx_fill_number(tgx_call *c, const tgx_scalar *number);
int tgx_fill_zero(tgx_call *c);
/* Zeros in so many bytes of memory, by as many threads as pay. */
void tgx_clear(const tgx_call *c, void *memory, int64_t bytes);
#endif
