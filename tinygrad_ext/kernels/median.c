/* Quickselect over indices: ties keep the earlier index first, so the result does not depend on the pivots. */
#include "median.h"

#define BEFORE(x, a, b) ((x)[a] < (x)[b] || ((x)[a] == (x)[b] && (a) < (b)))
#define SWAP(a, b) do { int64_t t_ = (a); (a) = (b); (b) = t_; } while (0)

/* Median of three as pivot keeps sorted rows quick; a row made to defeat it costs n * n / 4 comparisons at worst. */
#define SELECT(NAME, T) \
static int64_t NAME(const T *x, int64_t *order, int64_t n, int64_t k) { \
    int64_t lo = 0, hi = n - 1; \
    while (lo < hi) { \
        int64_t mid = lo + (hi - lo) / 2; \
        if (BEFORE(x, order[mid], order[lo])) SWAP(order[mid], order[lo]); \
        if (BEFORE(x, order[hi], order[lo])) SWAP(order[hi], order[lo]); \
        if (BEFORE(x, order[hi], order[mid])) SWAP(order[hi], order[mid]); \
        int64_t pivot = order[mid], i = lo, j = hi; \
        while (i <= j) { \
            while (BEFORE(x, order[i], pivot)) i++; \
            while (BEFORE(x, pivot, order[j])) j--; \
            if (i <= j) { SWAP(order[i], order[j]); i++; j--; } } \
        if (k <= j) hi = j; \
        else if (k >= i) lo = i; \
        else break; } \
    return order[k]; } \
static int64_t NAME##_row(const T *x, int64_t n, int skip_nan, int64_t *order) { \
    int64_t count = 0; \
    for (int64_t i = 0; i < n; i++) { \
        if (x[i] == x[i]) order[count++] = i; \
        else if (!skip_nan) return i; } \
    return count ? NAME(x, order, count, (count - 1) / 2) : 0; }

SELECT(select_u8, uint8_t) SELECT(select_i8, int8_t) SELECT(select_i16, int16_t) SELECT(select_i32, int32_t)
SELECT(select_i64, int64_t) SELECT(select_f32, float) SELECT(select_f64, double)

int64_t tgx_median(const char *row, int64_t n, int dtype, int skip_nan, int64_t *order) {
    switch (dtype) {
    case TGX_U8: return select_u8_row((const uint8_t *)row, n, skip_nan, order);
    case TGX_I8: return select_i8_row((const int8_t *)row, n, skip_nan, order);
    case TGX_I16: return select_i16_row((const int16_t *)row, n, skip_nan, order);
    case TGX_I32: return select_i32_row((const int32_t *)row, n, skip_nan, order);
    case TGX_I64: return select_i64_row((const int64_t *)row, n, skip_nan, order);
    case TGX_F32: return select_f32_row((const float *)row, n, skip_nan, order);
    default: return select_f64_row((const double *)row, n, skip_nan, order);
    }
}
