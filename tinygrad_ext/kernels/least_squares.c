/* Least squares by a QR factorisation with exchanged columns, which says the rank too: the steps of LAPACK's gelsy. Small matrices of a
 * batch that plainly have full rank do without exchanges (lanes.h).
 *
 * The steps are called one by one, as gelsy itself asks of each number in turn whether it is a nan (a seventh of its time for
 * 512 x 512, a third for 1000 x 100); it is left for numbers so large or small that they need its scaling.
 *
 * Rejected: the pseudoinverse of singular values, 2 to 7 times as long; its derivative is still that of the pseudoinverse. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include "lanes.h"
#include "numbers.h"

enum { BLOCK = 16 };   /* columns that are exchanged before the others are changed */

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Numbers of workspace: what blocks of 64 columns want, and more than complex ones do. */
static int64_t work_length(int64_t m, int64_t n, int64_t k) { return 3 * m * n + 4 * n + 65 * (n + 1) + 65 * (m + k); }

/* The parts of scratch: A and B in columns, exchanges, real workspace, four vectors of numbers, workspace. */
typedef struct { int64_t lda, b, pivots, reals, vectors, work, bytes; } layout_t;

static layout_t lay(int64_t m, int64_t n, int64_t k, int dtype) {
    const int64_t size = tgx_itemsize[dtype], lda = most(tgx_apart(m, (int)size), 1);
    layout_t l = {.lda = lda, .b = tgx_round64(lda * n * size)};
    l.pivots = l.b + tgx_round64(most(m, n) * k * size), l.reals = l.pivots + tgx_round64(n * 8);
    l.vectors = l.reals + tgx_round64(2 * n * 8), l.work = l.vectors + 4 * tgx_round64(n * size);
    l.bytes = l.work + work_length(m, n, k) * size;
    return l;
}

static double limit_of(const tgx_matrices *job) {
    double epsilon = tgx_real_of(job->dtype) == TGX_F32 ? FLT_EPSILON : DBL_EPSILON;
    return tgx_given(job->c, 2) ? tgx_float(job->c, 2) : epsilon * (double)most(job->m, job->n);
}

/* Whether all numbers are finite and neither so large nor so small that products of two are not; the largest of A may not be 0. */
#define FIT(name, T)                                                                  \
    static int name(const T *x, int64_t count, T least, T limit) {                    \
        T largest[16] = {0}, strange[16] = {0};                                       \
        for (int64_t i = 0; i < count; i += 16)                                       \
            for (int l = 0; l < (count - i < 16 ? (int)(count - i) : 16); l++) {      \
                const T size = x[i + l] < 0 ? -x[i + l] : x[i + l];                   \
                largest[l] = size > largest[l] ? size : largest[l];                   \
                strange[l] += x[i + l] * 0;                                           \
            }                                                                         \
        for (int l = 1; l < 16; l++) {                                                \
            largest[0] = largest[l] > largest[0] ? largest[l] : largest[0];           \
            strange[0] += strange[l];                                                 \
        }                                                                             \
        return strange[0] == 0 && largest[0] >= least && largest[0] < limit;          \
    }
FIT(fit_f, float)
FIT(fit_d, double)
static int fit(const char *x, int64_t count, int dtype, int zeros) {
    count *= 1 + tgx_is_complex(dtype);
    return tgx_real_of(dtype) == TGX_F32 ? fit_f((const float *)x, count, zeros ? 0 : 1e-12F, 1e12F)
                                         : fit_d((const double *)x, count, zeros ? 0 : 1e-100, 1e100);
}

/* How many columns of R are kept: their condition is estimated step by step, as gelsy does (Bischof 1990). Vectors of the smallest and
 * the largest singular value stand in `low` and `high`. */
