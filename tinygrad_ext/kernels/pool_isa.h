/* The largest element of each window, see pool.h. What windows stand side by side is found once for several planes: for short rows
 * it takes as long as one of them. */
#include "pool.h"
#include "types.h"

enum { BLOCK = 256, FEW = 16 }; /* windows that are taken together, and what is few of them */

/* Where nobody asks for the places, `at` is NULL. */
#define VALUES(S)                                                  \
    _Pragma("omp simd") for (ptrdiff_t j = 0; j < n; j++) {        \
        value = row[S];                                            \
        better = (value > best[j]) | (value != value);             \
        best[j] = better ? value : best[j];                        \
    }

/* Windows of equal size stand side by side: the loop over them is the inner one. At equal distances, `stride`, `from` points at the
 * first element of the first window; else stride is 0, and `lo` says where in its row each begins. pick is counted from each
 * window's own first element. */
#define ROUND(S)                                                   \
    _Pragma("omp simd") for (ptrdiff_t j = 0; j < n; j++) {        \
        value = row[S];                                            \
        better = (value > best[j]) | (value != value);             \
        best[j] = better ? value : best[j];                        \
        pick[j] = better ? off : pick[j];                          \
    }

/* Where the windows from `first` on end that are taken together: as many as are equally far apart, or all of one width where
 * those would be few. */
static ptrdiff_t stretch(const tgx_pool *p, ptrdiff_t first, ptrdiff_t wide, ptrdiff_t *stride) {
    const ptrdiff_t most = p->cols - first < BLOCK ? p->cols : first + BLOCK;
    ptrdiff_t end = first + 1, far;
    *stride = end < p->cols ? p->x_lo[end] - p->x_lo[first] : 1;
    while (end < most && p->x_lo[end] - p->x_lo[end - 1] == *stride && p->x_hi[end] - p->x_lo[end] == wide) end++;
    for (far = end; far < most && p->x_hi[far] - p->x_lo[far] == wide;) far++;
    if (*stride && (end - first >= FEW || far == end)) return end;
    *stride = 0;
    return far;
}

/* One window whose rows are long, where few stand side by side: a row's largest first, and its place only where it is larger than
 * what was found above. The first of equal ones is taken, and the last that is NaN, as by windows side by side. */
#define LONG_ROWS(T, name) \
    static __attribute__((noinline)) void long_##name(const T *from, ptrdiff_t where, ptrdiff_t nz, ptrdiff_t dz, ptrdiff_t ny, \
                                                      ptrdiff_t dy, ptrdiff_t nx, T *out, int64_t *at) { \
        T best = -(T)__builtin_inf(); \
        ptrdiff_t pick = 0; \
        for (ptrdiff_t z = 0; z < nz; z++) \
            for (ptrdiff_t y = 0; y < ny; y++) { \
                const T *row = from + z * dz + y * dy; \
                T top = -(T)__builtin_inf(); \
                int none = 0; \
                _Pragma("omp simd reduction(max: top) reduction(|: none)") for (ptrdiff_t x = 0; x < nx; x++) { \
                    top = row[x] > top ? row[x] : top; \
                    none |= row[x] != row[x]; \
                } \
                ptrdiff_t x = none ? nx - 1 : 0; \
                if (none) while (row[x] == row[x]) x--; \
                else if (top > best) while (row[x] != top) x++; \
                else continue; \
                best = row[x], pick = z * dz + y * dy + x; \
            } \
        *out = best; \
        if (at) *at = where + pick; \
    }
LONG_ROWS(float, f32)
LONG_ROWS(double, f64)
enum { WIDE = 4, LONG = 12 }; /* with 24 elements a row it takes a third of the time */
#define NO_LONG_ROWS(...) (void)0

/* Few windows that share few columns: the largest of each column first, side by side, then each window's. It takes a fifth of the
 * time of windows side by side that are of several widths. Of equal ones the first is taken, and the last NaN, in whatever column. */
