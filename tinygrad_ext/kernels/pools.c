/* Kernels of pooling in one to three dimensions, with regular and adaptive windows, and their derivatives.
 *
 * The windows go into tables (pool.h), so one loop serves them all. Planes, or volumes, are dealt out to the threads. */
#include "channels.h"
#include "pool.h"
#include "pooling.h"
#include "reductions.h"

enum { GRAIN = 16384 }; /* elements of work that pay for a second thread */

/* ---- tables of windows ------------------------------------------------------------------------------------------- */

/* Bounds of the windows along one dimension. An adaptive window spreads the input evenly over the outputs. */
static void fill_table(const tgx_window *w, int d, int adaptive, int count_pad, ptrdiff_t *lo) {
    int64_t n = w->out[d], size = w->size[d];
    ptrdiff_t *hi = lo + n, *count = hi + n;
    for (int64_t i = 0; i < n; i++) {
        if (adaptive) {
            lo[i] = i * size / n, hi[i] = ((i + 1) * size + n - 1) / n;
            count[i] = hi[i] - lo[i];
            continue;
        }
        int64_t start = i * w->stride[d] - w->pad[d], stop = start + w->dilation[d] * (w->kernel[d] - 1) + 1;
        count[i] = (stop < size + w->pad[d] ? stop : size + w->pad[d]) - start;
        if (start < 0) {
            start = w->dilation[d] > 1 ? start % w->dilation[d] : 0;
            if (start < 0) start += w->dilation[d];
        }
        lo[i] = start, hi[i] = stop < size ? stop : size;
        if (!count_pad) count[i] = hi[i] > lo[i] ? hi[i] - lo[i] : 0;
    }
}

static int64_t table_bytes(const tgx_window *w) { return 3 * (w->out[0] + w->out[1] + w->out[2]) * (int64_t)sizeof(ptrdiff_t); }

static void fill_tables(tgx_call *c, tgx_pool *p, const tgx_window *w, int adaptive, int count_pad, int64_t divisor) {
    ptrdiff_t *room = c->scratch;
    p->depth = w->size[0], p->height = w->size[1], p->width = w->size[2], p->divisor = divisor;
    p->layers = w->out[0], p->rows = w->out[1], p->cols = w->out[2];
    p->step_z = w->dilation[0], p->step_y = w->dilation[1], p->step_x = w->dilation[2];
    p->z_lo = room, p->z_hi = room + w->out[0], p->z_count = room + 2 * w->out[0];
    fill_table(w, 0, adaptive, count_pad, room);
    room += 3 * w->out[0];
    p->y_lo = room, p->y_hi = room + w->out[1], p->y_count = room + 2 * w->out[1];
    fill_table(w, 1, adaptive, count_pad, room);
    room += 3 * w->out[1];
    p->x_lo = room, p->x_hi = room + w->out[2], p->x_count = room + 2 * w->out[2];
    fill_table(w, 2, adaptive, count_pad, room);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

enum what { MAX, MEAN, SPREAD, SCATTER, GATHER };

typedef struct {
    tgx_pool p;
    enum what what;
    int dtype;
    const char *src;
    char *out;
    int64_t *at, n, m;
} job_t;

static int run_planes(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    switch (j->what) {
    case MAX: tgx_pool_max(&j->p, j->dtype, lo, hi, j->src, j->out, j->at); return 0;
    case MEAN: tgx_pool_mean(&j->p, j->dtype, lo, hi, j->src, j->out); return 0;
    case SPREAD: tgx_pool_spread(&j->p, j->dtype, lo, hi, j->src, j->out); return 0;
    case SCATTER: return tgx_pool_scatter(j->dtype, lo, hi, j->n, j->m, j->src, j->at, j->out);
    default: return tgx_pool_gather(j->dtype, lo, hi, j->n, j->m, j->src, j->at, j->out);
    }
}

static int64_t count_planes(const int64_t *sizes, int rank, int dims) {
    int64_t n = 1;
    for (int i = 0; i < rank - dims; i++) n *= sizes[i];
    return n;
}

/* All planes; `work` is the size of one. */
static int run(tgx_call *c, job_t *j, enum what what, int64_t planes, int64_t work) {
    const tgx_tensor *src = tgx_in(c, 0);
    if (planes == 0) return 0;
    j->what = what, j->dtype = src->dtype, j->src = src->data, j->out = tgx_out(c, 0)->data;
    int code = planes * work < GRAIN ? run_planes(j, 0, planes) : tgx_range(c, run_planes, j, planes, GRAIN / (work + 1) + 1);
    return code ? tgx_fail(c, TGX_RUNTIME_ERROR, "found an invalid max index: indices must lie inside the plane of the pooled input") : 0;
}

static int expect_dtype(tgx_call *c, const tgx_tensor *x, const char *op, int floating) {
    if (tgx_is_native_float(x->dtype) || (!floating && tgx_is_integer(x->dtype))) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the input first, for example with .float()", op,
                    tgx_dtype_title(x->dtype));
}

