/* Single draws of variables that are made by accepting and rejecting: gamma, Poisson, binomial.
 *
 * How many numbers each takes from the stream depends on what they are, so these are drawn one after the other, in the
 * order and by the algorithms of PyTorch's CPU generator: the same seed gives the same values. */
#ifndef TGX_RANDOM_VARIATES_H
#define TGX_RANDOM_VARIATES_H

#include "random.h"

double tgx_draw_gamma(tgx_stream *s, double alpha);             /* scale 1, above 0; Marsaglia and Tsang, 2000 */
float tgx_draw_gamma_f32(tgx_stream *s, float alpha);
int64_t tgx_draw_poisson(tgx_stream *s, double rate);           /* rate >= 0; Hoermann's PTRS, 1993, from 10 on */
double tgx_draw_binomial(tgx_stream *s, double count, double prob); /* Hoermann's BTRS, 1993, where 10 or more are expected */
#endif
