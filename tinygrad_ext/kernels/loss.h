/* Squared distance of two dense arrays: elements, sum, derivative; margins of labels over other classes. */
#ifndef TGX_LOSS_H
#define TGX_LOSS_H
#include <stddef.h>
#include "tgx.h"

/* Elements of one partial sum; partial sums are added in order, so threads do not change the total. */
#define TGX_LOSS_CHUNK 32768

enum { TGX_FEW_CLASSES = 24 };  /* in a row of a loss of sets of labels */

typedef struct {
    char *out;
    const char *x, *y;
    const char *grad;       /* derivative: one factor for each element, or NULL */
    double scale;           /* derivative: factor of all elements */
    double *partial;        /* sum: one for each chunk */
    ptrdiff_t n;
} tgx_loss_job;

typedef int (*tgx_loss_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);      /* elements lo to hi; sum: chunks */
typedef struct { tgx_loss_fn square[2], sum[2], slope[2], margin[2]; } tgx_loss_table;     /* float, double */

/* Dense rows of classes, each with its list of labels up to the first that is negative. */
typedef struct {
    char *loss, *slope;
    const char *x;
    const int64_t *target;
    ptrdiff_t classes;
} tgx_margin_job;

extern const tgx_loss_table tgx_loss_base, tgx_loss_avx2, tgx_loss_avx512;

/* What becomes of the losses. */
enum { TGX_LOSS_NONE, TGX_LOSS_MEAN, TGX_LOSS_SUM };

/* The reduction that an argument names, into `how`; 0 or TGX_FAILED. */
int tgx_loss_reduction(tgx_call *c, int arg, int64_t *how);
/* Write a number to a float32 or float64 tensor of one element. */
static inline void tgx_loss_number(tgx_tensor *out, double value) {
    if (out->dtype == TGX_F32) *(float *)out->data = (float)value;
    else *(double *)out->data = value;
}
#endif
