/* Matrix products as kernels call them: the functions of a BLAS, in the argument order of CBLAS.
 *
 * A kernel gets the table from its caller (`services->blas`), who knows which library there is; where there is none, or a
 * size is beyond its integers, the same functions compute with gemm.h. As CBLAS demands, ld* is at least the row length
 * (column length in TGX_COL_MAJOR), at least 1, and an increment is not 0. Complex numbers are pointers, also alpha and
 * beta. Inside a chunk of a parallel region the library runs on one thread. */
#ifndef TGX_BLAS_H
#define TGX_BLAS_H
#include <stdint.h>

enum { TGX_ROW_MAJOR = 101, TGX_COL_MAJOR = 102, TGX_NO_TRANS = 111, TGX_TRANS = 112, TGX_CONJ_TRANS = 113 };

typedef struct tgx_blas {
    void (*sgemm)(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
    void (*dgemm)(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
                  const double *b, int64_t ldb, double beta, double *c, int64_t ldc);
    void (*cgemm)(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a, int64_t lda,
                  const void *b, int64_t ldb, const void *beta, void *c, int64_t ldc);
    void (*zgemm)(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a, int64_t lda,
                  const void *b, int64_t ldb, const void *beta, void *c, int64_t ldc);
    /* y = alpha op(A) x + beta y, A of m rows and n columns. */
    void (*sgemv)(int order, int trans, int64_t m, int64_t n, float alpha, const float *a, int64_t lda, const float *x, int64_t inc_x,
                  float beta, float *y, int64_t inc_y);
    void (*dgemv)(int order, int trans, int64_t m, int64_t n, double alpha, const double *a, int64_t lda, const double *x,
                  int64_t inc_x, double beta, double *y, int64_t inc_y);
    float (*sdot)(int64_t n, const float *x, int64_t inc_x, const float *y, int64_t inc_y);
    double (*ddot)(int64_t n, const double *x, int64_t inc_x, const double *y, int64_t inc_y);
    /* See lapack.h: the address of a routine, NULL where the library has none; and what stands around calls of them. */
    void *(*routine)(int which, int dtype);
    int (*enter)(void);
    void (*leave)(int entered);
    int wide;                  /* the library's integers have 64 bits, else 32 */
} tgx_blas;
#endif
