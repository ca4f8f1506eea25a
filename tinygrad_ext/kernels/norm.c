/* Layer norm and batch norm with their derivatives. The loops are in norm_layer.h and norm_batch.h. */
#include "channels.h"
#include "norm_call.h"
#include "norm_halves.h"
#include <math.h>
#include "wide.h"

static double at(const char *data, int dtype, int64_t i) {
    return dtype == TGX_F32 ? ((const float *)data)[i] : ((const double *)data)[i];
}

static void put(char *data, int dtype, int64_t i, double value) {
    if (dtype == TGX_F32) ((float *)data)[i] = (float)value;
    else ((double *)data)[i] = value;
}

/* ---- layer norm -------------------------------------------------------------------------------------------------- */

static int ends_in(const tgx_tensor *t, const int64_t *sizes, int n) {
    if (n > t->rank) return 0;
    for (int i = 0; i < n; i++)
        if (t->sizes[t->rank - n + i] != sizes[i]) return 0;
    return 1;
}

static int layer_parameter(tgx_call *c, int arg, const tgx_tensor *x, const tgx_value *shape, const char *name) {
    const tgx_tensor *t = tgx_in(c, arg);
    if (parameter(c, arg, x->dtype)) return TGX_FAILED;
    if (t->rank == shape->n && ends_in(t, shape->ints, shape->n)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected %s to be of same shape as normalized_shape, but got %s of shape %s and "
                    "normalized_shape = %s", name, name, tgx_shape_text(t), tgx_sizes_text(shape->ints, shape->n));
}

static int refuse_input(tgx_call *c, const tgx_tensor *x, const tgx_value *shape) {
    const char *sizes = tgx_sizes_text(shape->ints, shape->n);
    int inside = (int)strlen(sizes) - 2;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Given normalized_shape=%s, expected input with shape [*, %.*s], but got input of size%s",
                    sizes, inside, sizes + 1, tgx_shape_text(x));
}

/* The input, and the number of arguments for the shape, weight and bias (0: none). */
static int layer_operands(tgx_call *c, const tgx_tensor *x, int shape_arg, int weight, int bias) {
    const tgx_value *shape = &c->args[shape_arg];
    if (shape->n == 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                        "element, but got normalized_shape = []");
    if (tgx_given(c, weight) && layer_parameter(c, weight, x, shape, "weight")) return TGX_FAILED;
    if (bias && tgx_given(c, bias) && layer_parameter(c, bias, x, shape, "bias")) return TGX_FAILED;
    return ends_in(x, shape->ints, shape->n) ? 0 : refuse_input(c, x, shape);
}

static void open_layer(tgx_layer_norm_job *job, const tgx_tensor *x, const tgx_value *shape) {
    job->n = 1;
    for (int i = 0; i < shape->n; i++) job->n *= shape->ints[i];
    job->rows = job->n ? x->count / job->n : 0;
}

/* Whether rows of halves can be widened a few at a time; parameters of their dtype or of float32. What is not as it should be is
 * refused as of whole tensors in float32. */
static int short_half_rows(tgx_call *c, const tgx_tensor *x) {
    const tgx_value *shape = &c->args[1];
    tgx_layer_norm_job job;
    if (!shape->n || !ends_in(x, shape->ints, shape->n)) return 0;
    open_layer(&job, x, shape);
    for (int i = 2; i < 4; i++) {
        if (!tgx_given(c, i)) continue;
        const tgx_tensor *t = tgx_in(c, i);
        if ((t->dtype != x->dtype && t->dtype != TGX_F32) || t->rank != shape->n || !ends_in(t, shape->ints, shape->n)) return 0;
    }
    return job.n <= TGX_WIDE_ROW;
}

/* (input, normalized_shape, weight, bias, eps, ...) */
static int layer_norm_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (tgx_is_half(x->dtype) && short_half_rows(c, x)) {
        for (int i = 2; i < 4; i++)
            if (tgx_given(c, i)) tgx_need(c, i, TGX_F32);
    } else if (require_float(c, x, "layer_norm") || layer_operands(c, x, 1, 2, 3)) return TGX_FAILED;
    tgx_need_dense(c, 0);
    tgx_like(c, 0, x, x->dtype);
    return 0;
}

static int half_layer(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_layer_norm_job *job = ctx;
    float x[TGX_WIDE_ROW];
    tgx_layer_norm_job rows = *job;
    const ptrdiff_t step = tgx_wide_rows(job->n);
    rows.x = rows.out = (char *)x;
    for (; lo < hi; lo += step) {
        const ptrdiff_t some = hi - lo < step ? hi - lo : step, at = lo * job->n * 2;
        tgx_widen(job->half, job->x + at, x, some * job->n);
        loops()->layer[0](&rows, 0, some);
        tgx_narrow(job->half, x, job->out + at, some * job->n);
    }
    return 0;
}

