/* Calls of the library that was loaded, or of gemm.h where there is none or a size is beyond its integers. See blas_library.h.
 *
 * The macros exist because the types of a call differ by width: a pointer to a function has to be called by its own type. */
#include "blas_library.h"
#include <limits.h>
#include <stdio.h>
#include "gemm.h"
#include "lapack.h"

static tgx_blas_library lib;
static int ready;

static int fits_int(int64_t n) { return n >= INT_MIN && n <= INT_MAX; }
/* Steps of op(X): the leading dimension separates rows in row-major order, columns in a transposed matrix. */
static int by_rows(int order, int trans) { return (order == TGX_ROW_MAJOR) == (trans == TGX_NO_TRANS); }
static ptrdiff_t row(int order, int trans, int64_t ld) { return by_rows(order, trans) ? ld : 1; }
static ptrdiff_t col(int order, int trans, int64_t ld) { return by_rows(order, trans) ? 1 : ld; }
/* BLAS walks a vector with a negative step from its far end. */
static ptrdiff_t start(int64_t n, int64_t step) { return step < 0 ? (1 - n) * step : 0; }

#define NO_CONJ(trans)
#define CONJ(trans) , (trans) == TGX_CONJ_TRANS
#define GEMM(name, S, I, O, CAST, CONJ)                                                                                   \
    static void name(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, S alpha, I a, int64_t lda, I b, int64_t ldb, \
                     S beta, O c, int64_t ldc) {                                                                          \
        if (lib.name && (lib.wide || fits_int(m | n | k | lda | ldb | ldc))) {                                            \
            int entered = lib.enter();                                                                                    \
            if (lib.wide)                                                                                                 \
                ((void (*)(int, int, int, int64_t, int64_t, int64_t, S, I, int64_t, I, int64_t, S, O, int64_t))lib.name)( \
                    order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                         \
            else                                                                                                          \
                ((void (*)(int, int, int, int, int, int, S, I, int, I, int, S, O, int))lib.name)(                         \
                    order, ta, tb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);           \
            lib.leave(entered);                                                                                           \
        } else                                                                                                            \
            tgx_##name(m, n, k, CAST alpha, CAST a, row(order, ta, lda), col(order, ta, lda) CONJ(ta), CAST b,            \
                       row(order, tb, ldb), col(order, tb, ldb) CONJ(tb), CAST beta, c, row(order, TGX_NO_TRANS, ldc),    \
                       col(order, TGX_NO_TRANS, ldc));                                                                    \
    }
GEMM(sgemm, float, const float *, float *, , NO_CONJ)
GEMM(dgemm, double, const double *, double *, , NO_CONJ)
GEMM(cgemm, const void *, const void *, void *, (const float *), CONJ)
GEMM(zgemm, const void *, const void *, void *, (const double *), CONJ)

#define GEMV(name, product, T)                                                                                            \
    static void name(int order, int trans, int64_t m, int64_t n, T alpha, const T *a, int64_t lda, const T *x, int64_t inc_x, \
                     T beta, T *y, int64_t inc_y) {                                                                       \
        int64_t rows = trans == TGX_NO_TRANS ? m : n, cols = trans == TGX_NO_TRANS ? n : m;                               \
        if (lib.name && (lib.wide || (fits_int(m | n | lda) && fits_int(inc_x) && fits_int(inc_y)))) {                    \
            int entered = lib.enter();                                                                                    \
            if (lib.wide)                                                                                                 \
                ((void (*)(int, int, int64_t, int64_t, T, const T *, int64_t, const T *, int64_t, T, T *, int64_t))       \
                     lib.name)(order, trans, m, n, alpha, a, lda, x, inc_x, beta, y, inc_y);                              \
            else                                                                                                          \
                ((void (*)(int, int, int, int, T, const T *, int, const T *, int, T, T *, int))lib.name)(                 \
                    order, trans, (int)m, (int)n, alpha, a, (int)lda, x, (int)inc_x, beta, y, (int)inc_y);                \
            lib.leave(entered);                                                                                           \
        } else                                                                                                            \
            tgx_##product(rows, 1, cols, alpha, a, row(order, trans, lda), col(order, trans, lda),                        \
                          x + start(cols, inc_x), inc_x, 1, beta, y + start(rows, inc_y), inc_y, 1);                      \
    }
