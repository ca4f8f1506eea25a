/* Reducers whose result does not depend on the order: largest, smallest, any, all. NaN wins, the first one. */
#define WIDE 64

/* Without short cuts: these become vector blends. */
#define MOST(m, x) (((x) > (m)) | ((x) != (x)) ? (x) : (m))
#define LEAST(m, x) (((x) < (m)) | ((x) != (x)) ? (x) : (m))
#define OR(m, x) ((m) | ((x) != 0))
#define AND(m, x) ((m) & ((x) != 0))

/* To take an element twice changes nothing: what is left at the end of a block is the last W elements of it. */
#define OVERLAPPED(S, W, A, STEP) \
        A lane[W]; \
        SIMD for (int l = 0; l < W; l++) lane[l] = STEP(start_, GET_##S(x[l])); \
        for (int64_t i = W; i < n; i += W) { \
            const S_##S *y = x + (i + W <= n ? i : n - W); \
            SIMD for (int l = 0; l < W; l++) lane[l] = STEP(lane[l], GET_##S(y[l])); }
/* Of floating point numbers the processor's own maximum, which forgets a nan, beside a sum, which keeps it: half as long as to ask
 * each. Where the sum is nan (infinities of both signs make it one too), each is asked after all. */
#define FORGETFUL(NAME, S, A, PICK) \
static int NAME##_quick(const S_##S *x, int64_t n, A *best) { \
    A lane[WIDE], sum[WIDE]; \
    if (n < WIDE) return 0; \
    SIMD for (int l = 0; l < WIDE; l++) lane[l] = sum[l] = x[l]; \
    for (int64_t i = WIDE; i < n; i += WIDE) { \
        const S_##S *y = x + (i + WIDE <= n ? i : n - WIDE); \
        SIMD for (int l = 0; l < WIDE; l++) lane[l] = PICK(lane[l], y[l]), sum[l] = sum[l] + y[l]; } \
    HALVE(lane, 32, PICK); HALVE(lane, 16, PICK); FOLD(lane, PICK); \
    HALVE(sum, 32, ADD); HALVE(sum, 16, ADD); FOLD(sum, ADD); \
    *best = lane[0]; \
    return sum[0] == sum[0]; }
#define MORE(m, x) ((x) > (m) ? (x) : (m))
#define LESS(m, x) ((x) < (m) ? (x) : (m))
#define ASK_EACH(x, n, best) 0
#define WIDE_FOLD(NAME, S, A, M, START, STEP) WIDE_FOLD_BY(NAME, S, A, M, START, STEP, ASK_EACH)
#define WIDE_FOLD_BY(NAME, S, A, M, START, STEP, QUICK) \
BLOCK_FN(NAME) { \
    const S_##S *x = (const S_##S *)p; \
    const A start_ = START; \
    A best = START; \
    if (QUICK(x, n, &best)) { \
        acc->M[0] = best; \
        return; \
    } \
    best = START; \
    if (n >= WIDE) { \
        OVERLAPPED(S, WIDE, A, STEP) \
        HALVE(lane, 32, STEP); HALVE(lane, 16, STEP); FOLD(lane, STEP); \
        best = lane[0]; \
    } else if (n >= LANES) { \
        OVERLAPPED(S, LANES, A, STEP) \
        FOLD(lane, STEP); \
        best = lane[0]; \
    } else for (int64_t i = 0; i < n; i++) best = STEP(best, GET_##S(x[i])); \
    acc->M[0] = best; } \
ROWS_FN(NAME) { \
    A best[TGX_TILE]; \
    for (int c = 0; c < w; c++) best[c] = START; \
    for (int64_t r = 0; r < n; r++) { \
        const S_##S *x = (const S_##S *)rows[r]; \
        SIMD for (int c = 0; c < w; c++) best[c] = STEP(best[c], GET_##S(x[c])); } \
    for (int c = 0; c < w; c++) acc->M[c] = best[c]; }

/* Is one of 64 elements the wanted one? `v` may be NaN: then the first NaN is wanted. */
#define SAME(v, x) (((x) == (v)) | (((v) != (v)) & ((x) != (x))))
#define FIND(S, T) \
static int64_t find_##S(const S_##S *x, int64_t n, T v) { \
    int64_t i = 0; \
    for (; i + WIDE <= n; i += WIDE) { \
        int hit = 0; \
        _Pragma("omp simd reduction(|:hit)") for (int l = 0; l < WIDE; l++) hit |= SAME(v, x[i + l]); \
        if (hit) break; } \
    for (; i < n; i++) if (SAME(v, x[i])) return i; \
    return 0; }

#define BETTER_MOST(m, x) (((x) > (m)) | (((x) != (x)) & ((m) == (m))))
#define BETTER_LEAST(m, x) (((x) < (m)) | (((x) != (x)) & ((m) == (m))))

#define ARG_FOLD(NAME, FOLDED, S, T, M, BETTER) \
BLOCK_FN(NAME) { \
    FOLDED##_block(p, n, start, aux, acc); \
    acc->at[0] = start + find_##S((const S_##S *)p, n, (T)acc->M[0]); } \
ROWS_FN(NAME) { \
    T best[TGX_TILE]; \
    int32_t at[TGX_TILE]; \
    const S_##S *x = (const S_##S *)rows[0]; \
    for (int c = 0; c < w; c++) { best[c] = x[c]; at[c] = 0; } \
    for (int32_t r = 1; r < n; r++) { \
        x = (const S_##S *)rows[r]; \
        SIMD for (int c = 0; c < w; c++) { \
            int better = BETTER(best[c], x[c]); \
            best[c] = better ? x[c] : best[c]; at[c] = better ? r : at[c]; } } \
    for (int c = 0; c < w; c++) { acc->M[c] = best[c]; acc->at[c] = start + at[c]; } }

#define ORDERED(S, T, M, LOW, HIGH) \
    WIDE_FOLD(max_##S, S, T, M, LOW, MOST) WIDE_FOLD(min_##S, S, T, M, HIGH, LEAST) CHOICES(S, T, M)
#define ORDERED_FLOAT(S, T) \
    FORGETFUL(max_##S, S, T, MORE) WIDE_FOLD_BY(max_##S, S, T, a, -INFINITY, MOST, max_##S##_quick) \
    FORGETFUL(min_##S, S, T, LESS) WIDE_FOLD_BY(min_##S, S, T, a, INFINITY, LEAST, min_##S##_quick) CHOICES(S, T, a)
#define CHOICES(S, T, M) FIND(S, T) \
    ARG_FOLD(argmax_##S, max_##S, S, T, M, BETTER_MOST) ARG_FOLD(argmin_##S, min_##S, S, T, M, BETTER_LEAST)
ORDERED(b8, uint8_t, i, 0, 1)
ORDERED(u8, uint8_t, i, 0, UINT8_MAX)
ORDERED(i8, int8_t, i, INT8_MIN, INT8_MAX)
ORDERED(i16, int16_t, i, INT16_MIN, INT16_MAX)
ORDERED(i32, int32_t, i, INT32_MIN, INT32_MAX)
ORDERED(i64, int64_t, i, INT64_MIN, INT64_MAX)
ORDERED_FLOAT(f32, float)
ORDERED_FLOAT(f64, double)

#define ABS_MOST(m, x) MOST(m, fabs(x))
#define ABS_LEAST(m, x) LEAST(m, fabs(x))
#define ABS_MOST_f(m, x) MOST(m, fabsf(x))
#define ABS_LEAST_f(m, x) LEAST(m, fabsf(x))
WIDE_FOLD(absmax_f32, f32, float, a, 0, ABS_MOST_f) WIDE_FOLD(absmin_f32, f32, float, a, INFINITY, ABS_LEAST_f)
/* Of complex numbers: a loop over elements and a best of doubles, which is no complex number. The size is that of abs(), bit by
 * bit: the derivative looks for it. */
#define FURTHEST(NAME, S, B, START, BEST) \
BLOCK_FN(NAME) { \
    const S_##S *x = (const S_##S *)p; \
    double best = START; \
    for (int64_t i = 0; i < n; i++) { double size = vm_hypot_##B(__real__ x[i], __imag__ x[i]); best = BEST(best, size); } \
    acc->a[0] = best; } \
ROWS_FN(NAME) { \
    for (int c = 0; c < w; c++) acc->a[c] = START; \
    for (int64_t r = 0; r < n; r++) \
        for (int c = 0; c < w; c++) { \
            S_##S x = ((const S_##S *)rows[r])[c]; \
            double size = vm_hypot_##B(__real__ x, __imag__ x); \
            acc->a[c] = BEST(acc->a[c], size); } }
FURTHEST(absmax_c64, c64, f32, 0, MOST) FURTHEST(absmin_c64, c64, f32, INFINITY, LEAST)
FURTHEST(absmax_c128, c128, f64, 0, MOST) FURTHEST(absmin_c128, c128, f64, INFINITY, LEAST)
WIDE_FOLD(absmax_f64, f64, double, a, 0, ABS_MOST) WIDE_FOLD(absmin_f64, f64, double, a, INFINITY, ABS_LEAST)

#define TRUTHS(S, A) WIDE_FOLD(any_##S, S, A, i, 0, OR) WIDE_FOLD(all_##S, S, A, i, 1, AND)
TRUTHS(b8, uint8_t) TRUTHS(u8, uint8_t) TRUTHS(i8, uint8_t) TRUTHS(i16, uint16_t) TRUTHS(i32, uint32_t)
TRUTHS(i64, uint64_t) TRUTHS(f16, uint32_t) TRUTHS(bf16, uint32_t) TRUTHS(f32, uint32_t) TRUTHS(f64, uint64_t)
TRUTHS(c64, uint64_t) TRUTHS(c128, uint64_t)

/* ---- merging and writing ---- */

#define MERGE_BY(NAME, M, STEP) MERGE_FN(NAME) { for (int c = 0; c < w; c++) acc->M[c] = STEP(acc->M[c], later->M[c]); }
MERGE_BY(max_a, a, MOST) MERGE_BY(min_a, a, LEAST) MERGE_BY(max_i, i, MOST) MERGE_BY(min_i, i, LEAST)
MERGE_BY(or_i, i, OR) MERGE_BY(and_i, i, AND)

#define MERGE_ARG(NAME, M, BETTER) MERGE_FN(NAME) { \
    for (int c = 0; c < w; c++) \
        if (BETTER(acc->M[c], later->M[c])) { acc->M[c] = later->M[c]; acc->at[c] = later->at[c]; } }
MERGE_ARG(argmax_a, a, BETTER_MOST) MERGE_ARG(argmin_a, a, BETTER_LEAST)
MERGE_ARG(argmax_i, i, BETTER_MOST) MERGE_ARG(argmin_i, i, BETTER_LEAST)

/* out: the element, if wanted; out2: its index. */
#define PUT_AT(S, M) FINISH_FN(put_at_##S) { \
    for (int c = 0; c < w; c++) { \
        if (out) *(S_##S *)(out + c * stride) = (S_##S)acc->M[c]; \
        *(int64_t *)(out2 + c * stride2) = acc->at[c]; } }
PUT_AT(b8, i) PUT_AT(u8, i) PUT_AT(i8, i) PUT_AT(i16, i) PUT_AT(i32, i) PUT_AT(i64, i) PUT_AT(f32, a) PUT_AT(f64, a)