static int layer_norm_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_layer_norm_job job = {.out = tgx_out(c, 0)->data, .x = x->data, .eps = tgx_float(c, 4)};
    open_layer(&job, x, &c->args[1]);
    job.weight = data_of(c, 2), job.bias = data_of(c, 3);
    if (tgx_is_half(x->dtype)) job.half = x->dtype;
    return run(c, job.half ? half_layer : loops()->layer[x->dtype == TGX_F64], &job, job.rows, x->count);
}
TGX_KERNEL(layer_norm, layer_norm_shape, layer_norm_run, TGX_MIXES)

/* Parts for the sums over rows, by the sizes alone, so that threads change nothing. */
static int64_t part_count(int64_t rows) {
    int64_t parts = rows / 16;
    return parts < 1 ? 1 : parts > 16 ? 16 : parts;
}

/* (grad_output, self, normalized_shape, weight, eps, output_mask) */
static int layer_backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *x = tgx_in(c, 1);
    const tgx_value *shape = &c->args[2];
    const int64_t *wanted = c->args[5].ints;
    tgx_layer_norm_job job;
    if (require_float(c, x, c->title) || layer_operands(c, x, 2, 3, 0) || same_count(c, g, x)) return TGX_FAILED;
    tgx_need(c, 0, x->dtype);
    tgx_need_dense(c, 1);
    if (wanted[0]) tgx_like(c, 0, x, x->dtype);
    else tgx_absent(c, 0);
    for (int k = 1; k < 3; k++) {
        if (wanted[k]) tgx_fresh(c, k, shape->n, x->dtype)->sizes = shape->ints;
        else tgx_absent(c, k);
    }
    open_layer(&job, x, shape);
    if (wanted[1] || wanted[2]) c->scratch_bytes = 2 * job.n * (part_count(job.rows) + 1) * tgx_itemsize[x->dtype];
    return 0;
}

/* Sums of the parts, in their order. */
#define ADD_PARTS(T, name)                                                                                  \
    static void add_parts_##name(const tgx_layer_norm_job *job, const T *sums, T *gain, T *shift) {          \
        for (int64_t i = 0; i < job->n; i++) gain[i] = sums[i], shift[i] = sums[job->n + i];                 \
        for (int64_t part = 1; part < job->parts; part++) {                                                  \
            sums += 2 * job->n;                                                                              \
            for (int64_t i = 0; i < job->n; i++) gain[i] += sums[i], shift[i] += sums[job->n + i];           \
        }                                                                                                    \
    }
ADD_PARTS(float, f32)
ADD_PARTS(double, f64)

static int layer_backward_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 1);
    const int64_t *wanted = c->args[5].ints;
    int wide = x->dtype == TGX_F64;
    tgx_layer_norm_job job = {.x = x->data, .grad = tgx_in(c, 0)->data, .weight = data_of(c, 3), .eps = tgx_float(c, 4)};
    open_layer(&job, x, &c->args[2]);
    job.out = wanted[0] ? tgx_out(c, 0)->data : NULL;
    job.parts = part_count(job.rows);
    if (!wanted[1] && !wanted[2]) return run(c, loops()->layer_backward[wide], &job, x->count ? job.parts : 0, x->count);
    int64_t row = job.n * tgx_itemsize[x->dtype];
    char *spare = (char *)c->scratch + 2 * row * job.parts;
    char *gain = wanted[1] ? tgx_out(c, 1)->data : spare, *shift = wanted[2] ? tgx_out(c, 2)->data : spare + row;
    job.sums = c->scratch;
    if (row) memset(job.sums, 0, (size_t)(2 * row * job.parts));
    int code = run(c, loops()->layer_backward[wide], &job, x->count ? job.parts : 0, x->count);
    if (wide) add_parts_f64(&job, (double *)job.sums, (double *)gain, (double *)shift);
    else add_parts_f32(&job, (float *)job.sums, (float *)gain, (float *)shift);
    return code;
}
TGX_KERNEL(layer_norm_backward, layer_backward_shape, layer_backward_run, TGX_MIXES)

/* ---- batch norm -------------------------------------------------------------------------------------------------- */

