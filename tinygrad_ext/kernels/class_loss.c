/* Losses of classes: negative log likelihood and cross entropy, each with its derivative.
 *
 * They see their input as (outer, classes, inner) and their targets as (outer, inner); a target equal to ignore_index
 * counts nothing. Cross entropy keeps one number a row for its derivative, the logarithm of the sum of exponentials. Rejected:
 * log_softmax and then nll_loss, which keeps a matrix and took 1.3 times as long for 128 x 1000, with and without derivative. */
#include "loss.h"
#include "make.h"
#include "once.h"
#include "softmax.h"
#include "wide.h"

typedef struct {
    int64_t outer, classes, inner, ignore;
    const int64_t *target;
    const char *weight;         /* NULL: all one */
    int chosen;                 /* whether the input is one number for each target, that of its class */
} classes;

/* The class of target i, or -1 for one that does not count: ignored, or overwritten since it was checked. */
static inline int64_t target_at(const classes *k, int64_t i) {
    int64_t t = tgx_once(k->target + i);
    return t != k->ignore && t >= 0 && t < k->classes ? t : -1;
}

#define T float
#define NAME(x) x##_f32
#include "class_loss_rows.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "class_loss_rows.h"
#undef T
#undef NAME

static double total_weight(const classes *k, int dtype) { return dtype == TGX_F64 ? total_weight_f64(k) : total_weight_f32(k); }

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int require_float(tgx_call *c, int dtype, const char *op) {
    if (dtype == TGX_F32 || dtype == TGX_F64) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the input to float32 or float64 first", op,
                    tgx_dtype_title(dtype));
}

/* Fill the sizes of k, and compare target's shape with the input's. */
static int lay(tgx_call *c, classes *k, const int64_t *sizes, int rank, const tgx_tensor *target) {
    int fits = target->rank == rank - 1;
    int64_t n, rest[TGX_MAX_DIMS];
    if (rank == 0) return tgx_fail(c, TGX_VALUE_ERROR, "Expected 1 or more dimensions (got 0): the input needs a dimension of classes");
    k->outer = k->inner = 1;
    k->classes = sizes[rank == 1 ? 0 : 1];
    if (rank == 1) {
        if (target->count == 1 && target->rank <= 1) return 0;
        return tgx_fail(c, TGX_RUNTIME_ERROR, "0D or 1D target tensor expected, multi-target not supported: an input of shape (%lld,) has "
                        "one target, got shape %s", (long long)sizes[0], tgx_shape_text(target));
    }
    k->outer = sizes[0];
    n = target->rank ? target->sizes[0] : 1;
    if (n != sizes[0])
        return tgx_fail(c, TGX_VALUE_ERROR, "Expected input batch_size (%lld) to match target batch_size (%lld).", (long long)sizes[0],
                        (long long)n);
    if (rank == 2 && target->rank > 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "0D or 1D target tensor expected, multi-target not supported: got a target of shape %s",
                        tgx_shape_text(target));
    rest[0] = sizes[0];
    for (int i = 2; i < rank; i++) {
        k->inner *= sizes[i];
        rest[i - 1] = sizes[i];
        fits = fits && target->sizes[i - 1] == sizes[i];
    }
    if (rank > 2 && !fits)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected target size %s, got %s", tgx_sizes_text(rest, rank - 1), tgx_shape_text(target));
    return 0;
}