/* Result k has the input's batch and channels, and the windows' planes. */
static int images(tgx_call *c, int k, const tgx_window *w, int dtype) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_output *o = tgx_fresh(c, k, x->rank, dtype);
    for (int i = 0; i < x->rank; i++) o->dims[i] = i < x->rank - w->dims ? x->sizes[i] : w->out[3 - x->rank + i];
    return 0;
}

static int pooled_shape(tgx_call *c, const tgx_window *w, int places) {
    const tgx_tensor *x = tgx_in(c, 0);
    images(c, 0, w, x->dtype);
    if (places) images(c, 1, w, TGX_I64);
    tgx_need_dense(c, 0);
    c->scratch_bytes = table_bytes(w);
    c->work = x->count;
    return 0;
}

static int pooled_run(tgx_call *c, const tgx_window *w, enum what what, int adaptive, int count_pad, int64_t divisor) {
    const tgx_tensor *x = tgx_in(c, 0);
    job_t j;
    if (tgx_out(c, 0)->count == 0) return 0;
    fill_tables(c, &j.p, w, adaptive, count_pad, divisor);
    j.at = what == MAX && c->noutputs > 1 ? (int64_t *)tgx_out(c, 1)->data : NULL;
    return run(c, &j, what, count_planes(x->sizes, x->rank, w->dims), w->size[0] * w->size[1] * w->size[2]);
}

/* Dimensions of a plane, where an argument says them. */
static int dims_of(const tgx_call *c, int arg) { return (int)tgx_int(c, arg); }

static int check_dims(tgx_call *c, int arg) {
    const int64_t dims = tgx_int(c, arg);
    if (dims >= 1 && dims <= 3) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): dims must be 1, 2 or 3, got %lld", c->title, (long long)dims);
}

/* ---- regular windows --------------------------------------------------------------------------------------------- */

/* (self, kernel_size, stride, padding, dilation, ceil_mode) */
static int read_max(tgx_call *c, tgx_window *w, int dims) {
    const char *op = dims == 1 ? "max_pool1d" : dims == 2 ? "max_pool2d" : "max_pool3d";
    const tgx_tensor *x = tgx_in(c, 0);
    if (tgx_window_read(c, w, dims, op, 1) || tgx_window_dilation(c, w, 4) || tgx_window_input(c, w, x) || tgx_window_check(c, w)
        || expect_dtype(c, x, op, 0)) return TGX_FAILED;
    return tgx_window_outputs(c, w, (int)tgx_int(c, 5), x);
}

