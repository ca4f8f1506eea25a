/* What kernels of norms ask of their arguments, and how they run: shared by norm.c and norm_groups.c. */
#ifndef TGX_NORM_CALL_H
#define TGX_NORM_CALL_H
#include "isa.h"
#include "norm.h"
#include "tgx.h"

static inline const tgx_norm_table *loops(void) {
    static const tgx_norm_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_norm);
    return chosen;
}

static inline int require_float(tgx_call *c, const tgx_tensor *t, const char *name) {
    if (t->dtype == TGX_F32 || t->dtype == TGX_F64) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the input to float32 or float64 first", name,
                    tgx_dtype_title(t->dtype));
}

/* A weight, a bias or a statistic: contiguous, and of the input's dtype as it is. */
static inline int parameter(tgx_call *c, int arg, int dtype) {
    if (!tgx_given(c, arg)) return 0;
    const tgx_tensor *t = tgx_in(c, arg);
    if (t->dtype != dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "mixed dtype (CPU): expect parameter to have scalar type of %s, but got %s. Convert the "
                        "layer or the input.", tgx_dtype_title(dtype), tgx_dtype_title(t->dtype));
    tgx_need_dense(c, arg);
    return 0;
}

static inline int same_count(tgx_call *c, const tgx_tensor *g, const tgx_tensor *x) {
    if (g->count == x->count) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: grad_output has shape %s, self %s; both must be equal", c->title, tgx_shape_text(g),
                    tgx_shape_text(x));
}

static inline char *data_of(tgx_call *c, int arg) { return tgx_given(c, arg) ? tgx_in(c, arg)->data : NULL; }

/* All units of a job on `count` elements. */
static inline int run(tgx_call *c, tgx_norm_fn fn, void *job, int64_t units, int64_t count) {
    if (units == 0) return 0;
    if (count <= TGX_SMALL || units <= 1) return fn(job, 0, units);
    return tgx_range(c, fn, job, units, 1 + TGX_SMALL / (1 + count / units));
}
#endif
