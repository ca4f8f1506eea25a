/* Kernel of fractional max pooling (Graham 2014): the largest element of windows whose places are drawn, other ones for each plane
 * or volume.
 *
 * Only the tables of windows are of this file's making; the loops are those of every other pooling (pool.h). */
#include <math.h>
#include "pool.h"
#include "tgx.h"

enum { GRAIN = 16384 }; /* elements of work that pay for a second thread */

typedef struct {
    tgx_call *c;
    int dims;
    int64_t size[3], kernel[3], out[3], entries, count, pooled; /* entries: of the tables of one plane */
} job_t;

static int read_windows(tgx_call *c, job_t *j) {
    const tgx_tensor *x = tgx_in(c, 0), *drawn = tgx_in(c, 1);
    const tgx_value *kernel = &c->args[2], *out = &c->args[3];
    *j = (job_t){.c = c, .dims = kernel->n, .size = {1, 1, 1}, .kernel = {1, 1, 1}, .out = {1, 1, 1}};
    const int lead = x->rank - j->dims;
    if (j->dims < 2 || j->dims > 3 || out->n != j->dims || lead < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): takes 2 or 3 sizes of windows and of the result for as many last dimensions, got %d and %d for %s",
                        c->title, kernel->n, out->n, tgx_shape_text(x));
    int fits = drawn->rank == lead + 1 && drawn->sizes[lead] == j->dims;
    for (int i = 0; fits && i < lead; i++) fits = drawn->sizes[i] == x->sizes[i];
    if (!fits || drawn->dtype != x->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): Expect _random_samples to have the same dtype as input and %d numbers for each plane, got %s "
                        "of %s for %s of %s", c->title, j->dims, tgx_shape_text(drawn), tgx_dtype_name(drawn->dtype), tgx_shape_text(x),
                        tgx_dtype_name(x->dtype));
    for (int d = 3 - j->dims, i = 0; d < 3; d++, i++) {
        j->size[d] = x->sizes[lead + i], j->kernel[d] = kernel->ints[i], j->out[d] = out->ints[i];
        if (j->out[d] < 0 || j->kernel[d] < 1 || j->out[d] > j->size[d] + 1 || j->kernel[d] > j->size[d]
            || (j->out[d] && j->out[d] + j->kernel[d] - 1 > j->size[d]))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): pool size %s and output size %s do not fit into the input's %s", c->title,
                            tgx_sizes_text(kernel->ints, j->dims), tgx_sizes_text(out->ints, j->dims), tgx_shape_text(x));
    }
    for (int d = 0; d < 3; d++) j->entries += 2 * j->out[d];
    j->count = j->size[0] * j->size[1] * j->size[2], j->pooled = j->out[0] * j->out[1] * j->out[2];
    return 0;
}

static int fractional_max_pool_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    job_t j;
    if (!tgx_is_native_float(x->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the input first, for example with .float()", c->title,
                        tgx_dtype_title(x->dtype));
    if (read_windows(c, &j)) return TGX_FAILED;
    for (int k = 0; k < 2; k++) {
        tgx_output *o = tgx_fresh(c, k, x->rank, k ? TGX_I64 : x->dtype);
        for (int i = 0; i < x->rank; i++) o->dims[i] = i < x->rank - j.dims ? x->sizes[i] : j.out[3 - x->rank + i];
    }
    tgx_need_dense(c, 0);
    tgx_need_dense(c, 1);
    c->work = x->count;
    c->scratch_bytes = tgx_in(c, 1)->count / j.dims * j.entries * (int64_t)sizeof(ptrdiff_t);
    return 0;
}

/* A number as the samples' dtype holds it: each step is rounded to it, so that halves have PyTorch's windows. */
static double rounded(double value, int dtype) {
    switch (dtype) {
    case TGX_F16: return tgx_f16_to_f32(tgx_f32_to_f16((float)value));
    case TGX_BF16: return tgx_bf16_to_f32(tgx_f32_to_bf16((float)value));
    case TGX_F32: return (float)value;
    default: return value;
    }
}

/* Steps of alpha from a drawn place on; the last window ends with the input. The product of two numbers of 24 bits is exact in
 * double precision, so that one rounding serves every dtype. */
static int fill(double sample, int dtype, int64_t size, int64_t kernel, int64_t out, ptrdiff_t *lo, ptrdiff_t *hi) {
    const int64_t room = size - kernel;
    const double alpha = out > 1 ? rounded(rounded((double)room, dtype) / rounded((double)(out - 1), dtype), dtype) : 0;
    const double base = rounded(sample * alpha, dtype);
    for (int64_t i = 0; i < out; i++) {
        const double at = rounded(rounded(rounded((double)i, dtype) + sample, dtype) * alpha, dtype);
        if (!(fabs(at) < 0x1p62 && fabs(base) < 0x1p62)) return TGX_INDEX;
        const int64_t start = i == out - 1 ? room : (int64_t)at - (int64_t)base;
        if (start < 0 || start > room) return TGX_INDEX;
        lo[i] = start, hi[i] = start + kernel;
    }
    return 0;
}

static int planes_range(void *context, ptrdiff_t from, ptrdiff_t to) {
    const job_t *j = context;
    const tgx_tensor *x = tgx_in(j->c, 0), *drawn = tgx_in(j->c, 1);
    const int64_t item = tgx_itemsize[x->dtype];
    for (ptrdiff_t k = from; k < to; k++) {
        ptrdiff_t *room = (ptrdiff_t *)j->c->scratch + k * j->entries, *lo[3], *hi[3];
        for (int d = 0; d < 3; room += 2 * j->out[d++]) {
            const int64_t at = k * j->dims + (j->dims == 3 ? d : 2 - d); /* of an image the width's comes first, as in PyTorch */
            lo[d] = room, hi[d] = room + j->out[d];
            if (d < 3 - j->dims) {
                lo[d][0] = 0, hi[d][0] = 1;
                continue;
            }
            const double sample = x->dtype == TGX_F64 ? ((const double *)drawn->data)[at] : ((const float *)drawn->data)[at];
            const int code = fill(sample, (int)tgx_int(j->c, 4), j->size[d], j->kernel[d], j->out[d], lo[d], hi[d]);
            if (code) return code;
        }
        const tgx_pool p = {
            .depth = j->size[0], .height = j->size[1], .width = j->size[2], .layers = j->out[0], .rows = j->out[1], .cols = j->out[2],
            .z_lo = lo[0], .z_hi = hi[0], .y_lo = lo[1], .y_hi = hi[1], .x_lo = lo[2], .x_hi = hi[2], .step_z = 1, .step_y = 1, .step_x = 1,
        };
        tgx_pool_max(&p, x->dtype, 0, 1, x->data + k * j->count * item, tgx_out(j->c, 0)->data + k * j->pooled * item,
                     (int64_t *)tgx_out(j->c, 1)->data + k * j->pooled);
    }
    return 0;
}

/* (self, samples, kernel_size, output_size, dtype) */
static int fractional_max_pool_run(tgx_call *c) {
    job_t j;
    if (tgx_out(c, 0)->count == 0) return 0;
    if (read_windows(c, &j)) return TGX_FAILED;
    const int code = tgx_range(c, planes_range, &j, tgx_out(c, 0)->count / j.pooled, GRAIN / (j.count + 1) + 1);
    return code ? tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): _random_samples must be finite numbers in [0, 1)", c->title) : 0;
}
TGX_KERNEL(fractional_max_pool, fractional_max_pool_shape, fractional_max_pool_run, 0)