#define RANK(name, R, T, ABS)                                                                                                    \
    static int64_t name(const tgx_blas *blas, int dtype, const T *a, int64_t lda, int64_t n, double limit, T *low, T *high) {    \
        void *step = blas->routine(TGX_LAIC1, dtype);                                                                            \
        const int64_t smallest = 2, largest = 1;                                                                                 \
        R least = ABS(a[0]), most = least;                                                                                       \
        if (!(least > 0)) return 0;                                                                                              \
        low[0] = high[0] = 1;                                                                                                    \
        int64_t rank = 1;                                                                                                        \
        for (; rank < n; rank++) {                                                                                               \
            const T *column = a + rank * lda;                                                                                    \
            R next_least, next_most;                                                                                             \
            T s[2], c[2];                                                                                                        \
            TGX_CALL(step, 9, &smallest, &rank, low, &least, column, column + rank, &next_least, s, c);                          \
            TGX_CALL(step, 9, &largest, &rank, high, &most, column, column + rank, &next_most, s + 1, c + 1);                    \
            if (!(next_most * (R)limit <= next_least)) break;                                                                    \
            for (int64_t i = 0; i < rank; i++) low[i] = s[0] * low[i], high[i] = s[1] * high[i];                                 \
            low[rank] = c[0], high[rank] = c[1], least = next_least, most = next_most;                                           \
        }                                                                                                                        \
        return rank;                                                                                                             \
    }
RANK(rank_f, float, float, fabsf)
RANK(rank_d, double, double, fabs)
RANK(rank_c, float, tgx_c64, cabsf)
RANK(rank_z, double, tgx_c128, cabs)

static int64_t rank_of(const tgx_blas *blas, int dtype, const char *a, int64_t lda, int64_t n, double limit, char *low, char *high) {
    if (dtype == TGX_F32) return rank_f(blas, dtype, (const float *)a, lda, n, limit, (float *)low, (float *)high);
    if (dtype == TGX_F64) return rank_d(blas, dtype, (const double *)a, lda, n, limit, (double *)low, (double *)high);
    if (dtype == TGX_C64) return rank_c(blas, dtype, (const tgx_c64 *)a, lda, n, limit, (tgx_c64 *)low, (tgx_c64 *)high);
    return rank_z(blas, dtype, (const tgx_c128 *)a, lda, n, limit, (tgx_c128 *)low, (tgx_c128 *)high);
}

/* Norms of columns, twice. */
#define NORMS(name, R, P)                                                             \
    static void name(const R *a, int64_t lda, int64_t m, int64_t n, R *norms) {       \
        for (int64_t j = 0; j < n; j++) {                                             \
            double sum[8] = {0};                                                      \
            const R *x = a + j * lda * P;                                             \
            for (int64_t i = 0; i < m * P; i++) sum[i & 7] += (double)x[i] * (double)x[i]; \
            const double half = sum[4] + sum[5] + sum[6] + sum[7];                    \
            norms[j] = norms[n + j] = (R)sqrt(sum[0] + sum[1] + sum[2] + sum[3] + half); \
        }                                                                             \
    }
NORMS(norms_f, float, 1)
NORMS(norms_d, double, 1)
NORMS(norms_c, float, 2)
NORMS(norms_z, double, 2)

/* As geqp3, which takes the last 128 columns one by one: blocks to the end. */
static void factor(tgx_matrices *job, char *a, int64_t lda, char *pivots, char *tau, char *norms, char *work) {
    const int64_t m = job->m, n = job->n, both = m < n ? m : n;
    const int size = tgx_itemsize[job->dtype], real = tgx_itemsize[tgx_real_of(job->dtype)];
    void *f = job->blas->routine(TGX_LAQPS, job->dtype);
    if (job->dtype == TGX_F32) norms_f((const float *)a, lda, m, n, (float *)norms);
    else if (job->dtype == TGX_F64) norms_d((const double *)a, lda, m, n, (double *)norms);
    else if (job->dtype == TGX_C64) norms_c((const float *)a, lda, m, n, (float *)norms);
    else norms_z((const double *)a, lda, m, n, (double *)norms);
    for (int64_t j = 0; j < n; j++) tgx_lapack_put(job->blas, pivots, j, j + 1);
    for (int64_t j = 0, done = 0; j < both; j += done) {
        const int64_t left = n - j, wanted = both - j < BLOCK ? both - j : BLOCK;
        TGX_CALL(f, 14, &m, &left, &j, &wanted, &done, a + j * lda * size, &lda, pivots + j * (job->blas->wide ? 8 : 4), tau + j * size,
                 norms + j * real, norms + (n + j) * real, work, work + BLOCK * size, &left);
        done = tgx_lapack_int(job->blas, &done, 0);
    }
}

