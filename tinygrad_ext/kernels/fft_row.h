/* Transforms of rows of contiguous pairs, and the loops for a dtype. */
#ifndef TGX_FFT_ROW_H
#define TGX_FFT_ROW_H
#include "fft_plan.h"

const tgx_fft_loops *tgx_fft_loops_of(int dtype);

/* A row of contiguous pairs; from may be to. swap: the transform with +i. */
void tgx_fft_row(const tgx_fft_plan *plan, const void *from, void *to, int swap, double scale, void *scratch);
/* The two halves of a cut transform, groups of sixteen lanes from lo to hi: into `middle`, 2 n numbers, and out of it. */
void tgx_fft_columns(const tgx_fft_plan *plan, const void *from, void *middle, int swap, int64_t lo, int64_t hi, void *scratch);
void tgx_fft_rows(const tgx_fft_plan *plan, const void *middle, void *to, int swap, double scale, int64_t lo, int64_t hi, void *scratch);
static inline int64_t tgx_fft_groups(int64_t lanes) { return (lanes + TGX_FFT_LANES - 1) / TGX_FFT_LANES; }
#endif
