/* Softmax, log_softmax and their derivatives. The loops are in softmax_rows.h. */
#include "isa.h"
#include "softmax.h"
#include "tgx.h"
#include "wide.h"

const tgx_softmax_table *tgx_softmax_loops(void) {
    static const tgx_softmax_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_softmax);
    return chosen;
}

/* Whether the rows along a dimension lie behind each other and are short enough to be widened a few at a time. */
static int short_rows(const tgx_tensor *t, int64_t dim) {
    for (int i = (int)dim + 1; i < t->rank; i++)
        if (t->sizes[i] != 1) return 0;
    return !t->rank || t->sizes[dim] <= TGX_WIDE_ROW;
}

static int require_float(tgx_call *c, int dtype, const tgx_tensor *t, int64_t dim) {
    if (dtype == TGX_F32 || dtype == TGX_F64 || (tgx_is_half(dtype) && short_rows(t, dim))) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the input to float32 or float64 first",
                    c->title, tgx_dtype_title(dtype));
}

static int half_rows(tgx_softmax_fn fn, const tgx_softmax_job *job, ptrdiff_t lo, ptrdiff_t hi) {
    float a[TGX_WIDE_ROW], b[TGX_WIDE_ROW];
    tgx_softmax_job rows = {.out = (char *)a, .a = (const char *)a, .b = (const char *)b, .n = job->n, .inner = 1, .log = job->log};
    const ptrdiff_t step = tgx_wide_rows(job->n);
    for (; lo < hi; lo += step) {
        const ptrdiff_t some = hi - lo < step ? hi - lo : step, at = lo * job->n * 2;
        tgx_widen(job->half, job->a + at, a, some * job->n);
        if (job->b) tgx_widen(job->half, job->b + at, b, some * job->n);
        fn(&rows, 0, some);
        tgx_narrow(job->half, a, job->out + at, some * job->n);
    }
    return 0;
}

static int half_forward(void *job, ptrdiff_t lo, ptrdiff_t hi) { return half_rows(tgx_softmax_loops()->forward[0], job, lo, hi); }
static int half_backward(void *job, ptrdiff_t lo, ptrdiff_t hi) { return half_rows(tgx_softmax_loops()->backward[0], job, lo, hi); }

int tgx_softmax_rows(tgx_call *c, const tgx_softmax_fn *fns, tgx_softmax_job *job, const tgx_tensor *t, int64_t dim) {
    if (t->count == 0) return 0;
    job->n = t->rank ? t->sizes[dim] : 1, job->inner = 1;
    for (int i = (int)dim + 1; i < t->rank; i++) job->inner *= t->sizes[i];
    int64_t rows = t->count / (job->n * job->inner);
    int64_t units = job->inner == 1 ? rows : rows * ((job->inner + TGX_SOFTMAX_COLUMNS - 1) / TGX_SOFTMAX_COLUMNS);
    tgx_softmax_fn fn = job->half ? (job->b ? half_backward : half_forward) : fns[t->dtype == TGX_F64];
    if (t->count <= TGX_SMALL) return fn(job, 0, units);
    return tgx_range(c, fn, job, units, 1 + TGX_SMALL / (1 + t->count / units));
}

static int forward_shape(tgx_call *c, int dtype_arg) {
    const tgx_tensor *x = tgx_in(c, 0);
    int dtype = tgx_given(c, dtype_arg) ? (int)tgx_int(c, dtype_arg) : x->dtype;
    if (tgx_wrap_arg(c, 1, x->rank) || require_float(c, dtype, x, tgx_int(c, 1))) return TGX_FAILED;
    tgx_need(c, 0, dtype);
    tgx_like(c, 0, x, dtype);
    return 0;
}

static int forward_run(tgx_call *c, int log) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_softmax_job job = {.out = tgx_out(c, 0)->data, .a = x->data, .log = log, .half = tgx_is_half(x->dtype) ? x->dtype : 0};
    return tgx_softmax_rows(c, tgx_softmax_loops()->forward, &job, x, tgx_int(c, 1));
}

/* (self, dim, dtype) */
static int softmax_shape(tgx_call *c) { return forward_shape(c, 2); }
static int softmax_run(tgx_call *c) { return forward_run(c, 0); }
static int log_softmax_run(tgx_call *c) { return forward_run(c, 1); }
TGX_KERNEL(softmax, softmax_shape, softmax_run, 0)
TGX_KERNEL(log_softmax, softmax_shape, log_softmax_run, 0)

/* (self, dim, _stacklevel, dtype): without dim it warns, and takes 0, or 1 with two or four dimensions and more. */
static int functional_shape(tgx_call *c) {
    int rank = tgx_in(c, 0)->rank;
    if (!tgx_given(c, 1)) {
        tgx_warn(c, "Implicit dimension choice for %s has been deprecated. Change the call to include dim=X as an argument.", c->title);
        c->args[1].tag = TGX_INT, c->args[1].i = rank == 0 || rank == 1 || rank == 3 ? 0 : 1;
    }
    return forward_shape(c, 3);
}
TGX_KERNEL(softmax_functional, functional_shape, softmax_run, 0)
TGX_KERNEL(log_softmax_functional, functional_shape, log_softmax_run, 0)

/* (grad_output, output, dim, input_dtype) */
static int backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *y = tgx_in(c, 1);
    if (tgx_wrap_arg(c, 2, y->rank) || require_float(c, y->dtype, y, tgx_int(c, 2))) return TGX_FAILED;
    if (!tgx_same_sizes(g, y))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: grad_output has shape %s, output %s; both must be equal", c->title,
                        tgx_shape_text(g), tgx_shape_text(y));
    tgx_need(c, 0, y->dtype);
    tgx_need_dense(c, 1);
    tgx_like(c, 0, y, (int)tgx_int(c, 3))->via = y->dtype;
    return 0;
}

static int backward_run(tgx_call *c, int log) {
    const tgx_tensor *y = tgx_in(c, 1);
    tgx_softmax_job job = {.out = tgx_out(c, 0)->data, .a = tgx_in(c, 0)->data, .b = y->data, .log = log,
                           .half = tgx_is_half(y->dtype) ? y->dtype : 0};
    return tgx_softmax_rows(c, tgx_softmax_loops()->backward, &job, y, tgx_int(c, 2));
}
static int softmax_backward_run(tgx_call *c) { return backward_run(c, 0); }
static int log_softmax_backward_run(tgx_call *c) { return backward_run(c, 1); }
TGX_KERNEL(_softmax_backward, backward_shape, softmax_backward_run, 0)
TGX_KERNEL(_log_softmax_backward, backward_shape, log_softmax_backward_run, 0)