#define COLUMNS(T, P, name) \
    static __attribute__((noinline)) void columns_##name(const tgx_pool *p, const T *from, ptrdiff_t where, ptrdiff_t nz, \
                                                         ptrdiff_t dz, ptrdiff_t ny, ptrdiff_t dy, T *out, int64_t *at) { \
        T best[BLOCK], value; \
        P pick[BLOCK]; \
        const ptrdiff_t n = p->width; \
        int better; \
        for (ptrdiff_t j = 0; j < n; j++) best[j] = -(T)__builtin_inf(), pick[j] = 0; \
        for (ptrdiff_t z = 0; z < nz; z++) \
            for (ptrdiff_t y = 0; y < ny; y++) { \
                const P off = (P)(z * dz + y * dy); \
                const T *row = from + off; \
                ROUND(j) \
            } \
        for (ptrdiff_t j = 0; j < p->cols; j++) { \
            ptrdiff_t x = p->x_lo[j], off = pick[x] + x; \
            T top = best[x]; \
            while (++x < p->x_hi[j]) { \
                const ptrdiff_t place = pick[x] + x; \
                value = best[x]; \
                const int later = value != value ? top == top || place > off : value == top && place < off; \
                if (value > top || later) top = value, off = place; \
            } \
            out[j] = top; \
            if (at) at[j] = where + off; \
        } \
    }
COLUMNS(float, int32_t, f32)
COLUMNS(double, int64_t, f64)
#define NO_COLUMNS(...) (void)0
/* Not of planes whose places take 64 bits where elements take 32: they are too large to be many. */
#define HAS_COLUMNS(floats, P, T) ((floats) && sizeof(P) == sizeof(T))

/* One window of n planes side by side, `apart` elements from each other, their results `step`: where a plane has few windows. */
#define ACROSS(T, P, name) \
    static __attribute__((noinline)) void across_##name(const T *from, ptrdiff_t where, ptrdiff_t apart, ptrdiff_t n, ptrdiff_t nz, \
                                                        ptrdiff_t dz, ptrdiff_t ny, ptrdiff_t dy, ptrdiff_t nx, ptrdiff_t dx, \
                                                        T *out, int64_t *at, ptrdiff_t step) { \
        T best[BLOCK], value; \
        P pick[BLOCK]; \
        int better; \
        for (ptrdiff_t j = 0; j < n; j++) best[j] = -(T)__builtin_inf(), pick[j] = 0; \
        for (ptrdiff_t z = 0; z < nz; z++) \
            for (ptrdiff_t y = 0; y < ny; y++) \
                for (ptrdiff_t x = 0; x < nx; x++) { \
                    const P off = (P)(z * dz + y * dy + x * dx); \
                    const T *row = from + off; \
                    ROUND(apart * j) \
                } \
        for (ptrdiff_t j = 0; j < n; j++) out[j * step] = best[j]; \
        for (ptrdiff_t j = 0; at && j < n; j++) at[j * step] = where + pick[j]; \
    }
ACROSS(float, int32_t, f32)
ACROSS(double, int64_t, f64)
#define NO_ACROSS(...) (void)0
enum { NARROW = 8, PLANES = 8 };       /* windows in a row of planes that are taken so, and how many of these there must be */