/* A P = Q R, and where R's rank is less than n, R = (T 0) Z; X = P Z^H T^-1 Q^H B. Returns the rank. */
static int64_t by_steps(tgx_matrices *job, char *a, const layout_t *l, char *b, int64_t ldb, char *scratch, char *to) {
    static const double one_d[2] = {1, 0};
    static const float one_f[2] = {1, 0};
    const tgx_blas *blas = job->blas;
    const int64_t m = job->m, n = job->n, k = job->k, lda = l->lda, length = work_length(m, n, k), both = m < n ? m : n, step = k;
    const int dtype = job->dtype, size = tgx_itemsize[dtype];
    const char *adjoint = tgx_is_complex(dtype) ? "C" : "T";
    const void *unit = tgx_real_of(dtype) == TGX_F32 ? (const void *)one_f : one_d;
    char *pivots = scratch + l->pivots, *work = scratch + l->work, *tau = scratch + l->vectors, *other = tau + tgx_round64(n * size);
    char *low = other + tgx_round64(n * size), *high = low + tgx_round64(n * size);
    int64_t info = 0;
    if (both > 4 * BLOCK) factor(job, a, lda, pivots, tau, scratch + l->reals, work);
    else if (tgx_is_complex(dtype))
        TGX_CALL(blas->routine(TGX_GEQP3, dtype), 10, &m, &n, a, &lda, pivots, tau, work, &length, scratch + l->reals, &info);
    else TGX_CALL(blas->routine(TGX_GEQP3, dtype), 9, &m, &n, a, &lda, pivots, tau, work, &length, &info);
    const int64_t rank = rank_of(blas, dtype, a, lda, both, limit_of(job), low, high), rest = n - rank;
    memset(to, 0, (size_t)(n * k * size));
    if (!rank || !k) return rank;
    if (rest) TGX_CALL(blas->routine(TGX_TZRZF, dtype), 8, &rank, &n, a, &lda, other, work, &length, &info);
    TGX_CALL(blas->routine(TGX_ORMQR, dtype), 15, "L", adjoint, &m, &k, &both, a, &lda, tau, b, &ldb, work, &length, &info, TGX_LENGTH,
             TGX_LENGTH);
    TGX_CALL(blas->routine(TGX_TRSM, dtype), 15, "L", "U", "N", "N", &rank, &k, unit, a, &lda, b, &ldb, TGX_LENGTH, TGX_LENGTH, TGX_LENGTH,
             TGX_LENGTH);
    if (rest) {
        for (int64_t c = 0; c < k; c++) memset(b + (c * ldb + rank) * size, 0, (size_t)(rest * size));
        TGX_CALL(blas->routine(TGX_ORMRZ, dtype), 16, "L", adjoint, &n, &k, &rank, &rest, a, &lda, other, b, &ldb, work, &length, &info,
                 TGX_LENGTH, TGX_LENGTH);
    }
    for (int64_t r = 0; r < n; r++)
        tgx_turn(to + (tgx_lapack_int(blas, pivots, r) - 1) * step * size, step, b + r * size, ldb, k, 1, size);
    return rank;
}

static int has_steps(const tgx_blas *blas, int dtype) {
    static const int needed[] = {TGX_GEQP3, TGX_LAQPS, TGX_LAIC1, TGX_TZRZF, TGX_ORMQR, TGX_ORMRZ, TGX_TRSM};
    for (int i = 0; i < 7; i++)
        if (!blas->routine(needed[i], dtype)) return 0;
    return 1;
}

