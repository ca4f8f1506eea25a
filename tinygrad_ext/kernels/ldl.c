/* Factors L D L^T, or L D L^H, of symmetric or Hermitian matrices whose D has blocks of one or two rows, and systems with them:
 * (A, hermitian, check_errors, title) -> LD, pivots, info, and (LD, pivots, B, hermitian) -> X, all in one batch. */
#include "factor.h"
#include <math.h>
#include "numbers.h"

enum { WIDE = 64, SMALL = 24 }; /* columns that LAPACK does at once; rows up to which it is not called */

#define PASTE(a, b) a##b
#define T float
#define R float
#define NAME(x) PASTE(s_, x)
#define CONJ(x) (x)
#define REAL(x) (x)
#define FABS(x) fabsf(x)
#define FABS_OF(x) fabsf(x)
#define SIZE(x) fabsf(x)
#include "small_ldl.h"
#define T double
#define R double
#define NAME(x) PASTE(d_, x)
#define CONJ(x) (x)
#define REAL(x) (x)
#define FABS(x) fabs(x)
#define FABS_OF(x) fabs(x)
#define SIZE(x) fabs(x)
#include "small_ldl.h"
#define T tgx_c64
#define R float
#define NAME(x) PASTE(c_, x)
#define CONJ(x) conjf(x)
#define REAL(x) crealf(x)
#define FABS(x) fabsf(x)
#define FABS_OF(x) cabsf(x)
#define SIZE(x) (fabsf(crealf(x)) + fabsf(cimagf(x)))
#include "small_ldl.h"
#define T tgx_c128
#define R double
#define NAME(x) PASTE(z_, x)
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#define FABS(x) fabs(x)
#define FABS_OF(x) cabs(x)
#define SIZE(x) (fabs(creal(x)) + fabs(cimag(x)))
#include "small_ldl.h"

static int64_t order(const tgx_tensor *t) { return t->sizes[t->rank - 1]; }
static double cube(const tgx_tensor *a) { return (double)order(a) * (double)order(a) * (double)order(a) / 3; }
static int64_t bytes_of(int64_t numbers, int dtype) { return tgx_round64(numbers * tgx_itemsize[dtype]); }
static int complex_adjoint(int dtype, int hermitian) { return hermitian && tgx_is_complex(dtype); }

static int64_t factor_small(int dtype, char *a, int64_t n, int32_t *pivots, int hermitian) {
    switch (dtype) {
    case TGX_F32: return s_factor((float *)a, n, pivots, 0);
    case TGX_F64: return d_factor((double *)a, n, pivots, 0);
    case TGX_C64: return hermitian ? c_factor((tgx_c64 *)a, n, pivots, 1) : c_factor((tgx_c64 *)a, n, pivots, 0);
    default: return hermitian ? z_factor((tgx_c128 *)a, n, pivots, 1) : z_factor((tgx_c128 *)a, n, pivots, 0);
    }
}

static void clear_above(char *a, int64_t n, int size) {
    for (int64_t r = 0; r < n; r++) memset(a + (r * n + r + 1) * size, 0, (size_t)((n - r - 1) * size));
}

static void factor_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t n = job->n, length = n * WIDE, info = 0;
    int size = tgx_itemsize[job->dtype];
    char *room = scratch + bytes_of(n * n, job->dtype), *work = room + tgx_round64(n * 8), *to = tgx_out(c, 0)->data + i * n * n * size;
    int32_t *pivots = (int32_t *)tgx_out(c, 1)->data + i * n;
    if (n <= SMALL) {
        memcpy(to, tgx_in(c, 0)->data + i * n * n * size, (size_t)(n * n * size));
        ((int32_t *)tgx_out(c, 2)->data)[i] = (int32_t)factor_small(job->dtype, to, n, pivots, (int)tgx_int(c, 1));
        clear_above(to, n, size);
        return;
    }
    tgx_turn(scratch, n, tgx_in(c, 0)->data + i * n * n * size, n, n, n, size);
    void *f = job->blas->routine(complex_adjoint(job->dtype, (int)tgx_int(c, 1)) ? TGX_HETRF : TGX_SYTRF, job->dtype);
    TGX_CALL(f, 9, "L", &n, scratch, &n, room, work, &length, &info, TGX_LENGTH);
    for (int64_t k = 0; k < n; k++) pivots[k] = (int32_t)tgx_lapack_int(job->blas, room, k);
    ((int32_t *)tgx_out(c, 2)->data)[i] = (int32_t)tgx_lapack_int(job->blas, &info, 0);
    tgx_turn(to, n, scratch, n, n, n, size);
    clear_above(to, n, size);
}

static int factor_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    const char *title = c->args[3].text;
    if (tgx_matrix_check(c, a, title, "A", 1)) return TGX_FAILED;
    int64_t n = order(a);
    if (n > SMALL && !tgx_routine_needed(c, title, complex_adjoint(a->dtype, (int)tgx_int(c, 1)) ? TGX_HETRF : TGX_SYTRF, a->dtype)) return TGX_FAILED;
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, n, n, a->dtype);
    tgx_batch_result(c, 1, a, n, TGX_I32);
    tgx_batch_result(c, 2, a, -1, TGX_I32);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), cube(a)),
                       bytes_of(n * n, a->dtype) + tgx_round64(n * 8) + bytes_of(n * WIDE, a->dtype));
    return 0;
}

