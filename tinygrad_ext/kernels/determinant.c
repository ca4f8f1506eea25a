/* Determinants by LU: of one (A) -> det, LU, pivots, or as sign and logarithm (A) -> sign, logabsdet, LU, pivots; and what the
 * exchanges of rows come to. */
#include <math.h>
#include "factor.h"
#include "lanes.h"
#include "numbers.h"

static int64_t order(const tgx_tensor *t) { return t->sizes[t->rank - 1]; }

static double work(const tgx_tensor *a) { return (double)order(a) * (double)order(a) * (double)order(a) / 3; }
static int64_t matrix_bytes(const tgx_tensor *a) { return tgx_round64(order(a) * order(a) * tgx_itemsize[a->dtype]); }

/* Factors of matrix i in results k and k + 1; 1 if the number of exchanges is odd. Columns stay in scratch. */
static int factors(tgx_matrices *job, int64_t i, char *scratch, int k) {
    tgx_call *c = job->c;
    int64_t n = job->n;
    int size = tgx_itemsize[job->dtype], odd = 0;
    int32_t *pivots = (int32_t *)tgx_out(c, k + 1)->data + i * n;
    tgx_turn(scratch, n, tgx_in(c, 0)->data + i * n * n * size, n, n, n, size);
    tgx_lu(job->blas, job->dtype, scratch, n, n, pivots, scratch + matrix_bytes(tgx_in(c, 0)), 1);
    tgx_turn(tgx_out(c, k)->data + i * n * n * size, n, scratch, n, n, n, size);
    for (int64_t r = 0; r < n; r++) odd ^= pivots[r] != r + 1;
    return odd;
}

#define PRODUCT(T, ONE)                                                                \
    {                                                                                  \
        T product = (T)(odd ? -1 : 1);                                                 \
        for (int64_t r = 0; r < n; r++) product = ONE(product, ((T *)lu)[r * n + r]);  \
        ((T *)to)[i] = product;                                                        \
    }
#define PLAIN(x, y) (x) * (y)
static void product(int dtype, const char *lu, int64_t n, int odd, char *to, int64_t i) {
    if (dtype == TGX_F32) PRODUCT(float, PLAIN)
    else if (dtype == TGX_F64) PRODUCT(double, PLAIN)
    else if (dtype == TGX_C64) PRODUCT(tgx_c64, TIMES)
    else PRODUCT(tgx_c128, TIMES)
}

/* Signs are multiplied and logarithms added, so neither can overflow. */
#define SIGNED(T, R, ABS, LOG, ONE)                                                              \
    {                                                                                            \
        T sign = (T)(odd ? -1 : 1);                                                              \
        R logarithm = 0;                                                                         \
        for (int64_t r = 0; r < n; r++) {                                                        \
            T x = ((T *)lu)[r * n + r];                                                          \
            R size = ABS(x);                                                                     \
            sign = size == 0 ? 0 : size == INFINITY ? ONE(sign, x) : ONE(sign, (x / size));      \
            logarithm += LOG(size);                                                              \
        }                                                                                        \
        ((T *)to)[i] = sign, ((R *)log_to)[i] = logarithm;                                       \
    }
static void signs(int dtype, const char *lu, int64_t n, int odd, char *to, char *log_to, int64_t i) {
    if (dtype == TGX_F32) SIGNED(float, float, fabsf, logf, PLAIN)
    else if (dtype == TGX_F64) SIGNED(double, double, fabs, log, PLAIN)
    else if (dtype == TGX_C64) SIGNED(tgx_c64, float, cabsf, logf, TIMES)
    else SIGNED(tgx_c128, double, cabs, log, TIMES)
}

static void det_one(tgx_matrices *job, int64_t i, char *scratch) {
    int odd = factors(job, i, scratch, 1);
    product(job->dtype, scratch, job->n, odd, tgx_out(job->c, 0)->data, i);
}
static void slogdet_one(tgx_matrices *job, int64_t i, char *scratch) {
    int odd = factors(job, i, scratch, 2);
    signs(job->dtype, scratch, job->n, odd, tgx_out(job->c, 0)->data, tgx_out(job->c, 1)->data, i);
}

/* Factors of a group by lanes, then the products of each, which stand row by row in the result. */
static void some(tgx_matrices *job, int64_t i, int64_t count, char *scratch, int more) {
    tgx_call *c = job->c;
    int64_t n = job->n;
    char *lu = tgx_out(c, 1 + more)->data;
    int32_t *pivots = (int32_t *)tgx_out(c, 2 + more)->data, info[TGX_LANES_BYTES];
    tgx_lanes_take(job->lanes, scratch, tgx_in(c, 0)->data, i, count, n * n, job->dtype);
    job->lanes->lu(scratch, n, n, scratch + tgx_lanes_bytes(n * n), pivots + i * n, info, count);
    tgx_lanes_give(job->lanes, lu, scratch, i, count, n * n, job->dtype);
    for (int64_t own = i; own < i + count; own++) {
        const char *at = lu + own * n * n * tgx_itemsize[job->dtype];
        int odd = 0;
        for (int64_t r = 0; r < n; r++) odd ^= pivots[own * n + r] != r + 1;
        if (more) signs(job->dtype, at, n, odd, tgx_out(c, 0)->data, tgx_out(c, 1)->data, own);
        else product(job->dtype, at, n, odd, tgx_out(c, 0)->data, own);
    }
}
static void det_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) { some(job, i, count, scratch, 0); }
static void slogdet_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) { some(job, i, count, scratch, 1); }

