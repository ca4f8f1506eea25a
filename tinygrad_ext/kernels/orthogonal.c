/* QR factors and Householder reflectors, by LAPACK. */
#include "lanes.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t rows(const tgx_tensor *t) { return t->sizes[t->rank - 2]; }
static int64_t columns(const tgx_tensor *t) { return t->sizes[t->rank - 1]; }
enum { BLOCK = 64 };           /* numbers of workspace for each row or column: a block of LAPACK's is at most as wide */

/* Columns of A are so far apart. */
static int64_t apart(const tgx_matrices *job, int64_t m) { return most(tgx_apart(m, tgx_itemsize[job->dtype]), 1); }

static int64_t geqrf(tgx_matrices *job, char *a, int64_t m, int64_t n, char *tau, char *work, int64_t length) {
    int64_t info = 0, lda = apart(job, m);
    TGX_CALL(job->blas->routine(TGX_GEQRF, job->dtype), 8, &m, &n, a, &lda, tau, work, &length, &info);
    return tgx_lapack_int(job->blas, &info, 0);
}
static void orgqr(tgx_matrices *job, char *a, int64_t m, int64_t n, int64_t k, char *tau, char *work, int64_t length) {
    int64_t info = 0, lda = apart(job, m);
    TGX_CALL(job->blas->routine(TGX_ORGQR, job->dtype), 9, &m, &n, &k, a, &lda, tau, work, &length, &info);
}

/* Scratch of a piece: what one matrix needs, or so many elements of a group side by side. */
static int64_t piece_bytes(const tgx_tensor *a, int64_t one, int64_t elements) {
    return tgx_lanes_for(tgx_matrix_count(a), rows(a), columns(a), a->dtype) ? most(one, tgx_lanes_bytes(elements)) : one;
}

/* ---- reflectors: (A) -> a, tau ----------------------------------------------------------------------------------- */

static int64_t work_length(int64_t m, int64_t n) { return BLOCK * most(most(m, n), 1) + BLOCK * BLOCK; }

static void geqrf_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = least(m, n);
    int size = tgx_itemsize[job->dtype];
    const int64_t step = apart(job, m);
    tgx_turn(scratch, step, tgx_in(c, 0)->data + i * m * n * size, n, m, n, size);
    if (k) geqrf(job, scratch, m, n, tgx_out(c, 1)->data + i * k * size, scratch + tgx_round64(step * n * size), work_length(m, n));
    tgx_turn(tgx_out(c, 0)->data + i * m * n * size, n, scratch, step, n, m, size);
}

static void geqrf_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = least(m, n);
    char *tau = scratch + tgx_lanes_bytes(m * n);
    tgx_lanes_take(job->lanes, scratch, tgx_in(c, 0)->data, i, count, m * n, job->dtype);
    job->lanes->reflectors(scratch, m, n, tau);
    tgx_lanes_give(job->lanes, tgx_out(c, 0)->data, scratch, i, count, m * n, job->dtype);
    tgx_lanes_give(job->lanes, tgx_out(c, 1)->data, tau, i, count, k, job->dtype);
}

static int geqrf_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if (tgx_matrix_check(c, a, "geqrf", "input", 0) || !tgx_routine_needed(c, "geqrf", TGX_GEQRF, a->dtype)) return TGX_FAILED;
    int64_t m = rows(a), n = columns(a);
    int size = tgx_itemsize[a->dtype];
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, m, n, a->dtype);
    tgx_batch_result(c, 1, a, least(m, n), a->dtype);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 2.0 * (double)m * (double)n * (double)least(m, n)),
                       piece_bytes(a, tgx_round64(tgx_apart(m, size) * n * size) + work_length(m, n) * size, (m + 1) * n));
    return 0;
}
static int geqrf_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.c = c, .one = geqrf_one, .some = geqrf_some, .count = tgx_matrix_count(a), .dtype = a->dtype, .m = rows(a), .n = columns(a)};
    job.lanes = tgx_lanes_for(job.count, job.m, job.n, a->dtype);
    return tgx_matrix_run(&job);
}
TGX_KERNEL(geqrf, geqrf_shape, geqrf_run, 0)

/* ---- QR: (A, mode) -> Q, R --------------------------------------------------------------------------------------- */

enum mode { REDUCED, COMPLETE, R_ALONE };

static int mode_of(const char *text) {
    return !strcmp(text, "reduced") ? REDUCED : !strcmp(text, "complete") ? COMPLETE : !strcmp(text, "r") ? R_ALONE : -1;
}

static void qr_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = least(m, n), wide = job->k == COMPLETE ? m : k;
    int size = tgx_itemsize[job->dtype];
    const tgx_tensor *q = tgx_out(c, 0), *r = tgx_out(c, 1);
    const int64_t step = apart(job, m), room = step * most(wide, n), length = work_length(m, most(wide, n));
    char *tau = scratch + tgx_round64(room * size), *work = tau + tgx_round64(k * size);
    int64_t height = job->k == COMPLETE ? m : k;
    char *to = r->data + i * height * n * size;
    tgx_turn(scratch, step, tgx_in(c, 0)->data + i * m * n * size, n, m, n, size);
    if (k) geqrf(job, scratch, m, n, tau, work, length);
    tgx_turn(to, n, scratch, step, n, height, size);
    for (int64_t d = 1; d < height; d++) memset(to + d * n * size, 0, (size_t)(least(d, n) * size));
    if (job->k == R_ALONE || !m || !wide) return;
    orgqr(job, scratch, m, wide, k, tau, work, length);
    tgx_turn(q->data + i * m * wide * size, wide, scratch, step, wide, m, size);
}

