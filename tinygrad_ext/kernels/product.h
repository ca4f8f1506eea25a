/* Matrix products that BLAS does not do, or is too slow to start for: tiny ones and integers.
 *
 * C = alpha A B + beta C with A (m, k), B (k, n), C (m, n); steps of rows and columns are in elements and may be
 * anything. C is not read when beta is 0. */
#ifndef TGX_PRODUCT_H
#define TGX_PRODUCT_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    ptrdiff_t m, n, k;
    ptrdiff_t a_row, a_col, b_row, b_col, c_row, c_col;
} tgx_shape;

void tgx_tiny_f32(const tgx_shape *s, float alpha, const float *a, const float *b, float beta, float *c);
void tgx_tiny_f64(const tgx_shape *s, double alpha, const double *a, const double *b, double beta, double *c);

/* Product of integers of `size` bytes, modulo 2^(8 size): sign does not matter. */
void tgx_integer_product(const tgx_shape *s, int size, int64_t alpha, const void *a, const void *b, int64_t beta, void *c);
#endif
