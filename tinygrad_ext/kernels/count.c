/* How often each small number occurs: (self, weights, size) -> counts, or sums of weights, which are added one after the other.
 *
 * Few counts are kept four times, for neighbours that count the same number would wait for each other's sum. */
#include "tgx.h"

enum { SELF, WEIGHTS, SIZE };
enum { COPIES = 4, FEW = 2048 };

static int bincount_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, SELF), *w = tgx_given(c, WEIGHTS) ? tgx_in(c, WEIGHTS) : NULL;
    const int64_t size = tgx_int(c, SIZE);
    if (!tgx_is_integral(x->dtype) || (w && w->dtype != TGX_F32 && w->dtype != TGX_F64))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"bincount\" not implemented for '%s': it counts integers, and adds weights of float32 or "
                        "float64", tgx_dtype_title(tgx_is_integral(x->dtype) ? w->dtype : x->dtype));
    if (x->rank != 1 || size < 0 || (w && (w->rank != 1 || w->count != x->count)))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_bincount: expected a vector, weights as many and a size that is not negative, got %s, weights %s and size %lld",
                        tgx_shape_text(x), w ? tgx_shape_text(w) : "None", (long long)size);
    tgx_need(c, SELF, TGX_I64);
    if (w) tgx_need_dense(c, WEIGHTS);
    tgx_output *o = tgx_fresh(c, 0, 1, w ? w->dtype : TGX_I64);
    o->dims[0] = size;
    if (!w && size <= FEW) c->scratch_bytes = COPIES * size * (int64_t)sizeof(int64_t);
    return tgx_check_sizes(c, o->dims, 1, "_bincount");
}

static int bincount_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, SELF), *w = tgx_given(c, WEIGHTS) ? tgx_in(c, WEIGHTS) : NULL;
    const int64_t *x = (const int64_t *)t->data, n = t->count, size = tgx_int(c, SIZE);
    tgx_tensor *out = tgx_out(c, 0);
    int64_t *counts = (int64_t *)out->data, i = 0;
    memset(out->data, 0, (size_t)(out->count * tgx_itemsize[out->dtype]));
#define NUMBERS(DO) for (; i < n && (uint64_t)x[i] < (uint64_t)size; i++) DO
    if (w && w->dtype == TGX_F32) NUMBERS(((float *)out->data)[x[i]] += ((const float *)w->data)[i];)
    else if (w) NUMBERS(((double *)out->data)[x[i]] += ((const double *)w->data)[i];)
    else if (c->scratch_bytes) {
        int64_t *each = c->scratch;
        memset(each, 0, (size_t)c->scratch_bytes);
        NUMBERS(each[i % COPIES * size + x[i]]++;)
        for (int64_t k = 0; k < size; k++) counts[k] = each[k] + each[size + k] + each[2 * size + k] + each[3 * size + k];
    } else NUMBERS(counts[x[i]]++;)
    if (i == n) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "_bincount: the number %lld lies outside of %lld counts", (long long)x[i], (long long)size);
}
TGX_KERNEL(bincount, bincount_shape, bincount_run, 0)
