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

/* ---- the inverse of what a factor is of: (self, upper) ------------------------------------------------------------ */

/* What was computed below the diagonal, or above it for upper, is the conjugate of the other half. */
#define MIRROR(T, CONJ, REAL) { \
    T *a = (T *)x; \
    for (int64_t i = 0; i < n; i++) a[i * (n + 1)] = REAL(a[i * (n + 1)]); \
    for (int64_t i0 = 0; i0 < n; i0 += SQUARE) \
        for (int64_t j0 = 0; j0 <= i0; j0 += SQUARE) \
            for (int64_t i = i0; i < n && i < i0 + SQUARE; i++) \
                for (int64_t j = j0; j < i && j < j0 + SQUARE; j++) { \
                    if (upper) a[i * n + j] = CONJ(a[j * n + i]); \
                    else a[j * n + i] = CONJ(a[i * n + j]); \
                } \
    break; }

enum { SQUARE = 32 };

static void mirror(char *x, int64_t n, int dtype, int upper) {
    switch (dtype) {
    case TGX_F32: MIRROR(float, , )
    case TGX_F64: MIRROR(double, , )
    case TGX_C64: MIRROR(tgx_c64, conjf, crealf)
    default: MIRROR(tgx_c128, conj, creal)
    }
}

/* As factors have; of others LAPACK takes the real parts. */
static int has_real_diagonal(const char *x, int64_t n, int dtype) {
    if (!tgx_is_complex(dtype)) return 1;
    for (int64_t i = 0; i < n; i++)
        if (dtype == TGX_C64 ? cimagf(((const tgx_c64 *)x)[i * (n + 1)]) != 0 : cimag(((const tgx_c128 *)x)[i * (n + 1)]) != 0) return 0;
    return 1;
}

/* L in rows is U of the conjugate of A in columns, and the inverse of that in columns is the inverse of A in rows. */
static void inverse_one(tgx_matrices *job, int64_t i, char *scratch) {
    const int64_t n = job->n, bytes = n * n * tgx_itemsize[job->dtype], size = tgx_itemsize[job->dtype];
    const int upper = (int)tgx_int(job->c, 1);
    const char *from = tgx_in(job->c, 0)->data + i * bytes;
    char *to = tgx_out(job->c, 0)->data + i * bytes;
    int64_t info = 0;
    void *f = n && has_real_diagonal(from, n, job->dtype) ? job->blas->routine(TGX_POTRI, job->dtype) : NULL;
    if (f) {
        memcpy(to, from, (size_t)bytes);
        TGX_CALL(f, 6, upper ? "L" : "U", &n, to, &n, &info, TGX_LENGTH);
    } else {
        const float one = 1;
        const double same = 1;
        const int single = job->dtype == TGX_F32 || job->dtype == TGX_C64;
        memset(to, 0, (size_t)bytes);
        for (int64_t k = 0; k < n; k++)
            memcpy(to + k * (n + 1) * size, single ? (const void *)&one : &same, single ? sizeof one : sizeof same);
        tgx_triangle_solve(job->blas, job->dtype, from, to, n, n, upper, upper ? TGX_AS_IT_IS : TGX_ADJOINT, 0);
        tgx_triangle_solve(job->blas, job->dtype, from, to, n, n, upper, upper ? TGX_ADJOINT : TGX_AS_IT_IS, 0);
    }
    mirror(to, n, job->dtype, upper);
    (void)scratch;
}

static int inverse_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if (!c->meta && !c->services->blas()) return TGX_FAILED;
    if (tgx_matrix_check(c, a, "cholesky_inverse", "A", 1)) return TGX_FAILED;
    const int64_t n = order(a);
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, n, n, a->dtype);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), (double)n * (double)n * (double)n), 0);
    return 0;
}

static int inverse_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.c = c, .one = inverse_one, .count = tgx_matrix_count(a), .dtype = a->dtype, .n = order(a)};
    return tgx_refuse_zeros(c, a, "cholesky_inverse") || tgx_matrix_run(&job) ? TGX_FAILED : 0;
}
TGX_KERNEL(_cholesky_inverse, inverse_shape, inverse_run, 0)
