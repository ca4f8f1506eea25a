/* Exponentials of square matrices (A) -> exp(A), by scaling, an approximation and squaring.
 *
 * In double precision that is Padé's, of degree 3, 5, 7 or 13: Higham, The scaling and squaring method for the matrix exponential
 * revisited, 2005. In single precision it is the series to degree 8 in three products: Sastre, Efficient evaluation of matrix
 * polynomials, 2018; the degrees beyond, which save a squaring each, do not save their products. Squaring loses digits, of which
 * float32 has none to spare, so it squares E = exp(A) - I as long as that cancels nothing: E E + 2 E keeps what is small beside
 * the identity, and errs less than a tenth of what squares of exp(A) do. To compute in float64 instead takes twice the time.
 *
 * A matrix and its transpose have transposed exponentials, so rows may stand for columns. Where the lower left quarter is zero, as
 * in the matrices that derivatives are corners of, it is so in every power, and half of each product is left out. */
#include <math.h>
#include "factor.h"

enum { POWER1, POWER2, POWER4, POWER6, ODD, EVEN, ROOM, SQUARES };
enum { LEAST_HALVED = 64 };     /* below this, three products take longer than the one that they are half of */

static const double pade[4][14] = {
    {120, 60, 12, 1},
    {30240, 15120, 3360, 420, 30, 1},
    {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1},
    {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800,
     33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}};
/* The 1-norms up to which each of them, and the series in float32, are exact. */
static const double reach[4] = {1.495585217958292e-2, 0.2539398330063230, 0.9504178996162932, 5.371920351148152};
static const double series_reach = 0.5800524627688768;

