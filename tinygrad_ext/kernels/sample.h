/* Memory for random numbers.
 *
 * A fill of random.h writes memory from the first element to the last. A tensor in another order of dimensions is filled
 * in its memory's order, one with gaps through memory without; that is the order in which PyTorch draws. Meta tensors
 * draw nothing and take any parameters. */
#ifndef TGX_SAMPLE_H
#define TGX_SAMPLE_H
#include "random.h"
#include "tgx.h"

/* Strides without gaps in a tensor's order of dimensions; row-major where it repeats elements. */
static inline void tgx_order_strides(const tgx_tensor *t, int64_t *strides) {
    int order[TGX_MAX_DIMS];
    int64_t n = 1;
    for (int i = 0, j; i < t->rank; i++) { /* innermost first; of equal strides the later dimension */
        int k = t->rank - 1 - i;
        for (j = i; j > 0 && t->strides[order[j - 1]] > t->strides[k]; j--) order[j] = order[j - 1];
        order[j] = k;
    }
    for (int i = 0; i < t->rank; i++) {
        int d = order[i];
        if (t->sizes[d] != 1 && t->strides[d] < n) break;
        strides[d] = n;
        n *= t->sizes[d];
        if (i == t->rank - 1) return;
    }
    n = 1;
    for (int i = t->rank - 1; i >= 0; i--) strides[i] = n, n *= t->sizes[i];
}

static inline int tgx_same_strides(const tgx_tensor *t, const int64_t *strides) {
    for (int i = 0; i < t->rank; i++)
        if (t->sizes[i] != 1 && t->strides[i] != strides[i]) return 0;
    return 1;
}

static inline int64_t tgx_aligned(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* self is filled, or a tensor like it, or the one that was given. */
static inline void tgx_like_self(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *target = c->target;
    int64_t strides[TGX_MAX_DIMS];
    tgx_output *o = target == t ? tgx_writes(c, 0, 0) : tgx_like(c, 0, t, target ? target->dtype : t->dtype);
    if ((target ? target : t)->flags & TGX_CONTIGUOUS) return;
    if (!target) {
        o->strides = o->dims;
        tgx_order_strides(t, o->strides);
    } else if (tgx_same_sizes(target, t)) {
        tgx_order_strides(target, strides);
        if (!tgx_same_strides(target, strides)) c->scratch_bytes = tgx_aligned(t->count * tgx_itemsize[target->dtype]);
    }
}

static inline int tgx_need_real(tgx_call *c, int dtype, const char *op) {
    if (!tgx_is_complex(dtype)) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': self must not be complex; draw the real and the "
                    "imaginary part and join them with complex()", op, tgx_dtype_title(dtype));
}
#endif
