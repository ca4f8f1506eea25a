/* The loops that turn indices into offsets and move blocks, see advanced.h. Moves go by the size of an element, sums by its
 * dtype; a block without gaps goes through memcpy, its beginning asked for four blocks ahead. */
#include "advanced.h"
#include "once.h"

static int64_t index_offsets(int64_t *offset, const int64_t *index, int64_t n, int64_t size, ptrdiff_t stride, int flags) {
    const int64_t low = flags & TGX_NEGATIVE ? -size : 0;
    int64_t own[TGX_RUN];
    for (int64_t lo = 0; lo < n; lo += TGX_RUN) {
        const int64_t m = n - lo < TGX_RUN ? n - lo : TGX_RUN;
        int64_t *to = offset + lo;
        int bad = 0;
        tgx_take_run(own, (const char *)(index + lo), sizeof *index, m);
        for (int64_t k = 0; k < m; k++) bad |= (own[k] < low) | (own[k] >= size);
        for (int64_t k = 0; bad && k < m; k++)
            if (own[k] < low || own[k] >= size) {
                to[k] = own[k];
                return lo + k;
            }
        if (flags & TGX_FIRST) for (int64_t k = 0; k < m; k++) to[k] = (own[k] + (own[k] < 0 ? size : 0)) * stride;
        else for (int64_t k = 0; k < m; k++) to[k] += (own[k] + (own[k] < 0 ? size : 0)) * stride;
    }
    return -1;
}

/* ---- one row: n elements, a stride on each side */

typedef struct { uint64_t lo, hi; } wide;
typedef void (*row_fn)(char *to, ptrdiff_t ts, const char *from, ptrdiff_t fs, int64_t n);

#define COPY_ROW(NAME, T) static void NAME(char *to, ptrdiff_t ts, const char *from, ptrdiff_t fs, int64_t n) { \
    if (fs == 0 && ts == sizeof(T)) { \
        const T v = *(const T *)from; \
        for (int64_t i = 0; i < n; i++) ((T *)to)[i] = v; \
        return; } \
    for (int64_t i = 0; i < n; i++, to += ts, from += fs) *(T *)to = *(const T *)from; }
COPY_ROW(copy1, uint8_t)
COPY_ROW(copy2, uint16_t)
COPY_ROW(copy4, uint32_t)
COPY_ROW(copy8, uint64_t)
COPY_ROW(copy16, wide)

#define ADD_ROW(NAME, T, SUM) static void NAME(char *to, ptrdiff_t ts, const char *from, ptrdiff_t fs, int64_t n) { \
    if (ts == sizeof(T) && fs == sizeof(T)) { \
        T *x = (T *)to; const T *y = (const T *)from; \
        for (int64_t i = 0; i < n; i++) { const T a = x[i], b = y[i]; x[i] = SUM; } \
        return; } \
    for (int64_t i = 0; i < n; i++, to += ts, from += fs) { \
        const T a = *(T *)to, b = *(const T *)from; *(T *)to = SUM; } }
ADD_ROW(add_b8, uint8_t, a | b)
ADD_ROW(add_u8, uint8_t, (uint8_t)(a + b))
ADD_ROW(add_i8, uint8_t, (uint8_t)(a + b))
ADD_ROW(add_i16, uint16_t, (uint16_t)(a + b))
ADD_ROW(add_i32, uint32_t, a + b)
ADD_ROW(add_i64, uint64_t, a + b)
ADD_ROW(add_f16, uint16_t, tgx_f32_to_f16(tgx_f16_to_f32(a) + tgx_f16_to_f32(b)))
ADD_ROW(add_bf16, uint16_t, tgx_f32_to_bf16(tgx_bf16_to_f32(a) + tgx_bf16_to_f32(b)))
ADD_ROW(add_f32, float, a + b)
ADD_ROW(add_f64, double, a + b)
ADD_ROW(add_c64, tgx_c64, a + b)
ADD_ROW(add_c128, tgx_c128, a + b)

