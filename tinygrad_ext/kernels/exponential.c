/* Exponentials of square matrices (A) -> exp(A), by scaling, a polynomial and squaring.
 *
 * The polynomials are the series to degree 4 and 8, in two and three products, and in double precision one of degree 16 whose terms
 * to the 15th are those of the series, in four: Sastre, Efficient evaluation of matrix polynomials, 2018. What more products would
 * reach does not save a squaring for each. Rejected: Padé's fractions, whose division loses what is small in graded matrices
 * ([[0, 1e30], [0, 0]]), and which take 1.2 to 1.5 times as long.
 *
 * Squaring loses digits, so it squares E = exp(A) - I as long as that cancels nothing: E E + 2 E keeps what is small beside
 * the identity, and errs less than a tenth of what squares of exp(A) do. To compute float32 in float64 instead takes twice the time.
 *
 * Rows of small complex matrices are [R I], which times [[R I] [-I R]] is one real product: a third of the time of the library's
 * complex one below 32 rows, but of two rows.
 *
 * A matrix and its transpose have transposed exponentials, so rows may stand for columns. Where the lower left quarter is zero, as
 * in the matrices that derivatives are corners of, it is so in every power, and half of each product is left out. */
#include <math.h>
#include "factor.h"

enum { ROOMS = 6, MIXED = 2 };  /* matrices at hand at once, and room for what turns real and imaginary parts into each other */
enum { LEAST_HALVED = 64 };     /* below this, three products take longer than the one that they are half of */
enum { BLOCK = 256 };           /* numbers of each matrix that are added up while they lie in the first cache */

/* The 1-norms up to which degrees 4, 8 and 16 are exact in double precision, and 8 in single. */
static const double reach[3] = {3.397168839976962e-4, 4.991228871115323e-2, 0.6764217495424855}, single_reach = 0.5800524627688768;

typedef struct {
    const tgx_blas *blas;
    int dtype, halved, planar;  /* whether the lower left quarter is zero; whether a row is its real parts, then its imaginary ones */
    int64_t n, parts, count;    /* numbers of an element, and of a matrix */
    char *mixed;
} matrix;

static int is_single(int dtype) { return dtype == TGX_F32 || dtype == TGX_C64; }
static int64_t order(const tgx_tensor *a) { return a->sizes[a->rank - 1]; }

/* `rows` x `inner` times `inner` x `columns`, and beta times what is there; all rows lie n elements apart. */
static void part(const matrix *m, char *to, const char *x, const char *y, int64_t rows, int64_t columns, int64_t inner, double beta) {
    enum { R = TGX_ROW_MAJOR, N = TGX_NO_TRANS };
    const int64_t step = m->n ? m->n : 1;
    const float one[2] = {1}, more[2] = {(float)beta};
    const double wide_one[2] = {1}, wide_more[2] = {beta};
    const float *fx = (const float *)x, *fy = (const float *)y;
    const double *dx = (const double *)x, *dy = (const double *)y;
    if (m->dtype == TGX_F32) m->blas->sgemm(R, N, N, rows, columns, inner, 1, fx, step, fy, step, *more, (float *)to, step);
    else if (m->dtype == TGX_F64) m->blas->dgemm(R, N, N, rows, columns, inner, 1, dx, step, dy, step, beta, (double *)to, step);
    else if (m->dtype == TGX_C64) m->blas->cgemm(R, N, N, rows, columns, inner, one, x, step, y, step, more, to, step);
    else m->blas->zgemm(R, N, N, rows, columns, inner, wide_one, x, step, y, step, wide_more, to, step);
}

#define MIX(T) \
    for (int64_t i = 0; i < n; i++) { \
        const T *re = (const T *)y + 2 * n * i, *im = re + n; \
        T *up = (T *)m->mixed + 2 * n * i, *low = up + 2 * n * n; \
        for (int64_t k = 0; k < n; k++) up[k] = re[k], up[n + k] = im[k], low[k] = -im[k], low[n + k] = re[k]; \
    }
