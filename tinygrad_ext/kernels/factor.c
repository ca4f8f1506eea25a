/* Factors and systems of one matrix, see factor.h: small ones in plain C, larger ones by LAPACK where there is one. */
#include "factor.h"
#include <math.h>
#include "isa.h"
#include "triangles.h"
#include "numbers.h"

enum {
    SMALL = 24,        /* sizes up to it are computed here */
    TRIANGLE = 7,      /* and of triangles, which a library solves for several sides at once */
    FEW_SIDES = 4,     /* sides up to which it is quicker one by one, as for several the triangle is laid out first: */
    LARGE = 128,       /* where it is so large, else only a lone one */
    MOST_PANELS = 4,   /* of real sides that are solved by rows, */
    NEAR = 1 << 23,    /* or any of a matrix of so few bytes, which is read again from a cache */
};

#define PASTE(a, b) a##b
#define T float
#define NAME(x) PASTE(s_, x)
#define CONJ(x) (x)
#define REAL(x) (x)
#define ROOT(x) sqrtf(x)
#define SIZE(x) fabsf(x)
#include "small_factor.h"
#define T double
#define NAME(x) PASTE(d_, x)
#define CONJ(x) (x)
#define REAL(x) (x)
#define ROOT(x) sqrt(x)
#define SIZE(x) fabs(x)
#include "small_factor.h"
#define T tgx_c64
#define NAME(x) PASTE(c_, x)
#define CONJ(x) conjf(x)
#define REAL(x) crealf(x)
#define ROOT(x) sqrtf(x)
#define SIZE(x) (fabsf(crealf(x)) + fabsf(cimagf(x)))
#include "small_factor.h"
#define T tgx_c128
#define NAME(x) PASTE(z_, x)
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#define ROOT(x) sqrt(x)
#define SIZE(x) (fabs(creal(x)) + fabs(cimag(x)))
#include "small_factor.h"