static int shape(tgx_call *c, int more, const char *title) {
    const tgx_tensor *a = tgx_in(c, 0);
    if ((!c->meta && !c->services->blas()) || tgx_matrix_check(c, a, title, "A", 1)) return TGX_FAILED;
    tgx_need_dense(c, 0);
    tgx_batch_result(c, 0, a, -1, a->dtype);
    if (more) tgx_batch_result(c, 1, a, -1, tgx_real_of(a->dtype));
    tgx_matrix_result(c, 1 + more, a, order(a), order(a), a->dtype);
    tgx_batch_result(c, 2 + more, a, order(a), TGX_I32);
    int64_t count = tgx_matrix_count(a), one = matrix_bytes(a) + tgx_round64(order(a) * 8);
    tgx_matrix_scratch(c, tgx_matrix_parts(count, work(a)),
                       tgx_lanes_for(count, order(a), order(a), a->dtype) ? one + tgx_lanes_bytes((order(a) + 1) * order(a)) : one);
    return 0;
}
static int run(tgx_call *c, void (*one)(tgx_matrices *, int64_t, char *), void (*some)(tgx_matrices *, int64_t, int64_t, char *)) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.c = c, .one = one, .some = some, .count = tgx_matrix_count(a), .dtype = a->dtype, .n = order(a)};
    job.lanes = tgx_lanes_for(job.count, job.n, job.n, a->dtype);
    return tgx_matrix_run(&job);
}

static int det_shape(tgx_call *c) { return shape(c, 0, "linalg.det"); }
static int det_run(tgx_call *c) { return run(c, det_one, det_some); }
TGX_KERNEL(_det, det_shape, det_run, 0)
static int slogdet_shape(tgx_call *c) { return shape(c, 1, "linalg.slogdet"); }
static int slogdet_run(tgx_call *c) { return run(c, slogdet_one, slogdet_some); }
TGX_KERNEL(_slogdet, slogdet_shape, slogdet_run, 0)

/* ---- exchanges of rows: (pivots, n, inverse) -> permutation ------------------------------------------------------ */

/* Row p[i] of A becomes row i; inverse: row i of A becomes row p[i]. */
static int permutation_shape(tgx_call *c) {
    const tgx_tensor *pivots = tgx_in(c, 0);
    int64_t n = tgx_int(c, 1);
    if (pivots->rank < 1 || pivots->dtype != TGX_I32)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype with a dimension, got %s %s; "
                        "linalg.lu_factor gives it", tgx_dtype_title(pivots->dtype), tgx_shape_text(pivots));
    if (n < 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "lu_unpack: the number of rows must not be negative, got %lld", (long long)n);
    tgx_need_dense(c, 0);
    tgx_output *o = tgx_fresh(c, 0, pivots->rank, TGX_I64);
    memcpy(o->dims, pivots->sizes, (size_t)pivots->rank * sizeof *o->dims);
    o->dims[pivots->rank - 1] = n;
    return 0;
}

static int permutation_run(tgx_call *c) {
    const tgx_tensor *pivots = tgx_in(c, 0), *out = tgx_out(c, 0);
    int64_t n = tgx_int(c, 1), k = pivots->sizes[pivots->rank - 1], count = n ? out->count / n : 0;
    for (int64_t b = 0; b < count; b++) {
        const int32_t *given = (const int32_t *)pivots->data + b * k;
        int64_t *p = (int64_t *)out->data + b * n;
        int inverse = (int)tgx_int(c, 2);
        for (int64_t i = 0; i < n; i++) p[i] = i;
        for (int64_t s = 0; s < k && s < n; s++) { /* the inverse undoes the exchanges from the last on */
            int64_t i = inverse ? (k < n ? k : n) - 1 - s : s, j = ((const volatile int32_t *)given)[i] - 1, kept = p[i];
            if (j < 0 || j >= n)
                return tgx_fail(c, TGX_RUNTIME_ERROR, "lu_unpack: pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive, got %lld for %lld "
                                "rows; pass what linalg.lu_factor gave", (long long)j + 1, (long long)n);
            p[i] = p[j], p[j] = kept;
        }
    }
    return 0;
}
TGX_KERNEL(_lu_permutation, permutation_shape, permutation_run, 0)