static void times_planar(const matrix *m, void *to, const void *x, const void *y, double beta) {
    const int64_t n = m->n;
    matrix real = *m;
    real.n = 2 * n, real.dtype = is_single(m->dtype) ? TGX_F32 : TGX_F64;
    if (is_single(m->dtype)) MIX(float) else MIX(double)
    part(&real, to, x, m->mixed, n, 2 * n, 2 * n, beta);
}

static void times(const matrix *m, void *to, const void *x, const void *y, double beta) {
    if (m->planar) {
        times_planar(m, to, x, y, beta);
        return;
    }
    const int64_t n = m->n, h = n / 2, bytes = tgx_itemsize[m->dtype], right = h * bytes, low = h * (n + 1) * bytes;
    if (!m->halved) {
        part(m, to, x, y, n, n, n, beta);
        return;
    }
    part(m, to, x, y, h, n, h, beta);
    part(m, (char *)to + right, (const char *)x + right, (const char *)y + low, h, h, h, 1);
    part(m, (char *)to + low, (const char *)x + low, (const char *)y + low, h, h, h, beta);
    for (int64_t i = h; i < n; i++) memset((char *)to + i * n * bytes, 0, (size_t)right);
}

static int is_halved(const matrix *m, const char *a) {
    const int64_t n = m->n, bytes = tgx_itemsize[m->dtype], width = n / 2 * m->parts;
    if (n < LEAST_HALVED || n % 2) return 0;
    for (int64_t i = n / 2; i < n; i++) {
        const char *row = a + i * n * bytes;
        if (is_single(m->dtype)) for (int64_t k = 0; k < width; k++) if (((const float *)row)[k] != 0) return 0;
        if (!is_single(m->dtype)) for (int64_t k = 0; k < width; k++) if (((const double *)row)[k] != 0) return 0;
    }
    return 1;
}

/* The greatest sum of magnitudes of a column; NaN where there is one. `room` for n numbers. */
static double norm_of(const matrix *m, const char *a, double *room) {
    const int64_t n = m->n;
    for (int64_t k = 0; k < n; k++) room[k] = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *f = (const float *)a + m->parts * i * n;
        const double *d = (const double *)a + m->parts * i * n;
        if (m->dtype == TGX_F32) for (int64_t k = 0; k < n; k++) room[k] += fabsf(f[k]);
        else if (m->dtype == TGX_F64) for (int64_t k = 0; k < n; k++) room[k] += fabs(d[k]);
        else if (m->dtype == TGX_C64)
            for (int64_t k = 0; k < n; k++) room[k] += sqrt((double)f[2 * k] * f[2 * k] + (double)f[2 * k + 1] * f[2 * k + 1]);
        else for (int64_t k = 0; k < n; k++) room[k] += hypot(d[2 * k], d[2 * k + 1]);
    }
    double most = 0;
    for (int64_t k = 0; k < n && !isnan(most); k++) if (!(room[k] <= most)) most = room[k];
    return most;
}
static int halvings_of(double norm, double within) { return norm > within ? (int)ceil(log2(norm / within)) : 0; }

/* to = sum of by[k] x[k]; `to` may be x[0]. */
#define ADD_UP(T) \
    for (int64_t at = 0; at < m->count; at += BLOCK) { \
        const int64_t some = m->count - at < BLOCK ? m->count - at : BLOCK; \
        T *out = (T *)to + at; \
        for (int k = 0; k < terms; k++) { \
            const T *own = (const T *)x[k] + at, w = (T)by[k]; \
            if (k) for (int64_t i = 0; i < some; i++) out[i] += w * own[i]; \
            else for (int64_t i = 0; i < some; i++) out[i] = w * own[i]; \
        } \
    }
static void add_up(const matrix *m, void *to, int terms, const char *const *x, const double *by) {
    if (is_single(m->dtype)) ADD_UP(float) else ADD_UP(double)
}
#define ADD(to, by, ...) \
    add_up(m, to, (int)(sizeof (const char *[]){__VA_ARGS__} / sizeof (char *)), (const char *const[]){__VA_ARGS__}, by)

