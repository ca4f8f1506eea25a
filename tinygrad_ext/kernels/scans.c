/* Kernels of scans: running sums, products and extremes along a dimension. See scan.h. */
#include "isa.h"
#include "scan.h"
#include "tgx.h"

extern const tgx_scan_table tgx_scans_base, tgx_scans_avx2, tgx_scans_avx512;

static tgx_scan scan_of(int64_t op, int dtype) {
    static const tgx_scan_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_scans);
    return (*chosen)[op][dtype];
}

static int refuse_dtype(tgx_call *c, const char *title, int dtype) {
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the argument first, for example with .float()",
                    title, tgx_dtype_title(dtype));
}

static int tiles(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    tgx_scan_tiles(context, lo, hi);
    return 0;
}

/* Argument 0 along argument 1, into one result or two. */
static int scan_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    tgx_scan_plan plan; /* too large to be cleared */
    plan.scan = scan_of(c->notes[0], t->dtype), plan.x = t->data, plan.out = out->data, plan.osize = tgx_itemsize[out->dtype];
    plan.out2 = c->noutputs == 2 ? tgx_out(c, 1)->data : NULL;
    if (t->count == 0) return 0;
    tgx_plan_scan(&plan, t->sizes, t->strides, t->rank, (int)tgx_int(c, 1), tgx_itemsize[t->dtype]);
    return tgx_range(c, tiles, &plan, plan.ntiles, t->count <= TGX_SMALL ? plan.ntiles : 1 + TGX_SMALL * plan.ntiles / t->count);
}

/* (self, dim, dtype): integers run in int64 unless a dtype is asked for. */
static int running_shape(tgx_call *c, int op) {
    const tgx_tensor *t = tgx_in(c, 0);
    int want = tgx_given(c, 2) ? (int)tgx_int(c, 2) : t->dtype;
    int own = tgx_is_integral(want) && tgx_is_integral(t->dtype) ? t->dtype : want;
    int made = tgx_is_integral(own) ? TGX_I64 : own;
    if (tgx_is_natural(own)) own = TGX_I64;
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    if (!scan_of(op, own)) return refuse_dtype(c, c->title, own);
    c->notes[0] = op;
    tgx_need_dtype(c, 0, own);
    tgx_like(c, 0, t, tgx_given(c, 2) ? want : made)->via = (int8_t)made;
    return 0;
}
static int cumsum_shape(tgx_call *c) { return running_shape(c, TGX_CUMSUM); }
static int cumprod_shape(tgx_call *c) { return running_shape(c, TGX_CUMPROD); }
TGX_KERNEL(cumsum, cumsum_shape, scan_run, TGX_NATURAL)
TGX_KERNEL(cumprod, cumprod_shape, scan_run, TGX_NATURAL)

/* (self, dim): values and indices. */
static int extreme_shape(tgx_call *c, int op) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    if (!scan_of(op, t->dtype)) return refuse_dtype(c, c->title, t->dtype);
    c->notes[0] = op;
    tgx_like(c, 0, t, t->dtype), tgx_like(c, 1, t, TGX_I64);
    return 0;
}
static int cummax_shape(tgx_call *c) { return extreme_shape(c, TGX_CUMMAX); }
static int cummin_shape(tgx_call *c) { return extreme_shape(c, TGX_CUMMIN); }
TGX_KERNEL(cummax, cummax_shape, scan_run, 0)
TGX_KERNEL(cummin, cummin_shape, scan_run, 0)

/* How many lines there are in front of a dimension, and elements behind it. */
static void around(const tgx_tensor *t, int dim, int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (int i = 0; i < dim; i++) *outer *= t->sizes[i];
    for (int i = dim + 1; i < t->rank; i++) *inner *= t->sizes[i];
}

/* Two operands of one shape and dtype, and a dimension. */
static int two_lines(tgx_call *c, const char *name) {
    const tgx_tensor *t = tgx_in(c, 0), *u = tgx_in(c, 1);
    if (tgx_wrap_arg(c, 2, t->rank)) return TGX_FAILED;
    if (!tgx_is_native_float(t->dtype) && !tgx_is_complex(t->dtype)) return refuse_dtype(c, name, t->dtype);
    if (u->dtype != t->dtype || !tgx_same_sizes(u, t))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): the second argument must have the first one's shape %s and dtype, got %s of %s", name,
                        tgx_shape_text(t), tgx_shape_text(u), tgx_dtype_title(u->dtype));
    tgx_need_dense(c, 0), tgx_need_dense(c, 1);
    tgx_like(c, 0, t, t->dtype);
    return 0;
}

/* _linear_scan: (self, decay, dim): h[k] = self[k] + decay[k] * h[k - 1] */
static int linear_scan_shape(tgx_call *c) { return two_lines(c, "_linear_scan"); }

static int linear_scan_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int dim = (int)tgx_int(c, 2);
    int64_t outer, inner;
    around(t, dim, &outer, &inner);
    if (t->count)
        tgx_linear_scan(t->data, tgx_in(c, 1)->data, tgx_out(c, 0)->data, t->rank ? t->sizes[dim] : 1, inner, 0, outer, t->dtype);
    return 0;
}
TGX_KERNEL(linear_scan, linear_scan_shape, linear_scan_run, 0)

/* _prod_others: (self, dim): for each element the product of the others along dim */
static int prod_others_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    if (!tgx_is_native_float(t->dtype) && !tgx_is_complex(t->dtype)) return refuse_dtype(c, "_prod_others", t->dtype);
    tgx_need_dense(c, 0);
    tgx_like(c, 0, t, t->dtype);
    return 0;
}

static int others(tgx_call *c, const tgx_tensor *weight, const tgx_tensor *t, int dim) {
    int64_t outer, inner, n = t->rank ? t->sizes[dim] : 1;
    around(t, dim, &outer, &inner);
    if (t->count) tgx_prod_others(weight ? weight->data : NULL, t->data, tgx_out(c, 0)->data, c->scratch, n, inner, outer, t->dtype);
    return 0;
}

static int prod_others_run(tgx_call *c) { return others(c, NULL, tgx_in(c, 0), (int)tgx_int(c, 1)); }
TGX_KERNEL(prod_others, prod_others_shape, prod_others_run, 0)

/* _prod_others_backward: (grad, self, dim) */
static int prod_others_backward_shape(tgx_call *c) {
    if (two_lines(c, "_prod_others_backward")) return TGX_FAILED;
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t outer, inner;
    around(t, (int)tgx_int(c, 2), &outer, &inner);
    c->scratch_bytes = tgx_prod_room(t->rank ? t->sizes[tgx_int(c, 2)] : 1, inner, outer) * tgx_itemsize[t->dtype];
    return 0;
}

static int prod_others_backward_run(tgx_call *c) { return others(c, tgx_in(c, 0), tgx_in(c, 1), (int)tgx_int(c, 2)); }
TGX_KERNEL(prod_others_backward, prod_others_backward_shape, prod_others_backward_run, 0)