static int max_shape(tgx_call *c, int dims) {
    tgx_window w;
    return read_max(c, &w, dims) ? TGX_FAILED : pooled_shape(c, &w, 1);
}
static int max_run(tgx_call *c, int dims) {
    tgx_window w;
    return read_max(c, &w, dims) ? TGX_FAILED : pooled_run(c, &w, MAX, 0, 0, 0);
}
static int max1_shape(tgx_call *c) { return max_shape(c, 1); }
static int max2_shape(tgx_call *c) { return max_shape(c, 2); }
static int max3_shape(tgx_call *c) { return max_shape(c, 3); }
static int max1_run(tgx_call *c) { return max_run(c, 1); }
static int max2_run(tgx_call *c) { return max_run(c, 2); }
static int max3_run(tgx_call *c) { return max_run(c, 3); }
TGX_KERNEL(max_pool1d, max1_shape, max1_run, 0)
TGX_KEEPING(max2, 0, max2_shape, max2_run)
TGX_KEEPING(max3, 0, max3_shape, max3_run)
TGX_KERNEL(max_pool2d, max2_kept_shape, max2_kept_run, 0)
TGX_KERNEL(max_pool3d, max3_kept_shape, max3_kept_run, 0)

typedef struct { tgx_pool_row row; int dtype; const char *src; char *out; } rows_t;

static int run_rows(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const rows_t *j = context;
    tgx_pool_row_max(&j->row, j->dtype, lo, hi, j->src, j->out);
    return 0;
}

/* Without the places: the same and the number of dimensions. */
static int max_values_shape(tgx_call *c) {
    tgx_window w;
    if (check_dims(c, 6) || read_max(c, &w, dims_of(c, 6)) || pooled_shape(c, &w, 0)) return TGX_FAILED;
    if (w.dims == 1) c->scratch_bytes = 0;
    return 0;
}
static int max_values_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *out = tgx_out(c, 0);
    tgx_window w;
    if (dims_of(c, 6) != 1) return max_run(c, dims_of(c, 6));
    if (read_max(c, &w, 1)) return TGX_FAILED;
    if (out->count == 0) return 0;
    rows_t j = {{w.size[2], w.out[2], w.kernel[2], w.stride[2], w.pad[2], w.dilation[2]}, x->dtype, x->data, out->data};
    return tgx_range(c, run_rows, &j, out->count / w.out[2], GRAIN / (w.size[2] + 1) + 1);
}
TGX_KEEPING(max_values, 0, max_values_shape, max_values_run)
TGX_KERNEL(max_pool_values, max_values_kept_shape, max_values_kept_run, 0)

/* (self, kernel_size, stride, padding, ceil_mode, count_include_pad), and divisor_override for images and volumes */
static int read_mean(tgx_call *c, tgx_window *w, int dims) {
    const char *op = dims == 1 ? "avg_pool1d" : dims == 2 ? "avg_pool2d" : "avg_pool3d";
    const tgx_tensor *x = tgx_in(c, 0);
    if (tgx_window_read(c, w, dims, op, 1) || tgx_window_input(c, w, x) || tgx_window_check(c, w) || expect_dtype(c, x, op, 0))
        return TGX_FAILED;
    if (dims == 3 && (w->size[0] < w->kernel[0] || w->size[1] < w->kernel[1] || w->size[2] < w->kernel[2])) /* whatever the padding */
        return tgx_fail(c, TGX_RUNTIME_ERROR, "input image (T: %lld H: %lld W: %lld) smaller than kernel size (kT: %lld kH: %lld kW: %lld): "
                        "avg_pool3d() takes no window larger than its input, padded or not", (long long)w->size[0], (long long)w->size[1],
                        (long long)w->size[2], (long long)w->kernel[0], (long long)w->kernel[1], (long long)w->kernel[2]);
    return tgx_window_outputs(c, w, (int)tgx_int(c, 4), x);
}

static int check_divisor(tgx_call *c, int arg) {
    if (!tgx_given(c, arg) || tgx_int(c, arg)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "divisor must be not zero: leave divisor_override away to divide by the window's size");
}
static int64_t divisor(const tgx_call *c, int arg) { return tgx_given(c, arg) ? tgx_int(c, arg) : 0; }