/* Where the real part of element (i, i) is. */
static int64_t diagonal(const matrix *m, int64_t i) { return i * m->parts * m->n + (m->planar ? i : m->parts * i); }
static void plus_identity(const matrix *m, char *a, double by) {
    for (int64_t i = 0; i < m->n; i++) {
        if (is_single(m->dtype)) ((float *)a)[diagonal(m, i)] += (float)by;
        else ((double *)a)[diagonal(m, i)] += by;
    }
}
/* Rows of complex numbers into such of planes, and back. */
static void planes(const matrix *m, char *to, const char *from, int back) {
    const int64_t n = m->n, bytes = tgx_itemsize[m->dtype] / 2;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < 2; j++) {
                const int64_t pair = (2 * (i * n + k) + j) * bytes, apart = (2 * i * n + j * n + k) * bytes;
                const char *own = from + (back ? apart : pair);
                if (bytes == 4) memcpy(to + (back ? pair : apart), own, 4);
                else memcpy(to + (back ? pair : apart), own, 8);
            }
}
/* Whether exp(A) itself has to be squared from here on: 1 + E has lost a digit where it is small. */
static int cancels(const matrix *m, const char *e) {
    for (int64_t i = 0; i < m->n; i++) {
        const int64_t k = diagonal(m, i);
        if ((is_single(m->dtype) ? ((const float *)e)[k] : ((const double *)e)[k]) < -0.5) return 1;
    }
    return 0;
}

/* exp(A) - I of a short A, in its room. */
static void by_degree_4(const matrix *m, char *const *room) {
    char *a = room[0], *a2 = room[1], *left = room[2];
    times(m, a2, a, a, 0);
    ADD(left, ((const double[]){1. / 6, 1. / 24}), a, a2);
    plus_identity(m, left, 0.5);
    times(m, a, a2, left, 1);
}
static void by_degree_8(const matrix *m, char *const *room) {
    static const double x1 = 0.10836465678522781, x2 = 0.027091164196306952, x3 = 2. / 3, x4 = 0.5467614579707241,
                        x5 = 0.1611255733954176, x6 = 0.014090917158378208, x7 = 0.03379279701087050, y2 = 0.13549236135285063;
    char *a = room[0], *a2 = room[1], *a4 = room[2], *left = room[3], *right = room[4];
    times(m, a2, a, a, 0);
    ADD(left, ((const double[]){x1, x2}), a, a2);
    times(m, a4, a2, left, 0);
    ADD(left, ((const double[]){x3, 1}), a2, a4);
    ADD(right, ((const double[]){x5, x6, x7}), a, a2, a4);
    plus_identity(m, right, x4);
    ADD(a, ((const double[]){1, y2}), a, a2);
    times(m, a, left, right, 1);
}
static void by_degree_16(const matrix *m, char *const *room) {
    static const double c1 = 4.018761610201036e-4, c2 = 2.945531440279683e-3, c3 = -8.709066576837676e-3, c4 = 0.4017568440673568,
                        c5 = 3.230762888122312e-2, c6 = 5.768988513026145, c7 = 2.338576034271299e-2, c8 = 0.2381070373870987,
                        c9 = 2.224209172496374, c10 = -5.792361707073261, c11 = -4.130276365929783e-2, c12 = 10.40801735231354,
                        c13 = -63.31712455883370, c14 = 0.3484665863364574;
    char *a = room[0], *a2 = room[1], *y0 = room[2], *left = room[3], *right = room[4], *y1 = room[5];
    times(m, a2, a, a, 0);
    ADD(left, ((const double[]){c1, c2}), a2, a);
    times(m, y0, a2, left, 0);
    ADD(left, ((const double[]){1, c3, c4}), y0, a2, a);
    ADD(right, ((const double[]){1, c5}), y0, a2);
    ADD(y1, ((const double[]){c6, c7}), y0, a2);
    times(m, y1, left, right, 1);
    ADD(left, ((const double[]){1, c8, c9}), y1, a2, a);
    ADD(right, ((const double[]){1, c10, c11}), y1, y0, a);
    ADD(a, ((const double[]){1, c14, c13, c12}), a, a2, y0, y1);
    times(m, a, left, right, 1);
}

