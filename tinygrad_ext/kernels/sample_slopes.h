/* Slopes of gamma and beta variables with their concentrations, of some at once; compiled for several instruction sets. */
#ifndef TGX_SAMPLE_SLOPES_H
#define TGX_SAMPLE_SLOPES_H
#include <stddef.h>

enum { TGX_SLOPES = 256 }; /* at most */

typedef struct {
    /* dx/da of gamma variables x with the concentrations a; `least`: what may be left of a series. */
    void (*gamma)(ptrdiff_t n, const double *a, const double *x, double least, double *out);
    /* dx/da of beta variables x with the parameters a and total - a. */
    void (*beta)(ptrdiff_t n, const double *x, const double *a, const double *total, double least, double *out);
} tgx_slope_table;
extern const tgx_slope_table tgx_slopes_base, tgx_slopes_avx2, tgx_slopes_avx512;
#endif
