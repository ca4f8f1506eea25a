/* Sums, means and maxima of rows that are looked up by number, a bag of them at a time, without the rows in between.
 *
 * A bag is what lies between two offsets. Each bag is a piece of work of its own, added up in the order of its indices, so bits do
 * not depend on threads. The loops are in embedding_bag_isa.h.
 * Rejected: rows gathered first and reduced afterwards, which writes and reads them all once more. */
#include "embedding_bag.h"
#include "isa.h"
#include "make.h"
#include "once.h"

static const tgx_bags_table *loops(void) {
    static const tgx_bags_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_bags);
    return chosen;
}

/* How the words of `mode` are told apart; -1 for none of them. */
static int mode_of(const char *word) { return !strcmp(word, "sum") ? SUM : !strcmp(word, "mean") ? MEAN : !strcmp(word, "max") ? MOST : -1; }

static int shape(tgx_call *c) {
    const tgx_tensor *w = tgx_in(c, WEIGHT), *indices = tgx_in(c, INDICES), *offsets = tgx_in(c, OFFSETS);
    int mode = mode_of(c->args[MODE].text);
    if (w->dtype != TGX_F32 && w->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"embedding_bag\" not implemented for '%s': convert the weight to float32 or float64 first",
                        tgx_dtype_title(w->dtype));
    if (mode < 0) return tgx_fail(c, TGX_VALUE_ERROR, "mode has to be one of sum, mean or max: embedding_bag got '%s'", c->args[MODE].text);
    if (w->rank != 2 || indices->rank != 1 || offsets->rank != 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "embedding_bag: weight has to be 2-D, input and offsets 1-D, got shapes %s, %s and %s",
                        tgx_shape_text(w), tgx_shape_text(indices), tgx_shape_text(offsets));
    if ((indices->dtype != TGX_I64 && indices->dtype != TGX_I32) || (offsets->dtype != TGX_I64 && offsets->dtype != TGX_I32))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected tensors for arguments 'indices' and 'offsets' to be of type Long or Int; but got %s and %s "
                        "instead (while checking arguments for embedding_bag). Convert them with .long().",
                        tgx_dtype_title(indices->dtype), tgx_dtype_title(offsets->dtype));
    int64_t bags = offsets->count - (tgx_int(c, LAST) ? 1 : 0);
    if (bags < 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "include_last_offset: number of offset should be at least 1, embedding_bag got none");
    tgx_need_dense(c, WEIGHT);
    tgx_need(c, INDICES, TGX_I64);
    tgx_need(c, OFFSETS, TGX_I64);
    if (tgx_given(c, FACTORS)) {
        const tgx_tensor *f = tgx_in(c, FACTORS);
        if (f->dtype != w->dtype || !tgx_same_sizes(f, indices))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "expected per_sample_weights to have the same shape as input, %s, and to "
                            "have the same type as weight, %s, but embedding_bag got shape %s and type %s", tgx_shape_text(indices),
                            tgx_dtype_title(w->dtype), tgx_shape_text(f), tgx_dtype_title(f->dtype));
        tgx_need_dense(c, FACTORS);
    }
    tgx_output *out = tgx_fresh(c, 0, 2, w->dtype), *most = tgx_fresh(c, 3, mode == MOST ? 2 : 1, TGX_I64);
    out->dims[0] = bags, out->dims[1] = w->sizes[1];
    tgx_fresh(c, 1, 1, TGX_I64)->dims[0] = indices->count;
    tgx_fresh(c, 2, 1, TGX_I64)->dims[0] = bags;
    most->dims[0] = bags;
    if (mode == MOST) most->dims[1] = w->sizes[1];
    c->work = 1 + indices->count * w->sizes[1];
    return 0;
}

static int run(tgx_call *c) {
    const tgx_tensor *w = tgx_in(c, WEIGHT), *indices = tgx_in(c, INDICES);
    tgx_bags_job k = {c, tgx_out(c, 2)->count, indices->count, w->sizes[0], w->sizes[1], mode_of(c->args[MODE].text)};
    int64_t end = k.bags ? k.count : 0; /* of the indices that are in a bag */
    if (tgx_int(c, LAST)) end = tgx_once((const int64_t *)tgx_in(c, OFFSETS)->data + k.bags);
    for (int64_t i = end < 0 ? 0 : end; i < k.count; i++) ((int64_t *)tgx_out(c, 1)->data)[i] = -1;
    int64_t each = k.bags ? 1 + k.count * k.width / k.bags : 1;
    return tgx_range(c, loops()->bags[w->dtype == TGX_F64], &k, k.bags, 1 + TGX_SMALL / each);
}
TGX_KERNEL(embedding_bag, shape, run, 0)

/* (grad_output, indices, bag, factors, rows): to row indices[i] of a table the gradient of bag[i], times its factor. */
static int spread_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *at = tgx_in(c, 1), *bag = tgx_in(c, 2), *f = tgx_given(c, 3) ? tgx_in(c, 3) : NULL;
    if (g->dtype != TGX_F32 && g->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"_embedding_bag_rows\" not implemented for '%s': convert the gradient to "
                        "float32 or float64 first", tgx_dtype_title(g->dtype));
    const int fits = tgx_same_sizes(at, bag) && (!f || (tgx_same_sizes(f, at) && f->dtype == g->dtype));
    if (g->rank != 2 || at->rank != 1 || !fits || tgx_int(c, 4) < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_embedding_bag_rows: a gradient of shape %s does not fit indices of shape %s, with a bag "
                        "and a factor for each, in a table of %lld rows", tgx_shape_text(g), tgx_shape_text(at),
                        (long long)tgx_int(c, 4));
    tgx_need_dense(c, 0);
    tgx_need(c, 1, TGX_I64);
    tgx_need(c, 2, TGX_I64);
    if (f) tgx_need_dense(c, 3);
    tgx_output *o = tgx_fresh(c, 0, 2, g->dtype);
    o->dims[0] = tgx_int(c, 4), o->dims[1] = g->sizes[1];
    c->work = 1 + at->count * g->sizes[1];
    return 0;
}

static int spread_run(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *out = tgx_out(c, 0);
    tgx_bags_spread k = {out->data, g->data, tgx_given(c, 3) ? tgx_in(c, 3)->data : NULL, (const int64_t *)tgx_in(c, 1)->data,
                         (const int64_t *)tgx_in(c, 2)->data, tgx_in(c, 1)->count, out->sizes[0], g->sizes[0], g->sizes[1]};
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    if (!tgx_range_once(c, loops()->spread[g->dtype == TGX_F64], &k, (k.width + TGX_BAG_COLUMNS - 1) / TGX_BAG_COLUMNS,
                   1 + TGX_SMALL / (TGX_BAG_COLUMNS * (1 + k.count)))) return 0;
    return tgx_fail(c, TGX_INDEX_ERROR, "_embedding_bag_rows: an index is outside of the %lld rows, or a bag of the %lld bags",
                    (long long)k.rows, (long long)k.bags);
}
TGX_KERNEL(embedding_bag_rows, spread_shape, spread_run, 0)