static int factor_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *info = tgx_out(c, 2);
    tgx_matrices job = {.c = c, .one = factor_one, .count = tgx_matrix_count(a), .dtype = a->dtype, .n = order(a)};
    char words[48];
    int64_t i;
    if (tgx_matrix_run(&job)) return TGX_FAILED;
    if (tgx_int(c, 2) && (i = tgx_first_failed(info)) >= 0)
        return tgx_fail(c, TGX_LINALG_ERROR, "%s: %sD[%d,%d] is zero, so no system with these factors has one solution. If you still want the "
                        "factors, call linalg.ldl_factor_ex", c->args[3].text, tgx_batch_words(info, i, words),
                        ((int32_t *)info->data)[i], ((int32_t *)info->data)[i]);
    return 0;
}
TGX_KERNEL(_ldl_factor, factor_shape, factor_run, 0)

/* ---- systems ----------------------------------------------------------------------------------------------------- */

/* Copies pivots where LAPACK may be led by them: rows that exist, and blocks of two whose both rows say so. 0 for others. */
static int copied(const tgx_blas *blas, const int32_t *pivots, void *room, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        int64_t row = ((const volatile int32_t *)pivots)[k], two = row < 0;
        if (row == 0 || row > n || row < -n || (two && (k + 1 == n || ((const volatile int32_t *)pivots)[k + 1] != row))) return 0;
        tgx_lapack_put(blas, room, k, row);
        if (two) tgx_lapack_put(blas, room, ++k, row);
    }
    return 1;
}

static void solve_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t n = job->n, k = job->k, info = 0;
    int size = tgx_itemsize[job->dtype];
    char *room = scratch + bytes_of(n * n, job->dtype), *side = room + tgx_round64(n * 8);
    void *f = job->blas->routine(complex_adjoint(job->dtype, (int)tgx_int(c, 3)) ? TGX_HETRS : TGX_SYTRS, job->dtype);
    if (!copied(job->blas, (const int32_t *)tgx_in(c, 1)->data + i * n, room, n)) {
        *(int *)job->more = 1;
        return;
    }
    tgx_turn(scratch, n, tgx_in(c, 0)->data + i * n * n * size, n, n, n, size);
    tgx_turn(side, n, tgx_in(c, 2)->data + i * n * k * size, k, n, k, size);
    if (n && k) TGX_CALL(f, 10, "L", &n, &k, scratch, &n, room, side, &n, &info, TGX_LENGTH);
    tgx_turn(tgx_out(c, 0)->data + i * n * k * size, k, side, n, k, n, size);
}

static int solve_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *pivots = tgx_in(c, 1), *b = tgx_in(c, 2);
    const char *title = "torch.linalg.ldl_solve";
    if (tgx_matrix_check(c, a, title, "LD", 1) || tgx_matrix_check(c, b, title, "B", 0)) return TGX_FAILED;
    int64_t n = order(a), batch = tgx_matrix_count(a);
    if (!tgx_routine_needed(c, title, complex_adjoint(a->dtype, (int)tgx_int(c, 3)) ? TGX_HETRS : TGX_SYTRS, a->dtype)) return TGX_FAILED;
    if (a->dtype != b->dtype || pivots->dtype != TGX_I32)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: Expected b and A to have the same dtype, and pivots of Int, but found b of type %s, A of type %s and "
                        "pivots of type %s", title, tgx_dtype_title(b->dtype), tgx_dtype_title(a->dtype), tgx_dtype_title(pivots->dtype));
    if (b->sizes[b->rank - 2] != n || tgx_matrix_count(b) != batch || pivots->count != batch * n)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Incompatible matrix sizes for %s: LD is %s, pivots %s and B %s", title, tgx_shape_text(a),
                        tgx_shape_text(pivots), tgx_shape_text(b));
    for (int k = 0; k < 3; k++) tgx_need_dense(c, k);
    tgx_matrix_result(c, 0, b, n, order(b), b->dtype);
    tgx_matrix_scratch(c, tgx_matrix_parts(batch, (double)n * (double)n * (double)order(b)),
                       bytes_of(n * n, a->dtype) + tgx_round64(n * 8) + bytes_of(n * order(b), a->dtype));
    return 0;
}

static int solve_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    int wrong = 0;
    tgx_matrices job = {.c = c, .one = solve_one, .count = tgx_matrix_count(a), .dtype = a->dtype, .n = order(a), .k = order(tgx_in(c, 2)), .more = &wrong};
    if (tgx_matrix_run(&job)) return TGX_FAILED;
    if (!wrong) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "torch.linalg.ldl_solve: pivots name rows that are not there, or halves of blocks: pass what linalg.ldl_factor gave");
}
TGX_KERNEL(_ldl_solve, solve_shape, solve_run, 0)
