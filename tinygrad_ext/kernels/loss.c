/* Squared error and its derivative; the loops are in loss_squares.h.
 *
 * One pass takes differences, squares and adds them, in chunks that no number of threads changes. Rejected: a composite of
 * subtraction, square and mean, two tensors more and 3.1 times as long for a million floats. */
#include "loss.h"
#include <math.h>
#include "isa.h"

static const tgx_loss_table *loops(void) {
    static const tgx_loss_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_loss);
    return chosen;
}

int tgx_loss_reduction(tgx_call *c, int arg, int64_t *how) {
    const char *name = c->args[arg].text;
    if (!strcmp(name, "mean")) *how = TGX_LOSS_MEAN;
    else if (!strcmp(name, "sum")) *how = TGX_LOSS_SUM;
    else if (!strcmp(name, "none")) *how = TGX_LOSS_NONE;
    else return tgx_fail(c, TGX_VALUE_ERROR, "%s is not a valid value for reduction: it must be 'mean', 'sum' or 'none'", name);
    return 0;
}

/* ---- operands in the shape that they have together --------------------------------------------------------------- */

typedef struct { int rank; int64_t count, sizes[TGX_MAX_DIMS]; } common;

static inline int is_of(const tgx_tensor *t, const common *s) {
    if (t->rank != s->rank) return 0;
    for (int i = 0; i < s->rank; i++)
        if (t->sizes[i] != s->sizes[i]) return 0;
    return 1;
}

/* Says where two shapes do not broadcast. */
static int refuse_shapes(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, const char *op) {
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        int64_t m = a->sizes[a->rank - i], n = b->sizes[b->rank - i];
        if (m != n && m != 1 && n != 1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                            "non-singleton dimension %d: input has shape %s, target %s", op, (long long)m, (long long)n,
                            (a->rank > b->rank ? a->rank : b->rank) - i, tgx_shape_text(a), tgx_shape_text(b));
    }
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: shapes fit", op);
}

static inline int meet(tgx_call *c, common *s, const tgx_tensor *x, const tgx_tensor *y, const char *op) {
    s->rank = 0, s->count = 1;
    if (tgx_same_sizes(x, y)) {         /* nearly always */
        s->rank = x->rank, s->count = x->count;
        for (int i = 0; i < x->rank; i++) s->sizes[i] = x->sizes[i];
        return 0;
    }
    if (tgx_broadcast(s->sizes, &s->rank, x) || tgx_broadcast(s->sizes, &s->rank, y)) return refuse_shapes(c, x, y, op);
    for (int i = 0; i < s->rank; i++) s->count *= s->sizes[i];
    return 0;
}

static int64_t room(const common *s, int dtype) { return (s->count * tgx_itemsize[dtype] + 15) & ~(int64_t)15; }

/* Let run find an operand dense, of the dtype, and in the common shape: in scratch, where it must be repeated. */
static void need(tgx_call *c, int i, const common *s, int dtype) {
    if (is_of(tgx_in(c, i), s)) tgx_need(c, i, dtype);
    else c->scratch_bytes += room(s, dtype);
}

static const char *repeated(tgx_call *c, int i, common *s, int dtype, char **at) {
    int64_t strides[TGX_MAX_DIMS], step = 1;
    tgx_tensor to = {.data = *at, .sizes = s->sizes, .strides = strides, .count = s->count, .rank = s->rank, .dtype = (int8_t)dtype,
                     .flags = TGX_CONTIGUOUS};
    for (int d = s->rank - 1; d >= 0; d--) strides[d] = step, step *= s->sizes[d];
    if (s->count) c->services->copy(&to, tgx_in(c, i));
    *at += room(s, dtype);
    return to.data;
}

static inline const char *spread(tgx_call *c, int i, common *s, int dtype, char **at) {
    return is_of(tgx_in(c, i), s) ? tgx_in(c, i)->data : repeated(c, i, s, dtype, at);
}

static int require_float(tgx_call *c, int dtype, const char *op) {
    if (dtype == TGX_F32 || dtype == TGX_F64) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': give floating tensors", op, tgx_dtype_title(dtype));
}

/* ---- squared error: (self, target, reduction) -------------------------------------------------------------------- */

static int64_t chunks(int64_t n) { return (n + TGX_LOSS_CHUNK - 1) / TGX_LOSS_CHUNK; }

