/* Binary search in a sorted row, for each value by itself. See search.h. Walking through row and values together would need
 * the values sorted, and would walk a long row from end to end for a few of them. */
#include "search.h"
#include <string.h>

/* Whether element m lies before the place of v, a number. NaNs in the row are its end, as sort puts them, and lie before none: if
 * they did, numbers would be found or not by which steps meet one. A NaN that is searched goes behind everything, by a pass of its own:
 * the steps have no register left for it. */
#define BEFORE(m, v) (right ? (m) <= (v) : (m) < (v))

/* The place lies among the n + 1 from lo on. A step halves them without a branch, which would be guessed wrong every other time; four
 * values at a time do not wait for each other. */
enum { TOGETHER = 4 };

#define SEARCH(T) { \
    const T *x = (const T *)row, *v = (const T *)values; \
    int64_t i = 0; \
    for (; !order && i + TOGETHER <= count; i += TOGETHER) { \
        int64_t lo[TOGETHER] = {0}; \
        for (int64_t left = n; left > 0; left -= (left + 1) / 2) \
            _Pragma("GCC unroll 4") for (int k = 0; k < TOGETHER; k++) { \
                const int64_t next = lo[k] + (left + 1) / 2; \
                lo[k] = BEFORE(x[next - 1], v[i + k]) ? next : lo[k]; \
            } \
        memcpy(out + i, lo, sizeof lo); \
    } \
    for (; i < count; i++) { \
        int64_t lo = 0; \
        for (int64_t left = n; left > 0; left -= (left + 1) / 2) { \
            const int64_t next = lo + (left + 1) / 2; \
            lo = BEFORE(x[order ? order[next - 1] : next - 1], v[i]) ? next : lo; \
        } \
        out[i] = lo; \
    } \
    for (i = 0; i < count; i++) out[i] = v[i] == v[i] ? out[i] : n; \
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
