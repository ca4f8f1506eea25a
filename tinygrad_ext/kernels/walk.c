/* Walks in threads, and the copies and fills made of them, for programs with and without Python. See walk.h. */
#include "walk.h"
#include "casts.h"

typedef struct { tgx_iter *it; tgx_loop loop; const tgx_scalar *aux; int dim; } job_t;

static int slice(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    job_t *job = context;
    tgx_iter part;
    tgx_iter_slice(job->it, &part, job->dim, lo, hi);
    return tgx_iter_run(&part, job->loop, job->aux);
}

int tgx_walk(const tgx_services *services, tgx_iter *it, tgx_loop loop, const tgx_scalar *aux) {
    tgx_iter_plan(it);
    if (it->numel <= TGX_SMALL) return tgx_iter_run(it, loop, aux);
    job_t job = {it, loop, aux, tgx_iter_widest(it)};
    int64_t per_step = it->numel / it->shape[job.dim];
    return services->parallel_for(slice, &job, it->shape[job.dim], 1 + TGX_SMALL / per_step);
}

static void add(tgx_iter *it, const tgx_tensor *t) {
    tgx_iter_add(it, t->data, t->sizes, t->strides, t->rank, tgx_itemsize[t->dtype]);
}

int tgx_broadcasts(const tgx_tensor *from, const tgx_tensor *to) {
    for (int i = from->rank - 1, k = to->rank - 1; i >= 0; i--, k--)
        if (from->sizes[i] != 1 && (k < 0 || from->sizes[i] != to->sizes[k])) return 0;
    return 1;
}

int tgx_copy(const tgx_services *services, const tgx_tensor *to, const tgx_tensor *from) {
    tgx_iter it;
    tgx_iter_begin(&it, to->sizes, to->rank);
    it.pure = 1;
    if (from->dtype == to->dtype) it.plane = tgx_copy_plane(tgx_itemsize[to->dtype]);
    add(&it, to);
    add(&it, from);
    return tgx_walk(services, &it, tgx_cast_loop(from->dtype, to->dtype), NULL);
}

int tgx_fill(const tgx_services *services, const tgx_tensor *to, const void *value) {
    static int64_t one = 1, still = 0;
    tgx_iter it;
    tgx_iter_begin(&it, to->sizes, to->rank);
    add(&it, to);
    tgx_iter_add(&it, (char *)value, &one, &still, 1, tgx_itemsize[to->dtype]);
    return tgx_walk(services, &it, tgx_cast_loop(to->dtype, to->dtype), NULL);
}