static int mse_loss_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *y = tgx_in(c, 1);
    int dtype = tgx_promote(x->dtype, y->dtype), alike = tgx_same_sizes(x, y);
    common s;
    s.count = x->count;
    tgx_output *o;
    if (tgx_loss_reduction(c, 2, &c->notes[0]) || require_float(c, dtype, "mse_loss")) return TGX_FAILED;
    c->notes[1] = alike;
    if (alike) tgx_need(c, 0, dtype), tgx_need(c, 1, dtype);
    else if (meet(c, &s, x, y, "mse_loss")) return TGX_FAILED;
    else need(c, 0, &s, dtype), need(c, 1, &s, dtype);
    o = tgx_fresh(c, 0, 0, dtype);
    if (c->notes[0] == TGX_LOSS_NONE) {
        o->rank = alike ? x->rank : s.rank;
        memcpy(o->dims, alike ? x->sizes : s.sizes, (size_t)o->rank * sizeof(int64_t));
    }
    else if (chunks(s.count) > 1) c->scratch_bytes += chunks(s.count) * (int64_t)sizeof(double);
    return 0;
}

static int mse_loss_run(tgx_call *c) {
    tgx_tensor *out = tgx_out(c, 0);
    char *at = c->scratch;
    int dtype = out->dtype, code;
    double one = 0, total = 0;
    tgx_loss_job job = {.out = out->data, .x = tgx_in(c, 0)->data, .y = tgx_in(c, 1)->data, .n = tgx_in(c, 0)->count};
    if (!c->notes[1]) {
        common s;
        if (meet(c, &s, tgx_in(c, 0), tgx_in(c, 1), "mse_loss")) return TGX_FAILED;
        job.x = spread(c, 0, &s, dtype, &at), job.y = spread(c, 1, &s, dtype, &at), job.n = s.count;
    }
    if (c->notes[0] == TGX_LOSS_NONE) return tgx_range(c, loops()->square[dtype == TGX_F64], &job, job.n, TGX_SMALL);
    int64_t n = chunks(job.n);
    job.partial = n > 1 ? (double *)at : &one;
    if ((code = tgx_range(c, loops()->sum[dtype == TGX_F64], &job, n, 1))) return code;
    for (int64_t i = 0; i < n; i++) total += job.partial[i];
    tgx_loss_number(out, c->notes[0] == TGX_LOSS_SUM ? total : job.n ? total / (double)job.n : NAN);
    return 0;
}
TGX_KERNEL(mse_loss, mse_loss_shape, mse_loss_run, 0)

/* (grad_output, self, target, reduction): 2 (self - target) grad_output, spread over the mean. */
static int mse_loss_backward_shape(tgx_call *c) {
    static const char op[] = "_mse_loss_backward";
    const tgx_tensor *g = tgx_in(c, 0), *x = tgx_in(c, 1), *y = tgx_in(c, 2);
    int dtype = tgx_promote(tgx_promote(x->dtype, y->dtype), g->dtype);
    common s;
    tgx_output *o;
    if (tgx_loss_reduction(c, 3, &c->notes[0]) || require_float(c, dtype, op) || meet(c, &s, x, y, op)) return TGX_FAILED;
    need(c, 1, &s, dtype);
    need(c, 2, &s, dtype);
    o = tgx_fresh(c, 0, s.rank, dtype);
    memcpy(o->dims, s.sizes, (size_t)s.rank * sizeof(int64_t));
    if (c->notes[0] != TGX_LOSS_NONE) {
        if (g->count != 1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "a Tensor with %lld elements cannot be converted to Scalar", (long long)g->count);
        tgx_need_dtype(c, 0, g->dtype == TGX_F32 ? TGX_F32 : TGX_F64);
        return 0;
    }
    if (tgx_broadcast(s.sizes, &s.rank, g) || s.rank != o->rank || memcmp(s.sizes, o->dims, (size_t)s.rank * sizeof(int64_t)))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_mse_loss_backward: grad_output of shape %s does not fit %s", tgx_shape_text(g),
                        tgx_sizes_text(o->dims, o->rank));
    need(c, 0, &s, dtype);
    return 0;
}

static int mse_loss_backward_run(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0);
    tgx_tensor *out = tgx_out(c, 0);
    char *at = c->scratch;
    int dtype = out->dtype;
    common s;
    tgx_loss_job job = {.out = out->data, .scale = 2};
    if (meet(c, &s, tgx_in(c, 1), tgx_in(c, 2), "")) return TGX_FAILED;
    job.x = spread(c, 1, &s, dtype, &at), job.y = spread(c, 2, &s, dtype, &at);
    if (c->notes[0] == TGX_LOSS_NONE) job.grad = spread(c, 0, &s, dtype, &at);
    else {
        double k = g->dtype == TGX_F32 ? (double)*(const float *)g->data : *(const double *)g->data;
        job.scale *= k / (double)(c->notes[0] == TGX_LOSS_MEAN && s.count ? s.count : 1);
    }
    return tgx_range(c, loops()->slope[dtype == TGX_F64], &job, s.count, TGX_SMALL);
}
TGX_KERNEL(mse_loss_backward, mse_loss_backward_shape, mse_loss_backward_run, 0)
