/* Kernels of median, nanmedian and kthvalue: rows are copied together, and of each one element selected. See median_isa.h. */
#include <math.h>
#include "isa.h"
#include "median.h"
#include "part.h"
#include "reductions.h"
#include "rooms.h"

enum { GRAIN = 4096 };

typedef struct {
    const char *x;
    char *values;
    int64_t *indices; /* NULL: not wanted */
    int64_t n, k;  /* k: as a row's function takes it */
    tgx_median_row of_row;
    int width;
    tgx_rooms rooms;
} job_t;

static tgx_median_row row_of(int dtype) {
    static const tgx_median_row (*chosen)[TGX_NTYPES];
    if (!chosen) chosen = TGX_PICK(tgx_medians);
    return (*chosen)[dtype];
}

static int median_rows(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    job_t *job = context;
    void *room = tgx_rooms_enter(&job->rooms);
    for (ptrdiff_t i = lo; i < hi; i++) {
        const char *row = job->x + i * job->n * job->width;
        int64_t at = job->of_row(row, job->n, job->k, room);
        memcpy(job->values + i * job->width, row + at * job->width, (size_t)job->width);
        if (job->indices) job->indices[i] = at;
    }
    tgx_rooms_leave(room);
    return 0;
}

static int check_dtype(tgx_call *c) {
    int dtype = tgx_in(c, 0)->dtype;
    if (tgx_is_integer(dtype) || tgx_is_native_float(dtype)) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the argument first, for example with .float()",
                    c->title, tgx_dtype_title(dtype));
}

static int64_t grain_of(const tgx_tensor *x, int64_t n) { return x->count <= GRAIN ? x->count / n : 1 + GRAIN / n; }
static int64_t align(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* Memory for rows of n. Notes: n, how many rooms, whether rows are copied together. */
static void ask_rooms(tgx_call *c, int64_t n, int together) {
    const tgx_tensor *x = tgx_in(c, 0);
    c->notes[0] = n, c->notes[2] = together;
    if (x->count == 0 || c->meta) return;
    int64_t width = tgx_itemsize[x->dtype], count = x->count < (int64_t)1 << 55 ? x->count : (int64_t)1 << 55;
    c->notes[1] = tgx_rooms_wanted(c, x->count / n, grain_of(x, n));
    c->scratch_bytes = c->notes[1] * tgx_rooms_pitch((n < count ? n : count) * width) + (together ? align(count * width) : 0);
}

/* One element of each row of x, row-major or to be copied together. */
static int medians(tgx_call *c, const tgx_tensor *x, tgx_tensor *indices, int64_t k) {
    job_t job = {.x = x->data, .values = tgx_out(c, 0)->data, .indices = indices ? (int64_t *)indices->data : NULL, .n = c->notes[0],
                 .of_row = row_of(x->dtype), .width = tgx_itemsize[x->dtype], .k = k};
    tgx_part dense;
    tgx_rooms_open(&job.rooms, c->scratch, c->notes[1], job.n * job.width);
    if (c->notes[2]) {
        job.x = tgx_part_dense(&dense, x, (char *)c->scratch + job.rooms.n * job.rooms.pitch)->data;
        int code = c->services->copy(&dense.t, x);
        if (code) return code;
    }
    return tgx_range(c, median_rows, &job, x->count / job.n, grain_of(x, job.n));
}

/* ---- of all elements: (self) ------------------------------------------------------------------------------------- */

static int whole_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_fresh(c, 0, 0, x->dtype);
    if (check_dtype(c)) return TGX_FAILED;
    tgx_need_dense(c, 0);
    ask_rooms(c, x->count, 0);
    return 0;
}

/* NaN, or the smallest number of 64 bits; narrower integers keep its low bits. */
static int run_nothing(tgx_tensor *out) {
    memset(out->data, 0, (size_t)tgx_itemsize[out->dtype]);
    if (out->dtype == TGX_I64) *(int64_t *)out->data = INT64_MIN;
    else if (out->dtype == TGX_F32) *(float *)out->data = NAN;
    else if (out->dtype == TGX_F64) *(double *)out->data = NAN;
    return 0;
}

static int whole_run(tgx_call *c, int64_t k) {
    const tgx_tensor *x = tgx_in(c, 0);
    return x->count ? medians(c, x, NULL, k) : run_nothing(tgx_out(c, 0));
}
static int median_run(tgx_call *c) { return whole_run(c, TGX_MEDIAN); }
static int nanmedian_run(tgx_call *c) { return whole_run(c, TGX_NANMEDIAN); }
TGX_KERNEL(median, whole_shape, median_run, 0)
TGX_KERNEL(nanmedian, whole_shape, nanmedian_run, 0)

/* ---- along a dimension: (self, dim, keepdim) --------------------------------------------------------------------- */

static int shape_along(tgx_call *c, int arg, int keepdim) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (tgx_wrap_arg(c, arg, x->rank)) return TGX_FAILED;
    int dim = (int)tgx_int(c, arg);
    for (int k = 0; k < 2; k++) tgx_reduced(c, k, x, (uint64_t)1 << dim, (int)tgx_int(c, keepdim), k ? TGX_I64 : x->dtype);
    if (x->rank && x->sizes[dim] == 0)
        return tgx_fail(c, TGX_INDEX_ERROR, "%s(): Expected reduction dim %d to have non-zero size: self has shape %s", c->title, dim,
                        tgx_shape_text(x));
    if (check_dtype(c)) return TGX_FAILED;
    ask_rooms(c, x->rank ? x->sizes[dim] : 1, x->rank && !(dim == x->rank - 1 && x->flags & TGX_CONTIGUOUS));
    return 0;
}

static int run_along(tgx_call *c, int dim, int64_t k) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_part rows;
    if (x->count == 0) return 0;
    tgx_part_of(&rows, x);
    for (int i = dim; i < x->rank - 1; i++) tgx_part_swap(&rows, i, i + 1); /* the dimension goes last */
    return medians(c, &rows.t, tgx_out(c, 1), k);
}

static int along_shape(tgx_call *c) { return shape_along(c, 1, 2); }
static int median_dim_run(tgx_call *c) { return run_along(c, (int)tgx_int(c, 1), TGX_MEDIAN); }
static int nanmedian_dim_run(tgx_call *c) { return run_along(c, (int)tgx_int(c, 1), TGX_NANMEDIAN); }
TGX_KERNEL(median_dim, along_shape, median_dim_run, 0)
TGX_KERNEL(nanmedian_dim, along_shape, nanmedian_dim_run, 0)

/* ---- the k-th along a dimension, from 1 on: (self, k, dim, keepdim) ----------------------------------------------- */

static int kth_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (shape_along(c, 2, 3)) return TGX_FAILED;
    const int64_t dim = tgx_int(c, 2), k = tgx_int(c, 1), n = x->rank ? x->sizes[dim] : 1;
    if (k < 1 || k > n)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "kthvalue(): selected number k out of range for dimension %lld: k=%lld, size %lld", (long long)dim,
                        (long long)k, (long long)n);
    return 0;
}
static int kth_run(tgx_call *c) { return run_along(c, (int)tgx_int(c, 2), tgx_int(c, 1) - 1); }
TGX_KERNEL(_kth, kth_shape, kth_run, 0)
