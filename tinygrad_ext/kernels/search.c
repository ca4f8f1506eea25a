/* Binary search in a sorted row, for each value by itself. See search.h. Walking through row and values together would need
 * the values sorted, and would walk a long row from end to end for a few of them. */
#include "search.h"

/* The tests are written so that a NaN that is searched goes behind everything. */
#define SEARCH(T) { \
    const T *x = (const T *)row, *v = (const T *)values; \
    for (int64_t i = 0; i < count; i++) { \
        int64_t lo = 0, hi = n; \
        while (lo < hi) { \
            const int64_t mid = lo + (hi - lo) / 2; \
            const T m = x[order ? order[mid] : mid]; \
            if (right ? !(m > v[i]) : !(m >= v[i])) lo = mid + 1; \
            else hi = mid; \
        } \
        out[i] = lo; \
    } \
    break; }

void tgx_search_row(int dtype, const char *row, const int64_t *order, int64_t n, const char *values, int64_t count, int right,
                    int64_t *out) {
    switch (dtype) {
        case TGX_BOOL: case TGX_U8: SEARCH(uint8_t)
        case TGX_I8: SEARCH(int8_t)
        case TGX_I16: SEARCH(int16_t)
        case TGX_I32: SEARCH(int32_t)
        case TGX_I64: SEARCH(int64_t)
        case TGX_F32: SEARCH(float)
        default: SEARCH(double)
    }
}
