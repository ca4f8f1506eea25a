/* Cholesky factors. The names of the ops that they serve are an argument, for messages. */
#include "factor.h"
#include "lanes.h"

static int32_t *ints(const tgx_tensor *t) { return (int32_t *)t->data; }
static int64_t order(const tgx_tensor *t) { return t->sizes[t->rank - 1]; }

/* (self, upper, check_errors, title) -> factor, info. A's lower triangle in rows is the upper one in columns of its conjugate, whose
 * factor is L in rows. */
static void cholesky_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t n = job->n;
    int size = tgx_itemsize[job->dtype], upper = (int)tgx_int(c, 1);
    const char *from = tgx_in(c, 0)->data + i * n * n * size;
    char *to = tgx_out(c, 0)->data + i * n * n * size;
    if (upper) { /* U^H U of columns: turned in and out */
        tgx_turn(scratch, n, from, n, n, n, size);
        ints(tgx_out(c, 1))[i] = (int32_t)tgx_cholesky(job->blas, job->dtype, scratch, n);
        tgx_turn(to, n, scratch, n, n, n, size);
    } else {
        memcpy(to, from, (size_t)(n * n * size));
        ints(tgx_out(c, 1))[i] = (int32_t)tgx_cholesky(job->blas, job->dtype, to, n);
    }
    for (int64_t r = 0; r < n; r++) {
        if (upper) memset(to + r * n * size, 0, (size_t)(r * size));
        else memset(to + (r * n + r + 1) * size, 0, (size_t)((n - r - 1) * size));
    }
}

static void cholesky_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    int64_t n = job->n;
    tgx_lanes_take(job->lanes, scratch, tgx_in(c, 0)->data, i, count, n * n, job->dtype);
    job->lanes->cholesky(scratch, n, (int)tgx_int(c, 1), ints(tgx_out(c, 1)) + i, count);
    tgx_lanes_give(job->lanes, tgx_out(c, 0)->data, scratch, i, count, n * n, job->dtype);
}

static int cholesky_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if (!c->meta && !c->services->blas()) return TGX_FAILED; /* before anything is read: Python may run */
    if (tgx_matrix_check(c, a, c->args[3].text, "A", 1)) return TGX_FAILED;
    const int64_t n = order(a), count = tgx_matrix_count(a);
    const int64_t one = tgx_int(c, 1) ? n * n * tgx_itemsize[a->dtype] : 0;
    const int64_t lanes = tgx_lanes_for(count, n, n, a->dtype) ? tgx_lanes_bytes(n * n) : 0;
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, n, n, a->dtype);
    tgx_batch_result(c, 1, a, -1, TGX_I32);
    tgx_matrix_scratch(c, tgx_matrix_parts(count, (double)n * (double)n * (double)n / 3), one > lanes ? one : lanes);
    return 0;
}

static int cholesky_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *info = tgx_out(c, 1);
    tgx_matrices job = {.c = c, .one = cholesky_one, .some = cholesky_some, .count = tgx_matrix_count(a), .dtype = a->dtype, .n = order(a)};
    job.lanes = tgx_lanes_for(job.count, order(a), order(a), a->dtype);
    char room[48];
    int64_t i;
    if (tgx_matrix_run(&job)) return TGX_FAILED;
    if (tgx_int(c, 2) && (i = tgx_first_failed(info)) >= 0)
        return tgx_fail(c, TGX_LINALG_ERROR, "%s: %sThe factorization could not be completed because the input is not positive-definite (the "
                        "leading minor of order %d is not positive-definite).", c->args[3].text, tgx_batch_words(info, i, room), ints(info)[i]);
    return 0;
}
TGX_KERNEL(_cholesky, cholesky_shape, cholesky_run, 0)
