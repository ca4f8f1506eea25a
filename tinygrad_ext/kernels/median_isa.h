/* Quickselect on a copy of the row; the index is then that of the first element with the selected value.
 *
 * A step counts what lies below its pivot, by vectors, and keeps the side that is wanted, moved together without a branch, which would
 * be guessed wrong every other time: exchanges from both ends take 2 to 3 times as long.
 *
 * Rejected: sorting the row (qsort took 6 times as long for 100 floats, 38 times for 10,000, 16 times for a million), and
 * selecting among pairs of value and index, at least twice the bytes to move where one more pass finds the index. */
#include "median.h"
#include "vector_bytes.h"

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

/* Elements v of `from` from `begin` to `end` that HOLDS of, behind each other from to[kept] on. What is written too much never lies
 * behind what was read. MASK: the same of a vector w of them, where the processor moves lanes together. */
#define KEEP_EACH(TAG, T, to, from, begin, end, HOLDS, MASK) \
    for (int64_t i_ = begin; i_ < (end); i_++) { const T v = (from)[i_]; (to)[kept] = v; kept += HOLDS; }
#if VECTOR_BYTES == 64
#define KEEP_VECTORS(TAG, T, to, from, begin, end, HOLDS, MASK) { \
        int64_t at_ = begin; \
        for (; at_ + LANES_##TAG <= (end); at_ += LANES_##TAG) { \
            const __typeof__(LOAD_##TAG(from)) w = LOAD_##TAG((from) + at_); \
            const unsigned mask = (unsigned)(MASK) & ((1u << LANES_##TAG) - 1); \
            TOGETHER_##TAG((to) + kept, mask, w); \
            kept += __builtin_popcount(mask); } \
        KEEP_EACH(TAG, T, to, from, at_, end, HOLDS, MASK) }
enum { LANES_f32 = 16, LANES_i32 = 16, LANES_f64 = 8, LANES_i64 = 8 };
#define SPLAT_f32(v) _mm512_set1_ps(v)
#define SPLAT_f64(v) _mm512_set1_pd(v)
#define SPLAT_i32(v) _mm512_set1_epi32(v)
#define SPLAT_i64(v) _mm512_set1_epi64(v)
#define LOAD_f32(p) _mm512_loadu_ps(p)
#define LOAD_f64(p) _mm512_loadu_pd(p)
#define LOAD_i32(p) _mm512_loadu_si512(p)
#define LOAD_i64(p) _mm512_loadu_si512(p)
#define BELOW_f32(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define BELOW_f64(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define BELOW_i32(a, b) _mm512_cmplt_epi32_mask(a, b)
#define BELOW_i64(a, b) _mm512_cmplt_epi64_mask(a, b)
#define UP_TO_f32(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ)
#define UP_TO_f64(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ)
#define UP_TO_i32(a, b) _mm512_cmple_epi32_mask(a, b)
#define UP_TO_i64(a, b) _mm512_cmple_epi64_mask(a, b)
#define TOGETHER_f32(p, m, w) _mm512_storeu_ps(p, _mm512_maskz_compress_ps((__mmask16)(m), w))
#define TOGETHER_f64(p, m, w) _mm512_storeu_pd(p, _mm512_maskz_compress_pd((__mmask8)(m), w))
#define TOGETHER_i32(p, m, w) _mm512_storeu_si512(p, _mm512_maskz_compress_epi32((__mmask16)(m), w))
#define TOGETHER_i64(p, m, w) _mm512_storeu_si512(p, _mm512_maskz_compress_epi64((__mmask8)(m), w))
#define WIDE_KEEP KEEP_VECTORS
#else
#define WIDE_KEEP KEEP_EACH
#endif

/* Median of three as pivot keeps sorted rows quick; a row made to defeat it costs n * n / 4 comparisons at worst. What is no number
 * ends the search as a pivot, and as an element counts as above. COUNT: holds PART, in lanes as wide as elements. */
#define SELECT(TAG, T, COUNT, LEAST, MOST, KEEP) \
static int64_t below_##TAG(const T *x, int64_t n, T pivot) { \
    int64_t all = 0; \
    for (int64_t at = 0; at < n; at += PART) { \
        const int64_t end = at + PART < n ? at + PART : n; \
        COUNT below = 0; \
        for (int64_t i = at; i < end; i++) below += x[i] < pivot; \
        all += below; } \
    return all; } \
static T select_##TAG(T *x, int64_t n, int64_t k) { \
    while (n > FEW) { \
        const T a = x[0], b = x[n / 2], c = x[n - 1]; \
        const T pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b); \
        int64_t below = below_##TAG(x, n, pivot), kept = 0; \
        if (k < below) KEEP(TAG, T, x, x, 0, n, v < pivot, BELOW_##TAG(w, SPLAT_##TAG(pivot))) \
        else if (below) { \
            KEEP(TAG, T, x, x, 0, n, !(v < pivot), ~BELOW_##TAG(w, SPLAT_##TAG(pivot))) \
            k -= below; \
        } else { \
            KEEP(TAG, T, x, x, 0, n, pivot < v, BELOW_##TAG(SPLAT_##TAG(pivot), w)) \
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
static T of_sample_##TAG(const T *x, int64_t sample, int64_t step, int64_t k, T *room) { \
    for (int64_t i = 0; i < sample; i++) room[i] = x[step * i + somewhere(i, step)]; \
    return select_##TAG(room, sample, k); } \
/* Element k of n in their order: whether it lies between two of the sample, or beyond one near an end; and how many are numbers. */ \
static int between_##TAG(const T *x, int64_t n, int64_t k, T *room, T *found, int64_t *numbers) { \
    const int64_t sample = n / EACH < SAMPLE ? n / EACH : SAMPLE, step = n / sample, margin = margin_of(sample); \
    const int64_t middle = (int64_t)((double)k / (double)n * (double)sample), first = middle - margin, last = middle + margin; \
    int64_t below = 0, kept = 0, some = 0; \
    const T lo = first < 0 ? LEAST : of_sample_##TAG(x, sample, step, first, room); \
    const T hi = last >= sample ? MOST : of_sample_##TAG(x, sample, step, last, room); \
    for (int64_t at = 0; at < n; at += PART) { \
        const int64_t end = at + PART < n ? at + PART : n; \
        COUNT less = 0, there = 0; \
        for (int64_t i = at; i < end; i++) less += x[i] < lo, there += x[i] == x[i]; \
        below += less, some += there; \
        KEEP(TAG, T, room, x, at, end, (v >= lo) & (v <= hi), UP_TO_##TAG(SPLAT_##TAG(lo), w) & UP_TO_##TAG(w, SPLAT_##TAG(hi))) } \
    *numbers = some; \
    if (k < below || k >= below + kept) return 0; \
    *found = select_##TAG(room, kept, k - below); \
    return 1; } \
static int64_t row_##TAG(const void *row, int64_t n, int64_t k, void *memory) { \
    const T *x = (const T *)row; \
    T *room = (T *)memory; \
    int64_t count = 0, at = 0; \
    T value = 0; \
    int known = n >= LONG && between_##TAG(x, n, k < 0 ? (n - 1) / 2 : k, room, &value, &count); \
    if (n < LONG) for (int64_t i = 0; i < n; i++) count += x[i] == x[i]; \
    if (count < n && (k == TGX_MEDIAN || k >= count)) \
        for (int64_t i = 0; i < n; i++) if (x[i] != x[i]) return i; \
    if (!count) return 0; \
    if ((count < n && k < 0) || !known) { \
        count = 0; \
        for (int64_t i = 0; i < n; i++) { const T v = x[i]; room[count] = v; count += v == v; } \
        if (!count) return 0;       /* another thread has overwritten it */ \
        value = select_##TAG(room, count, k < 0 ? (count - 1) / 2 : k < count ? k : count - 1); } \
    for (; at + LOOK <= n; at += LOOK) { \
        COUNT found = 0; \
        for (int64_t i = at; i < at + LOOK; i++) found |= x[i] == value; \
        if (found) break; } \
    for (; at < n; at++) if (x[at] == value) return at; \
    return 0; }     /* another thread has overwritten it */

SELECT(u8, uint8_t, int16_t, 0, UINT8_MAX, KEEP_EACH)
SELECT(i8, int8_t, int16_t, INT8_MIN, INT8_MAX, KEEP_EACH)
SELECT(i16, int16_t, int16_t, INT16_MIN, INT16_MAX, KEEP_EACH)
SELECT(i32, int32_t, int32_t, INT32_MIN, INT32_MAX, WIDE_KEEP)
SELECT(i64, int64_t, int64_t, INT64_MIN, INT64_MAX, WIDE_KEEP)
SELECT(f32, float, int32_t, -INFINITY, INFINITY, WIDE_KEEP)
SELECT(f64, double, int64_t, -INFINITY, INFINITY, WIDE_KEEP)

const tgx_median_row ISA(tgx_medians)[TGX_NTYPES] = {
    [TGX_U8] = row_u8, [TGX_I8] = row_i8, [TGX_I16] = row_i16, [TGX_I32] = row_i32,
    [TGX_I64] = row_i64, [TGX_F32] = row_f32, [TGX_F64] = row_f64};