/* For shape: sizes and dtypes fit an input of these sizes. Numbers of the arguments. */
static int check(tgx_call *c, const int64_t *sizes, int rank, int dtype, int target, int weight, int reduction) {
    const tgx_tensor *t = tgx_in(c, target), *w = tgx_in(c, weight);
    classes k;
    if (tgx_loss_reduction(c, reduction, &c->notes[0]) || lay(c, &k, sizes, rank, t)) return TGX_FAILED;
    if (t->dtype != TGX_I64 && t->dtype != TGX_U8)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "expected target dtype to be Long or Byte, but got %s: targets are class numbers; convert "
                        "them with target.long()", tgx_dtype_title(t->dtype));
    tgx_need(c, target, TGX_I64);
    if (!tgx_given(c, weight)) return 0;
    if (w->rank != 1 || w->sizes[0] != k.classes)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "weight tensor should be defined either for all %lld classes or no classes but got weight "
                        "tensor of shape: %s", (long long)k.classes, tgx_shape_text(w));
    if (w->dtype != dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "expected scalar type %s but found %s for weight: convert it to the input's dtype",
                        tgx_dtype_title(dtype), tgx_dtype_title(w->dtype));
    tgx_need_dense(c, weight);
    return 0;
}

/* For run: k over the memory of target and weight, whose class numbers are looked at. */
static int open_classes(tgx_call *c, classes *k, const int64_t *sizes, int rank, int target, int weight, int ignore) {
    if (lay(c, k, sizes, rank, tgx_in(c, target))) return TGX_FAILED;
    k->target = (const int64_t *)tgx_in(c, target)->data, k->ignore = tgx_int(c, ignore);
    k->chosen = 0, k->weight = tgx_given(c, weight) ? tgx_in(c, weight)->data : NULL;
    for (int64_t i = 0; i < k->outer * k->inner; i++) {
        int64_t t = tgx_once(k->target + i);
        if (t != k->ignore && (t < 0 || t >= k->classes))
            return tgx_fail(c, TGX_INDEX_ERROR, "Target %lld is out of bounds. Targets are class numbers from 0 to %lld, or "
                            "ignore_index, which is %lld", (long long)t, (long long)k->classes - 1, (long long)k->ignore);
    }
    return 0;
}

/* The loss: one number, or one for each target. */
static void loss_result(tgx_call *c, const tgx_tensor *x, const tgx_tensor *target) {
    if (c->notes[0] == TGX_LOSS_NONE) tgx_like(c, 0, target, x->dtype);
    else tgx_fresh(c, 0, 0, x->dtype);
}

static void put_loss(tgx_call *c, const classes *k, const tgx_tensor *x, const void *lse) {
    tgx_tensor *out = tgx_out(c, 0);
    void *each = c->notes[0] == TGX_LOSS_NONE ? out->data : NULL;
    double total = x->dtype == TGX_F64 ? picked_f64(k, x->data, lse, each) : picked_f32(k, x->data, lse, each);
    if (each) return;
    tgx_loss_number(out, c->notes[0] == TGX_LOSS_MEAN ? total / total_weight(k, x->dtype) : total);
}

/* The gradient fits the loss over these targets. */
static int check_gradient(tgx_call *c, int arg, int dtype, const tgx_tensor *target) {
    const tgx_tensor *g = tgx_in(c, arg);
    if (g->count != (c->notes[0] == TGX_LOSS_NONE ? target->count : 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "grad_output of shape %s does not fit a loss over targets of shape %s", tgx_shape_text(g),
                        tgx_shape_text(target));
    tgx_need(c, arg, dtype);
    return 0;
}

static void put_scales(tgx_call *c, const classes *k, const tgx_tensor *g, void *to) {
    if (g->dtype == TGX_F64) scales_f64(k, g->data, c->notes[0], to);
    else scales_f32(k, g->data, c->notes[0], to);
}

static void subtract(const classes *k, tgx_tensor *out, const void *scale) {
    if (out->dtype == TGX_F64) subtract_f64(k, out->data, scale);
    else subtract_f32(k, out->data, scale);
}

/* ---- negative log likelihood: (self, target, weight, reduction, ignore_index) ------------------------------------ */

/* Of halves those of the targets' classes alone are widened: one of a row, where a copy in float32 has all. */
static void widen_chosen(classes *k, const uint16_t *x, int half, uint16_t *room, float *to) {
    int64_t i = 0;
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t n = 0; n < k->inner; n++, i++) {
            const int64_t t = target_at(k, i);
            room[i] = t < 0 ? 0 : x[(o * k->classes + t) * k->inner + n];
        }
    tgx_widen(half, room, to, i);
    k->chosen = 1;
}

