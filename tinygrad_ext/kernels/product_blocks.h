/* Large products of float32 and float64 by own loops, on processors where those are quicker than the BLAS. */
#ifndef TGX_PRODUCT_BLOCKS_H
#define TGX_PRODUCT_BLOCKS_H
#include "product.h"

/* Whether this processor and these sizes are such. */
int tgx_is_block_product(int dtype, int64_t m, int64_t n, int64_t k);

/* Bytes of p->room, 64-byte aligned, for a batch of them; 0 where this is no such product. */
int64_t tgx_block_product_room(int dtype, int64_t m, int64_t n, int64_t k);

/* C = alpha A B + beta C for all of a batch. Steps may be anything. */
int tgx_block_product_run(const tgx_services *services, const tgx_product *p);
#endif
