/* Which results keep the order of channels_last. See channels.h.
 *
 * Most kernels read and write planes in rows. What they make for images whose channels lie inside is made in scratch memory and
 * copied to its place, so that the bits are those of row-major images. Rejected: loops of their own for that order, which would
 * add as much code as there is, compiled three times; to leave results row-major, which programs that ask for channels_last see. */
#include "channels.h"

int tgx_channels_inside(const tgx_tensor *t) {
    int64_t least = 0;
    if ((t->rank != 4 && t->rank != 5) || t->strides[1] == 0) return 0;
    for (int i = 0, d = 1; i < t->rank; i++, d = i == t->rank - 1 ? 0 : t->rank - i) {
        if (t->sizes[d] == 0 || t->strides[d] < least || (d == 0 && least == t->strides[1])) return 0;
        least = t->strides[d] * (t->sizes[d] > 1 ? t->sizes[d] : 1);
    }
    return 1;
}

void tgx_channels_strides(const int64_t *sizes, int rank, int64_t *strides) {
    strides[1] = 1, strides[rank - 1] = sizes[1];
    for (int d = rank - 2; d > 1; d--) strides[d] = strides[d + 1] * sizes[d + 1];
    strides[0] = strides[2] * sizes[2];
}

int tgx_channels_dense(const tgx_tensor *t) {
    int64_t dense[5];
    if (!tgx_channels_inside(t)) return 0;
    tgx_channels_strides(t->sizes, t->rank, dense);
    for (int d = 0; d < t->rank; d++)
        if (t->sizes[d] != 1 && t->strides[d] != dense[d]) return 0;
    return 1;
}

static inline int keeps(const tgx_output *o, const tgx_tensor *like) {
    return o->origin == TGX_FRESH && !o->strides && o->rank == like->rank;
}

int tgx_keep_channels(tgx_call *c, const tgx_tensor *like) {
    if (c->target || !tgx_channels_inside(like)) return 0;
    for (int k = 0; k < c->noutputs; k++) {
        tgx_output *o = &c->outputs[k];
        if (!keeps(o, like)) continue;
        o->strides = o->dims + TGX_MAX_DIMS;
        tgx_channels_strides(o->sizes, o->rank, o->strides);
    }
    return 0;
}

int64_t tgx_rows_room(int64_t count, int dtype) { return (count * tgx_itemsize[dtype] + 63) & ~(int64_t)63; }

int tgx_keep_channels_by_copy(tgx_call *c, const tgx_tensor *like) {
    if (c->target || !tgx_channels_inside(like)) return 0;
    for (int k = 0; k < c->noutputs; k++) {
        const tgx_output *o = &c->outputs[k];
        int64_t count = 1;
        if (!keeps(o, like)) continue;
        for (int d = 0; d < o->rank; d++) count *= o->sizes[d];
        c->scratch_bytes += tgx_rows_room(count, o->via < 0 ? o->dtype : o->via);
    }
    return tgx_keep_channels(c, like);
}

int tgx_run_rows(tgx_call *c, tgx_run_fn run) {
    enum { MOST = 3 };
    tgx_tensor rows[MOST], *to[MOST];
    int64_t strides[MOST][TGX_MAX_DIMS];
    void *scratch = c->scratch;
    int code, n = c->noutputs < MOST ? c->noutputs : MOST;
    for (int k = 0; k < n; k++) {
        to[k] = tgx_out(c, k);
        if (c->outputs[k].origin == TGX_ABSENT || to[k]->flags & TGX_CONTIGUOUS) {
            to[k] = NULL;
            continue;
        }
        rows[k] = *to[k], rows[k].data = c->scratch, rows[k].strides = strides[k], rows[k].flags |= TGX_CONTIGUOUS;
        for (int64_t d = to[k]->rank - 1, step = 1; d >= 0; d--) strides[k][d] = step, step *= to[k]->sizes[d];
        c->scratch = (char *)c->scratch + tgx_rows_room(to[k]->count, to[k]->dtype);
        c->outputs[k].tensor = &rows[k];
    }
    code = run(c);
    c->scratch = scratch;
    for (int k = 0; k < n; k++) {
        if (!to[k]) continue;
        c->outputs[k].tensor = to[k];
        if (!code) code = c->services->copy(to[k], &rows[k]);
    }
    return code;
}