/* What `call` does with the functions of a dtype and its numbers. */
#define FOR_DTYPE(dtype, call, ...)                                                 \
    ((dtype) == TGX_F32 ? s_##call(__VA_ARGS__(float)) : (dtype) == TGX_F64 ? d_##call(__VA_ARGS__(double)) \
     : (dtype) == TGX_C64 ? c_##call(__VA_ARGS__(tgx_c64)) : z_##call(__VA_ARGS__(tgx_c128)))

int64_t tgx_lu(const tgx_blas *blas, int dtype, char *a, int64_t m, int64_t n, int32_t *pivots, void *room, int pivot) {
    int64_t info = 0, k = m < n ? m : n;
    void *f = pivot && (m > SMALL || n > SMALL) ? blas->routine(TGX_GETRF, dtype) : NULL;
    if (!f) {
#define ARGS(T) (T *)a, m, n, pivots, pivot
        return FOR_DTYPE(dtype, lu, ARGS);
#undef ARGS
    }
    TGX_CALL(f, 6, &m, &n, a, &m, room, &info);
    for (int64_t i = 0; i < k; i++) pivots[i] = (int32_t)tgx_lapack_int(blas, room, i);
    return tgx_lapack_int(blas, &info, 0);
}

int tgx_triangle_is_small(int64_t n) { return n <= SMALL; }

void tgx_triangle_solve_rows(int dtype, const char *a, char *b, int64_t n, int64_t k, int lower, int turned, int unit) {
#define ARGS(T) (const T *)a, n, (T *)b, k, lower, turned, unit
    FOR_DTYPE(dtype, triangle_rows, ARGS);
#undef ARGS
}

static void exchange(char *b, int64_t n, int64_t k, const int32_t *pivots, int size, int backward) {
    char kept[16];
    for (int64_t c = 0; c < k; c++, b += n * size)
        for (int64_t s = 0; s < n; s++) {
            int64_t i = backward ? n - 1 - s : s, p = pivots[i] - 1;
            if (p == i || p < 0 || p >= n) continue;
            memcpy(kept, b + i * size, (size_t)size);
            memcpy(b + i * size, b + p * size, (size_t)size);
            memcpy(b + p * size, kept, (size_t)size);
        }
}

void tgx_triangle_solve(const tgx_blas *blas, int dtype, const char *a, char *b, int64_t n, int64_t k, int lower, int turned, int unit) {
    static const double one[2] = {1, 0};
    static const float single[2] = {1, 0};
    const char *part = lower ? "L" : "U", *how = turned == TGX_ADJOINT ? "C" : turned ? "T" : "N", *diagonal = unit ? "U" : "N";
    const int64_t step = 1;
    const int each = k == 1 || (k <= FEW_SIDES && n >= LARGE);
    void *f = n > TRIANGLE ? blas->routine(each ? TGX_TRSV : TGX_TRSM, dtype) : NULL;
    if (!n || !k) return;
    if (f && each) {
        for (int64_t i = 0; i < k; i++, b += n * tgx_itemsize[dtype])
            TGX_CALL(f, 11, part, how, diagonal, &n, a, &n, b, &step, TGX_LENGTH, TGX_LENGTH, TGX_LENGTH);
        return;
    }
    if (f) {
        TGX_CALL(f, 15, "L", part, how, diagonal, &n, &k,
                 dtype == TGX_F32 || dtype == TGX_C64 ? (const void *)single : one, a, &n, b, &n, TGX_LENGTH, TGX_LENGTH, TGX_LENGTH, TGX_LENGTH);
        return;
    }
#define ARGS(T) (const T *)a, n, (T *)b, k, lower, turned, unit
    FOR_DTYPE(dtype, triangle, ARGS);
#undef ARGS
}

int tgx_sides_are_few(int dtype, int64_t n, int64_t k) {
    const int64_t size = tgx_itemsize[dtype];
    if ((dtype != TGX_F32 && dtype != TGX_F64) || n <= SMALL || k == 1) return 0;
    if (k == 2 && size == 4 && n > 4 * LARGE) return 0; /* half a panel: one by one */
    return k * size <= MOST_PANELS * TGX_PANEL_BYTES || n * n * size <= NEAR;
}

/* An upper triangle is a lower one from its end on. */
void tgx_triangle_sides(int dtype, const char *a, int64_t down, int64_t along, char *b, int64_t n, int64_t k, int lower, int unit, void *room) {
    const tgx_triangle_table *table = TGX_PICK(tgx_triangles);
    const int64_t size = tgx_itemsize[dtype];
    tgx_triangle t = {.a = a, .down = down, .along = along, .b = b, .step = k, .n = n, .k = k, .unit = unit, .room = room};
    if (!lower) {
        t.a = a + (n - 1) * (down + along) * size, t.b = b + (n - 1) * k * size;
        t.down = -down, t.along = -along, t.step = -k;
    }
    (dtype == TGX_F32 ? table->f32 : table->f64)(&t);
}

void tgx_exchange_rows(char *b, int64_t n, int64_t bytes, const int32_t *pivots, int backward) {
    for (int64_t s = 0; s < n; s++) {
        const int64_t i = backward ? n - 1 - s : s, p = pivots[i] - 1;
        if (p == i || p < 0 || p >= n) continue;
        for (int64_t at = 0; at < bytes; at += (int64_t)sizeof(float)) { /* of which every number consists */
            float kept, *x = (float *)(b + i * bytes + at), *y = (float *)(b + p * bytes + at);
            memcpy(&kept, x, sizeof kept), memcpy(x, y, sizeof kept), memcpy(y, &kept, sizeof kept);
        }
    }
}

void tgx_lu_solve(const tgx_blas *blas, int dtype, const char *lu, const int32_t *pivots, void *room, char *b, int64_t n, int64_t k,
                  int turned) {
    int64_t info = 0;
    void *f = n > SMALL ? blas->routine(TGX_GETRS, dtype) : NULL;
    if (f) {
        for (int64_t i = 0; i < n; i++) tgx_lapack_put(blas, room, i, pivots[i]);
        TGX_CALL(f, 10, turned == TGX_ADJOINT ? "C" : turned ? "T" : "N", &n, &k, lu, &n, room, b, &n, &info, TGX_LENGTH);
        return;
    }
    if (!turned) exchange(b, n, k, pivots, tgx_itemsize[dtype], 0);
    tgx_triangle_solve(blas, dtype, lu, b, n, k, !turned, turned, !turned);
    tgx_triangle_solve(blas, dtype, lu, b, n, k, !!turned, turned, !!turned);
    if (turned) exchange(b, n, k, pivots, tgx_itemsize[dtype], 1);
}

int64_t tgx_cholesky(const tgx_blas *blas, int dtype, char *a, int64_t n) {
    int64_t info = 0;
    void *f = n > SMALL ? blas->routine(TGX_POTRF, dtype) : NULL;
    if (!f) {
#define ARGS(T) (T *)a, n
        return FOR_DTYPE(dtype, cholesky, ARGS);
#undef ARGS
    }
    TGX_CALL(f, 6, "U", &n, a, &n, &info, TGX_LENGTH);
    return tgx_lapack_int(blas, &info, 0);
}

void tgx_lu_inverse(const tgx_blas *blas, int dtype, char *lu, const int32_t *pivots, void *room, char *work, int64_t n) {
    int64_t info = 0, length = n * 64;
    int size = tgx_itemsize[dtype];
    void *f = n > SMALL ? blas->routine(TGX_GETRI, dtype) : NULL;
    if (f) {
        for (int64_t i = 0; i < n; i++) tgx_lapack_put(blas, room, i, pivots[i]);
        TGX_CALL(f, 7, &n, lu, &n, room, work, &length, &info);
        return;
    }
    memset(work, 0, (size_t)(n * n * size)); /* n <= 64, or there is no LAPACK and `work` is n x n */
    for (int64_t i = 0; i < n; i++) {
        if (dtype == TGX_F32 || dtype == TGX_C64) *(float *)(work + (i * n + i) * size) = 1;
        else *(double *)(work + (i * n + i) * size) = 1;
    }
    tgx_lu_solve(blas, dtype, lu, pivots, room, work, n, n, TGX_AS_IT_IS);
    memcpy(lu, work, (size_t)(n * n * size));
}