typedef struct {
    const tgx_blas *blas;
    int dtype, halved;          /* whether the lower left quarter is zero */
    int64_t n, parts, count;    /* numbers of an element, and of a matrix */
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

static void times(const matrix *m, void *to, const void *x, const void *y, double beta) {
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

/* ---- single precision */

/* Whether exp(A) itself has to be squared from here on: 1 + E has lost a digit where it is small. */
static int cancels(const matrix *m, const float *e) {
    for (int64_t i = 0; i < m->n; i++) if (e[m->parts * i * (m->n + 1)] < -0.5f) return 1;
    return 0;
}
static void plus_identity(const matrix *m, float *a, float by) {
    for (int64_t i = 0; i < m->n; i++) a[m->parts * i * (m->n + 1)] += by;
}

/* exp(A) in one of the rooms. */
static float *by_series(const matrix *m, char *scratch, int64_t step, const float *from, double norm) {
    static const float x1 = 0.108364656785f, x2 = 0.0270911641963f, x3 = 0.666666666667f, x4 = 0.546761457971f,
                       x5 = 0.161125573395f, x6 = 0.0140909171584f, x7 = 0.0337927970109f, y2 = 0.135492361353f;
    float *a = (float *)scratch, *a2 = (float *)(scratch + step), *a4 = (float *)(scratch + 2 * step);
    float *left = (float *)(scratch + 3 * step), *right = (float *)(scratch + 4 * step), *e = (float *)(scratch + 5 * step);
    int halvings = halvings_of(norm, series_reach), shifted = 0;
    const double scale = ldexp(1, -halvings);
    for (int64_t k = 0; k < m->count; k++) a[k] = (float)(from[k] * scale);
    times(m, a2, a, a, 0);
    for (int64_t k = 0; k < m->count; k++) left[k] = x1 * a[k] + x2 * a2[k];
    times(m, a4, a2, left, 0);
    for (int64_t k = 0; k < m->count; k++) {
        left[k] = x3 * a2[k] + a4[k], right[k] = x5 * a[k] + x6 * a2[k] + x7 * a4[k], e[k] = a[k] + y2 * a2[k];
    }
    plus_identity(m, right, x4);
    times(m, e, left, right, 1);
    for (float *next = a; halvings; halvings--) {
        if (!shifted && cancels(m, e)) shifted = 1, plus_identity(m, e, 1);
        if (!shifted) memcpy(next, e, (size_t)m->count * sizeof *e);
        times(m, next, e, e, shifted ? 0 : 2);
        float *kept = e;
        e = next, next = kept;
    }
    if (!shifted) plus_identity(m, e, 1);
    return e;
}

/* ---- double precision */

/* to = a6 * A^6 + a4 * A^4 + a2 * A^2, and what is there already if `more`. */
static void sum(double *to, double **square, int64_t count, double a6, double a4, double a2, int more) {
    const double *A6 = square[POWER6], *A4 = square[POWER4], *A2 = square[POWER2];
    for (int64_t i = 0; i < count; i++) to[i] = (more ? to[i] : 0) + (a6 * A6[i] + a4 * A4[i] + a2 * A2[i]);
}

/* The terms of one parity, from x^0 or x^1 on, over x. */
static void terms(const matrix *m, double *to, double **square, const double *c, int degree, int odd) {
    if (degree == 13) {
        sum(square[ROOM], square, m->count, c[12 + odd], c[10 + odd], c[8 + odd], 0);
        times(m, to, square[POWER6], square[ROOM], 0);
        sum(to, square, m->count, c[6 + odd], c[4 + odd], c[2 + odd], 1);
    } else for (int64_t i = 0; i < m->count; i++) {
        to[i] = c[2 + odd] * square[POWER2][i];
        if (degree > 3) to[i] += c[4 + odd] * square[POWER4][i];
        if (degree > 5) to[i] += c[6 + odd] * square[POWER6][i];
    }
    for (int64_t i = 0; i < m->n; i++) to[m->parts * i * (m->n + 1)] += c[odd];
}

/* exp(A) in one of the rooms. */
static double *by_fraction(const matrix *m, char *scratch, int64_t step, const double *from, double norm, char *room) {
    double *square[SQUARES];
    for (int k = 0; k < SQUARES; k++) square[k] = (double *)(scratch + k * step);
    int which = 0, halvings = halvings_of(norm, reach[3]);
    while (which < 3 && norm > reach[which]) which++;
    const int degree = which == 3 ? 13 : 3 + 2 * which;
    const double scale = ldexp(1, -halvings);
    for (int64_t k = 0; k < m->count; k++) square[POWER1][k] = from[k] * scale;
    times(m, square[POWER2], square[POWER1], square[POWER1], 0);
    if (degree > 3) times(m, square[POWER4], square[POWER2], square[POWER2], 0);
    if (degree > 5) times(m, square[POWER6], square[POWER4], square[POWER2], 0);
    terms(m, square[EVEN], square, pade[which], degree, 1);
    times(m, square[ODD], square[POWER1], square[EVEN], 0);
    terms(m, square[EVEN], square, pade[which], degree, 0);
    double *below = square[POWER1], *found = square[POWER2];
    for (int64_t k = 0; k < m->count; k++) below[k] = square[EVEN][k] - square[ODD][k], found[k] = square[EVEN][k] + square[ODD][k];
    int32_t *pivots = (int32_t *)(room + tgx_round64(m->n * 8));
    tgx_lu(m->blas, m->dtype, (char *)below, m->n, m->n, pivots, room, 1);
    tgx_lu_solve(m->blas, m->dtype, (char *)below, pivots, room, (char *)found, m->n, m->n, TGX_AS_IT_IS);
    for (double *next = square[POWER4]; halvings; halvings--) {
        times(m, next, found, found, 0);
        double *kept = found;
        found = next, next = kept;
    }
    return found;
}

static void one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    matrix m = {.blas = job->blas, .dtype = job->dtype, .n = job->n, .parts = tgx_is_complex(job->dtype) ? 2 : 1};
    const int64_t bytes = m.n * m.n * tgx_itemsize[m.dtype], step = tgx_round64(bytes);
    const char *from = tgx_in(c, 0)->data + i * bytes;
    char *to = tgx_out(c, 0)->data + i * bytes, *room = scratch + SQUARES * step;
    m.count = m.parts * m.n * m.n, m.halved = is_halved(&m, from);
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
    const void *found = is_single(m.dtype) ? (void *)by_series(&m, scratch, step, (const float *)from, norm)
                                           : (void *)by_fraction(&m, scratch, step, (const double *)from, norm, room);
    memcpy(to, found, (size_t)bytes);
}

static int shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if ((!c->meta && !c->services->blas()) || tgx_matrix_check(c, a, "linalg.matrix_exp", "A", 1)) return TGX_FAILED;
    int64_t n = order(a);
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, n, n, a->dtype);
    double cube = (double)n * (double)n * (double)n;
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 9 * cube),
                       SQUARES * tgx_round64(n * n * tgx_itemsize[a->dtype]) + tgx_round64(n * 8) + tgx_round64(n * 4));
    return 0;
}
static int run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.c = c, .one = one, .count = tgx_matrix_count(a), .dtype = a->dtype, .n = order(a)};
    return tgx_matrix_run(&job);
}
TGX_KERNEL(_matrix_exp, shape, run, 0)