static int mean_shape(tgx_call *c, int dims) {
    tgx_window w;
    return read_mean(c, &w, dims) || (dims > 1 && check_divisor(c, 6)) ? TGX_FAILED : pooled_shape(c, &w, 0);
}
static int mean_run(tgx_call *c, int dims) {
    tgx_window w;
    return read_mean(c, &w, dims) ? TGX_FAILED : pooled_run(c, &w, MEAN, 0, (int)tgx_int(c, 5), dims > 1 ? divisor(c, 6) : 0);
}
static int mean1_shape(tgx_call *c) { return mean_shape(c, 1); }
static int mean2_shape(tgx_call *c) { return mean_shape(c, 2); }
static int mean3_shape(tgx_call *c) { return mean_shape(c, 3); }
static int mean1_run(tgx_call *c) { return mean_run(c, 1); }
static int mean2_run(tgx_call *c) { return mean_run(c, 2); }
static int mean3_run(tgx_call *c) { return mean_run(c, 3); }
TGX_KERNEL(avg_pool1d, mean1_shape, mean1_run, 0)
TGX_KEEPING(mean2, 0, mean2_shape, mean2_run)
TGX_KERNEL(avg_pool2d, mean2_kept_shape, mean2_kept_run, 0)
TGX_KERNEL(avg_pool3d, mean3_shape, mean3_run, 0)

/* ---- gradient of a mean: each window's share to its elements ----------------------------------------------------- */

/* Planes of an input of which only the shape is known. */
static int read_sizes(tgx_call *c, tgx_window *w) {
    const tgx_value *v = &c->args[1];
    if (v->n < w->dims)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "input_size must have at least %d dimensions, got %d", w->dims, v->n);
    for (int i = 0; i < 3; i++) w->size[i] = i < 3 - w->dims ? 1 : v->ints[v->n - 3 + i];
    return 0;
}

static int spread_shape(tgx_call *c, const tgx_window *w) {
    const tgx_tensor *g = tgx_in(c, 0);
    const tgx_value *v = &c->args[1];
    tgx_output *o = tgx_fresh(c, 0, v->n, g->dtype);
    for (int i = 0; i < v->n; i++)
        if (v->ints[i] < 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "negative dimension %lld in the shape %s", (long long)v->ints[i], tgx_sizes_text(v->ints, v->n));
    o->sizes = v->ints;
    int fits = v->n == g->rank && count_planes(v->ints, v->n, w->dims) == count_planes(g->sizes, g->rank, w->dims);
    for (int i = 3 - w->dims; fits && i < 3; i++) fits = g->sizes[g->rank - 3 + i] == w->out[i];
    if (!fits)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "gradient of shape %s does not fit the pooling of an input of shape %s", tgx_shape_text(g),
                        tgx_sizes_text(v->ints, v->n));
    if (expect_dtype(c, g, "avg_pool_backward", 1)) return TGX_FAILED;
    tgx_need_dense(c, 0);
    c->scratch_bytes = table_bytes(w);
    return 0;
}

static int spread_run(tgx_call *c, const tgx_window *w, int adaptive, int count_pad, int64_t by) {
    const tgx_tensor *g = tgx_in(c, 0), *out = tgx_out(c, 0);
    job_t j;
    if (out->count == 0) return 0;
    if (g->count == 0) {
        memset(out->data, 0, (size_t)out->count * (size_t)tgx_itemsize[out->dtype]);
        return 0;
    }
    fill_tables(c, &j.p, w, adaptive, count_pad, by);
    return run(c, &j, SPREAD, count_planes(out->sizes, out->rank, w->dims), w->size[0] * w->size[1] * w->size[2]);
}

/* (grad, input_size, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, dims) */
static int read_mean_backward(tgx_call *c, tgx_window *w) {
    const tgx_tensor *g = tgx_in(c, 0);
    if (check_dims(c, 8)) return TGX_FAILED;
    int dims = dims_of(c, 8);
    if (g->rank <= dims)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "gradient of shape %s has too few dimensions", tgx_shape_text(g));
    if (tgx_window_read(c, w, dims, "avg_pool_backward", 2) || read_sizes(c, w) || tgx_window_check(c, w)) return TGX_FAILED;
    return tgx_window_outputs(c, w, (int)tgx_int(c, 5), g);
}

