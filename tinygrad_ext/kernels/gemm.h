/* Matrix products in plain C: what runs when no BLAS library is found, or its integers are too narrow.
 *
 * C = alpha A B + beta C with A (m, k), B (k, n), C (m, n). Every matrix takes any row and column stride, in
 * elements (complex elements for the complex ones), also zero and negative; C must not overlap A or B. As in
 * BLAS, C is not read when beta is 0, and A and B are not read when alpha is 0. */
#ifndef TGX_GEMM_H
#define TGX_GEMM_H
#include <stddef.h>

void tgx_sgemm(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
               float alpha, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,
               const float *b, ptrdiff_t b_row, ptrdiff_t b_col,
               float beta, float *c, ptrdiff_t c_row, ptrdiff_t c_col);
void tgx_dgemm(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
               double alpha, const double *a, ptrdiff_t a_row, ptrdiff_t a_col,
               const double *b, ptrdiff_t b_row, ptrdiff_t b_col,
               double beta, double *c, ptrdiff_t c_row, ptrdiff_t c_col);

/* Complex numbers are pairs (real, imaginary); conj_a and conj_b ask for the conjugate of A and B. */
void tgx_cgemm(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
               const float *alpha, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, int conj_a,
               const float *b, ptrdiff_t b_row, ptrdiff_t b_col, int conj_b,
               const float *beta, float *c, ptrdiff_t c_row, ptrdiff_t c_col);
void tgx_zgemm(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
               const double *alpha, const double *a, ptrdiff_t a_row, ptrdiff_t a_col, int conj_a,
               const double *b, ptrdiff_t b_row, ptrdiff_t b_col, int conj_b,
               const double *beta, double *c, ptrdiff_t c_row, ptrdiff_t c_col);

/* Sum of x[i x_step] y[i y_step]. */
float tgx_sdot(ptrdiff_t n, const float *x, ptrdiff_t x_step, const float *y, ptrdiff_t y_step);
double tgx_ddot(ptrdiff_t n, const double *x, ptrdiff_t x_step, const double *y, ptrdiff_t y_step);
#endif
