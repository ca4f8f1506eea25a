/* The scan loops, once for each instruction set. */
#pragma GCC optimize("no-loop-unroll-and-jam")
#include "scan.h"
#include "loops.h"

#define AT(S, p, i, s) GET_##S(*(const S_##S *)((p) + (i) * (s)))
#define BESIDE(S, p, k) AT(S, p, k, (ptrdiff_t)sizeof(S_##S))

/* A: type of the running value, O: storage of the output. Four elements at a time: what runs so far waits once for each four, and is
 * added to what runs within them. The fours are cut by place alone, and a sum has a quarter of the roundings. Products of four doubles
 * could leave the range where one by one they stay: those are taken as ONES, as are complex numbers, which gain nothing. Integers have ANY
 * order. */
#define FOUR(S, O, A, OP, x, next, out, on, run) do { \
    const A a = AT(S, x, 0, next), b = a OP AT(S, x, 1, next), c = b OP AT(S, x, 2, next), d = c OP AT(S, x, 3, next); \
    (out)[0] = (S_##O)(run OP a), (out)[on] = (S_##O)(run OP b), (out)[2 * (on)] = (S_##O)(run OP c); \
    run = run OP d, (out)[3 * (on)] = (S_##O)run; } while (0)
/* What is left of fewer than four, which is the end of a line. */
#define LEFT(S, O, A, OP, NEXT, ON) do { \
    const A a = AT(S, x, 0, NEXT), b = left > 1 ? a OP AT(S, x, 1, NEXT) : a, c = left > 2 ? b OP AT(S, x, 2, NEXT) : b; \
    out[0] = (S_##O)(one OP a); \
    if (left > 1) out[ON] = (S_##O)(one OP b); \
    if (left > 2) out[2 * (ON)] = (S_##O)(one OP c); } while (0)
#define BY_ONES(S, O, A, OP, NEXT, ON) for (; r < m; r++, x += NEXT, out += ON) one = one OP AT(S, x, 0, 0), *out = (S_##O)one;
#define WHOLE_FOURS(S, O, A, OP, NEXT, ON) \
    for (; r + 4 <= m; r += 4, x += 4 * (NEXT), out += 4 * (ON)) FOUR(S, O, A, OP, x, NEXT, out, ON, one);
#define BY_FOURS(S, O, A, OP, NEXT, ON) WHOLE_FOURS(S, O, A, OP, NEXT, ON) if (left) LEFT(S, O, A, OP, NEXT, ON);
#define BY_ANY(S, O, A, OP, NEXT, ON) WHOLE_FOURS(S, O, A, OP, NEXT, ON) BY_ONES(S, O, A, OP, NEXT, ON)
/* Lines by turns, so many elements of each: a cache line's worth, and few enough for the processor to work ahead on the next line
 * while the steps of this one wait for each other. */
#define CHUNK 16
#define EACH_LINE(S, O, A, OP, START, STEPS) \
    if (!at->together) { \
        const int64_t chunk = w == 1 ? n : CHUNK; \
        const ptrdiff_t across = at->across, out_across = at->out_across; \
        const char *base = x; \
        S_##O *to = out; \
        A each[TGX_SCAN_TILE]; \
        for (int k = done; k < w; k++) each[k] = START; \
        for (int64_t r0 = 0; r0 < n && done < w; r0 += chunk) \
            for (int k = done; k < w; k++) { \
                const int64_t m = n - r0 < chunk ? n - r0 : chunk, left = m % 4; \
                A one = each[k]; \
                const char *x = base + k * across + r0 * next; \
                S_##O *out = to + k * out_across + r0 * on; \
                int64_t r = 0; \
                if (on == 1 && next == sizeof(S_##S)) { STEPS(S, O, A, OP, (ptrdiff_t)sizeof(S_##S), 1) } \
                else { STEPS(S, O, A, OP, next, on) } \
                each[k] = one; \
            } \
        return; \
    }
#define FOURS(S, O, A, OP, START) \
    EACH_LINE(S, O, A, OP, START, BY_FOURS) \
    for (; r + 4 <= n; r += 4, x += 4 * next, out += 4 * on) { \
        SIMD for (int k = 0; k < w; k++) FOUR(S, O, A, OP, x + k * sizeof(S_##S), next, out + k, on, run[k]); \
    } \
    const char *y = x + next, *z = y + next; \
    if (r < n) SIMD for (int k = 0; k < w; k++) out[k] = (S_##O)(run[k] OP BESIDE(S, x, k)); \
    if (r + 1 < n) SIMD for (int k = 0; k < w; k++) out[on + k] = (S_##O)(run[k] OP ((A)BESIDE(S, x, k) OP BESIDE(S, y, k))); \
    if (r + 2 < n) SIMD for (int k = 0; k < w; k++) \
        out[2 * on + k] = (S_##O)(run[k] OP (((A)BESIDE(S, x, k) OP BESIDE(S, y, k)) OP BESIDE(S, z, k)));
#define ROWS(S, O, A, OP) \
    for (; r < n; r++, x += next, out += on) { \
        SIMD for (int k = 0; k < w; k++) run[k] = run[k] OP BESIDE(S, x, k), out[k] = (S_##O)run[k]; }
/* Four lines at once, whose steps do not wait for each other. */
#define FOUR_LINES(S, O, A, OP, START) \
    if (!at->together) \
        for (; done + 4 <= w; done += 4) { \
            const ptrdiff_t across = at->across, beside = at->out_across; \
            const char *y = x + done * across; \
            S_##O *to = out + done * beside; \
            A a = START, b = START, c = START, d = START; \
            for (int64_t i = 0; i < n; i++, y += next, to += on) { \
                a = a OP AT(S, y, 0, across), to[0] = (S_##O)a; \
                b = b OP AT(S, y, 1, across), to[beside] = (S_##O)b; \
                c = c OP AT(S, y, 2, across), to[2 * beside] = (S_##O)c; \
                d = d OP AT(S, y, 3, across), to[3 * beside] = (S_##O)d; \
            } \
        }
#define ONES(S, O, A, OP, START) FOUR_LINES(S, O, A, OP, START) EACH_LINE(S, O, A, OP, START, BY_ONES) ROWS(S, O, A, OP)
#define ANY(S, O, A, OP, START) FOUR_LINES(S, O, A, OP, START) EACH_LINE(S, O, A, OP, START, BY_ANY) ROWS(S, O, A, OP)

#define BEGIN(S, O, A, START) \
    const ptrdiff_t next = at->along, on = at->out_along; \
    const char *x = at->x; \
    S_##O *out = (S_##O *)at->out; \
    A *run = at->run; \
    int64_t r = 0; \
    int done = 0; \
    if (!at->first && at->together) for (int k = 0; k < w; k++) run[k] = START;
#define RUNNING(NAME, S, O, A, START, OP, STEPS) \
static void NAME(const tgx_lines *at, int w, int64_t n) { \
    BEGIN(S, O, A, START) \
    STEPS(S, O, A, OP, START) }

#define RUNNING_INT(S) RUNNING(cumsum_##S, S, i64, uint64_t, 0, +, ANY) RUNNING(cumprod_##S, S, i64, uint64_t, 1, *, ANY)
RUNNING_INT(b8) RUNNING_INT(u8) RUNNING_INT(i8) RUNNING_INT(i16) RUNNING_INT(i32) RUNNING_INT(i64)
RUNNING(cumsum_f32, f32, f32, double, 0, +, FOURS) RUNNING(cumprod_f32, f32, f32, double, 1, *, FOURS)
RUNNING(cumsum_f64, f64, f64, double, 0, +, FOURS) RUNNING(cumprod_f64, f64, f64, double, 1, *, ONES)
RUNNING(cumsum_c64, c64, c64, tgx_c128, 0, +, ONES) RUNNING(cumsum_c128, c128, c128, tgx_c128, 0, +, ONES)

/* Products one after the other, with the steps written out: the compiler would contract some and not others. */
#define RUNNING_PROD(NAME, S) \
static void NAME(const tgx_lines *at, int w, int64_t n) { \
    BEGIN(S, S, tgx_c128, 1) \
    for (int k = 0; k < w; k++) { \
        const ptrdiff_t beside = at->together ? (ptrdiff_t)sizeof(S_##S) : at->across, out_beside = at->together ? 1 : at->out_across; \
        tgx_c128 one = at->first ? run[k] : 1; \
        for (r = 0, x = at->x + k * beside, out = (S_##S *)at->out + k * out_beside; r < n; r++, x += next, out += on) \
            one = TIMES(one, (tgx_c128)*(const S_##S *)x), *out = (S_##S)one; \
        run[k] = one; } }
RUNNING_PROD(cumprod_c64, c64) RUNNING_PROD(cumprod_c128, c128)

/* The last of equal elements is the one reported, and from a NaN on the last NaN. */
#define UP(m, x) (((x) >= (m)) | ((x) != (x)))
#define DOWN(m, x) (((x) <= (m)) | ((x) != (x)))

#define EXTREME(NAME, S, A, TAKES) \
static void NAME(const tgx_lines *at, int w, int64_t n) { \
    BEGIN(S, S, A, AT(S, x, k, (ptrdiff_t)sizeof(S_##S))) \
    int64_t *index = at->places, *where = (int64_t *)at->out2; \
    if (at->together) { \
        if (!at->first) memset(index, 0, (size_t)w * sizeof *index); \
        for (; r < n; r++, x += next, out += on, where += on) { \
            SIMD for (int k = 0; k < w; k++) { \
                A v = GET_##S(((const S_##S *)x)[k]), m = run[k]; \
                int take = TAKES(m, v); \
                run[k] = take ? v : m; index[k] = take ? at->first + r : index[k]; \
                out[k] = run[k]; where[k] = index[k]; } } \
        return; } \
    for (int k = 0; k < w; k++) { \
        A m = AT(S, at->x, k, at->across); \
        int64_t place = 0; \
        x = at->x + k * at->across, out = (S_##S *)at->out + k * at->out_across, where = (int64_t *)at->out2 + k * at->out_across; \
        ptrdiff_t to = 0; \
        for (r = 0; r < n; r++, x += next, to += on) { \
            A v = GET_##S(*(const S_##S *)x); \
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
