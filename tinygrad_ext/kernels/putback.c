#include "putback.h"
#include <stddef.h>
#include <stdint.h>

#define SAME(v) (v)
#define SUMS(T, WIDE, LOAD, STORE) \
    static void add_##T(char *o, ptrdiff_t os, const char *a, ptrdiff_t as, int64_t n) { \
        for (int64_t i = 0; i < n; i++, o += os, a += as) { \
            WIDE sum = LOAD(*(T *)o) + LOAD(*(const T *)a); \
            *(T *)o = STORE(sum); \
        } \
    } \
    static void share_##T(char *data, const int64_t *counts, int64_t n) { \
        T *p = (T *)data; \
        for (int64_t i = 0; i < n; i++) \
            if (counts[i] > 1) { WIDE part = LOAD(p[i]) / (WIDE)counts[i]; p[i] = STORE(part); } \
    }
typedef uint16_t f16;
typedef uint16_t bf16;
SUMS(f16, float, tgx_f16_to_f32, tgx_f32_to_f16)
SUMS(bf16, float, tgx_bf16_to_f32, tgx_f32_to_bf16)
SUMS(float, float, SAME, SAME)
SUMS(double, double, SAME, SAME)
SUMS(tgx_c64, tgx_c64, SAME, SAME)
SUMS(tgx_c128, tgx_c128, SAME, SAME)

typedef void (*add_fn)(char *, ptrdiff_t, const char *, ptrdiff_t, int64_t);
typedef void (*share_fn)(char *, const int64_t *, int64_t);
static const add_fn adds[TGX_NTYPES] = {
    [TGX_F16] = add_f16, [TGX_BF16] = add_bf16, [TGX_F32] = add_float, [TGX_F64] = add_double,
    [TGX_C64] = add_tgx_c64, [TGX_C128] = add_tgx_c128};
static const share_fn shares[TGX_NTYPES] = {
    [TGX_F16] = share_f16, [TGX_BF16] = share_bf16, [TGX_F32] = share_float, [TGX_F64] = share_double,
    [TGX_C64] = share_tgx_c64, [TGX_C128] = share_tgx_c128};

/* Move both pointers to the next row (all dimensions but the last); 0 when there is none. */
static int next_row(int64_t *index, const int64_t *sizes, int ndim, char **a, const ptrdiff_t *as, const char **b,
                    const ptrdiff_t *bs) {
    for (int d = ndim - 2; d >= 0; d--) {
        *a += as[d];
        *b += bs[d];
        if (++index[d] < sizes[d]) return 1;
        *a -= as[d] * sizes[d];
        *b -= bs[d] * sizes[d];
        index[d] = 0;
    }
    return 0;
}

static int empty(const int64_t *sizes, int ndim) {
    for (int d = 0; d < ndim; d++)
        if (sizes[d] == 0) return 1;
    return 0;
}

int tgx_window_add(int dtype, char *dst, const ptrdiff_t *dst_strides, const char *src, const ptrdiff_t *src_strides,
                   const int64_t *sizes, int ndim) {
    int64_t index[TGX_MAX_DIMS] = {0};
    add_fn add = adds[dtype];
    if (!add) return TGX_BAD_VALUE;
    if (empty(sizes, ndim)) return 0;
    do {
        if (ndim == 0) add(dst, 0, src, 0, 1);
        else add(dst, dst_strides[ndim - 1], src, src_strides[ndim - 1], sizes[ndim - 1]);
    } while (next_row(index, sizes, ndim, &dst, dst_strides, &src, src_strides));
    return 0;
}

void tgx_window_count(int64_t *counts, const int64_t *strides, const int64_t *sizes, int ndim) {
    int64_t index[TGX_MAX_DIMS] = {0};
    if (empty(sizes, ndim)) return;
    for (;;) {
        ++*counts;
        int d = ndim - 1;
        for (; d >= 0; d--) {
            counts += strides[d];
            if (++index[d] < sizes[d]) break;
            counts -= strides[d] * sizes[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

int tgx_window_share(int dtype, char *data, const int64_t *counts, int64_t n) {
    if (!shares[dtype]) return TGX_BAD_VALUE;
    shares[dtype](data, counts, n);
    return 0;
}