static void qr_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = least(m, n), height = job->k == COMPLETE ? m : k;
    char *tau = scratch + tgx_lanes_bytes(m * n), *q = tau + tgx_lanes_bytes(k);
    tgx_lanes_take(job->lanes, scratch, tgx_in(c, 0)->data, i, count, m * n, job->dtype);
    job->lanes->reflectors(scratch, m, n, tau);
    if (job->k != R_ALONE) {
        job->lanes->product(scratch, m, n, k, tau, q, height);
        tgx_lanes_give(job->lanes, tgx_out(c, 0)->data, q, i, count, m * height, job->dtype);
    }
    job->lanes->above(scratch, height, n);
    tgx_lanes_give(job->lanes, tgx_out(c, 1)->data, scratch, i, count, height * n, job->dtype);
}

static int qr_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    int mode = mode_of(c->args[1].text);
    if (tgx_matrix_check(c, a, "linalg.qr", "A", 0) || !tgx_routine_needed(c, "linalg.qr", TGX_ORGQR, a->dtype)) return TGX_FAILED;
    if (mode < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linalg.qr: qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'",
                        c->args[1].text);
    int64_t m = rows(a), n = columns(a), k = least(m, n), wide = mode == COMPLETE ? m : k;
    int size = tgx_itemsize[a->dtype];
    tgx_need_dense(c, 0);
    if (mode == R_ALONE) tgx_fresh(c, 0, 1, a->dtype)->dims[0] = 0;
    else tgx_matrix_result(c, 0, a, m, wide, a->dtype);
    tgx_matrix_result(c, 1, a, mode == COMPLETE ? m : k, n, a->dtype);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 4.0 * (double)m * (double)most(wide, n) * (double)k),
                       piece_bytes(a, tgx_round64(tgx_apart(m, size) * most(wide, n) * size) + tgx_round64(k * size)
                                      + work_length(m, most(wide, n)) * size, (m + 1) * n + m * m));
    return 0;
}
static int qr_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.c = c, .one = qr_one, .some = qr_some, .count = tgx_matrix_count(a), .dtype = a->dtype, .m = rows(a), .n = columns(a),
                        .k = mode_of(c->args[1].text)};
    job.lanes = tgx_lanes_for(job.count, job.m, job.n, a->dtype);
    return tgx_matrix_run(&job);
}
TGX_KERNEL(_qr, qr_shape, qr_run, 0)

/* ---- products of reflectors: (input, tau) -> Q ------------------------------------------------------------------- */

static int fits(tgx_call *c, const tgx_tensor *a, const tgx_tensor *tau, const char *title) {
    if (a->dtype != tau->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: tau dtype %s does not match input dtype %s: convert one of them with .to(dtype)", title,
                        tgx_dtype_title(tau->dtype), tgx_dtype_title(a->dtype));
    int same = tau->rank == a->rank - 1 && tau->sizes[tau->rank - 1] <= columns(a);
    for (int i = 0; same && i < tau->rank - 1; i++) same = tau->sizes[i] == a->sizes[i];
    if (!same)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: Expected tau to have a vector of at most input.shape[-1] numbers for each matrix, but input is %s and tau %s",
                        title, tgx_shape_text(a), tgx_shape_text(tau));
    return 0;
}

static void product_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = job->k;
    int size = tgx_itemsize[job->dtype];
    const int64_t step = apart(job, m);
    char *tau = scratch + tgx_round64(step * n * size), *work = tau + tgx_round64(k * size);
    tgx_turn(scratch, step, tgx_in(c, 0)->data + i * m * n * size, n, m, n, size);
    memcpy(tau, tgx_in(c, 1)->data + i * k * size, (size_t)(k * size));
    if (m && n) orgqr(job, scratch, m, n, k, tau, work, work_length(m, n));
    tgx_turn(tgx_out(c, 0)->data + i * m * n * size, n, scratch, step, n, m, size);
}

static void product_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = job->k;
    char *tau = scratch + tgx_lanes_bytes(m * n), *q = tau + tgx_lanes_bytes(n);
    tgx_lanes_take(job->lanes, scratch, tgx_in(c, 0)->data, i, count, m * n, job->dtype);
    tgx_lanes_take(job->lanes, tau, tgx_in(c, 1)->data, i, count, k, job->dtype);
    job->lanes->product(scratch, m, n, k, tau, q, n);
    tgx_lanes_give(job->lanes, tgx_out(c, 0)->data, q, i, count, m * n, job->dtype);
}

