/* Bags of rows in one instruction set, see embedding_bag.c. */
#include "embedding_bag.h"
#include "once.h"

static inline int is_padding(const tgx_call *c, int64_t row) {
    int64_t period = tgx_int(c, PERIOD);
    return tgx_int(c, PADDING) >= 0 && (period ? row % period : row) == tgx_int(c, PADDING);
}

/* Where bag i starts and ends among the indices. */
static int bounds(const tgx_bags_job *k, int64_t i, int64_t *from, int64_t *to) {
    const tgx_tensor *offsets = tgx_in(k->c, OFFSETS);
    const int64_t *at = (const int64_t *)offsets->data;
    *from = tgx_once(at + i);
    *to = i + 1 < offsets->count ? tgx_once(at + i + 1) : k->count;
    if (i == 0 && *from)
        return tgx_fail(k->c, TGX_RUNTIME_ERROR, "offsets[0] has to be 0, i.e. the first sequence in the mini-batch has to start from position 0. "
                        "However, got %lld", (long long)*from);
    if (*from < 0 || *from > *to || *to > k->count)
        return tgx_fail(k->c, TGX_RUNTIME_ERROR, "embedding_bag: offsets have to rise and end within the %lld indices, but bag %lld goes from %lld "
                        "to %lld", (long long)k->count, (long long)i, (long long)*from, (long long)*to);
    return 0;
}

/* A row of a bag, taken in. */
#define TAKE(T) static inline void add_##T(T *out, const T *x, ptrdiff_t n) { \
    _Pragma("omp simd") for (ptrdiff_t j = 0; j < n; j++) out[j] += x[j]; } \
static inline void add_times_##T(T *out, const T *x, T factor, ptrdiff_t n) { \
    _Pragma("omp simd") for (ptrdiff_t j = 0; j < n; j++) out[j] += x[j] * factor; } \
static inline void most_of_##T(T *out, int64_t *chosen, const T *x, int64_t row, ptrdiff_t n) { \
    _Pragma("omp simd") \
    for (ptrdiff_t j = 0; j < n; j++) { \
        const int more = x[j] > out[j]; \
        out[j] = more ? x[j] : out[j], chosen[j] = more ? row : chosen[j]; } } \
static inline void start_##T(T *out, int64_t *chosen, const T *x, int64_t row, ptrdiff_t n) { \
    for (ptrdiff_t j = 0; j < n; j++) out[j] = x[j], chosen[j] = row; }

#define BAGS(T) TAKE(T) \
static int bags_##T(void *context, ptrdiff_t lo, ptrdiff_t hi) { \
    tgx_bags_job *k = context; \
    tgx_call *c = k->c; \
    const int64_t *at = (const int64_t *)tgx_in(c, INDICES)->data; \
    const T *w = (const T *)tgx_in(c, WEIGHT)->data, *factors = tgx_given(c, FACTORS) ? (const T *)tgx_in(c, FACTORS)->data : NULL; \
    int64_t *bag = (int64_t *)tgx_out(c, 1)->data, *sizes = (int64_t *)tgx_out(c, 2)->data, *most = (int64_t *)tgx_out(c, 3)->data; \
    for (int64_t b = lo; b < hi; b++) { \
        T *out = (T *)tgx_out(c, 0)->data + b * k->width; \
        int64_t from, to, n = 0; \
        if (bounds(k, b, &from, &to)) return TGX_FAILED; \
        memset(out, 0, (size_t)k->width * sizeof(T)); \
        for (int64_t j = 0; j < k->width && k->mode == MOST; j++) most[b * k->width + j] = -1; \
        for (int64_t i = from; i < to; i++) { \
            int64_t row = tgx_once(at + i); \
            if (row < 0 || row >= k->rows) \
                return tgx_fail(c, TGX_RUNTIME_ERROR, "embedding_bag: Expected idx >= 0 && idx < num_embeddings, which is %lld, but found idx " \
                                "to be %lld", (long long)k->rows, (long long)row); \
            bag[i] = b; \
            if (is_padding(c, row)) continue; \
            const T *x = w + row * k->width; \
            if (k->mode == MOST) { \
                int64_t *chosen = most + b * k->width; \
                if (n) most_of_##T(out, chosen, x, row, k->width); \
                else start_##T(out, chosen, x, row, k->width); \
            } else if (factors) add_times_##T(out, x, factors[i], k->width); \
            else add_##T(out, x, k->width); \
            n++; \
        } \
        sizes[b] = n; \
        if (k->mode == MEAN && n) for (int64_t j = 0; j < k->width; j++) out[j] /= (T)n; \
        if (k->mode != MOST) most[b] = n; \
    } \
    return 0; }
BAGS(float)
BAGS(double)

const tgx_bags_table ISA(tgx_bags) = {{bags_float, bags_double}};