static int mean_backward_shape(tgx_call *c) {
    tgx_window w;
    return read_mean_backward(c, &w) || check_divisor(c, 7) ? TGX_FAILED : spread_shape(c, &w);
}
static int mean_backward_run(tgx_call *c) {
    tgx_window w;
    return read_mean_backward(c, &w) ? TGX_FAILED : spread_run(c, &w, 0, (int)tgx_int(c, 6), divisor(c, 7));
}
TGX_KEEPING(mean_backward, 0, mean_backward_shape, mean_backward_run)
TGX_KERNEL(avg_pool_backward, mean_backward_kept_shape, mean_backward_kept_run, 0)

/* ---- adaptive windows -------------------------------------------------------------------------------------------- */

static int read_adaptive(tgx_call *c, tgx_window *w, int dims, const char *op) {
    if (tgx_window_adaptive(c, w, dims, op, 1)) return TGX_FAILED;
    return expect_dtype(c, tgx_in(c, 0), op, 1);
}

/* One window for all is what a reduction takes, from every layout. */
static int one_mean(const tgx_window *w, enum what what) { return what == MEAN && w->out[0] == 1 && w->out[1] == 1 && w->out[2] == 1; }

static int adaptive_shape(tgx_call *c, int dims, const char *op, enum what what) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_window w;
    if (read_adaptive(c, &w, dims, op)) return TGX_FAILED;
    if (!one_mean(&w, what)) return pooled_shape(c, &w, what == MAX);
    images(c, 0, &w, x->dtype);
    return tgx_reduction_shape(c, TGX_MEAN, x->dtype, (((uint64_t)1 << dims) - 1) << (x->rank - dims));
}

static int adaptive_run(tgx_call *c, int dims, const char *op, enum what what) {
    tgx_window w;
    if (read_adaptive(c, &w, dims, op)) return TGX_FAILED;
    return one_mean(&w, what) ? tgx_reduction_run(c, NULL, tgx_out(c, 0), NULL) : pooled_run(c, &w, what, 1, 0, 0);
}

#define ADAPTIVE(name, dims, what) \
    static int name##_shape(tgx_call *c) { return adaptive_shape(c, dims, #name, what); } \
    static int name##_run(tgx_call *c) { return adaptive_run(c, dims, #name, what); }
ADAPTIVE(adaptive_avg_pool1d, 1, MEAN)
ADAPTIVE(adaptive_avg_pool2d, 2, MEAN)
ADAPTIVE(adaptive_avg_pool3d, 3, MEAN)
ADAPTIVE(adaptive_max_pool1d, 1, MAX)
ADAPTIVE(adaptive_max_pool2d, 2, MAX)
ADAPTIVE(adaptive_max_pool3d, 3, MAX)
TGX_KERNEL(adaptive_avg_pool1d, adaptive_avg_pool1d_shape, adaptive_avg_pool1d_run, 0)
TGX_KEEPING(adaptive_avg2, 0, adaptive_avg_pool2d_shape, adaptive_avg_pool2d_run)
TGX_KEEPING(adaptive_max2, 0, adaptive_max_pool2d_shape, adaptive_max_pool2d_run)
TGX_KERNEL(adaptive_avg_pool2d, adaptive_avg2_kept_shape, adaptive_avg2_kept_run, 0)
TGX_KERNEL(adaptive_avg_pool3d, adaptive_avg_pool3d_shape, adaptive_avg_pool3d_run, 0)
TGX_KERNEL(adaptive_max_pool1d, adaptive_max_pool1d_shape, adaptive_max_pool1d_run, 0)
TGX_KERNEL(adaptive_max_pool2d, adaptive_max2_kept_shape, adaptive_max2_kept_run, 0)
TGX_KERNEL(adaptive_max_pool3d, adaptive_max_pool3d_shape, adaptive_max_pool3d_run, 0)

/* (grad, input_size, dims) */
static int read_adaptive_backward(tgx_call *c, tgx_window *w) {
    const tgx_tensor *g = tgx_in(c, 0);
    if (check_dims(c, 2)) return TGX_FAILED;
    *w = (tgx_window){.dims = dims_of(c, 2), .dilation = {1, 1, 1}};
    if (read_sizes(c, w)) return TGX_FAILED;
    if (g->rank < w->dims)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "gradient of shape %s has too few dimensions", tgx_shape_text(g));
    for (int i = 0; i < 3; i++) w->out[i] = i < 3 - w->dims ? 1 : g->sizes[g->rank - 3 + i];
    return 0;
}