static void open_batch(tgx_batch_norm_job *job, const tgx_tensor *x) {
    job->outer = x->rank ? x->sizes[0] : 0, job->channels = x->rank > 1 ? x->sizes[1] : 0, job->inner = 1;
    for (int i = 2; i < x->rank; i++) job->inner *= x->sizes[i];
}

static int check_channels(tgx_call *c, int arg, int64_t channels, const char *name) {
    if (!tgx_given(c, arg) || tgx_in(c, arg)->count == channels) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s should contain %lld elements not %lld: one for each channel, the input's dimension 1", name,
                    (long long)channels, (long long)tgx_in(c, arg)->count);
}

static int check_rank(tgx_call *c, const tgx_tensor *x, const char *op, const char *name) {
    if (x->rank >= 2) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s needs at least 2 dimensions (N, C, ...), got shape %s", op, name, tgx_shape_text(x));
}

static int run_sums(tgx_call *c, tgx_norm_fn fn, tgx_batch_norm_job *job, int64_t count) {
    int64_t units = job->channels;
    if (job->inner == 1) units = (units + TGX_NORM_COLUMNS - 1) / TGX_NORM_COLUMNS;
    return run(c, fn, job, units, count);
}

static int run_rows(tgx_call *c, tgx_norm_fn fn, tgx_batch_norm_job *job, int64_t count) {
    return run(c, fn, job, job->inner == 1 ? job->outer : job->outer * job->channels, count);
}

static int check_running(tgx_call *c, int arg, int dtype, const char *name) {
    const tgx_tensor *t = tgx_in(c, arg);
    if (!tgx_given(c, arg)) return 0;
    if (t->dtype != dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "mixed dtype (CPU): expect parameter to have scalar type of %s, but %s is %s",
                        tgx_dtype_title(dtype), name, tgx_dtype_title(t->dtype));
    if (t->rank > 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s should have one dimension, got shape %s", name, tgx_shape_text(t));
    return 0;
}

enum { WEIGHT = 1, BIAS, RUNNING_MEAN, RUNNING_VAR, TRAINING, MOMENTUM, EPS };

/* Halves of one dtype in evaluation are widened a few at a time; what is not so is computed, or refused, as float32. */
static int halves_shape(tgx_call *c, const tgx_tensor *x) {
    tgx_batch_norm_job job;
    open_batch(&job, x);
    if (x->rank < 2 || tgx_int(c, TRAINING) || tgx_channels_inside(x) || !tgx_given(c, RUNNING_MEAN)
        || !tgx_given(c, RUNNING_VAR)) return 0;
    for (int k = WEIGHT; k <= RUNNING_VAR; k++) {
        const tgx_tensor *t = tgx_in(c, k);
        if (tgx_given(c, k) && (t->dtype != x->dtype || t->rank != 1 || t->count != job.channels)) return 0;
    }
    for (int k = WEIGHT; k <= RUNNING_VAR; k++)
        if (tgx_given(c, k)) tgx_need(c, k, TGX_F32);
    tgx_like(c, 0, x, x->dtype);
    for (int k = 1; k < 3; k++) {
        tgx_output *o = tgx_fresh(c, k, 1, x->dtype);
        o->dims[0] = job.channels, o->via = TGX_F32;
    }
    c->scratch_bytes = 2 * job.channels * (int64_t)(sizeof(double) + sizeof(float));
    tgx_need_dense(c, 0);
    return 1;
}

/* native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps) */
static int batch_norm_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_batch_norm_job job;
    if (tgx_is_half(x->dtype) && halves_shape(c, x)) return 0;
    if (require_float(c, x, "batch_norm")) return TGX_FAILED;
    open_batch(&job, x);
    if (!tgx_int(c, TRAINING) && !(tgx_given(c, RUNNING_MEAN) && tgx_given(c, RUNNING_VAR)))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "running_%s must be defined in evaluation mode", tgx_given(c, RUNNING_MEAN) ? "var" : "mean");
    if (check_channels(c, RUNNING_MEAN, job.channels, "running_mean") || check_channels(c, RUNNING_VAR, job.channels, "running_var")
        || check_channels(c, WEIGHT, job.channels, "weight") || check_channels(c, BIAS, job.channels, "bias")
        || check_rank(c, x, "batch_norm", "the input") || check_running(c, RUNNING_MEAN, x->dtype, "running_mean")
        || check_running(c, RUNNING_VAR, x->dtype, "running_var") || parameter(c, WEIGHT, x->dtype) || parameter(c, BIAS, x->dtype))
        return TGX_FAILED;
    if (tgx_int(c, TRAINING) && x->count) tgx_changes(c, RUNNING_MEAN), tgx_changes(c, RUNNING_VAR);
    tgx_like(c, 0, x, x->dtype);
    for (int k = 1; k < 3; k++) tgx_fresh(c, k, 1, x->dtype)->dims[0] = job.channels;
    c->scratch_bytes = 2 * job.channels * (int64_t)(sizeof(double) + (size_t)tgx_itemsize[x->dtype]);
    if (!c->target && !(x->flags & TGX_CONTIGUOUS) && tgx_channels_dense(x)) {
        if (tgx_int(c, TRAINING)) c->scratch_bytes += x->count * tgx_itemsize[x->dtype]; /* sums are those of rows */
        return tgx_keep_channels(c, x);
    }
    tgx_need_dense(c, 0);
    return tgx_keep_channels_by_copy(c, x);
}

