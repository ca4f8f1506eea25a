/* Loops of pooling. See pool.h.
 *
 * A mean adds up its window. Rejected: running sums over the plane, of which four give any window: their differences lose the
 * digits that the sum of everything before has used up. */
#include "isa.h"
#include "once.h"
#include "pool.h"
#include "types.h"

enum { FEW = 6, BLOCK = 256, LONG = 8 }; /* windows of a row that pay together, and at most; elements that are added in lanes */

/* Where the windows from `first` on end that are as wide, as much divided, and equally far apart; long ones are by themselves. */
static ptrdiff_t alike(const tgx_pool *p, ptrdiff_t first) {
    const ptrdiff_t most = p->cols - first < BLOCK ? p->cols : first + BLOCK, step = first + 1 < most ? p->x_lo[first + 1] - p->x_lo[first] : 0;
    ptrdiff_t end = first + 1;
    if (p->x_hi[first] - p->x_lo[first] >= LONG) return end;
    while (end < most && p->x_lo[end] - p->x_lo[end - 1] == step && p->x_hi[end] - p->x_hi[end - 1] == step
           && p->x_count[end] == p->x_count[first]) end++;
    return end;
}

static ptrdiff_t unlike(const tgx_pool *p, ptrdiff_t end) {
    while (end < p->cols && alike(p, end) - end < FEW) end++;
    return end;
}

/* Windows of short rows, side by side: each is added up in the order in which it would be by itself. */
#define SIDE_BY_SIDE(T, name)                                                                                            \
    static void side_by_side_##name(const tgx_pool *p, const T *plane, ptrdiff_t h, ptrdiff_t i, ptrdiff_t first, ptrdiff_t n, T count, T *out) { \
        const ptrdiff_t wide = p->x_hi[first] - p->x_lo[first], step = p->x_lo[first + 1] - p->x_lo[first];              \
        T sum[BLOCK], part[BLOCK];                                                                                       \
        for (ptrdiff_t j = 0; j < n; j++) sum[j] = 0;                                                                    \
        for (ptrdiff_t z = p->z_lo[h]; z < p->z_hi[h]; z++)                                                              \
            for (ptrdiff_t y = p->y_lo[i]; y < p->y_hi[i]; y++) {                                                        \
                const T *row = plane + (z * p->height + y) * p->width + p->x_lo[first];                                  \
                if (step == 2 && wide == 2) {                                                                            \
                    for (ptrdiff_t j = 0; j < n; j++) sum[j] += row[2 * j] + row[2 * j + 1];                             \
                    continue;                                                                                            \
                }                                                                                                        \
                for (ptrdiff_t j = 0; j < n; j++) part[j] = 0;                                                           \
                for (ptrdiff_t x = 0; x < wide; x++, row++)                                                              \
                    if (step == 1) for (ptrdiff_t j = 0; j < n; j++) part[j] += row[j];                                  \
                    else if (step == 2) for (ptrdiff_t j = 0; j < n; j++) part[j] += row[2 * j];                         \
                    else for (ptrdiff_t j = 0; j < n; j++) part[j] += row[step * j];                                     \
                for (ptrdiff_t j = 0; j < n; j++) sum[j] += part[j];                                                     \
            }                                                                                                            \
        for (ptrdiff_t j = 0; j < n; j++) out[j] = count ? sum[j] / count : 0;                                           \
    }
SIDE_BY_SIDE(float, f32)
SIDE_BY_SIDE(double, f64)
#define NO_SIDE(...) (void)0