/* Scratch for a float and a half of each target; the weights in float32. */
static void need_halves(tgx_call *c, int64_t targets, int weight) {
    c->scratch_bytes = targets * (int64_t)(sizeof(float) + sizeof(uint16_t));
    if (tgx_given(c, weight)) tgx_need(c, weight, TGX_F32);
}

static int nll_loss_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    const int half = tgx_is_half(x->dtype);
    if (check(c, x->sizes, x->rank, x->dtype, 1, 2, 3) || (!half && require_float(c, x->dtype, "nll_loss"))) return TGX_FAILED;
    if (half) need_halves(c, tgx_in(c, 1)->count, 2);
    tgx_need_dense(c, 0);
    loss_result(c, x, tgx_in(c, 1));
    return 0;
}

static int nll_loss_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *target = tgx_in(c, 1);
    tgx_tensor *out = tgx_out(c, 0);
    float *own = c->scratch, one;
    classes k;
    if (open_classes(c, &k, x->sizes, x->rank, 1, 2, 4)) return TGX_FAILED;
    if (!tgx_is_half(x->dtype)) return put_loss(c, &k, x, NULL), 0;
    widen_chosen(&k, (const uint16_t *)x->data, x->dtype, (uint16_t *)(own + target->count), own);
    const double total = picked_f32(&k, own, NULL, own);
    one = (float)(c->notes[0] == TGX_LOSS_MEAN ? total / total_weight_f32(&k) : total);
    if (c->notes[0] == TGX_LOSS_NONE) tgx_narrow(x->dtype, own, out->data, out->count);
    else tgx_narrow(x->dtype, &one, out->data, 1);
    return 0;
}
TGX_KERNEL(nll_loss, nll_loss_shape, nll_loss_run, 0)

/* (grad_output, target, weight, sizes, reduction, ignore_index) */
static int nll_loss_backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0);
    const int half = tgx_is_half(g->dtype);
    if ((!half && require_float(c, g->dtype, "_nll_loss_backward")) || tgx_sized(c, 0, 3, g->dtype)) return TGX_FAILED;
    if (check(c, c->args[3].ints, c->args[3].n, g->dtype, 1, 2, 4)) return TGX_FAILED;
    if (half) need_halves(c, tgx_in(c, 1)->count, 2);
    else c->scratch_bytes = tgx_in(c, 1)->count * tgx_itemsize[g->dtype];
    return check_gradient(c, 0, half ? TGX_F32 : g->dtype, tgx_in(c, 1));
}

static int nll_loss_backward_run(tgx_call *c) {
    tgx_tensor *out = tgx_out(c, 0);
    classes k;
    if (open_classes(c, &k, out->sizes, out->rank, 1, 2, 5)) return TGX_FAILED;
    put_scales(c, &k, tgx_in(c, 0), c->scratch);
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    if (!tgx_is_half(out->dtype)) return subtract(&k, out, c->scratch), 0;
    const int64_t targets = k.outer * k.inner;
    float *scale = c->scratch;
    uint16_t *halves = (uint16_t *)(scale + targets), *to = (uint16_t *)out->data;
    for (int64_t i = 0; i < targets; i++) scale[i] = 0 - scale[i];
    tgx_narrow(out->dtype, scale, halves, targets);
    for (int64_t i = 0; i < targets; i++) {
        const int64_t t = target_at(&k, i);
        if (t >= 0) to[(i / k.inner * k.classes + t) * k.inner + i % k.inner] = halves[i];
    }
    return 0;
}
TGX_KERNEL(nll_loss_backward, nll_loss_backward_shape, nll_loss_backward_run, 0)