/* Element i of a running statistic, wherever its stride puts it. */
static int64_t place(const tgx_tensor *running, int64_t i) { return i * (running->rank ? running->strides[0] : 1); }

static void update(tgx_tensor *running, int64_t i, double value, double momentum) {
    int64_t k = place(running, i);
    put(running->data, running->dtype, k, momentum * value + (1 - momentum) * at(running->data, running->dtype, k));
}

/* Mean and 1 / sqrt(variance + eps) of each channel; the running values follow, with the unbiased variance. */
static int statistics(tgx_call *c, tgx_batch_norm_job *job, char *mean, char *invstd) {
    const tgx_tensor *x = tgx_in(c, 0);
    double momentum = tgx_float(c, MOMENTUM), eps = tgx_float(c, EPS);
    int64_t n = job->outer * job->inner;
    int code = run_sums(c, loops()->moments[x->dtype == TGX_F64], job, x->count);
    for (int64_t i = 0; i < job->channels; i++) {
        put(mean, x->dtype, i, job->a[i]);
        put(invstd, x->dtype, i, 1 / sqrt(job->b[i] / (double)n + eps));
        if (tgx_given(c, RUNNING_MEAN)) update(tgx_in(c, RUNNING_MEAN), i, job->a[i], momentum);
        if (tgx_given(c, RUNNING_VAR)) update(tgx_in(c, RUNNING_VAR), i, job->b[i] / (double)(n - 1), momentum);
    }
    return code;
}

/* The same of an input as it lies. Channels side by side are laid out in rows first, in `room`, so that the sums are the same. */
static int sum_rows(tgx_call *c, tgx_batch_norm_job *job, char *room, char *mean, char *invstd) {
    const tgx_tensor *x = tgx_in(c, 0);
    int64_t strides[5], step = 1;
    tgx_tensor rows = *x;
    if (x->flags & TGX_CONTIGUOUS) return statistics(c, job, mean, invstd);
    rows.data = room, rows.strides = strides;
    for (int d = x->rank - 1; d >= 0; d--) strides[d] = step, step *= x->sizes[d];
    int code = c->services->copy(&rows, x);
    if (code) return code;
    job->x = room;
    code = statistics(c, job, mean, invstd);
    job->x = x->data;
    return code;
}

static void take_running(tgx_call *c, int64_t channels, int dtype, char *mean, char *invstd) {
    const tgx_tensor *m = tgx_in(c, RUNNING_MEAN), *v = tgx_in(c, RUNNING_VAR);
    for (int64_t i = 0; i < channels; i++) {
        put(mean, dtype, i, tgx_given(c, RUNNING_MEAN) ? at(m->data, dtype, place(m, i)) : 0);
        put(invstd, dtype, i, tgx_given(c, RUNNING_VAR) ? 1 / sqrt(at(v->data, dtype, place(v, i)) + tgx_float(c, EPS)) : 1);
    }
}

static int batch_norm_rows(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    const char *weight = data_of(c, WEIGHT), *bias = data_of(c, BIAS);
    char *mean = tgx_out(c, 1)->data, *invstd = tgx_out(c, 2)->data;
    const int half = tgx_is_half(x->dtype) ? x->dtype : 0, dtype = half ? TGX_F32 : x->dtype;
    int code = 0;
    tgx_batch_norm_job job = {.out = tgx_out(c, 0)->data, .x = x->data, .mean = mean, .half = half};
    open_batch(&job, x);
    job.a = c->scratch, job.b = job.a + job.channels;
    char *scale = (char *)(job.b + job.channels), *shift = scale + job.channels * tgx_itemsize[dtype];
    if (tgx_int(c, TRAINING) && x->count) code = sum_rows(c, &job, shift + job.channels * tgx_itemsize[dtype], mean, invstd);
    else take_running(c, job.channels, dtype, mean, invstd);
    if (code) return code;
    if (!(x->flags & TGX_CONTIGUOUS)) job.outer *= job.inner, job.inner = 1;
    for (int64_t i = 0; i < job.channels; i++) {
        put(scale, dtype, i, at(invstd, dtype, i) * (weight ? at(weight, dtype, i) : 1));
        put(shift, dtype, i, bias ? at(bias, dtype, i) : 0);
    }
    job.scale = scale, job.shift = shift;
    return run_rows(c, half ? tgx_apply_halves : loops()->apply[dtype == TGX_F64], &job, x->count);
}