static const row_fn ADD[TGX_NTYPES] = {TGX_OF_BOOL(add_), TGX_OF_INT(add_), TGX_OF_HALF(add_), TGX_OF_FLOAT(add_),
                                       TGX_OF_COMPLEX(add_)};

static row_fn row_of(const tgx_picks *p, int move) {
    if (move == TGX_ADD) return ADD[p->dtype];
    return p->width == 1 ? copy1 : p->width == 2 ? copy2 : p->width == 4 ? copy4 : p->width == 8 ? copy8 : copy16;
}

static void block(const tgx_picks *p, row_fn row, int move, char *table, char *dense, int d) {
    if (d == p->ninner - 1) {
        if (move == TGX_READ) row(dense, p->inner_dense[d], table, p->inner_table[d], p->inner[d]);
        else row(table, p->inner_table[d], dense, p->inner_dense[d], p->inner[d]);
        return;
    }
    for (int64_t i = 0; i < p->inner[d]; i++, table += p->inner_table[d], dense += p->inner_dense[d])
        block(p, row, move, table, dense, d + 1);
}

/* ---- points lo..hi of one outer position */

#define POINTS(T) do { \
    if (move == TGX_READ && step == sizeof(T)) { \
        T *o = (T *)dense; \
        for (int64_t k = lo; k < hi; k++) o[k - lo] = *(const T *)(table + p->offset[k]); \
    } else if (move == TGX_READ) for (int64_t k = lo; k < hi; k++, dense += step) *(T *)dense = *(const T *)(table + p->offset[k]); \
    else for (int64_t k = lo; k < hi; k++, dense += step) *(T *)(table + p->offset[k]) = *(const T *)dense; } while (0)

static void single(const tgx_picks *p, int move, char *table, char *dense, int64_t lo, int64_t hi) {
    const ptrdiff_t step = p->point_dense;
    switch (p->width) {
        case 1: POINTS(uint8_t); break;
        case 2: POINTS(uint16_t); break;
        case 4: POINTS(uint32_t); break;
        case 8: POINTS(uint64_t); break;
        default: POINTS(wide);
    }
}

static void points(const tgx_picks *p, row_fn row, int move, char *table, char *dense, int64_t lo, int64_t hi) {
    const ptrdiff_t step = p->point_dense;
    dense += lo * step;
    if (p->ninner == 0) {
        if (move != TGX_ADD) single(p, move, table, dense, lo, hi);
        else for (int64_t k = lo; k < hi; k++, dense += step) row(table + p->offset[k], 0, dense, 0, 1);
        return;
    }
    if (move != TGX_ADD && p->ninner == 1 && p->inner_table[0] == p->width && p->inner_dense[0] == p->width) {
        const size_t bytes = p->inner[0] * p->width;
        for (int64_t k = lo; k < hi; k++, dense += step) {
            if (k + 4 < hi) __builtin_prefetch(table + p->offset[k + 4]);
            if (move == TGX_READ) memcpy(dense, table + p->offset[k], bytes);
            else memmove(table + p->offset[k], dense, bytes);
        }
        return;
    }
    for (int64_t k = lo; k < hi; k++, dense += step) block(p, row, move, table + p->offset[k], dense, 0);
}

static void picks_run(const tgx_picks *p, int move, int64_t lo, int64_t hi) {
    row_fn row = row_of(p, move);
    for (int d = 0; d < p->ninner; d++)
        if (p->inner[d] == 0) return;
    while (lo < hi) {
        int64_t o = lo / p->points, k = lo % p->points, end = k + (hi - lo) < p->points ? k + (hi - lo) : p->points;
        char *table = p->table, *dense = p->dense;
        for (int d = p->nouter - 1; d >= 0; d--) {
            int64_t i = o % p->outer[d];
            o /= p->outer[d];
            table += i * p->outer_table[d];
            dense += i * p->outer_dense[d];
        }
        points(p, row, move, table, dense, k, end);
        lo += end - k;
    }
}

const tgx_picks_table ISA(tgx_picks_loops) = {index_offsets, picks_run};