#define POOL(T, name, SUM, NARROW, SIDE)                                                                                              \
    /* Lanes count from the window's edge, so the order of a sum does not depend on where the window lies. */            \
    static SUM row_##name(const T *row, ptrdiff_t n) {                                                                   \
        SUM lanes[8] = {0}, sum = 0;                                                                                     \
        ptrdiff_t x = 0;                                                                                                 \
        for (; x + 8 <= n; x += 8)                                                                                       \
            for (int k = 0; k < 8; k++) lanes[k] += row[x + k];                                                          \
        for (; x < n; x++) sum += row[x];                                                                                \
        if (n >= 8)                                                                                                      \
            for (int k = 0; k < 8; k++) sum += lanes[k];                                                                 \
        return sum;                                                                                                      \
    }                                                                                                                    \
    static void mean_##name(const tgx_pool *p, const T *plane, T *out) {                                                 \
        for (ptrdiff_t first = 0, end; first < p->cols; first = end) {                                                   \
            const int narrow = NARROW && (end = alike(p, first)) - first >= FEW;                                         \
            if (!narrow) end = NARROW ? unlike(p, first + 1) : p->cols;                                                  \
            T *to = out;                                                                                                 \
            for (ptrdiff_t h = 0; h < p->layers; h++)                                                                    \
                for (ptrdiff_t i = 0; i < p->rows; i++, to += p->cols) {                                                 \
                    const SUM windows = (SUM)(p->divisor ? p->divisor : p->z_count[h] * p->y_count[i] * p->x_count[first]); \
                    if (narrow) {                                                                                        \
                        SIDE(p, plane, h, i, first, end - first, windows, to + first);                           \
                        continue;                                                                                        \
                    }                                                                                                    \
                    for (ptrdiff_t j = first; j < end; j++) {                                                            \
                        SUM sum = 0;                                                                                     \
                        for (ptrdiff_t z = p->z_lo[h]; z < p->z_hi[h]; z++)                                              \
                            for (ptrdiff_t y = p->y_lo[i]; y < p->y_hi[i]; y++)                                          \
                                sum += row_##name(plane + (z * p->height + y) * p->width + p->x_lo[j], p->x_hi[j] - p->x_lo[j]); \
                        SUM count = (SUM)(p->divisor ? p->divisor : p->z_count[h] * p->y_count[i] * p->x_count[j]);      \
                        to[j] = count ? (T)(sum / count) : (T)0;                                                         \
                    }                                                                                                    \
                }                                                                                                        \
        }                                                                                                                \
    }

POOL(uint8_t, u8, int64_t, 0, NO_SIDE)
POOL(int8_t, i8, int64_t, 0, NO_SIDE)
POOL(int16_t, i16, int64_t, 0, NO_SIDE)
POOL(int32_t, i32, int64_t, 0, NO_SIDE)
POOL(int64_t, i64, int64_t, 0, NO_SIDE)
POOL(float, f32, float, 1, side_by_side_f32)
POOL(double, f64, double, 1, side_by_side_f64)

#define EACH(dtype, call)                    \
    switch (dtype) {                         \
    case TGX_U8: call(uint8_t, u8); break;   \
    case TGX_I8: call(int8_t, i8); break;    \
    case TGX_I16: call(int16_t, i16); break; \
    case TGX_I32: call(int32_t, i32); break; \
    case TGX_I64: call(int64_t, i64); break; \
    case TGX_F32: call(float, f32); break;   \
    case TGX_F64: call(double, f64); break;  \
    }

extern const tgx_pool_table tgx_pools_base, tgx_pools_avx2, tgx_pools_avx512;

static const tgx_pool_table *loops(void) {
    static const tgx_pool_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_pools);
    return chosen;
}

void tgx_pool_row_max(const tgx_pool_row *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out) {
    const ptrdiff_t size = tgx_itemsize[dtype];
    loops()->row_max[dtype](p, hi - lo, (const char *)src + lo * p->width * size, (char *)out + lo * p->cols * size);
}

void tgx_pool_max(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out, int64_t *at) {
    enum { NEAR = 16384, MOST = 256 };  /* bytes of the planes that are gone over together, once for each stretch of equal windows */
    const ptrdiff_t n = tgx_pool_volume(p), m = tgx_pool_windows(p), size = tgx_itemsize[dtype];
    const ptrdiff_t near = n * size < NEAR ? NEAR / (n * size) : 1, most = near < MOST ? near : MOST;
    for (ptrdiff_t k = lo; k < hi; k += most)
        loops()->max[dtype](p, hi - k < most ? hi - k : most, (const char *)src + k * n * size, (char *)out + k * m * size,
                           at ? at + k * m : NULL);
}

