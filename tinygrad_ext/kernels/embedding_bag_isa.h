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

/* Rows are added to a bag some at a time: as many columns of it as four registers hold, once for all of those rows. In arrays, which
 * the compiler leaves in memory, that took longer than a row after the other. */
enum { SOME = 32 };
#if defined(__AVX512F__)
#define LINE 64
#elif defined(__AVX2__)
#define LINE 32
#else
#define LINE 16
#endif
typedef float float_line __attribute__((vector_size(LINE), aligned(4), may_alias));
typedef double double_line __attribute__((vector_size(LINE), aligned(8), may_alias));
#define TAKE(T) static inline void add_##T(T *out, const T *const *rows, const T *factors, int m, ptrdiff_t n) { \
    enum { V = LINE / sizeof(T) }; \
    T##_line *to = (T##_line *)out; \
    ptrdiff_t j = 0, v = 0; \
    for (; j + 4 * V <= n; j += 4 * V, v += 4) { \
        T##_line a = to[v], b = to[v + 1], c = to[v + 2], d = to[v + 3]; \
        for (int r = 0; r < m; r++) { \
            const T##_line *x = (const T##_line *)rows[r] + v; \
            if (factors) { \
                const T by = factors[r]; \
                a += x[0] * by, b += x[1] * by, c += x[2] * by, d += x[3] * by; \
            } else a += x[0], b += x[1], c += x[2], d += x[3]; \
        } \
        to[v] = a, to[v + 1] = b, to[v + 2] = c, to[v + 3] = d; \
    } \
    for (; j + V <= n; j += V, v++) { \
        T##_line a = to[v]; \
        for (int r = 0; r < m; r++) { \
            const T##_line x = ((const T##_line *)rows[r])[v]; \
            if (factors) a += x * factors[r]; \
            else a += x; \
        } \
        to[v] = a; \
    } \
    for (; j < n; j++) \
        for (int r = 0; r < m; r++) out[j] += factors ? rows[r][j] * factors[r] : rows[r][j]; } \
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
        const T *near[SOME]; \
        T by[SOME]; \
        int m = 0; \
        for (int64_t i = from; i < to; i++) { \
            int64_t row = tgx_once(at + i); \
            if (row < 0 || row >= k->rows) \
                return tgx_fail(c, TGX_RUNTIME_ERROR, "embedding_bag: Expected idx >= 0 && idx < num_embeddings, which is %lld, but found idx " \
                                "to be %lld", (long long)k->rows, (long long)row); \
            bag[i] = b; \
            if (is_padding(c, row)) continue; \
            const T *x = w + row * k->width; \
            n++; \
            if (k->mode == MOST) { \
                int64_t *chosen = most + b * k->width; \
                if (n > 1) most_of_##T(out, chosen, x, row, k->width); \
                else start_##T(out, chosen, x, row, k->width); \
                continue; \
            } \
            __builtin_prefetch(x), __builtin_prefetch((const char *)x + 64); \
            near[m] = x; \
            if (factors) by[m] = factors[i]; \
            if (++m < SOME) continue; \
            add_##T(out, near, factors ? by : NULL, m, k->width); \
            m = 0; \
        } \
        add_##T(out, near, factors ? by : NULL, m, k->width); \
        sizes[b] = n; \
        if (k->mode == MEAN && n) for (int64_t j = 0; j < k->width; j++) out[j] /= (T)n; \
        if (k->mode != MOST) most[b] = n; \
    } \
    return 0; }
BAGS(float)
BAGS(double)

#define SPREAD(T) \
static int spread_##T(void *context, ptrdiff_t lo, ptrdiff_t hi) { \
    const tgx_bags_spread *k = context; \
    const int64_t first = lo * TGX_BAG_COLUMNS, n = (hi * TGX_BAG_COLUMNS < k->width ? hi * TGX_BAG_COLUMNS : k->width) - first; \
    for (int64_t i = 0; i < k->count; i++) { \
        const int64_t row = tgx_once(k->at + i), bag = tgx_once(k->bag + i); \
        if (bag < 0) continue; \
        if (row < 0 || row >= k->rows || bag >= k->bags) return TGX_INDEX; \
        T *to = (T *)k->to + row * k->width + first; \
        const T *g = (const T *)k->grad + bag * k->width + first; \
        if (k->factors) { \
            const T by = ((const T *)k->factors)[i]; \
            _Pragma("omp simd") for (ptrdiff_t j = 0; j < n; j++) to[j] += g[j] * by; \
        } else _Pragma("omp simd") for (ptrdiff_t j = 0; j < n; j++) to[j] += g[j]; \
    } \
    return 0; }
SPREAD(float)
SPREAD(double)

const tgx_bags_table ISA(tgx_bags) = {{bags_float, bags_double}, {spread_float, spread_double}};
