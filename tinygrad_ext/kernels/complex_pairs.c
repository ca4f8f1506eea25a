/* Kernels that see complex numbers as pairs of real ones, and pairs as complex numbers, in the same memory. */
#include "view.h"

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
