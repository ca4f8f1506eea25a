/* The products of product_bf16.h by instructions that multiply tiles of matrices (AMX-BF16). */
#ifndef TGX_PRODUCT_BF16_TILES_H
#define TGX_PRODUCT_BF16_TILES_H
#include "product_bf16.h"

int tgx_has_bf16_tiles(void);
/* As the functions of product_bf16.h. */
int64_t tgx_bf16_tiles_room(int64_t m, int64_t n, int64_t k, int64_t left, int64_t right);
int tgx_bf16_tiles_run(tgx_call *c, const tgx_product *p, int one_b);
extern const tgx_bf16_panels tgx_bf16_tile_panels;
#endif
