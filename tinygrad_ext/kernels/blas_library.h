/* The table of blas.h over a library that was loaded, or over gemm.h.
 *
 * Libraries differ in the width of their integers. Whoever loads one (core/loops/blas.pyx) says what it found. */
#ifndef TGX_BLAS_LIBRARY_H
#define TGX_BLAS_LIBRARY_H
#include "blas.h"

typedef struct {
    int wide;                  /* its integers have 64 bits, else 32 */
    void *sgemm, *dgemm, *cgemm, *zgemm, *sgemv, *dgemv, *sdot, *ddot;
    void *(*symbol)(const char *name); /* of the library, without its prefix and suffix; NULL: it has none */
    int (*enter)(void);        /* called around each product, see parallel.h */
    void (*leave)(int entered);
} tgx_blas_library;

/* Compute with a library from now on, or with gemm.h for NULL; once, before anything is computed. */
void tgx_blas_use(const tgx_blas_library *library);
/* The products, or NULL before tgx_blas_use. */
const tgx_blas *tgx_blas_in_use(void);
#endif
