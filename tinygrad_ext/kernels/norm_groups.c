/* Group norm, whose rows are some channels of an example, and its derivative. The loops are in norm_layer.h. */
#include "channels.h"
#include "norm_call.h"
#include "rooms.h"
#include "wide.h"

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

/* Rows of halves are widened one by one, or those of some examples together, where they are short. */
enum { WIDEST = 1 << 18, NOTE = 1 };
typedef struct { tgx_layer_norm_job of; tgx_rooms rooms; int64_t each, some; } half_groups;

static half_groups open_halves(const tgx_layer_norm_job *of, int half) {
    half_groups job = {.of = *of, .each = of->n * of->groups <= TGX_WIDE_ROW ? of->groups : 1, .some = 1};
    if (job.each == of->groups) job.some = tgx_wide_rows(of->n * job.each);
    job.of.half = half;
    return job;
}
static int64_t units_of(const half_groups *job) { return job->of.rows / job->each; }
static int64_t room_of(const half_groups *job) { return job->some * job->each * job->of.n * (int64_t)sizeof(float); }

static int widened_groups(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    half_groups *job = ctx;
    const tgx_layer_norm_job *of = &job->of;
    const ptrdiff_t each = job->each, size = each * of->n, row = of->n / of->inner * (ptrdiff_t)sizeof(float);
    tgx_layer_norm_job some = *of;
    float *x = tgx_rooms_enter(&job->rooms);
    some.x = some.out = (char *)x, some.groups = each;
    for (; lo < hi; lo += job->some) {
        const ptrdiff_t n = hi - lo < job->some ? hi - lo : job->some, first = lo * each % of->groups * row;
        if (of->weight) some.weight = of->weight + first;
        if (of->bias) some.bias = of->bias + first;
        tgx_widen(of->half, of->x + lo * size * 2, x, n * size);
        loops()->group[0](&some, 0, n * each);
        tgx_narrow(of->half, x, of->out + lo * size * 2, n * size);
    }
    tgx_rooms_leave(x);
    return 0;
}

/* Whether halves are widened so; parameters of their dtype or of float32. What is not as it should be is refused as of float32. */
static int halves_shape(tgx_call *c, const tgx_tensor *x) {
    for (int k = 2; k < 4; k++)
        if (tgx_given(c, k) && tgx_in(c, k)->dtype != x->dtype && tgx_in(c, k)->dtype != TGX_F32) return 0;
    if (!x->count || grouped(c, x, tgx_int(c, 1), 2, 4)) return 0;
    const tgx_layer_norm_job of = open_groups(x, tgx_int(c, 1), 0);
    const half_groups job = open_halves(&of, x->dtype);
    const int64_t units = units_of(&job);
    if (of.n > WIDEST) return 0;
    for (int k = 2; k < 4; k++)
        if (tgx_given(c, k)) tgx_need(c, k, TGX_F32);
    c->notes[NOTE] = tgx_rooms_wanted(c, units, 1 + TGX_SMALL / (1 + x->count / units));
    c->scratch_bytes = c->notes[NOTE] * tgx_rooms_pitch(room_of(&job));
    return 1;
}

/* (input, num_groups, weight, bias, eps): sizes are checked by who calls. */
static int group_norm_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (!(tgx_is_half(x->dtype) && halves_shape(c, x))
        && (require_float(c, x, "group_norm") || parameter(c, 2, x->dtype) || parameter(c, 3, x->dtype)
            || grouped(c, x, tgx_int(c, 1), 2, 4))) return TGX_FAILED;
    tgx_need_dense(c, 0);
    tgx_like(c, 0, x, x->dtype);
    return 0;
}

static int group_norm_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (!x->count) return 0;
    tgx_layer_norm_job job = open_groups(x, tgx_int(c, 1), tgx_float(c, 4));
    job.out = tgx_out(c, 0)->data, job.weight = data_of(c, 2), job.bias = data_of(c, 3);
    if (!tgx_is_half(x->dtype)) return run(c, loops()->group[x->dtype == TGX_F64], &job, job.rows, x->count);
    half_groups halves = open_halves(&job, x->dtype);
    tgx_rooms_open(&halves.rooms, c->scratch, c->notes[NOTE], room_of(&halves));
    return run(c, widened_groups, &halves, units_of(&halves), x->count);
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
