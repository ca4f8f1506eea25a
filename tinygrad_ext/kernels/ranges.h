/* Arithmetic sequences: out[i] = start + step * i, computed in double and rounded once. */
#ifndef TGX_RANGES_H
#define TGX_RANGES_H
#include <stdint.h>
void tgx_range_f32(float *out, int64_t n, double start, double step);
void tgx_range_f64(double *out, int64_t n, double start, double step);
#endif