#define POOL_MAX(T, P, name, LOWEST, HAS_LONG, LONG_ROW, COLUMN, PLANE)                                                          \
    static void windows_##name(const T *from, ptrdiff_t where, ptrdiff_t stride, const ptrdiff_t *lo, ptrdiff_t n,       \
                               ptrdiff_t nz, ptrdiff_t dz, ptrdiff_t ny, ptrdiff_t dy, ptrdiff_t nx, ptrdiff_t dx, T *out, \
                               int64_t *at) {                                                                            \
        T best[BLOCK], value;                                                                                            \
        P pick[BLOCK];                                                                                                   \
        int better;                                                                                                      \
        if (!at) {                                                                                                       \
            for (ptrdiff_t j = 0; j < n; j++) best[j] = LOWEST;                                                          \
            for (ptrdiff_t z = 0; z < nz; z++)                                                                           \
                for (ptrdiff_t y = 0; y < ny; y++)                                                                       \
                    for (ptrdiff_t x = 0; x < nx; x++) {                                                                 \
                        const T *row = from + z * dz + y * dy + x * dx;                                                  \
                        if (stride == 0) VALUES(lo[j])                                                                   \
                        else if (stride == 1) VALUES(j)                                                                  \
                        else if (stride == 2) VALUES(2 * j)                                                              \
                        else if (stride == 3) VALUES(3 * j)                                                              \
                        else VALUES(stride * j)                                                                          \
                    }                                                                                                    \
            for (ptrdiff_t j = 0; j < n; j++) out[j] = best[j];                                                          \
            return;                                                                                                      \
        }                                                                                                                \
        for (ptrdiff_t j = 0; j < n; j++) best[j] = LOWEST, pick[j] = 0;                                                 \
        for (ptrdiff_t z = 0; z < nz; z++)                                                                               \
            for (ptrdiff_t y = 0; y < ny; y++)                                                                           \
                for (ptrdiff_t x = 0; x < nx; x++) {                                                                     \
                    const P off = (P)(z * dz + y * dy + x * dx);                                                         \
                    const T *row = from + off;                                                                           \
                    if (stride == 0) ROUND(lo[j])                                                                        \
                    else if (stride == 1) ROUND(j)                                                                       \
                    else if (stride == 2) ROUND(2 * j)                                                                   \
                    else ROUND(stride * j)                                                                               \
                }                                                                                                        \
        for (ptrdiff_t j = 0; j < n; j++) out[j] = best[j], at[j] = where + (stride ? stride * j : lo[j]) + pick[j];     \
    }                                                                                                                    \
    static void max_##name(const tgx_pool *p, ptrdiff_t planes, const void *src, void *dst, int64_t *at) {               \
        const ptrdiff_t size = tgx_pool_volume(p), count = tgx_pool_windows(p);                                          \
        const ptrdiff_t dy = p->step_y * p->width, dz = p->step_z * p->height * p->width;                                \
        const ptrdiff_t usual = p->cols ? p->x_hi[p->cols / 2] - p->x_lo[p->cols / 2] : 0;                               \
        if (HAS_COLUMNS(HAS_LONG, P, T) && p->cols < NARROW && planes >= PLANES && planes <= BLOCK) {                    \
            for (ptrdiff_t h = 0, to = 0; h < p->layers; h++)                                                            \
                for (ptrdiff_t i = 0; i < p->rows; i++)                                                                  \
                    for (ptrdiff_t j = 0; j < p->cols; j++, to++) {                                                      \
                        const ptrdiff_t where = (p->z_lo[h] * p->height + p->y_lo[i]) * p->width + p->x_lo[j];           \
                        PLANE((const T *)src + where, where, size, planes, (p->z_hi[h] - p->z_lo[h] + p->step_z - 1) / p->step_z, dz, \
                              (p->y_hi[i] - p->y_lo[i] + p->step_y - 1) / p->step_y, dy,                                 \
                              (p->x_hi[j] - p->x_lo[j] + p->step_x - 1) / p->step_x, p->step_x, (T *)dst + to,           \
                              at ? at + to : NULL, count);                                                               \
                    }                                                                                                    \
            return;                                                                                                      \
        }                                                                                                                \
        const int columns = HAS_COLUMNS(HAS_LONG, P, T) && p->step_x == 1 && p->width <= BLOCK && p->cols < FEW          \
            && usual >= WIDE && usual * p->cols <= 2 * p->width;                                                         \
        for (ptrdiff_t first = 0, end; first < p->cols; first = end) {                                                   \
            ptrdiff_t stride;                                                                                            \
            const ptrdiff_t wide = p->x_hi[first] - p->x_lo[first], nx = (wide + p->step_x - 1) / p->step_x;             \
            end = stretch(p, first, wide, &stride);                                                                      \
            if (columns) end = p->cols, stride = 0;                                                                      \
            for (ptrdiff_t k = 0; k < planes; k++)                                                                       \
                for (ptrdiff_t h = 0; h < p->layers; h++)                                                                \
                    for (ptrdiff_t i = 0; i < p->rows; i++) {                                                            \
                        const ptrdiff_t nz = (p->z_hi[h] - p->z_lo[h] + p->step_z - 1) / p->step_z;                      \
                        const ptrdiff_t ny = (p->y_hi[i] - p->y_lo[i] + p->step_y - 1) / p->step_y;                      \
                        const ptrdiff_t where = (p->z_lo[h] * p->height + p->y_lo[i]) * p->width + (stride ? p->x_lo[first] : 0); \
                        const ptrdiff_t to = k * count + (h * p->rows + i) * p->cols + first;                            \
                        const T *from = (const T *)src + k * size + where;                                               \
                        if (columns)                                                                                     \
                            COLUMN(p, from, where, nz, dz, ny, dy, (T *)dst + to, at ? at + to : NULL);                  \
                        else if (HAS_LONG && nx >= LONG && p->step_x == 1 && end - first < FEW)                               \
                            for (ptrdiff_t j = 0; j < end - first; j++) {                                                \
                                const ptrdiff_t off = stride ? stride * j : p->x_lo[first + j];                          \
                                LONG_ROW(from + off, where + off, nz, dz, ny, dy, nx, (T *)dst + to + j,  \
                                                        at ? at + to + j : NULL);                                        \
                            }                                                                                            \
                        else windows_##name(from, where, stride, p->x_lo + first, end - first, nz, dz, ny, dy, nx,       \
                                            p->step_x, (T *)dst + to, at ? at + to : NULL);                              \
                    }                                                                                                    \
        }                                                                                                                \
    }

