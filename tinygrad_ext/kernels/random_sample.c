/* Draws of indices: permutations, and samples by weight. See random_sample.h.
 *
 * Samples without replacement are the best of weight / exponential draw; those with it a binary search in running sums. Which
 * way, and how many draws it takes, is PyTorch's: a table of aliases (Walker) would find each in two looks, with other draws. */
#include "random_sample.h"
#include "sort.h"
#include <math.h>
#include <stdlib.h>

#define LONG_PERMUTATION (UINT32_MAX / 20) /* from here on 32 bits would favour some places noticeably */

static void shuffle_forward(tgx_stream *s, int64_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t other = i + tgx_random_next32(s) % (uint32_t)(n - i), kept = out[i];
        out[i] = out[other];
        out[other] = kept;
    }
}

void tgx_random_permutation(tgx_stream *s, int64_t *out, int64_t n)
{
    if (n < LONG_PERMUTATION) { shuffle_forward(s, out, n); return; }
    for (int64_t i = 0; i < n; i++) {
        int64_t other = (int64_t)(tgx_random_next64(s) % (uint64_t)(i + 1));
        out[i] = i;
        out[i] = out[other];
        out[other] = i;
    }
}

static int64_t best_index(const double *row, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) if (row[i] > row[best]) best = i;
    return best;
}

/* Scores of a row and of what is taken, an even number: the room to order them in, which follows, is read 16 bytes at a time. */
static int64_t scores(int64_t categories, int64_t samples) { return (categories + samples + 1) & ~(int64_t)1; }

static size_t scratch_bytes(int64_t categories, int64_t samples)
{
    return (size_t)scores(categories, samples) * sizeof(double) + (samples > 1 ? tgx_sort_room(TGX_F64, categories) : 0);
}

static void take_best(double *row, int64_t categories, int64_t *out, int64_t samples)
{
    if (samples == 1) { out[0] = best_index(row, categories); return; }
    double *best = row + categories;
    tgx_sort_row(NULL, TGX_F64, (const char *)row, categories, samples, 1, (char *)best, out, row + scores(categories, samples));
}

/* The weights divided by exponential draws rank the categories as drawing one after the other would
 * (Efraimidis and Spirakis, 2006). One sample is drawn this way in either mode. */
enum { DRAWS = 256 };
#define DEFINE_MULTINOMIAL(T, TYPE, suffix)                                                                      \
    static int good_weights_##suffix(const T *w, int64_t rows, int64_t n)                                        \
    {                                                                                                            \
        for (int64_t r = 0; r < rows; r++, w += n) {                                                             \
            T sum = 0;                                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                                    \
                if (!(w[i] >= 0 && w[i] <= (T)HUGE_VAL) || isinf(w[i])) return 0;                                \
                sum += w[i];                                                                                     \
            }                                                                                                    \
            if (!(sum > 0)) return 0;                                                                            \
        }                                                                                                        \
        return 1;                                                                                                \
    }                                                                                                            \
    static void draw_distinct_##suffix(tgx_stream *s, const T *w, int64_t n, double *row, int64_t *out, int64_t k) \
    {                                                                                                            \
        T draws[DRAWS];                                                                                          \
        for (int64_t at = 0; at < n; at += DRAWS) {                                                              \
            const int64_t m = n - at < DRAWS ? n - at : DRAWS;                                                   \
            tgx_random_exponential(s, TYPE, draws, m, 1.0);                                                      \
            for (int64_t i = 0; i < m; i++) row[at + i] = w[at + i] / draws[i];                                  \
        }                                                                                                        \
        take_best(row, n, out, k);                                                                               \
    }                                                                                                            \
    static void draw_again_##suffix(tgx_stream *s, const T *w, int64_t n, T *cumulative, int64_t *out, int64_t k) \
    {                                                                                                            \
        T sum = 0;                                                                                               \
        for (int64_t i = 0; i < n; i++) cumulative[i] = sum += w[i];                                             \
        for (int64_t i = 0; i < n; i++) cumulative[i] /= sum;                                                    \
        for (int64_t j = 0; j < k; j++) {                                                                        \
            double u = tgx_random_next_uniform(s);                                                               \
            int64_t low = 0, high = n - 1;                                                                       \
            while (low < high) {                                                                                 \
                int64_t middle = low + (high - low) / 2;                                                         \
                if (cumulative[middle] < u) low = middle + 1; else high = middle;                                \
            }                                                                                                    \
            out[j] = low;                                                                                        \
        }                                                                                                        \
    }
DEFINE_MULTINOMIAL(float, TGX_F32, float)
DEFINE_MULTINOMIAL(double, TGX_F64, double)

int tgx_random_multinomial(tgx_stream *s, int type, const void *weights, int64_t rows, int64_t categories,
                           int64_t *out, int64_t samples, int replace)
{
    int single = type == TGX_F32;
    if (!(single ? good_weights_float(weights, rows, categories) : good_weights_double(weights, rows, categories)))
        return TGX_BAD_VALUE;
    void *scratch = malloc(scratch_bytes(categories, replace ? 1 : samples));
    if (scratch == NULL) return TGX_NO_MEMORY;
    replace = replace && samples != 1;
    for (int64_t r = 0; r < rows; r++, out += samples) {
        const float *f = (const float *)weights + r * categories;
        const double *d = (const double *)weights + r * categories;
        if (single && replace) draw_again_float(s, f, categories, scratch, out, samples);
        else if (single) draw_distinct_float(s, f, categories, scratch, out, samples);
        else if (replace) draw_again_double(s, d, categories, scratch, out, samples);
        else draw_distinct_double(s, d, categories, scratch, out, samples);
    }
    free(scratch);
    return TGX_OK;
}
