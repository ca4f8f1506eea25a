/* searchsorted: where values would go in sorted rows. See search.h. */
#include "search.h"
#include "tgx.h"

enum { GRAIN = 4096 };

typedef struct {
    const char *x, *values;
    const int64_t *order;
    int64_t *out;
    int64_t n;       /* elements of a sorted row */
    int64_t per_row; /* values searched in each */
    int one_row, right, dtype, width;
} job_t;

/* Values lo..hi, counted over all rows. */
static int search(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *job = context;
    while (lo < hi) {
        int64_t row = job->one_row ? 0 : lo / job->per_row, end = hi, at = row * job->n;
        if (!job->one_row && (row + 1) * job->per_row < hi) end = (row + 1) * job->per_row;
        tgx_search_row(job->dtype, job->x + at * job->width, job->order ? job->order + at : NULL, job->n, job->values + lo * job->width,
                       end - lo, job->right, job->out + lo);
        lo = end;
    }
    return 0;
}

static int check_rows(tgx_call *c, const tgx_tensor *x, const tgx_tensor *values) {
    int fits = x->rank == values->rank;
    if (x->rank == 1) return 0;
    if (x->rank == 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
                        "dimension");
    for (int i = 0; fits && i < x->rank - 1; i++) fits = x->sizes[i] == values->sizes[i];
    if (fits) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                    "boundaries tensor and input value tensor must match, but we got boundaries tensor %s and input value tensor %s",
                    tgx_shape_text(x), tgx_shape_text(values));
}

static int check_order(tgx_call *c, const tgx_tensor *x, const tgx_tensor *order) {
    if (order->dtype != TGX_I64)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s",
                        tgx_dtype_title(order->dtype));
    if (!tgx_same_sizes(order, x))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
                        "tensor %s and got sorter tensor %s", tgx_shape_text(x), tgx_shape_text(order));
    return 0;
}

/* _searchsorted: (sorted_sequence, self, right, sorter) */
static int searchsorted_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *values = tgx_in(c, 1);
    int dtype = tgx_promote(x->dtype, values->dtype);
    if (tgx_is_complex(dtype) || tgx_is_half(dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"searchsorted\" not implemented for '%s': convert both tensors first, for "
                        "example with .float()", tgx_dtype_title(dtype));
    if (check_rows(c, x, values)) return TGX_FAILED;
    if (tgx_given(c, 3)) {
        if (check_order(c, x, tgx_in(c, 3))) return TGX_FAILED;
        tgx_need_dense(c, 3);
        c->scratch_bytes = x->count < (int64_t)1 << 55 ? x->count * (int64_t)sizeof(int64_t) : (int64_t)1 << 58;
    }
    tgx_need(c, 0, dtype), tgx_need(c, 1, dtype);
    tgx_like(c, 0, values, TGX_I64);
    return 0;
}

/* The sorter, copied and checked: every number in it must lie inside the row, whoever writes to the sorter. */
static int copy_order(tgx_call *c, const tgx_tensor *sorter, int64_t n) {
    int64_t *order = c->scratch;
    memcpy(order, sorter->data, (size_t)sorter->count * sizeof *order);
    for (int64_t i = 0; i < sorter->count; i++)
        if (order[i] < 0 || order[i] >= n) return tgx_fail(c, TGX_RUNTIME_ERROR, "torch.searchsorted(): sorter index out of range");
    return 0;
}

static int searchsorted_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *values = tgx_in(c, 1);
    job_t job = {.x = x->data, .values = values->data, .out = (int64_t *)tgx_out(c, 0)->data, .n = x->sizes[x->rank - 1],
                 .one_row = x->rank == 1, .right = (int)tgx_int(c, 2), .dtype = x->dtype, .width = tgx_itemsize[x->dtype]};
    job.per_row = values->rank ? values->sizes[values->rank - 1] : 1;
    if (tgx_given(c, 3)) {
        if (copy_order(c, tgx_in(c, 3), job.n)) return TGX_FAILED;
        job.order = c->scratch;
    }
    return tgx_range(c, search, &job, values->count, GRAIN);
}
TGX_KERNEL(searchsorted, searchsorted_shape, searchsorted_run, 0)