/* ---- cross entropy: (self, target, weight, reduction, ignore_index) -> (loss, log of the sum of exponentials) ---- */

static int cross_entropy_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_output *o;
    if (check(c, x->sizes, x->rank, x->dtype, 1, 2, 3) || require_float(c, x->dtype, "cross_entropy")) return TGX_FAILED;
    tgx_need_dense(c, 0);
    loss_result(c, x, tgx_in(c, 1));
    o = tgx_fresh(c, 1, 0, x->dtype);
    for (int i = 0; i < x->rank; i++)
        if (i != (x->rank > 1)) o->dims[o->rank++] = x->sizes[i];
    return 0;
}

static int cross_entropy_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_tensor *lse = tgx_out(c, 1);
    tgx_softmax_job job = {.out = lse->data, .a = x->data};
    classes k;
    int code;
    if (open_classes(c, &k, x->sizes, x->rank, 1, 2, 4)) return TGX_FAILED;
    for (int64_t i = 0; x->count == 0 && i < lse->count; i++) {
        if (lse->dtype == TGX_F64) ((double *)lse->data)[i] = -__builtin_inf();
        else ((float *)lse->data)[i] = -__builtin_inff();
    }
    code = tgx_softmax_rows(c, tgx_softmax_loops()->lse, &job, x, x->rank > 1);
    if (code) return code;
    put_loss(c, &k, x, lse->data);
    return 0;
}
TGX_KERNEL(cross_entropy, cross_entropy_shape, cross_entropy_run, 0)

/* (grad_output, self, lse, target, weight, reduction, ignore_index) */
static int cross_entropy_backward_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 1), *lse = tgx_in(c, 2), *target = tgx_in(c, 3);
    if (require_float(c, x->dtype, "_cross_entropy_backward") || check(c, x->sizes, x->rank, x->dtype, 3, 4, 5)) return TGX_FAILED;
    if (lse->dtype != x->dtype || lse->count != target->count)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_cross_entropy_backward: lse of shape %s does not belong to input %s", tgx_shape_text(lse),
                        tgx_shape_text(x));
    tgx_need_dense(c, 1);
    tgx_need_dense(c, 2);
    tgx_like(c, 0, x, x->dtype);
    c->scratch_bytes = target->count * tgx_itemsize[x->dtype];
    return check_gradient(c, 0, x->dtype, target);
}

static int cross_entropy_backward_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 1);
    tgx_tensor *out = tgx_out(c, 0);
    tgx_softmax_job job = {.out = out->data, .a = x->data, .b = tgx_in(c, 2)->data, .c = c->scratch};
    classes k;
    int code;
    if (open_classes(c, &k, x->sizes, x->rank, 3, 4, 6)) return TGX_FAILED;
    put_scales(c, &k, tgx_in(c, 0), c->scratch);
    code = tgx_softmax_rows(c, tgx_softmax_loops()->scaled, &job, x, x->rank > 1);
    if (code) return code;
    subtract(&k, out, c->scratch);
    return 0;
}
TGX_KERNEL(cross_entropy_backward, cross_entropy_backward_shape, cross_entropy_backward_run, 0)

/* (grad_output, self, target, weight, reduction, ignore_index): the factor of each target's row, see scales(). */
static int class_scale_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *x = tgx_in(c, 1);
    if (require_float(c, g->dtype, "_class_scale") || check(c, x->sizes, x->rank, g->dtype, 2, 3, 4)) return TGX_FAILED;
    tgx_like(c, 0, tgx_in(c, 2), g->dtype);
    return check_gradient(c, 0, g->dtype, tgx_in(c, 2));
}

static int class_scale_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 1);
    classes k;
    if (open_classes(c, &k, x->sizes, x->rank, 2, 3, 5)) return TGX_FAILED;
    put_scales(c, &k, tgx_in(c, 0), tgx_out(c, 0)->data);
    return 0;
}
TGX_KERNEL(class_scale, class_scale_shape, class_scale_run, 0)
