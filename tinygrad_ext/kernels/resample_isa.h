/* The loops of resample.c, over the outer dimension: `read` makes the places of the elements, `spread` is its transpose. */
#include "resample.h"
#include <string.h>

#define W(T, k) ((const T *)job->weight[k])
#define EACH(count) _Pragma("omp simd") for (ptrdiff_t j = 0; j < (count); j++)

enum { WINDOW_ROWS = 4 };

#define LOOPS(T) \
/* Places that read the same element follow one another: they are added up before they are stored. */ \
static void nearest_back_##T(ptrdiff_t n, const int64_t *p, const T *g, T *y) { \
    for (ptrdiff_t j = 0; j < n;) { \
        const int64_t at = p[j]; \
        T sum = y[at] + g[j]; \
        for (j++; j < n && p[j] == at; j++) sum += g[j]; \
        y[at] = sum; \
    } \
} \
static void line_##T(const tgx_resample_job *job, const T *x, T *y) { \
    const int64_t *p = job->at[0], *q = job->at[1], *r = job->at[2], *s = job->at[3]; \
    const T *a = W(T, 0), *b = W(T, 1), *c = W(T, 2), *d = W(T, 3); \
    if (job->taps == 1) EACH(job->places) y[j] = x[p[j]]; \
    else if (job->taps == 2) EACH(job->places) y[j] = x[p[j]] * a[j] + x[q[j]] * b[j]; \
    else EACH(job->places) y[j] = x[p[j]] * a[j] + x[q[j]] * b[j] + x[r[j]] * c[j] + x[s[j]] * d[j]; \
} \
/* `rows` rows of elements, which share what is read of the windows; a constant for all but the last rows. */ \
static inline __attribute__((always_inline)) void windows_rows_##T(const tgx_resample_job *job, const int rows, const T *x, T *y) { \
    for (ptrdiff_t i = 0; i < job->places; i++) { \
        const T *p = x + job->at[0][i], *w = W(T, 0) + job->at[2][i]; \
        const ptrdiff_t count = job->at[1][i]; \
        T sum[WINDOW_ROWS] = {0}; \
        for (ptrdiff_t k = 0; k < count; k++) \
            for (int r = 0; r < rows; r++) sum[r] += p[r * job->size + k] * w[k]; \
        for (int r = 0; r < rows; r++) y[r * job->places + i] = sum[r]; \
    } \
} \
static void windows_##T(const tgx_resample_job *job, const T *x, T *y) { \
    const ptrdiff_t n = job->inner; \
    for (ptrdiff_t i = 0; i < job->places; i++, y += n) { \
        const T *p = x + job->at[0][i] * n, *w = W(T, 0) + job->at[2][i]; \
        ptrdiff_t count = job->at[1][i]; \
        if (count < 2) EACH(n) y[j] = count ? p[j] * w[0] : 0; \
        else EACH(n) y[j] = p[j] * w[0] + p[n + j] * w[1]; \
        for (p += 2 * n, w += 2, count -= 2; count > 1; p += 2 * n, w += 2, count -= 2) \
            EACH(n) y[j] = y[j] + p[j] * w[0] + p[n + j] * w[1]; \
        if (count == 1) EACH(n) y[j] += p[j] * w[0]; \
    } \
} \
static int read_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
    const tgx_resample_job *job = given; \
    const ptrdiff_t n = job->inner; \
    for (ptrdiff_t o = lo; o < hi; o++) { \
        const T *x = (const T *)job->from + o * job->size * n; \
        T *y = (T *)job->to + o * job->places * n; \
        if (job->window && n == 1) { \
            if (hi - o < WINDOW_ROWS) windows_rows_##T(job, 1, x, y); \
            else windows_rows_##T(job, WINDOW_ROWS, x, y), o += WINDOW_ROWS - 1; \
            continue; \
        } \
        if (job->window) { \
            windows_##T(job, x, y); \
            continue; \
        } \
        if (n == 1) { \
            line_##T(job, x, y); \
            continue; \
        } \
        for (ptrdiff_t i = 0; i < job->places; i++, y += n) { \
            const T *p = x + job->at[0][i] * n; \
            if (job->taps == 1) { \
                memcpy(y, p, (size_t)n * sizeof(T)); \
                continue; \
            } \
            const T *q = x + job->at[1][i] * n, a = W(T, 0)[i], b = W(T, 1)[i]; \
            if (job->taps == 2) EACH(n) y[j] = p[j] * a + q[j] * b; \
            else { \
                const T *r = x + job->at[2][i] * n, *s = x + job->at[3][i] * n, c = W(T, 2)[i], d = W(T, 3)[i]; \
                EACH(n) y[j] = p[j] * a + q[j] * b + r[j] * c + s[j] * d; \
            } \
        } \
    } \
    return 0; \
} \
static int spread_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
    const tgx_resample_job *job = given; \
    const ptrdiff_t n = job->inner; \
    for (ptrdiff_t o = lo; o < hi; o++) { \
        const T *g = (const T *)job->from + o * job->places * n; \
        T *y = (T *)job->to + o * job->size * n; \
        memset(y, 0, (size_t)(job->size * n) * sizeof(T)); \
        if (job->taps == 1 && n == 1) { \
            nearest_back_##T(job->places, job->at[0], g, y); \
            continue; \
        } \
        for (ptrdiff_t i = 0; i < job->places; i++, g += n) \
            for (int k = 0; k < job->taps; k++) { \
                const T w = job->taps == 1 ? 1 : W(T, k)[i]; \
                T *to = y + job->at[k][i] * n; \
                if (n == 1) *to += *g * w; \
                else EACH(n) to[j] += g[j] * w; \
            } \
    } \
    return 0; \
}
LOOPS(float)
LOOPS(double)

const tgx_resample_table ISA(tgx_resample) = {{read_float, read_double}, {spread_float, spread_double}};
