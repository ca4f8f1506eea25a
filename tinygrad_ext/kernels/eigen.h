/* Eigenvalues and vectors of one small matrix. See eigen.c. */
#ifndef TGX_EIGEN_H
#define TGX_EIGEN_H
#include "tgx.h"

enum { TGX_EIGEN_ORDER = 16 };     /* the largest such matrix */

/* a (n x n, by rows) -> values (n complex numbers), vectors (n x n complex numbers by rows, each a column) unless that is NULL.
 * Returns 0 for what is left to LAPACK. */
int tgx_small_eigen(int dtype, const void *a, int64_t n, void *values, void *vectors);
#endif