static void one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    const int64_t m = job->m, n = job->n, k = job->k, ldb = most(most(m, n), 1), length = work_length(m, n, k);
    const int size = tgx_itemsize[job->dtype], single = tgx_real_of(job->dtype) == TGX_F32;
    const double limit = limit_of(job);
    const float limit_single = (float)limit;
    const void *least = single ? (const void *)&limit_single : &limit;
    const layout_t l = lay(m, n, k, job->dtype);
    char *b = scratch + l.b, *to = tgx_out(c, 0)->data + i * n * k * size;
    const char *first = tgx_in(c, 0)->data + i * m * n * size, *second = tgx_in(c, 1)->data + i * m * k * size;
    int64_t rank = 0, info = 0, *ranks = (int64_t *)tgx_out(c, 1)->data;
    void *f = job->blas->routine(TGX_GELSY, job->dtype);
    if (!m || !n || !k) {
        memset(to, 0, (size_t)(n * k * size));
        if (!m || !n) {
            ranks[i] = 0;
            return;
        }
    }
    tgx_turn(scratch, l.lda, first, n, m, n, size);
    memset(b, 0, (size_t)(l.reals - l.b));
    if (k) tgx_turn(b, ldb, second, k, m, k, size);
    if (has_steps(job->blas, job->dtype) && fit(first, m * n, job->dtype, 0) && fit(second, m * k, job->dtype, 1)) {
        ranks[i] = by_steps(job, scratch, &l, b, ldb, scratch, to);
        return;
    }
    if (tgx_is_complex(job->dtype))
        TGX_CALL(f, 14, &m, &n, &k, scratch, &l.lda, b, &ldb, scratch + l.pivots, least, &rank, scratch + l.work, &length, scratch + l.reals, &info);
    else
        TGX_CALL(f, 13, &m, &n, &k, scratch, &l.lda, b, &ldb, scratch + l.pivots, least, &rank, scratch + l.work, &length, &info);
    ranks[i] = tgx_lapack_int(job->blas, &rank, 0);
    if (k) tgx_turn(to, k, b, ldb, k, n, size);
}

static const tgx_lane_ops *lanes(const tgx_tensor *a, int64_t m, int64_t n, int64_t k) {
    return m < n || k < 1 || k > TGX_LANES_ORDER ? NULL : tgx_lanes_for(tgx_matrix_count(a), m, n, a->dtype);
}

static void some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = job->k;
    char *b = scratch + tgx_lanes_bytes(m * n), *room = b + tgx_lanes_bytes(m * k);
    tgx_lanes_take(job->lanes, scratch, tgx_in(c, 0)->data, i, count, m * n, job->dtype);
    tgx_lanes_take(job->lanes, b, tgx_in(c, 1)->data, i, count, m * k, job->dtype);
    uint32_t left = job->lanes->least(scratch, m, n, b, k, room, limit_of(job), count);
    tgx_lanes_give(job->lanes, tgx_out(c, 0)->data, b, i, count, n * k, job->dtype);
    for (int64_t l = 0; l < count; l++) {
        if (left >> l & 1) one(job, i + l, scratch);
        else ((int64_t *)tgx_out(c, 1)->data)[i + l] = n;
    }
}

/* (A, B, rcond) -> (solution, rank): batches of equal sizes */
static int least_squares_shape(tgx_call *c) {
    static const char title[] = "torch.linalg.lstsq";
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1);
    if (tgx_matrix_check(c, a, title, "input", 0) || tgx_matrix_check(c, b, title, "other", 0) || !tgx_routine_needed(c, title, TGX_GELSY, a->dtype))
        return TGX_FAILED;
    int fits = a->rank == b->rank && a->dtype == b->dtype;
    for (int i = 0; fits && i < a->rank - 1; i++) fits = a->sizes[i] == b->sizes[i];
    if (!fits)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: input and other must be equal batches of matrices of one dtype with as many rows, got %s and %s",
                        title, tgx_shape_text(a), tgx_shape_text(b));
    const int64_t m = a->sizes[a->rank - 2], n = a->sizes[a->rank - 1], k = b->sizes[b->rank - 1];
    tgx_need_dense(c, 0), tgx_need_dense(c, 1);
    tgx_matrix_result(c, 0, a, n, k, a->dtype);
    tgx_batch_result(c, 1, a, -1, TGX_I64);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 2.0 * (double)m * (double)n * (double)(n + k)),
                       most(lay(m, n, k, a->dtype).bytes, lanes(a, m, n, k) ? tgx_lanes_bytes(m * (n + k) + n * n) : 0));
    return 0;
}

static int least_squares_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1);
    tgx_matrices job = {.c = c, .one = one, .some = some, .count = tgx_matrix_count(a), .dtype = a->dtype, .m = a->sizes[a->rank - 2],
                        .n = a->sizes[a->rank - 1], .k = b->sizes[b->rank - 1]};
    job.lanes = lanes(a, job.m, job.n, job.k);
    return tgx_matrix_run(&job);
}
TGX_KERNEL(least_squares, least_squares_shape, least_squares_run, 0)