POOL_MAX(uint8_t, int64_t, u8, 0, 0, NO_LONG_ROWS, NO_COLUMNS, NO_ACROSS)
POOL_MAX(int8_t, int64_t, i8, INT8_MIN, 0, NO_LONG_ROWS, NO_COLUMNS, NO_ACROSS)
POOL_MAX(int16_t, int64_t, i16, INT16_MIN, 0, NO_LONG_ROWS, NO_COLUMNS, NO_ACROSS)
POOL_MAX(int32_t, int64_t, i32, INT32_MIN, 0, NO_LONG_ROWS, NO_COLUMNS, NO_ACROSS)
POOL_MAX(int64_t, int64_t, i64, INT64_MIN, 0, NO_LONG_ROWS, NO_COLUMNS, NO_ACROSS)
POOL_MAX(float, int32_t, f32, -__builtin_inff(), 1, long_f32, columns_f32, across_f32)
POOL_MAX(float, int64_t, f32_huge, -__builtin_inff(), 1, long_f32, NO_COLUMNS, NO_ACROSS) /* planes whose places do not fit 32 bits */
POOL_MAX(double, int64_t, f64, -__builtin_inf(), 1, long_f64, columns_f64, across_f64)

static void ISA(max_f32)(const tgx_pool *p, ptrdiff_t planes, const void *src, void *out, int64_t *at) {
    if (tgx_pool_volume(p) > INT32_MAX) max_f32_huge(p, planes, src, out, at);
    else max_f32(p, planes, src, out, at);
}

/* ---- rows, values alone ---- */

/* NaN wins: an element that is one is not greater, and is taken afterwards. */
#define LARGER(T, name) \
    static inline __attribute__((always_inline)) T larger_##name(T best, T value) { \
        const T larger = value > best ? value : best; \
        return value != value ? value : larger; \
    }
