/* Group norm, whose rows are some channels of an example, and its derivative. The loops are in norm_layer.h. */
#include "channels.h"
#include "norm_call.h"

/* Whether x, of examples, channels and more, has whole groups, and each argument from `first` to before `end` a number a channel. */
static int grouped(tgx_call *c, const tgx_tensor *x, int64_t groups, int first, int end) {
    int fits = x->rank > 1 && groups > 0 && x->sizes[1] % groups == 0;
    for (int k = first; fits && k < end; k++)
        fits = !tgx_given(c, k) || (tgx_in(c, k)->rank == 1 && tgx_in(c, k)->sizes[0] == x->sizes[1]);
    if (fits) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected number of channels in input to be divisible by num_groups, and a weight and a bias "
                    "for each, but got input of shape %s and num_groups=%lld", tgx_shape_text(x), (long long)groups);
}

static tgx_layer_norm_job open_groups(const tgx_tensor *x, int64_t groups, double eps) {
    tgx_layer_norm_job job = {.x = x->data, .eps = eps, .groups = groups, .rows = x->sizes[0] * groups};
    job.n = x->count / job.rows, job.inner = x->count / (x->sizes[0] * x->sizes[1]);
    return job;
}

/* (input, num_groups, weight, bias, eps): sizes are checked by who calls. */
static int group_norm_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (require_float(c, x, "group_norm") || parameter(c, 2, x->dtype) || parameter(c, 3, x->dtype)
        || grouped(c, x, tgx_int(c, 1), 2, 4)) return TGX_FAILED;
    tgx_need_dense(c, 0);
    tgx_like(c, 0, x, x->dtype);
    return 0;
}

static int group_norm_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (!x->count) return 0;
    tgx_layer_norm_job job = open_groups(x, tgx_int(c, 1), tgx_float(c, 4));
    job.out = tgx_out(c, 0)->data, job.weight = data_of(c, 2), job.bias = data_of(c, 3);
    return run(c, loops()->group[x->dtype == TGX_F64], &job, job.rows, x->count);
}
TGX_KEEPING(group_norm, 0, group_norm_shape, group_norm_run)
TGX_KERNEL(group_norm, group_norm_kept_shape, group_norm_kept_run, TGX_MIXES)

/* (grad_output, self, num_groups, weight, eps): by self, and by weight and by bias for each example. */
static int group_norm_backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *x = tgx_in(c, 1);
    if (require_float(c, x, c->title) || parameter(c, 3, x->dtype) || same_count(c, g, x) || grouped(c, x, tgx_int(c, 2), 3, 4))
        return TGX_FAILED;
    tgx_need(c, 0, x->dtype);
    tgx_need_dense(c, 1);
    tgx_like(c, 0, x, x->dtype);
    for (int k = 1; k < 3; k++) memcpy(tgx_fresh(c, k, 2, x->dtype)->dims, x->sizes, 2 * sizeof(int64_t));
    return 0;
}

static int group_norm_backward_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 1);
    if (!x->count) {
        for (int k = 1; k < 3; k++) memset(tgx_out(c, k)->data, 0, (size_t)(tgx_out(c, k)->count * tgx_itemsize[x->dtype]));
        return 0;
    }
    tgx_layer_norm_job job = open_groups(x, tgx_int(c, 2), tgx_float(c, 4));
    job.grad = tgx_in(c, 0)->data, job.weight = data_of(c, 3);
    job.out = tgx_out(c, 0)->data, job.sums = tgx_out(c, 1)->data, job.shifts = tgx_out(c, 2)->data;
    return run(c, loops()->group_backward[x->dtype == TGX_F64], &job, job.rows, x->count);
}
TGX_KEEPING(group_norm_backward, 1, group_norm_backward_shape, group_norm_backward_run)
TGX_KERNEL(group_norm_backward, group_norm_backward_kept_shape, group_norm_backward_kept_run, TGX_MIXES)
