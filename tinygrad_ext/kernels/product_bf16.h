/* Products of bfloat16 matrices by an instruction that multiplies two pairs and adds both to a float (AVX512-BF16), or by one that
 * does so for tiles of matrices (AMX).
 *
 * Sums are float32 and rounded once. Both round once for each product, take subnormal operands as zero and give none, as they
 * do in other libraries. Where it is missing, or for less work, operands are widened instead. */
#ifndef TGX_PRODUCT_BF16_H
#define TGX_PRODUCT_BF16_H
#include "product.h"

/* Whether a product of these sizes is computed so; by shape and processor alone. */
int tgx_is_bf16_product(int64_t m, int64_t n, int64_t k);
/* Bytes of both operands as they are laid out: the left one of `left` items, the right one of `right`. */
int64_t tgx_bf16_product_room(int64_t m, int64_t n, int64_t k, int64_t left, int64_t right);
/* C = alpha A B + beta C with bfloat16 matrices and c->scratch of that room; one_b: the right operand is the same for all. */
int tgx_bf16_product_run(tgx_call *c, const tgx_product *p, int one_b);
#endif
