/* Kernels that see complex numbers as pairs of real ones, and pairs as complex numbers, in the same memory; and the one that makes
 * complex numbers of two tensors. */
#include "view.h"
#include "walk.h"

/* (self) */
static int as_real_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (!tgx_is_complex(t->dtype))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "view_as_real is only supported for complex tensors, got torch.%s", tgx_dtype_name(t->dtype));
    if (t->rank == TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "view_as_real: the result would have more than %d dimensions", TGX_MAX_DIMS);
    tgx_output *o = tgx_view(c, 0, 0, t->rank + 1);
    for (int i = 0; i < t->rank; i++) o->sizes[i] = t->sizes[i], o->strides[i] = 2 * t->strides[i];
    o->sizes[t->rank] = 2, o->strides[t->rank] = 1;
    o->dtype = t->dtype == TGX_C64 ? TGX_F32 : t->dtype == TGX_C32 ? TGX_F16 : TGX_F64;
    return 0;
}
TGX_KERNEL(view_as_real, as_real_shape, NULL, TGX_WINDOW)

/* (self) */
static int as_complex_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int last = t->rank - 1;
    int64_t bytes, offset;
    if (t->dtype != TGX_F16 && t->dtype != TGX_F32 && t->dtype != TGX_F64)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                        "scalar type: %s. Use float() first.", tgx_dtype_title(t->dtype));
    if (t->rank == 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "Input tensor must have one or more dimensions");
    if (t->sizes[last] != 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Tensor must have a last dimension of size 2, got %s", tgx_shape_text(t));
    if (t->strides[last] != 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Tensor must have a last dimension with stride 1, got %lld: call contiguous() first",
                        (long long)t->strides[last]);
    tgx_output *o = tgx_view(c, 0, 0, last);
    for (int i = 0; i < last; i++) {
        if (t->strides[i] % 2 && t->sizes[i] > 1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "Tensor must have a stride divisible by 2 for all but last dimension, got %lld for "
                            "dimension %d: call contiguous() first", (long long)t->strides[i], i);
        o->sizes[i] = t->sizes[i], o->strides[i] = t->strides[i] / 2;
    }
    offset = c->services->offset(t, &bytes);
    if (offset % 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Tensor must have a storage_offset divisible by 2, got %lld: call clone() first",
                        (long long)offset);
    o->dtype = t->dtype == TGX_F32 ? TGX_C64 : t->dtype == TGX_F16 ? TGX_C32 : TGX_C128;
    return 0;
}
TGX_KERNEL(view_as_complex, as_complex_shape, NULL, TGX_WINDOW)

static int turned(tgx_call *c, int how) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = tgx_view(c, 0, 0, t->rank);
    for (int i = 0; i < t->rank; i++) tgx_take(o, i, t, i);
    o->dtype = how;
    return 0;
}

/* (self) */
static int conjugated_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (!tgx_is_complex(t->dtype))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_conj() is a view of complex numbers, and self is torch.%s: conj() gives a real tensor itself",
                        tgx_dtype_name(t->dtype));
    return turned(c, TGX_CONJUGATED);
}
TGX_KERNEL(_conj, conjugated_shape, NULL, TGX_WINDOW)

/* (self) */
static int negated_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (t->dtype == TGX_BOOL || tgx_is_natural(t->dtype) || (tgx_is_coded(t->dtype) && t->dtype != TGX_C32))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "_neg_view() is a view of signed numbers, and self is torch.%s", tgx_dtype_name(t->dtype));
    return turned(c, TGX_NEGATED);
}
TGX_KERNEL(_neg_view, negated_shape, NULL, TGX_WINDOW)

/* ---- of two tensors: (real, imag), which broadcast ----------------------------------------------------------------- */

#define JOIN(T, name) \
    static int join_##name(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) { \
        const ptrdiff_t size = (ptrdiff_t)sizeof(T); \
        T *to = (T *)data[0]; \
        (void)aux; \
        if (strides[0] == 2 * size && strides[1] == size && strides[2] == size) { \
            const T *x = (const T *)data[1], *y = (const T *)data[2]; \
            _Pragma("omp simd") for (ptrdiff_t i = 0; i < n; i++) to[2 * i] = x[i], to[2 * i + 1] = y[i]; \
            return 0; \
        } \
        for (ptrdiff_t i = 0; i < n; i++) { \
            T *pair = (T *)(data[0] + i * strides[0]); \
            pair[0] = *(const T *)(data[1] + i * strides[1]), pair[1] = *(const T *)(data[2] + i * strides[2]); \
        } \
        return 0; \
    }
JOIN(uint32_t, 32)
JOIN(uint64_t, 64)

static int complex_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *y = tgx_in(c, 1);
    if (x->dtype != y->dtype || (x->dtype != TGX_F32 && x->dtype != TGX_F64))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_complex: expected two tensors of float32 or of float64, got %s and %s", tgx_dtype_name(x->dtype),
                        tgx_dtype_name(y->dtype));
    tgx_output *o = tgx_fresh(c, 0, x->rank, x->dtype == TGX_F32 ? TGX_C64 : TGX_C128);
    memcpy(o->dims, x->sizes, (size_t)x->rank * sizeof *o->dims);
    const int at = tgx_broadcast(o->dims, &o->rank, y) - 1;
    if (at >= 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension "
                        "%d: complex() got real %s and imag %s, which do not broadcast", (long long)o->dims[at],
                        (long long)y->sizes[at - (o->rank - y->rank)], at, tgx_shape_text(x), tgx_shape_text(y));
    return tgx_check_sizes(c, o->dims, o->rank, "complex");
}

static int complex_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0);
    tgx_iter it;
    tgx_iter_begin(&it, out->sizes, out->rank);
    tgx_iter_add(&it, out->data, out->sizes, out->strides, out->rank, tgx_itemsize[out->dtype]);
    for (int i = 0; i < 2; i++) {
        const tgx_tensor *t = tgx_in(c, i);
        tgx_iter_add(&it, t->data, t->sizes, t->strides, t->rank, tgx_itemsize[t->dtype]);
    }
    return tgx_walk(c->services, &it, out->dtype == TGX_C64 ? join_32 : join_64, NULL);
}
TGX_KERNEL(_complex, complex_shape, complex_run, 0)