void tgx_pool_mean(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out) {
    const ptrdiff_t n = tgx_pool_volume(p), m = tgx_pool_windows(p);
#define MEAN(T, name) \
    for (ptrdiff_t k = lo; k < hi; k++) mean_##name(p, (const T *)src + k * n, (T *)out + k * m)
    EACH(dtype, MEAN)
}

#define FLOATING(T, name)                                                                                           \
    static void spread_##name(const tgx_pool *p, const T *src, T *out) {                                            \
        memset(out, 0, tgx_pool_volume(p) * sizeof(T));                                                             \
        for (ptrdiff_t h = 0; h < p->layers; h++)                                                                   \
            for (ptrdiff_t i = 0; i < p->rows; i++)                                                                 \
                for (ptrdiff_t j = 0; j < p->cols; j++, src++) {                                                    \
                    T count = (T)(p->divisor ? p->divisor : p->z_count[h] * p->y_count[i] * p->x_count[j]), share = *src / count; \
                    for (ptrdiff_t z = p->z_lo[h]; z < p->z_hi[h]; z++)                                             \
                        for (ptrdiff_t y = p->y_lo[i]; y < p->y_hi[i]; y++) {                                       \
                            T *row = out + (z * p->height + y) * p->width;                                          \
                            for (ptrdiff_t x = p->x_lo[j]; x < p->x_hi[j]; x++) row[x] += share;                    \
                        }                                                                                           \
                }                                                                                                   \
    }                                                                                                               \
    static int scatter_##name(ptrdiff_t n, ptrdiff_t m, const T *src, const int64_t *at, T *out) {                  \
        memset(out, 0, n * sizeof(T));                                                                              \
        for (ptrdiff_t i = 0; i < m; i++) {                                                                         \
            const int64_t k = tgx_once(at + i);                                                                     \
            if (k < 0 || k >= n) return TGX_INDEX;                                                                  \
            out[k] += src[i];                                                                                       \
        }                                                                                                           \
        return 0;                                                                                                   \
    }                                                                                                               \
    static int gather_##name(ptrdiff_t n, ptrdiff_t m, const T *src, const int64_t *at, T *out) {                   \
        for (ptrdiff_t i = 0; i < m; i++) {                                                                         \
            const int64_t k = tgx_once(at + i);                                                                     \
            if (k < 0 || k >= n) return TGX_INDEX;                                                                  \
            out[i] = src[k];                                                                                        \
        }                                                                                                           \
        return 0;                                                                                                   \
    }

FLOATING(float, f32)
FLOATING(double, f64)

void tgx_pool_spread(const tgx_pool *p, int dtype, ptrdiff_t lo, ptrdiff_t hi, const void *src, void *out) {
    const ptrdiff_t n = tgx_pool_volume(p), m = tgx_pool_windows(p);
    for (ptrdiff_t k = lo; k < hi; k++)
        if (dtype == TGX_F32) spread_f32(p, (const float *)src + k * m, (float *)out + k * n);
        else spread_f64(p, (const double *)src + k * m, (double *)out + k * n);
}

int tgx_pool_scatter(int dtype, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n, ptrdiff_t m, const void *src, const int64_t *at, void *out) {
    int code = 0;
    for (ptrdiff_t k = lo; k < hi && !code; k++)
        if (dtype == TGX_F32) code = scatter_f32(n, m, (const float *)src + k * m, at + k * m, (float *)out + k * n);
        else code = scatter_f64(n, m, (const double *)src + k * m, at + k * m, (double *)out + k * n);
    return code;
}

int tgx_pool_gather(int dtype, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n, ptrdiff_t m, const void *src, const int64_t *at, void *out) {
    int code = 0;
    for (ptrdiff_t k = lo; k < hi && !code; k++)
        if (dtype == TGX_F32) code = gather_f32(n, m, (const float *)src + k * n, at + k * m, (float *)out + k * m);
        else code = gather_f64(n, m, (const double *)src + k * n, at + k * m, (double *)out + k * m);
    return code;
}
