/* Triangular factors of one matrix, and systems with them, by LAPACK or, for small ones, in plain C: the same interface for
 * all dtypes. Matrices stand column by column without gaps. */
#ifndef TGX_FACTOR_H
#define TGX_FACTOR_H
#include "lapack.h"

enum tgx_turned { TGX_AS_IT_IS, TGX_TURNED, TGX_ADJOINT };

/* A (m x n) becomes its LU; `room` for min(m, n) integers of 64 bits. Returns LAPACK's info. Without pivot m == n. */
int64_t tgx_lu(const tgx_blas *blas, int dtype, char *a, int64_t m, int64_t n, int32_t *pivots, void *room, int pivot);
/* X of op(A) X = B in B's place (n x k), of what tgx_lu made. */
void tgx_lu_solve(const tgx_blas *blas, int dtype, const char *lu, const int32_t *pivots, void *room, char *b, int64_t n, int64_t k,
                  int turned);
/* X of op(A) X = B in B's place. */
void tgx_triangle_solve(const tgx_blas *blas, int dtype, const char *a, char *b, int64_t n, int64_t k, int lower, int turned, int unit);
/* The same of a small triangle, with B row by row. */
int tgx_triangle_is_small(int64_t n);
void tgx_triangle_solve_rows(int dtype, const char *a, char *b, int64_t n, int64_t k, int lower, int turned, int unit);
/* The same of few sides, or where there is no library: B and A by rows, which lie `down` elements apart, A's columns `along`; real. */
int tgx_sides_are_few(int dtype, int64_t n, int64_t k);
void tgx_triangle_sides(int dtype, const char *a, int64_t down, int64_t along, char *b, int64_t n, int64_t k, int lower, int unit,
                        void *room);
/* Rows of B (n x k) exchanged as pivots say, or back. */
void tgx_exchange_rows(char *b, int64_t n, int64_t bytes, const int32_t *pivots, int backward);
/* A's upper triangle becomes U of U^H U = A. Returns LAPACK's info. */
int64_t tgx_cholesky(const tgx_blas *blas, int dtype, char *a, int64_t n);
/* The inverse in the place of what tgx_lu made; `work` for n * 64 numbers. */
void tgx_lu_inverse(const tgx_blas *blas, int dtype, char *lu, const int32_t *pivots, void *room, char *work, int64_t n);
#endif
