/* Exponentials of square matrices (A) -> exp(A), by scaling, Padé's approximant of degree 13 and squaring: Higham, The scaling and
 * squaring method for the matrix exponential revisited, 2005.
 *
 * float32 is computed in float64: squaring loses digits, of which it has none to spare. A matrix and its transpose have
 * transposed exponentials, so rows may stand for columns. */
#include <math.h>
#include "factor.h"

enum { POWER1, POWER2, POWER4, POWER6, ODD, EVEN, ROOM, SQUARES };

static const double reach = 5.371920351148152; /* the 1-norm up to which degree 13 is exact in float64 */
static const double pade[14] = {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
                                10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1};

static int wide_of(int dtype) { return dtype == TGX_F32 ? TGX_F64 : dtype == TGX_C64 ? TGX_C128 : dtype; }
static int64_t order(const tgx_tensor *a) { return a->sizes[a->rank - 1]; }

static void times(const tgx_matrices *job, double *to, const double *x, const double *y) {
    static const tgx_c128 one = 1, none = 0;
    int64_t n = job->n, step = n ? n : 1;
    if (wide_of(job->dtype) == TGX_F64) job->blas->dgemm(TGX_ROW_MAJOR, TGX_NO_TRANS, TGX_NO_TRANS, n, n, n, 1, x, step, y, step, 0, to, step);
    else job->blas->zgemm(TGX_ROW_MAJOR, TGX_NO_TRANS, TGX_NO_TRANS, n, n, n, &one, x, step, y, step, &none, to, step);
}

/* to = a6 * A^6 + a4 * A^4 + a2 * A^2, and what is there already if `more`. */
static void sum(double *to, double **square, int64_t count, double a6, double a4, double a2, int more) {
    const double *A6 = square[POWER6], *A4 = square[POWER4], *A2 = square[POWER2];
    for (int64_t i = 0; i < count; i++) to[i] = (more ? to[i] : 0) + (a6 * A6[i] + a4 * A4[i] + a2 * A2[i]);
}

/* The terms of one parity, from x^0 or x^1 on, over x. */
static void terms(const tgx_matrices *job, double *to, double **square, int64_t count, int odd) {
    int64_t parts = job->n ? count / (job->n * job->n) : 1;
    sum(square[ROOM], square, count, pade[12 + odd], pade[10 + odd], pade[8 + odd], 0);
    times(job, to, square[POWER6], square[ROOM]);
    sum(to, square, count, pade[6 + odd], pade[4 + odd], pade[2 + odd], 1);
    for (int64_t i = 0; i < job->n; i++) to[parts * i * (job->n + 1)] += pade[odd];
}

static void load(int dtype, double *to, const char *from, int64_t count) {
    if (dtype == wide_of(dtype)) memcpy(to, from, (size_t)count * sizeof *to);
    else for (int64_t i = 0; i < count; i++) to[i] = ((const float *)from)[i];
}
static void store(int dtype, char *to, const double *from, int64_t count) {
    if (dtype == wide_of(dtype)) memcpy(to, from, (size_t)count * sizeof *from);
    else for (int64_t i = 0; i < count; i++) ((float *)to)[i] = (float)from[i];
}

/* The greatest sum of magnitudes of a column; NaN where there is one. */
static double norm_of(const double *a, int64_t n, int64_t parts) {
    double most = 0;
    for (int64_t k = 0; k < n; k++) {
        double column = 0;
        for (int64_t i = 0; i < n; i++) {
            const double *x = a + parts * (i * n + k);
            column += parts == 2 ? hypot(x[0], x[1]) : fabs(x[0]);
        }
        if (!(column <= most)) most = column;
        if (isnan(most)) break;
    }
    return most;
}

static void one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t n = job->n, parts = wide_of(job->dtype) == TGX_C128 ? 2 : 1, count = parts * n * n;
    int64_t bytes = n * n * tgx_itemsize[job->dtype], step = tgx_round64(count * 8);
    const char *from = tgx_in(c, 0)->data + i * bytes;
    char *to = tgx_out(c, 0)->data + i * bytes, *room = scratch + SQUARES * step;
    double *square[SQUARES];
    for (int k = 0; k < SQUARES; k++) square[k] = (double *)(scratch + k * step);
    load(job->dtype, square[POWER1], from, count);
    double norm = norm_of(square[POWER1], n, parts);
    if (!isfinite(norm)) {
        for (int64_t k = 0; k < count; k++) square[ODD][k] = k % parts ? 0 : NAN;
        store(job->dtype, to, square[ODD], count);
        return;
    }
    int halvings = norm > reach ? (int)ceil(log2(norm / reach)) : 0;
    for (int64_t k = 0; k < count; k++) square[POWER1][k] = ldexp(square[POWER1][k], -halvings);
    times(job, square[POWER2], square[POWER1], square[POWER1]);
    times(job, square[POWER4], square[POWER2], square[POWER2]);
    times(job, square[POWER6], square[POWER4], square[POWER2]);
    terms(job, square[EVEN], square, count, 1);
    times(job, square[ODD], square[POWER1], square[EVEN]);
    terms(job, square[EVEN], square, count, 0);
    double *below = square[POWER1], *found = square[POWER2];
    for (int64_t k = 0; k < count; k++) below[k] = square[EVEN][k] - square[ODD][k], found[k] = square[EVEN][k] + square[ODD][k];
    int32_t *pivots = (int32_t *)(room + tgx_round64(n * 8));
    tgx_lu(job->blas, wide_of(job->dtype), (char *)below, n, n, pivots, room, 1);
    tgx_lu_solve(job->blas, wide_of(job->dtype), (char *)below, pivots, room, (char *)found, n, n, TGX_AS_IT_IS);
    for (double *next = square[POWER4]; halvings; halvings--) {
        times(job, next, found, found);
        double *kept = found;
        found = next, next = kept;
    }
    store(job->dtype, to, found, count);
}

static int shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if ((!c->meta && !c->services->blas()) || tgx_matrix_check(c, a, "linalg.matrix_exp", "A", 1)) return TGX_FAILED;
    int64_t n = order(a);
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, n, n, a->dtype);
    double cube = (double)n * (double)n * (double)n;
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 9 * cube),
                       SQUARES * tgx_round64(n * n * tgx_itemsize[wide_of(a->dtype)]) + tgx_round64(n * 8) + tgx_round64(n * 4));
    return 0;
}
static int run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.c = c, .one = one, .count = tgx_matrix_count(a), .dtype = a->dtype, .n = order(a)};
    return tgx_matrix_run(&job);
}
TGX_KERNEL(_matrix_exp, shape, run, 0)