GEMV(sgemv, sgemm, float)
GEMV(dgemv, dgemm, double)

#define DOT(name, T)                                                                                                      \
    static T name(int64_t n, const T *x, int64_t inc_x, const T *y, int64_t inc_y) {                                      \
        T sum;                                                                                                            \
        if (!lib.name || !(lib.wide || (fits_int(n) && fits_int(inc_x) && fits_int(inc_y))))                              \
            return tgx_##name(n, x + start(n, inc_x), inc_x, y + start(n, inc_y), inc_y);                                 \
        int entered = lib.enter();                                                                                        \
        if (lib.wide) sum = ((T (*)(int64_t, const T *, int64_t, const T *, int64_t))lib.name)(n, x, inc_x, y, inc_y);    \
        else sum = ((T (*)(int, const T *, int, const T *, int))lib.name)((int)n, x, (int)inc_x, y, (int)inc_y);          \
        lib.leave(entered);                                                                                               \
        return sum;                                                                                                       \
    }
DOT(sdot, float)
DOT(ddot, double)

/* ---- LAPACK ------------------------------------------------------------------------------------------------------ */

/* By the numbers of lapack.h: what a routine is called for real numbers and for complex ones. */
static const char *const names[TGX_ROUTINES][2] = {
    {"potrf", "potrf"}, {"getrf", "getrf"}, {"getri", "getri"}, {"getrs", "getrs"}, {"trsm", "trsm"},   {"geqrf", "geqrf"},
    {"orgqr", "ungqr"}, {"ormqr", "unmqr"}, {"gesdd", "gesdd"}, {"syevd", "heevd"}, {"geev", "geev"},   {"sytrf", "sytrf"},
    {"sytrs", "sytrs"}, {"hetrf", "hetrf"}, {"hetrs", "hetrs"}, {"gelsy", "gelsy"}, {"gelsd", "gelsd"}, {"gelss", "gelss"},
    {"gels", "gels"},   {"trsv", "trsv"},   {"geqp3", "geqp3"}, {"laqps", "laqps"}, {"laic1", "laic1"},
    {"tzrzf", "tzrzf"}, {"ormrz", "unmrz"}, {"potri", "potri"},
};
static void *routines[TGX_ROUTINES][4];

/* An address that is not there yet is looked up; threads that do so at the same time find the same. */
static void *routine(int which, int dtype) {
    int kind = dtype == TGX_F32 ? 0 : dtype == TGX_F64 ? 1 : dtype == TGX_C64 ? 2 : 3;
    void *found = __atomic_load_n(&routines[which][kind], __ATOMIC_RELAXED);
    char name[16];
    if (found || !lib.symbol) return found;
    snprintf(name, sizeof name, "%c%s_", "sdcz"[kind], names[which][kind > 1]);
    found = lib.symbol(name);
    __atomic_store_n(&routines[which][kind], found, __ATOMIC_RELAXED);
    return found;
}

static int stay(void) { return 0; }
static void left(int entered) { (void)entered; }
static tgx_blas products = {sgemm, dgemm, cgemm, zgemm, sgemv, dgemv, sdot, ddot, routine, stay, left, 1};

void tgx_blas_use(const tgx_blas_library *library) {
    if (library) lib = *library, products.enter = lib.enter, products.leave = lib.leave, products.wide = lib.wide;
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}

const tgx_blas *tgx_blas_in_use(void) { return __atomic_load_n(&ready, __ATOMIC_ACQUIRE) ? &products : 0; }