static void by_squares(const matrix *m, char *scratch, int64_t step, char *to, const char *from, double norm) {
    char *room[ROOMS];
    for (int k = 0; k < ROOMS; k++) room[k] = scratch + k * step;
    const int single = is_single(m->dtype);
    int halvings = halvings_of(norm, single ? single_reach : reach[2]), shifted = 0;
    if (m->planar) planes(m, room[1], from, 0);
    ADD(room[0], ((const double[]){ldexp(1, -halvings)}), m->planar ? room[1] : from);
    if (!single && norm <= reach[0]) by_degree_4(m, room);
    else if (single || norm <= reach[1]) by_degree_8(m, room);
    else by_degree_16(m, room);
    char *e = room[0];
    for (char *next = room[1]; halvings; halvings--) {
        if (!shifted && cancels(m, e)) shifted = 1, plus_identity(m, e, 1);
        if (!shifted) memcpy(next, e, (size_t)(m->count * tgx_itemsize[m->dtype] / m->parts));
        times(m, next, e, e, shifted ? 0 : 2);
        char *kept = e;
        e = next, next = kept;
    }
    if (!shifted) plus_identity(m, e, 1);
    if (m->planar) planes(m, to, e, 1);
    else memcpy(to, e, (size_t)(m->count * tgx_itemsize[m->dtype] / m->parts));
}

static void one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    matrix m = {.blas = job->blas, .dtype = job->dtype, .n = job->n, .parts = tgx_is_complex(job->dtype) ? 2 : 1};
    const int64_t bytes = m.n * m.n * tgx_itemsize[m.dtype], step = tgx_round64(bytes);
    const char *from = tgx_in(c, 0)->data + i * bytes;
    char *to = tgx_out(c, 0)->data + i * bytes, *room = scratch + (ROOMS + MIXED) * step;
    m.count = m.parts * m.n * m.n, m.halved = is_halved(&m, from);
    m.planar = m.parts == 2 && m.n > 2 && m.n < LEAST_HALVED, m.mixed = scratch + ROOMS * step;
    const double norm = norm_of(&m, from, (double *)room);
    if (m.n > 1 && !isfinite(norm)) {
        for (int64_t k = 0; k < m.count; k++) {
            if (is_single(m.dtype)) ((float *)to)[k] = k % m.parts ? 0 : NAN;
            else ((double *)to)[k] = k % m.parts ? 0 : NAN;
        }
        return;
    }
    if (m.n == 1) {
        const int single = is_single(m.dtype);
        const float *f = (const float *)from;
        const double *d = (const double *)from;
        const double grown = exp(single ? f[0] : d[0]), turn = m.parts == 1 ? 0 : single ? f[1] : d[1];
        for (int64_t k = 0; k < m.parts; k++) {
            const double found = turn == 0 ? (k ? 0 : grown) : grown * (k ? sin(turn) : cos(turn));
            if (single) ((float *)to)[k] = (float)found;
            else ((double *)to)[k] = found;
        }
        return;
    }
    by_squares(&m, scratch, step, to, from, norm);
}

static int shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if ((!c->meta && !c->services->blas()) || tgx_matrix_check(c, a, "linalg.matrix_exp", "A", 1)) return TGX_FAILED;
    int64_t n = order(a);
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, n, n, a->dtype);
    double cube = (double)n * (double)n * (double)n;
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 9 * cube),
                       (ROOMS + MIXED) * tgx_round64(n * n * tgx_itemsize[a->dtype]) + tgx_round64(n * 8));
    return 0;
}
static int run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.c = c, .one = one, .count = tgx_matrix_count(a), .dtype = a->dtype, .n = order(a)};
    return tgx_matrix_run(&job);
}
TGX_KERNEL(_matrix_exp, shape, run, 0)
