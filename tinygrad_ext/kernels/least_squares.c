/* Least squares by a QR factorisation with exchanged columns, which says the rank too: LAPACK's gelsy. Small matrices of a batch
 * that plainly have full rank do without exchanges (lanes.h).
 *
 * Rejected: the pseudoinverse of singular values, 2 to 7 times as long; its derivative is still that of the pseudoinverse. */
#include <float.h>
#include "lanes.h"

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Numbers of workspace: what blocks of 64 columns want, and more than complex ones do. */
static int64_t work_length(int64_t m, int64_t n, int64_t k) { return 3 * m * n + 4 * n + 65 * (n + 1) + 65 * (m + k); }

/* The parts of scratch: A and B in columns, exchanges, real workspace, workspace. */
typedef struct { int64_t b, pivots, reals, work, bytes; } layout_t;

static layout_t lay(int64_t m, int64_t n, int64_t k, int dtype) {
    const int64_t size = tgx_itemsize[dtype];
    layout_t l = {.b = tgx_round64(m * n * size)};
    l.pivots = l.b + tgx_round64(most(m, n) * k * size), l.reals = l.pivots + tgx_round64(n * 8);
    l.work = l.reals + tgx_round64(2 * n * 8), l.bytes = l.work + work_length(m, n, k) * size;
    return l;
}

static double limit_of(const tgx_matrices *job) {
    double epsilon = tgx_real_of(job->dtype) == TGX_F32 ? FLT_EPSILON : DBL_EPSILON;
    return tgx_given(job->c, 2) ? tgx_float(job->c, 2) : epsilon * (double)most(job->m, job->n);
}

static void one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    const int64_t m = job->m, n = job->n, k = job->k, lda = most(m, 1), ldb = most(most(m, n), 1), length = work_length(m, n, k);
    const int size = tgx_itemsize[job->dtype], single = tgx_real_of(job->dtype) == TGX_F32;
    const double limit = limit_of(job);
    const float limit_single = (float)limit;
    const void *least = single ? (const void *)&limit_single : &limit;
    const layout_t l = lay(m, n, k, job->dtype);
    char *b = scratch + l.b, *to = tgx_out(c, 0)->data + i * n * k * size;
    int64_t rank = 0, info = 0, *ranks = (int64_t *)tgx_out(c, 1)->data;
    void *f = job->blas->routine(TGX_GELSY, job->dtype);
    if (!m || !n || !k) {
        memset(to, 0, (size_t)(n * k * size));
        if (!m || !n) {
            ranks[i] = 0;
            return;
        }
    }
    tgx_turn(scratch, m, tgx_in(c, 0)->data + i * m * n * size, n, m, n, size);
    memset(b, 0, (size_t)(l.pivots - l.b));
    if (k) tgx_turn(b, ldb, tgx_in(c, 1)->data + i * m * k * size, k, m, k, size);
    memset(scratch + l.pivots, 0, (size_t)(l.reals - l.pivots));
    if (tgx_is_complex(job->dtype))
        TGX_CALL(f, 14, &m, &n, &k, scratch, &lda, b, &ldb, scratch + l.pivots, least, &rank, scratch + l.work, &length, scratch + l.reals, &info);
    else
        TGX_CALL(f, 13, &m, &n, &k, scratch, &lda, b, &ldb, scratch + l.pivots, least, &rank, scratch + l.work, &length, &info);
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