#define INSIDE(S, THIRD, name) \
    _Pragma("omp simd") for (ptrdiff_t j = 0; j < n; j++) \
        out[j] = THIRD(larger_##name(row[(S) * j], row[(S) * j + far]), row[(S) * j + 2 * far]);
#define TWO(best, value) (best)
#define ONE_TAP(S, name) _Pragma("omp simd") for (ptrdiff_t j = 0; j < n; j++) out[j] = larger_##name(out[j], row[(S) * j]);

#define ROW_MAX(TYPE, name, LEAST) \
    LARGER(TYPE, name) \
    static TYPE window_##name(const TYPE *row, const tgx_pool_row *p, ptrdiff_t j) { \
        ptrdiff_t at = j * p->stride - p->pad, end = at + p->taps * p->far; \
        if (at < 0) at += (p->far - 1 - at) / p->far * p->far; \
        if (at >= p->width) return LEAST; /* all taps are in the padding */ \
        TYPE best = row[at]; \
        for (at += p->far; at < end && at < p->width; at += p->far) best = larger_##name(best, row[at]); \
        return best; \
    } \
    /* n windows that lie in the row from its first element on */ \
    static void inside_##name(const TYPE *row, const tgx_pool_row *p, ptrdiff_t n, TYPE *out) { \
        const ptrdiff_t far = p->far, stride = p->stride; \
        if (stride == 1 && p->taps == 2) INSIDE(1, TWO, name) \
        else if (stride == 1 && p->taps == 3) INSIDE(1, larger_##name, name) \
        else if (stride == 2 && p->taps == 2) INSIDE(2, TWO, name) \
        else if (stride == 2 && p->taps == 3) INSIDE(2, larger_##name, name) \
        else if (stride == 3 && p->taps == 3) INSIDE(3, larger_##name, name) \
        else { \
            for (ptrdiff_t j = 0; j < n; j++) out[j] = row[stride * j]; \
            for (ptrdiff_t t = 1; t < p->taps; t++) { \
                row += far; \
                if (stride == 1) ONE_TAP(1, name) \
                else if (stride == 2) ONE_TAP(2, name) \
                else if (stride == 3) ONE_TAP(3, name) \
                else ONE_TAP(stride, name) \
            } \
        } \
    } \
    static void row_max_##name(const tgx_pool_row *p, ptrdiff_t rows, const void *src, void *to) { \
        const TYPE *row = src; \
        TYPE *out = to; \
        const ptrdiff_t reach = (p->taps - 1) * p->far, room = p->width + p->pad - reach - 1; \
        ptrdiff_t first = (p->pad + p->stride - 1) / p->stride, end = room < 0 ? 0 : room / p->stride + 1; \
        if (end > p->cols) end = p->cols; \
        if (first > end) first = end; \
        for (; rows-- > 0; row += p->width, out += p->cols) { \
            for (ptrdiff_t j = 0; j < first; j++) out[j] = window_##name(row, p, j); \
            for (ptrdiff_t j = first, n; j < end; j += n) { \
                n = end - j < 4 * BLOCK ? end - j : 4 * BLOCK; \
                inside_##name(row + j * p->stride - p->pad, p, n, out + j); \
            } \
            for (ptrdiff_t j = end; j < p->cols; j++) out[j] = window_##name(row, p, j); \
        } \
    }
ROW_MAX(uint8_t, u8, 0)
ROW_MAX(int8_t, i8, INT8_MIN)
ROW_MAX(int16_t, i16, INT16_MIN)
ROW_MAX(int32_t, i32, INT32_MIN)
ROW_MAX(int64_t, i64, INT64_MIN)
ROW_MAX(float, f32, -__builtin_inff())
ROW_MAX(double, f64, -__builtin_inf())

const tgx_pool_table ISA(tgx_pools) = {{
    [TGX_U8] = max_u8, [TGX_I8] = max_i8, [TGX_I16] = max_i16, [TGX_I32] = max_i32, [TGX_I64] = max_i64,
    [TGX_F32] = ISA(max_f32), [TGX_F64] = max_f64,
}, {
    [TGX_U8] = row_max_u8, [TGX_I8] = row_max_i8, [TGX_I16] = row_max_i16, [TGX_I32] = row_max_i32, [TGX_I64] = row_max_i64,
    [TGX_F32] = row_max_f32, [TGX_F64] = row_max_f64,
}};
