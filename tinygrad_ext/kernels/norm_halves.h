/* Batch norm's last step over halves. */
#ifndef TGX_NORM_HALVES_H
#define TGX_NORM_HALVES_H
#include <stddef.h>

/* A loop as `apply` of norm.h, whose x and out are of the dtype job->half and whose parameters are float. */
int tgx_apply_halves(void *job, ptrdiff_t lo, ptrdiff_t hi);
#endif
