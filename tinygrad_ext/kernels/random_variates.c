/* See random_variates.h. The constants are those of the papers named there. */
#include "random_variates.h"
#include <float.h>
#include <math.h>

/* ---- gamma ------------------------------------------------------------------------------------------------------- */

static double squeezed_gamma(tgx_stream *s, double d, double scale)
{
    const double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x, y;
        do {
            x = tgx_random_next_normal(s);
            y = 1.0 + c * x;
        } while (y <= 0);
        double v = y * y * y, u = 1 - tgx_random_next_uniform(s), xx = x * x;
        if (u < 1.0 - (double)0.0331f * xx * xx) return scale * d * v;
        if (log(u) < 0.5 * xx + d * (1.0 - v + log(v))) return scale * d * v;
    }
}

/* Below 1 a variable of alpha + 1 times a power of a uniform one. */
static double boost(tgx_stream *s, double power) { return pow(1 - tgx_random_next_uniform(s), power); }

double tgx_draw_gamma(tgx_stream *s, double alpha)
{
    double scale = 1.0;
    if (isnan(alpha)) return alpha;
    if (alpha < 1.0) {
        if (alpha == 0.0) return DBL_MIN;
        scale = boost(s, 1.0 / alpha);
        alpha += 1.0;
    }
    return fmax(DBL_MIN, squeezed_gamma(s, alpha - (double)(1.0f / 3.0f), scale));
}

/* What stands before the draw is rounded to float32, the draw itself is not. */
float tgx_draw_gamma_f32(tgx_stream *s, float alpha)
{
    double scale = 1.0;
    if (isnan(alpha)) return alpha;
    if (alpha < 1.0f) {
        if (alpha == 0.0f) return FLT_MIN;
        scale = boost(s, 1.0f / alpha);
        alpha += 1.0f;
    }
    return fmaxf(FLT_MIN, (float)squeezed_gamma(s, alpha - 1.0f / 3.0f, scale));
}

/* ---- poisson ----------------------------------------------------------------------------------------------------- */

static int64_t poisson_by_rejection(tgx_stream *s, double rate)
{
    const double root = sqrt(rate), log_rate = log(rate);
    const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), box = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = tgx_random_next_uniform(s) - 0.5, v = tgx_random_next_uniform(s);
        double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= box) return (int64_t)k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1)) return (int64_t)k;
    }
}

int64_t tgx_draw_poisson(tgx_stream *s, double rate)
{
    if (rate >= 10) return poisson_by_rejection(s, rate);
    if (rate == 0) return 0;
    const double least = exp(-rate);
    double product = tgx_random_next_uniform(s);
    int64_t k = 0;
    for (; product > least; k++) product *= tgx_random_next_uniform(s);
    return k;
}

/* ---- binomial ---------------------------------------------------------------------------------------------------- */

/* Counts the waiting times that fit into `count` trials. */
static double binomial_by_waiting(tgx_stream *s, double count, double prob)
{
    const double log_miss = log1p(-prob);
    double passed = 0, hits = 0;
    for (;;) {
        passed += ceil(log(tgx_random_next_uniform(s)) / log_miss);
        if (passed > count) return hits;
        hits += 1;
    }
}

/* log(k!) less Stirling's formula for it. */
static double stirling_rest(double k)
{
    static const double first[] = {0.0810614667953272,  0.0413406959554092,  0.0276779256849983,  0.02079067210376509, 0.0166446911898211,
                                   0.0138761288230707,  0.0118967099458917,  0.0104112652619720,  0.00925546218271273, 0.00833056343336287};
    if (k <= 9) return first[(int)k];
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

static double binomial_by_rejection(tgx_stream *s, double count, double prob)
{
    const double deviation = sqrt(count * prob * (1 - prob)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * prob;
    const double c = count * prob + 0.5, box = 0.92 - 4.2 / b, odds = prob / (1 - prob);
    const double alpha = (2.83 + 5.1 / b) * deviation, m = floor((count + 1) * prob);
    const double fixed = (m + 0.5) * log((m + 1) / (odds * (count - m + 1))) + stirling_rest(m) + stirling_rest(count - m);
    for (;;) {
        double u = tgx_random_next_uniform(s) - 0.5, v = tgx_random_next_uniform(s);
        double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + c);
        if (us >= 0.07 && v <= box) return k;
        if (k < 0 || k > count) continue;
        double bound = fixed + (count + 1) * log((count - m + 1) / (count - k + 1)) + (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) -
                       stirling_rest(k) - stirling_rest(count - k);
        if (log(v * alpha / (a / (us * us) + b)) <= bound) return k;
    }
}

static double rare_binomial(tgx_stream *s, double count, double prob)
{
    return count * prob >= 10.0 ? binomial_by_rejection(s, count, prob) : binomial_by_waiting(s, count, prob);
}

double tgx_draw_binomial(tgx_stream *s, double count, double prob)
{
    if (count <= 0 || prob <= 0) return 0;
    if (prob >= 1) return count;
    if (!(count < INFINITY)) return NAN; /* no draw would end */
    if (prob <= 0.5) return rare_binomial(s, count, prob);
    return prob > 0.5 ? count - rare_binomial(s, count, 1 - prob) : (double)NAN;
}
