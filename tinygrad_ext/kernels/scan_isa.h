/* The scan loops, once for each instruction set. */
#pragma GCC optimize("no-loop-unroll-and-jam")
#include "scan.h"
#include "loops.h"

/* Lines apart take turns after so many elements: a cache line's worth, and short enough that the processor works
 * ahead on the next line while the additions of this one wait for each other. */
#define CHUNK 16

#define AT(T, p, i, s) (*(T *)((p) + (i) * (s)))

/* m elements onto `one`. Integers four at a time, for which the running value waits once; floats keep their order. */
#define ONE_BY_ONE(S, O, A, OP, NEXT, TO) \
    for (int64_t r = 0; r < m; r++, from += NEXT, to += TO) { one = one OP GET_##S(*(const S_##S *)from); *to = (S_##O)one; }
#define BY_FOUR(S, O, A, OP, NEXT, TO) \
    for (; m >= 4; m -= 4, from += 4 * (NEXT), to += 4 * (TO)) { \
        const A a = GET_##S(AT(const S_##S, from, 0, NEXT)), b = a OP GET_##S(AT(const S_##S, from, 1, NEXT)), \
                c = b OP GET_##S(AT(const S_##S, from, 2, NEXT)), d = c OP GET_##S(AT(const S_##S, from, 3, NEXT)); \
        to[0] = (S_##O)(one OP a), to[TO] = (S_##O)(one OP b), to[2 * (TO)] = (S_##O)(one OP c), one = one OP d, to[3 * (TO)] = (S_##O)one; } \
    ONE_BY_ONE(S, O, A, OP, NEXT, TO)

/* A: type of the running value, O: storage of the output. */
#define RUNNING(NAME, S, O, A, START, OP, LINE) \
static void NAME(const tgx_lines *at, int w, int64_t n) { \
    A run[TGX_SCAN_TILE]; \
    for (int c = 0; c < w; c++) run[c] = START; \
    const char *x = at->x; \
    S_##O *out = (S_##O *)at->out; \
    if (at->across == sizeof(S_##S) && at->out_across == 1) { \
        for (int64_t r = 0; r < n; r++, x += at->along, out += at->out_along) { \
            SIMD for (int c = 0; c < w; c++) { run[c] = run[c] OP GET_##S(((const S_##S *)x)[c]); out[c] = (S_##O)run[c]; } } \
    } else { \
        const int64_t chunk = w == 1 ? n : CHUNK; \
        const int dense = at->along == sizeof(S_##S) && at->out_along == 1; \
        for (int64_t r0 = 0; r0 < n; r0 += chunk) { \
            for (int c = 0; c < w; c++) { \
                int64_t m = n - r0 < chunk ? n - r0 : chunk; \
                const char *from = x + r0 * at->along + c * at->across; \
                S_##O *to = out + r0 * at->out_along + c * at->out_across; \
                A one = run[c]; \
                if (dense) { LINE(S, O, A, OP, (ptrdiff_t)sizeof(S_##S), 1) } \
                else { ONE_BY_ONE(S, O, A, OP, at->along, at->out_along) } \
                run[c] = one; } } } }

#define RUNNING_INT(S) RUNNING(cumsum_##S, S, i64, uint64_t, 0, +, BY_FOUR) RUNNING(cumprod_##S, S, i64, uint64_t, 1, *, BY_FOUR)
RUNNING_INT(b8) RUNNING_INT(u8) RUNNING_INT(i8) RUNNING_INT(i16) RUNNING_INT(i32) RUNNING_INT(i64)
RUNNING(cumsum_f32, f32, f32, double, 0, +, ONE_BY_ONE) RUNNING(cumprod_f32, f32, f32, double, 1, *, ONE_BY_ONE)
RUNNING(cumsum_f64, f64, f64, double, 0, +, ONE_BY_ONE) RUNNING(cumprod_f64, f64, f64, double, 1, *, ONE_BY_ONE)
RUNNING(cumsum_c64, c64, c64, tgx_c128, 0, +, ONE_BY_ONE) RUNNING(cumsum_c128, c128, c128, tgx_c128, 0, +, ONE_BY_ONE)

/* Products one after the other, with the steps written out: the compiler would contract some and not others. */
#define RUNNING_PROD(NAME, S) \
static void NAME(const tgx_lines *at, int w, int64_t n) { \
    for (int c = 0; c < w; c++) { \
        const char *x = at->x + c * at->across; \
        S_##S *out = (S_##S *)at->out + c * at->out_across; \
        tgx_c128 run = 1; \
        for (int64_t r = 0; r < n; r++, x += at->along, out += at->out_along) { \
            run = TIMES(run, (tgx_c128)*(const S_##S *)x); *out = (S_##S)run; } } }
RUNNING_PROD(cumprod_c64, c64) RUNNING_PROD(cumprod_c128, c128)

/* The last of equal elements is the one reported, and from a NaN on the last NaN. */
#define UP(m, x) (((x) >= (m)) | ((x) != (x)))
#define DOWN(m, x) (((x) <= (m)) | ((x) != (x)))

#define EXTREME(NAME, S, A, TAKES) \
static void NAME(const tgx_lines *at, int w, int64_t n) { \
    A best[TGX_SCAN_TILE]; \
    int64_t index[TGX_SCAN_TILE]; \
    const char *x = at->x; \
    S_##S *out = (S_##S *)at->out; \
    int64_t *where = (int64_t *)at->out2; \
    if (!n) return; \
    for (int c = 0; c < w; c++) { best[c] = GET_##S(AT(const S_##S, x, c, at->across)); index[c] = 0; } \
    if (at->across == sizeof(S_##S) && at->out_across == 1) { \
        for (int64_t r = 0; r < n; r++, x += at->along, out += at->out_along, where += at->out_along) { \
            SIMD for (int c = 0; c < w; c++) { \
                A v = GET_##S(((const S_##S *)x)[c]), m = best[c]; \
                int take = TAKES(m, v); \
                best[c] = take ? v : m; index[c] = take ? r : index[c]; \
                out[c] = best[c]; where[c] = index[c]; } } \
        return; } \
    for (int c = 0; c < w; c++) { \
        const char *from = x + c * at->across; \
        ptrdiff_t to = c * at->out_across; \
        A m = best[c]; \
        int64_t place = 0; \
        for (int64_t r = 0; r < n; r++, from += at->along, to += at->out_along) { \
            A v = GET_##S(*(const S_##S *)from); \
            if (TAKES(m, v)) { m = v; place = r; } \
            out[to] = m; where[to] = place; } } }

#define EXTREMES(S, A) EXTREME(cummax_##S, S, A, UP) EXTREME(cummin_##S, S, A, DOWN)
EXTREMES(b8, uint8_t) EXTREMES(u8, uint8_t) EXTREMES(i8, int8_t) EXTREMES(i16, int16_t) EXTREMES(i32, int32_t)
EXTREMES(i64, int64_t) EXTREMES(f32, float) EXTREMES(f64, double)

#define REALS(NAME) TGX_OF_BOOL(NAME##_), TGX_OF_INT(NAME##_), TGX_OF_FLOAT(NAME##_)

const tgx_scan_table ISA(tgx_scans) = {
    [TGX_CUMSUM] = {REALS(cumsum), TGX_OF_COMPLEX(cumsum_)}, [TGX_CUMPROD] = {REALS(cumprod), TGX_OF_COMPLEX(cumprod_)},
    [TGX_CUMMAX] = {REALS(cummax)}, [TGX_CUMMIN] = {REALS(cummin)},
};
