/* Quickselect on a copy of the row; the index is then that of the first element with the selected value.
 *
 * A step counts what lies below its pivot, by vectors, and keeps the side that is wanted, moved together without a branch, which would
 * be guessed wrong every other time: exchanges from both ends take 2 to 3 times as long.
 *
 * Rejected: sorting the row (qsort took 6 times as long for 100 floats, 38 times for 10,000, 16 times for a million), and
 * selecting among pairs of value and index, at least twice the bytes to move where one more pass finds the index. */
#include "median.h"

/* Of a long row a sample, one of eight elements or so many, tells between which two elements the median lies, but for bad luck, and one
 * pass without branches on elements keeps what is between: three times the square root of the sample. Where the row was made to defeat
 * that all of it is selected from. */
enum { LONG = 512, EACH = 8, SAMPLE = 4096, FEW = 12, PART = 1024, LOOK = 32 };

static int64_t margin_of(int64_t sample) {
    int64_t root = 1;
    while (root * root < sample) root++;
    return root + root / 2;
}

/* One of so many places, another one for each i: of a row that repeats itself every so many elements equal steps meet a few alone. */
static int64_t somewhere(int64_t i, int64_t step) {
    const uint32_t mixed = (uint32_t)i * 0x9e3779b1u;
    return (int64_t)((uint64_t)(mixed ^ mixed >> 15) * (uint64_t)step >> 32);
}

/* Median of three as pivot keeps sorted rows quick; a row made to defeat it costs n * n / 4 comparisons at worst. What is no number
 * ends the search as a pivot, and as an element counts as above. */
#define SELECT(NAME, T) \
static T NAME(T *x, int64_t n, int64_t k) { \
    while (n > FEW) { \
        const T a = x[0], b = x[n / 2], c = x[n - 1]; \
        const T pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b); \
        int64_t below = 0, kept = 0; \
        for (int64_t i = 0; i < n; i++) below += x[i] < pivot; \
        if (k < below) \
            for (int64_t i = 0; i < n; i++) { const T v = x[i]; x[kept] = v; kept += v < pivot; } \
        else if (below) { \
            for (int64_t i = 0; i < n; i++) { const T v = x[i]; x[kept] = v; kept += !(v < pivot); } \
            k -= below; \
        } else { \
            for (int64_t i = 0; i < n; i++) { const T v = x[i]; x[kept] = v; kept += pivot < v; } \
            if (k < n - kept) return pivot; \
            k -= n - kept; \
        } \
        n = kept; } \
    for (int64_t i = 1; i < n; i++) { \
        const T v = x[i]; \
        int64_t j = i; \
        for (; j > 0 && v < x[j - 1]; j--) x[j] = x[j - 1]; \
        x[j] = v; } \
    return x[k]; } \
static T NAME##_of_sample(const T *x, int64_t sample, int64_t step, int64_t k, T *room) { \
    for (int64_t i = 0; i < sample; i++) room[i] = x[step * i + somewhere(i, step)]; \
    return NAME(room, sample, k); } \
/* Element k of n in their order, the median: whether it lies between the two of the sample; and how many are numbers. */ \
static int NAME##_between(const T *x, int64_t n, int64_t k, T *room, T *found, int64_t *numbers) { \
    const int64_t sample = n / EACH < SAMPLE ? n / EACH : SAMPLE, step = n / sample, margin = margin_of(sample); \
    int64_t below = 0, count = 0, some = 0; \
    const T lo = NAME##_of_sample(x, sample, step, sample / 2 - margin, room); \
    const T hi = NAME##_of_sample(x, sample, step, sample / 2 + margin, room); \
    for (int64_t at = 0; at < n; at += PART) { \
        const int64_t end = at + PART < n ? at + PART : n; \
        for (int64_t i = at; i < end; i++) below += x[i] < lo, some += x[i] == x[i]; \
        for (int64_t i = at; i < end; i++) { const T v = x[i]; room[count] = v; count += (v >= lo) & (v <= hi); } } \
    *numbers = some; \
    if (k < below || k >= below + count) return 0; \
    *found = NAME(room, count, k - below); \
    return 1; } \
static int64_t NAME##_row(const T *x, int64_t n, int skip_nan, T *room) { \
    int64_t count = 0, at = 0; \
    T value = 0; \
    int known = n >= LONG && NAME##_between(x, n, (n - 1) / 2, room, &value, &count); \
    if (n < LONG) for (int64_t i = 0; i < n; i++) count += x[i] == x[i]; \
    if (count < n && !skip_nan) \
        for (int64_t i = 0; i < n; i++) if (x[i] != x[i]) return i; \
    if (!count) return 0; \
    if (count < n || !known) { \
        count = 0; \
        for (int64_t i = 0; i < n; i++) { const T v = x[i]; room[count] = v; count += v == v; } \
        if (!count) return 0;       /* another thread has overwritten it */ \
        value = NAME(room, count, (count - 1) / 2); } \
    for (int found = 0; at + LOOK <= n; at += LOOK) { \
        for (int64_t i = at; i < at + LOOK; i++) found |= x[i] == value; \
        if (found) break; } \
    for (; at < n; at++) if (x[at] == value) return at; \
    return 0; }     /* another thread has overwritten it */

SELECT(select_u8, uint8_t) SELECT(select_i8, int8_t) SELECT(select_i16, int16_t) SELECT(select_i32, int32_t)
SELECT(select_i64, int64_t) SELECT(select_f32, float) SELECT(select_f64, double)

int64_t tgx_median(const char *row, int64_t n, int dtype, int skip_nan, void *room) {
    switch (dtype) {
    case TGX_U8: return select_u8_row((const uint8_t *)row, n, skip_nan, room);
    case TGX_I8: return select_i8_row((const int8_t *)row, n, skip_nan, room);
    case TGX_I16: return select_i16_row((const int16_t *)row, n, skip_nan, room);
    case TGX_I32: return select_i32_row((const int32_t *)row, n, skip_nan, room);
    case TGX_I64: return select_i64_row((const int64_t *)row, n, skip_nan, room);
    case TGX_F32: return select_f32_row((const float *)row, n, skip_nan, room);
    default: return select_f64_row((const double *)row, n, skip_nan, room);
    }
}