static int product_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *tau = tgx_in(c, 1);
    const char *title = "linalg.householder_product";
    if (tgx_matrix_check(c, a, title, "input", 0) || fits(c, a, tau, title) || !tgx_routine_needed(c, title, TGX_ORGQR, a->dtype)) return TGX_FAILED;
    int64_t m = rows(a), n = columns(a), k = tau->sizes[tau->rank - 1];
    int size = tgx_itemsize[a->dtype];
    if (m < n)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: input.shape[-2] must be greater than or equal to input.shape[-1], but input is %s", title,
                        tgx_shape_text(a));
    tgx_need_dense(c, 0), tgx_need_dense(c, 1);
    tgx_matrix_result(c, 0, a, m, n, a->dtype);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 2.0 * (double)m * (double)n * (double)k),
                       piece_bytes(a, tgx_round64(tgx_apart(m, size) * n * size) + tgx_round64(k * size) + work_length(m, n) * size,
                                   (2 * m + 1) * n));
    return 0;
}
static int product_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *tau = tgx_in(c, 1);
    tgx_matrices job = {.c = c, .one = product_one, .some = product_some, .count = tgx_matrix_count(a), .dtype = a->dtype, .m = rows(a),
                        .n = columns(a), .k = tau->sizes[tau->rank - 1]};
    job.lanes = tgx_lanes_for(job.count, job.m, job.n, a->dtype);
    return tgx_matrix_run(&job);
}
TGX_KERNEL(_householder_product, product_shape, product_run, 0)

/* ---- reflectors times a matrix: (input, tau, other, left, transpose) ------------------------------------------------ */

/* Sizes of the matrix: m x n. k: how many reflectors, of as many numbers as other has rows, or columns. */
typedef struct { int64_t high, m, n, k, length, other, work, bytes; } reflected;

static reflected lay_reflected(const tgx_tensor *a, const tgx_tensor *tau, const tgx_tensor *other) {
    const int size = tgx_itemsize[a->dtype];
    reflected r = {.high = rows(a), .m = rows(other), .n = columns(other), .k = tau->sizes[tau->rank - 1]};
    r.length = BLOCK * most(most(r.m, r.n), 1) + (BLOCK + 1) * BLOCK;
    r.other = tgx_round64(tgx_apart(r.high, size) * r.k * size);
    r.work = r.other + tgx_round64(tgx_apart(r.m, size) * r.n * size);
    r.bytes = r.work + r.length * size;
    return r;
}

static void reflect_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0), *tau = tgx_in(c, 1), *other = tgx_in(c, 2);
    const reflected r = lay_reflected(a, tau, other);
    const int size = tgx_itemsize[job->dtype];
    const int64_t lda = apart(job, r.high), ldc = apart(job, r.m), all = r.m * r.n * size;
    int64_t info = 0;
    char *to = scratch + r.other;
    const char *adjoint = !tgx_int(c, 4) ? "N" : tgx_is_complex(job->dtype) ? "C" : "T";
    tgx_turn(to, ldc, other->data + i * all, r.n, r.m, r.n, size);
    if (r.k && all) {
        tgx_turn(scratch, lda, a->data + i * r.high * columns(a) * size, columns(a), r.high, r.k, size);
        TGX_CALL(job->blas->routine(TGX_ORMQR, job->dtype), 15, tgx_int(c, 3) ? "L" : "R", adjoint, &r.m, &r.n, &r.k, scratch, &lda,
                 tau->data + i * r.k * size, to, &ldc, scratch + r.work, &r.length, &info, TGX_LENGTH, TGX_LENGTH);
    }
    tgx_turn(tgx_out(c, 0)->data + i * all, r.n, to, ldc, r.n, r.m, size);
}

static int reflect_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *tau = tgx_in(c, 1), *other = tgx_in(c, 2);
    if (tgx_matrix_check(c, a, "ormqr", "input", 0) || tgx_matrix_check(c, other, "ormqr", "other", 0) || fits(c, a, tau, "ormqr")
        || tgx_matrix_same_dtype(c, a, other, "ormqr") || !tgx_routine_needed(c, "ormqr", TGX_ORMQR, a->dtype)) return TGX_FAILED;
    const reflected r = lay_reflected(a, tau, other);
    int same = a->rank == other->rank && r.high == (tgx_int(c, 3) ? r.m : r.n) && r.k <= r.high;
    for (int i = 0; same && i < a->rank - 2; i++) same = a->sizes[i] == other->sizes[i];
    if (!same)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "ormqr: reflectors of %s and %lld numbers of tau do not fit other of %s",
                        tgx_shape_text(a), (long long)r.k, tgx_shape_text(other));
    for (int i = 0; i < 3; i++) tgx_need_dense(c, i);
    tgx_matrix_result(c, 0, other, r.m, r.n, a->dtype);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(other), 4.0 * (double)r.m * (double)r.n * (double)r.k), r.bytes);
    return 0;
}
static int reflect_run(tgx_call *c) {
    const tgx_tensor *other = tgx_in(c, 2);
    tgx_matrices job = {.c = c, .one = reflect_one, .count = tgx_matrix_count(other), .dtype = other->dtype};
    return tgx_matrix_run(&job);
}
TGX_KERNEL(_ormqr, reflect_shape, reflect_run, 0)