static int batch_norm_run(tgx_call *c) {
    return tgx_in(c, 0)->flags & TGX_CONTIGUOUS ? tgx_run_rows(c, batch_norm_rows) : batch_norm_rows(c);
}
TGX_KERNEL(batch_norm, batch_norm_shape, batch_norm_run, TGX_MIXES)

/* _batch_norm_backward(grad_output, self, weight, mean, invstd, training, eps, output_mask) */
static int batch_backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *x = tgx_in(c, 1);
    tgx_batch_norm_job job;
    if (require_float(c, x, c->title) || check_rank(c, x, c->title, "self") || parameter(c, 2, x->dtype) || parameter(c, 3, x->dtype)
        || parameter(c, 4, x->dtype) || same_count(c, g, x)) return TGX_FAILED;
    open_batch(&job, x);
    if (check_channels(c, 2, job.channels, "weight") || check_channels(c, 3, job.channels, "mean")
        || check_channels(c, 4, job.channels, "invstd")) return TGX_FAILED;
    tgx_need(c, 0, x->dtype);
    tgx_need_dense(c, 1);
    for (int k = 0; k < 3; k++) {
        if (!c->args[7].ints[k]) tgx_absent(c, k);
        else if (k == 0) tgx_like(c, 0, x, x->dtype);
        else tgx_fresh(c, k, 1, x->dtype)->dims[0] = job.channels;
    }
    c->scratch_bytes = job.channels * (2 * (int64_t)sizeof(double) + 4 * tgx_itemsize[x->dtype]);
    return 0;
}

static int batch_backward_run(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *x = tgx_in(c, 1);
    const char *weight = data_of(c, 2), *mean = data_of(c, 3), *invstd = data_of(c, 4);
    const int64_t *wanted = c->args[7].ints;
    int training = (int)tgx_int(c, 5), dtype = x->dtype, code = 0;
    tgx_batch_norm_job job = {.x = x->data, .grad = g->data, .mean = mean};
    open_batch(&job, x);
    if (job.channels == 0) return 0;
    int64_t row = job.channels * tgx_itemsize[dtype];
    double n = job.outer * job.inner > 1 ? (double)(job.outer * job.inner) : 1;
    job.a = c->scratch, job.b = job.a + job.channels;
    char *scale = (char *)(job.b + job.channels), *shift = scale + row, *slope = shift + row, *zeros = slope + row;
    memset(c->scratch, 0, 2 * (size_t)job.channels * sizeof(double));
    if (x->count && (training || wanted[1] || wanted[2])) code = run_sums(c, loops()->products[dtype == TGX_F64], &job, x->count);
    for (int64_t i = 0; i < job.channels; i++) {
        double r = at(invstd, dtype, i), k = r * (weight ? at(weight, dtype, i) : 1);
        if (wanted[1]) put(tgx_out(c, 1)->data, dtype, i, job.b[i] * r);
        if (wanted[2]) put(tgx_out(c, 2)->data, dtype, i, job.a[i]);
        put(slope, dtype, i, k);
        put(scale, dtype, i, k * r * r * job.b[i] / n);
        put(shift, dtype, i, k * job.a[i] / n);
    }
    if (code || !wanted[0]) return code;
    job.out = tgx_out(c, 0)->data;
    if (training) {
        job.scale = scale, job.shift = shift, job.slope = slope;
        return run_rows(c, loops()->apply_backward[dtype == TGX_F64], &job, x->count);
    }
    memset(shift, 0, (size_t)row);
    memset(zeros, 0, (size_t)row);
    job.x = g->data, job.mean = zeros, job.scale = slope, job.shift = shift;
    return run_rows(c, loops()->apply[dtype == TGX_F64], &job, x->count);
}
TGX_KEEPING(batch_backward, 1, batch_backward_shape, batch_backward_run)
TGX_KERNEL(batch_norm_backward, batch_backward_kept_shape, batch_backward_kept_run, TGX_MIXES)