static int adaptive_backward_shape(tgx_call *c) {
    tgx_window w;
    return read_adaptive_backward(c, &w) ? TGX_FAILED : spread_shape(c, &w);
}
static int adaptive_backward_run(tgx_call *c) {
    tgx_window w;
    return read_adaptive_backward(c, &w) ? TGX_FAILED : spread_run(c, &w, 1, 0, 0);
}
TGX_KEEPING(adaptive_backward, 0, adaptive_backward_shape, adaptive_backward_run)
TGX_KERNEL(adaptive_avg_pool_backward, adaptive_backward_kept_shape, adaptive_backward_kept_run, 0)

/* ---- places of the largest --------------------------------------------------------------------------------------- */

/* Planes of the input (argument 0) and of the result differ in their last `dims` sizes; the places, argument 1, have the
 * shape of the narrow ones. */
static int places_shape(tgx_call *c, int64_t *sizes, int rank, int dims, int scatter) {
    const tgx_tensor *values = tgx_in(c, 0), *at = tgx_in(c, 1);
    const int64_t *wide = scatter ? sizes : values->sizes, *narrow = scatter ? values->sizes : sizes;
    int wide_rank = scatter ? rank : values->rank, narrow_rank = scatter ? values->rank : rank, fits = at->rank == narrow_rank;
    tgx_fresh(c, 0, rank, values->dtype)->sizes = sizes;
    if (expect_dtype(c, values, "max_pool_backward", 1)) return TGX_FAILED;
    if (at->device != values->device)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected all tensors to be on the same device, but the indices and the values are on cpu and "
                        "on meta");
    for (int i = 0; fits && i < at->rank; i++) fits = at->sizes[i] == narrow[i];
    if (at->dtype != TGX_I64 || !fits || wide_rank != narrow_rank || rank < dims
        || count_planes(wide, wide_rank, dims) != count_planes(narrow, narrow_rank, dims))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "indices of shape %s and dtype %s do not fit planes of %s", tgx_shape_text(at),
                        tgx_dtype_title(at->dtype), tgx_sizes_text(wide, wide_rank));
    tgx_need_dense(c, 0);
    tgx_need_dense(c, 1);
    return 0;
}

static int places_run(tgx_call *c, int dims, int scatter) {
    const tgx_tensor *values = tgx_in(c, 0), *out = tgx_out(c, 0), *wide = scatter ? out : values, *narrow = scatter ? values : out;
    int64_t planes = count_planes(wide->sizes, wide->rank, dims), by = planes > 1 ? planes : 1;
    job_t j = {.at = (int64_t *)tgx_in(c, 1)->data, .n = wide->count / by, .m = narrow->count / by};
    return run(c, &j, scatter ? SCATTER : GATHER, planes, j.n + j.m);
}

/* (grad, indices, input_size, dims) and (self, indices, dims) */
static int max_backward_shape(tgx_call *c) {
    return check_dims(c, 3) ? TGX_FAILED : places_shape(c, c->args[2].ints, c->args[2].n, dims_of(c, 3), 1);
}
static int max_backward_run(tgx_call *c) { return places_run(c, dims_of(c, 3), 1); }
static int max_gather_shape(tgx_call *c) {
    const tgx_tensor *at = tgx_in(c, 1);
    return check_dims(c, 2) ? TGX_FAILED : places_shape(c, at->sizes, at->rank, dims_of(c, 2), 0);
}
static int max_gather_run(tgx_call *c) { return places_run(c, dims_of(c, 2), 0); }
TGX_KEEPING(max_backward, 0, max_backward_shape, max_backward_run)
TGX_KERNEL(max_pool_backward, max_backward_kept_shape, max_backward_kept_run, 0)
TGX_KERNEL(max_pool_gather, max_gather_shape, max_gather_run, 0)
