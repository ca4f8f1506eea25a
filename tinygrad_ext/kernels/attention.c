/* Attention, and its derivative, over some rows of queries of one head at a time, so that the whole matrix of scores never exists.
 *
 * Keys and values of a head are laid out once (product_packed.h). A block of rows then goes through the first product, softmax.h's
 * rows and the second product while its scores are in the cache. The numbers of a row do not depend on the others of its block.
 * The derivative makes the weights of a block again (Dao et al. 2022), and adds it to the gradients of keys and values. Rejected:
 * tiles over the keys too, with running maxima; they save memory only where one row of scores is larger than the cache, and cost a
 * second pass over the result. */
#include "attention_bf16.h"
#include "attention_blocks.h"

enum { QUERY, KEY, VALUE, MASK, CAUSAL, SCALE, GRAD };         /* of the derivative; behind these are what dropout keeps, and p */
enum { SCORES = 1 << 15, LEAST_ROWS = 6 };      /* of a block: numbers, of the derivative twice as many, and rows */

/* What a share of the work needs for itself: keys, values, a block of queries, its scores. The derivative: values and keys the
 * other way round, its rows of the gradient, the slopes of the scores, and queries and gradient laid out. */
static void plan(tgx_attention *j) {
    const int64_t fit = (SCORES << j->back) / (j->keys ? j->keys : 1) / LEAST_ROWS * LEAST_ROWS;
    int64_t at = 0;
    j->step = fit < LEAST_ROWS ? LEAST_ROWS : least(fit, MOST_ROWS);
    j->stride = (j->keys + 15) / 16 * 16 + 16;  /* rows a power of two apart would meet in few places of the first cache */
    j->blocks = (j->rows + j->step - 1) / j->step;
    next(&at, tgx_packed_count(j->keys, j->depth), j->size);
    j->values_at = next(&at, j->back ? tgx_packed_count(j->keys, j->width) : tgx_packed_count(j->width, j->keys), j->size);
    j->part_at = next(&at, j->step * j->depth, j->size);
    j->scores_at = next(&at, j->step * j->stride, j->size);
    if (j->back) {
        j->across_at = next(&at, tgx_packed_count(j->depth, j->keys), j->size);
        j->seen_at = next(&at, j->step * j->width, j->size);
        j->slopes_at = next(&at, j->step * j->stride, j->size);
        j->block_at = next(&at, tgx_packed_count(j->depth > j->width ? j->depth : j->width, j->step), j->size);
    }
    j->room_size = at;
}

static int refuse(tgx_call *c, const char *what) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "scaled_dot_product_attention: %s: got query %s, key %s, value %s", what,
                    tgx_shape_text(tgx_in(c, QUERY)), tgx_shape_text(tgx_in(c, KEY)), tgx_shape_text(tgx_in(c, VALUE)));
}

/* A mask has a matrix for each head, or one for several. */
static int mask_fits(const tgx_tensor *m, const int64_t *sizes, int rank) {
    if (m->rank < 2 || m->rank > rank) return 0;
    for (int i = 0; i < m->rank; i++)
        if (m->sizes[i] != 1 && m->sizes[i] != sizes[rank - m->rank + i]) return 0;
    return 1;
}

/* What dropout keeps has a bit for each score, eight keys to a byte. */
static int kept_fits(tgx_call *c, const tgx_attention *j, int64_t *scores, int rank) {
    const int64_t keys = scores[rank - 1], bytes = (keys + 7) / 8;
    if (!j->kept) return 0;
    if (j->q->dtype == TGX_BF16)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"attention\" with dropout is not computed in bfloat16: give float32");
    scores[rank - 1] = bytes;
    if (j->kept->dtype != TGX_U8 || !mask_fits(j->kept, scores, rank) || j->kept->sizes[j->kept->rank - 1] != bytes)
        return tgx_fail(c, TGX_RUNTIME_ERROR,
                        "scaled_dot_product_attention: what dropout keeps must be torch.uint8 of shape %s, got %s %s",
                        tgx_sizes_text(scores, rank), tgx_dtype_title(j->kept->dtype), tgx_shape_text(j->kept));
    scores[rank - 1] = keys;
    return 0;
}

static void measure(const tgx_call *c, tgx_attention *j, int back) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY), *v = tgx_in(c, VALUE);
    const int kept = back ? GRAD + 1 : GRAD;
    const double keep = 1 - tgx_float(c, kept + 1);
    *j = (tgx_attention){.q = q, .k = k, .v = v, .mask = tgx_given(c, MASK) ? tgx_in(c, MASK) : NULL, .wide = q->dtype == TGX_F64,
                 .grad = back ? tgx_in(c, GRAD) : NULL, .back = back, .causal = (int)tgx_int(c, CAUSAL),
                 .scale = tgx_float(c, SCALE), .size = tgx_itemsize[q->dtype],
                 .rows = q->sizes[q->rank - 2], .depth = q->sizes[q->rank - 1], .keys = k->sizes[k->rank - 2],
                 .width = v->sizes[v->rank - 1], .kept = tgx_given(c, kept) ? tgx_in(c, kept) : NULL,
                 .factor = keep == 0 ? 0 : q->dtype == TGX_F32 ? 1 / (float)keep : 1 / keep};
    if (q->dtype == TGX_BF16 && tgx_attention_bf16_gains(j)) tgx_attention_bf16_plan(j);
    else plan(j);
}

/* Checks all but the gradient; the batch's sizes go to dims. */
static int fits(tgx_call *c, tgx_attention *j, int back, int64_t *dims, int *rank) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY), *v = tgx_in(c, VALUE);
    if (q->dtype != TGX_F32 && q->dtype != TGX_F64 && q->dtype != TGX_BF16)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"attention\" not implemented for '%s': give float32 or float64",
                        tgx_dtype_title(q->dtype));
    if (q->rank < 2 || k->rank < 2 || v->rank < 2) return refuse(c, "two dimensions at least are needed");
    if (k->dtype != q->dtype || v->dtype != q->dtype) return refuse(c, "query, key and value must be of one dtype");
    if (q->sizes[q->rank - 1] != k->sizes[k->rank - 1]) return refuse(c, "query and key must have as many columns");
    if (k->sizes[k->rank - 2] != v->sizes[v->rank - 2]) return refuse(c, "key and value must have as many rows");
    measure(c, j, back);
    if (q->dtype == TGX_BF16 && !tgx_attention_bf16_gains(j))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"attention\" is not computed in bfloat16: give float32");
    *rank = 0;
    for (int i = QUERY; i <= VALUE; i++) {
        tgx_tensor batch = *tgx_in(c, i);
        batch.rank -= 2;
        if (tgx_broadcast(dims, rank, &batch)) return refuse(c, "the leading dimensions must be equal, or 1");
    }
    dims[*rank] = j->rows, dims[*rank + 1] = j->keys;
    if (j->mask && !mask_fits(j->mask, dims, *rank + 2))
        return tgx_fail(c, TGX_RUNTIME_ERROR,
                        "scaled_dot_product_attention: attn_mask has shape %s, and the scores have %s; sizes must be equal, or 1",
                        tgx_shape_text(j->mask), tgx_sizes_text(dims, *rank + 2));
    if (j->mask && j->mask->dtype != TGX_BOOL) tgx_need_dtype(c, MASK, q->dtype == TGX_BF16 ? TGX_F32 : q->dtype);
    return kept_fits(c, j, dims, *rank + 2);
}

/* Checks all. */
static int grad_fits(tgx_call *c, tgx_attention *j, int64_t *batch, int *dims) {
    const tgx_tensor *g = tgx_in(c, GRAD);
    if (fits(c, j, 1, batch, dims)) return TGX_FAILED;
    const int rank = *dims;
    batch[rank] = j->rows, batch[rank + 1] = j->width;
    if (g->dtype != j->q->dtype || g->rank != rank + 2 || memcmp(g->sizes, batch, (size_t)(rank + 2) * sizeof *batch))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "scaled_dot_product_attention: the gradient must be of dtype %s and shape %s, got %s %s",
                        tgx_dtype_title(j->q->dtype), tgx_sizes_text(batch, rank + 2), tgx_dtype_title(g->dtype), tgx_shape_text(g));
    return 0;
}

/* A result of (batch, rows, columns), and room for so many shares. */
static int give(tgx_call *c, int k, const int64_t *batch, int rank, int64_t rows, int64_t columns) {
    tgx_output *o = tgx_fresh(c, k, rank + 2, tgx_in(c, QUERY)->dtype);
    memcpy(o->dims, batch, (size_t)rank * sizeof *batch);
    o->dims[rank] = rows, o->dims[rank + 1] = columns;
    return tgx_check_sizes(c, o->dims, o->rank, "scaled_dot_product_attention");
}

static int need_room(tgx_call *c, const tgx_attention *j, double items) {
    if (((double)j->keys + 1) * (2 * (double)j->depth + (double)j->width + 2 * (double)j->step) > 1e14)
        return c->meta ? 0 : tgx_fail(c, TGX_MEMORY_ERROR, "scaled_dot_product_attention: cannot allocate room for %lld keys",
                                      (long long)j->keys);
    c->notes[0] = c->services->num_threads();
    if (items < (double)c->notes[0]) c->notes[0] = (int64_t)items;      /* room for as many shares as there are blocks */
    c->scratch_bytes = j->room_size * c->notes[0];
    return 0;
}

static double heads(const int64_t *batch, int rank) {
    double count = 1;
    for (int i = 0; i < rank; i++) count *= (double)batch[i];
    return count;
}

/* (query, key, value, attn_mask, is_causal, scale, kept, dropout_p) */
static int shape(tgx_call *c) {
    int64_t batch[TGX_MAX_DIMS + 2];
    int rank;
    tgx_attention j;
    if (fits(c, &j, 0, batch, &rank) || give(c, 0, batch, rank, j.rows, j.width)) return TGX_FAILED;
    return need_room(c, &j, heads(batch, rank) * (double)j.blocks);
}

/* (query, key, value, attn_mask, is_causal, scale, grad, kept, dropout_p) -> gradients of query, key and value, each as large as the
 * whole batch */
static int back_shape(tgx_call *c) {
    int64_t batch[TGX_MAX_DIMS + 2];
    int rank;
    tgx_attention j;
    if (grad_fits(c, &j, batch, &rank)) return TGX_FAILED;
    if (give(c, 0, batch, rank, j.rows, j.depth) || give(c, 1, batch, rank, j.keys, j.depth)
        || give(c, 2, batch, rank, j.keys, j.width)) return TGX_FAILED;
    return need_room(c, &j, heads(batch, rank));
}

static int run_shares(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_attention *j = given;
    for (; lo < hi; lo++) {
        char *room = j->room + lo * j->room_size;
        const int64_t begin = j->items * lo / j->shares, end = j->items * (lo + 1) / j->shares;
        int64_t laid = -1;
        if (j->size == 2) tgx_attention_bf16_items(j, room, begin, end);
        else for (int64_t item = begin; item < end; item++) {
            const int64_t head = item / j->blocks, first = item % j->blocks * j->step, rows = least(j->step, j->rows - first);
            const char *q = head_of(j, j->q, head), *mask = head_of(j, j->mask, head), *kept = head_of(j, j->kept, head);
            char *out = j->out + (head * j->rows + first) * j->width * j->size;
            if (head != laid) lay(j, room, laid = head);
            if (j->wide) block_double(j, room, q, mask, kept, first, rows, (double *)out);
            else block_float(j, room, q, mask, kept, first, rows, (float *)out);
        }
    }
    return 0;
}

/* Whole heads, so that the sums over rows run in order. */
static int run_back(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_attention *j = given;
    for (; lo < hi; lo++) {
        char *room = j->room + lo * j->room_size;
        const int64_t begin = j->items * lo / j->shares, end = j->items * (lo + 1) / j->shares;
        if (j->size == 2) tgx_attention_bf16_back_items(j, room, begin, end);
        else for (int64_t head = begin; head < end; head++) {
            const char *q = head_of(j, j->q, head), *grad = head_of(j, j->grad, head);
            const char *mask = head_of(j, j->mask, head), *kept = head_of(j, j->kept, head);
            char *of_q = j->out + head * j->rows * j->depth * j->size, *of_k = j->of_k + head * j->keys * j->depth * j->size;
            char *of_v = j->of_v + head * j->keys * j->width * j->size;
            memset(of_k, 0, (size_t)(j->keys * j->depth * j->size));
            memset(of_v, 0, (size_t)(j->keys * j->width * j->size));
            lay(j, room, head);
            for (int64_t first = 0; first < j->rows; first += j->step) {
                const int64_t rows = least(j->step, j->rows - first);
                char *to = of_q + first * j->depth * j->size;
                if (j->wide) back_double(j, room, q, grad, mask, kept, first, rows, (double *)to, (double *)of_k, (double *)of_v);
                else back_float(j, room, q, grad, mask, kept, first, rows, (float *)to, (float *)of_k, (float *)of_v);
            }
        }
    }
    return 0;
}

/* What all need: loops, room and the batch, whose sizes stand in front of the result's, or of its gradient's. */
static void ready(const tgx_call *c, tgx_attention *j, int back) {
    const tgx_tensor *whole = back ? tgx_in(c, GRAD) : tgx_out(c, 0);
    measure(c, j, back);
    j->rank = whole->rank - 2, j->batch = whole->sizes, j->out = tgx_out(c, 0)->data, j->room = c->scratch;
    if (!tgx_is_half(whole->dtype)) j->products = tgx_packed(whole->dtype);
    j->softmax = tgx_softmax_loops()->forward[j->wide];
    j->slopes = tgx_softmax_loops()->backward[j->wide];
}

static int run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0);
    tgx_attention j;
    if (!out->count) return 0;
    ready(c, &j, 0);
    if (!j.keys) {
        memset(out->data, 0, (size_t)(out->count * j.size));
        return 0;
    }
    j.items = out->count / (j.rows * j.width) * j.blocks;
    j.shares = least(c->notes[0], j.items);
    return tgx_range(c, run_shares, &j, j.shares, 1);
}
TGX_KERNEL(attention, shape, run, 0)

static int back_run(tgx_call *c) {
    tgx_attention j;
    ready(c, &j, 1);
    j.of_k = tgx_out(c, 1)->data, j.of_v = tgx_out(c, 2)->data;
    j.items = (int64_t)heads(j.batch, j.rank);
    if (!j.items) return 0;
    if (!j.keys) {
        memset(j.out, 0, (size_t)(tgx_out(c, 0)->count * j.size));
        return 0;
    }
    j.shares = least(c->notes[0], j.items);
    return tgx_range(c, run_back, &j, j.shares, 1);
}
TGX_KERNEL(attention_backward, back_shape, back_run, 0)

/* ---- the gradient of a mask ---------------------------------------------------------------------------------------- */

enum { TOGETHER = 4 };  /* blocks of rows that share keys and values once these are laid out */

/* Rows of a mask that are one item, and the number of such items. */
static int64_t mask_rows(const tgx_attention *j) { return j->mask->sizes[j->mask->rank - 2] == 1 ? j->rows : TOGETHER * j->step; }
static int64_t mask_parts(const tgx_attention *j) {
    const int64_t each = mask_rows(j);
    return each ? (j->rows + each - 1) / each : 0;
}

/* (query, key, value, attn_mask, is_causal, scale, grad, kept, dropout_p) -> the gradient of the mask */
static int mask_shape(tgx_call *c) {
    const tgx_tensor *m = tgx_in(c, MASK);
    int64_t batch[TGX_MAX_DIMS + 2];
    int rank;
    tgx_attention j;
    if (grad_fits(c, &j, batch, &rank)) return TGX_FAILED;
    if (m->dtype == TGX_BOOL || j.size == 2)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"attention\" has a gradient of masks of float32 or float64, added to scores of one: "
                        "got %s", tgx_dtype_title(m->dtype));
    tgx_output *o = tgx_fresh(c, 0, m->rank, j.q->dtype);
    memcpy(o->dims, m->sizes, (size_t)m->rank * sizeof *m->sizes);
    return need_room(c, &j, heads(m->sizes, m->rank - 2) * (double)mask_parts(&j));
}

/* The head that is the nth of those whose mask is the mth. */
static int64_t head_at(const tgx_attention *j, int64_t m, int64_t n) {
    int64_t head = 0, step = 1;
    for (int d = j->rank - 1; d >= 0; d--) {
        const int own = d - j->rank + j->mask->rank - 2;
        int64_t *from = own >= 0 && j->mask->sizes[own] != 1 ? &m : &n;
        head += *from % j->batch[d] * step;
        *from /= j->batch[d];
        step *= j->batch[d];
    }
    return head;
}

/* Items are some blocks of rows of a mask; the heads that share them come in order. All rows are one item where they share numbers. */
static int run_mask(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_attention *j = given;
    const int one_row = j->mask->sizes[j->mask->rank - 2] == 1, one_key = j->mask->sizes[j->mask->rank - 1] == 1;
    const int64_t each = mask_rows(j), parts = mask_parts(j);
    const int64_t columns = one_key ? 1 : j->keys, size = (one_row ? 1 : j->rows) * columns;
    for (; lo < hi; lo++) {
        char *room = j->room + lo * j->room_size;
        for (int64_t item = j->items * lo / j->shares; item < j->items * (lo + 1) / j->shares; item++) {
            const int64_t m = item / parts, begin = item % parts * each, end = least(begin + each, j->rows);
            char *to = j->out + m * size * j->size;
            memset(to + (one_row ? 0 : begin * columns * j->size), 0, (size_t)((one_row ? 1 : end - begin) * columns * j->size));
            for (int64_t h = 0; h < j->sharing; h++) {
                const int64_t head = head_at(j, m, h);
                const char *q = head_of(j, j->q, head), *grad = head_of(j, j->grad, head);
                const char *mask = head_of(j, j->mask, head), *kept = head_of(j, j->kept, head);
                lay(j, room, head);
                for (int64_t first = begin; first < end; first += j->step) {
                    const int64_t rows = least(j->step, end - first), n = j->causal ? least(first + rows, j->keys) : j->keys;
                    char *at = to + (one_row ? 0 : first * columns * j->size);
                    if (j->wide) {
                        slopes_double(j, room, q, grad, mask, kept, first, rows, n, whole_parts(j, n));
                        to_mask_double(j, room, rows, n, one_row, one_key, (double *)at);
                    } else {
                        slopes_float(j, room, q, grad, mask, kept, first, rows, n, whole_parts(j, n));
                        to_mask_float(j, room, rows, n, one_row, one_key, (float *)at);
                    }
                }
            }
        }
    }
    return 0;
}

static int mask_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0);
    double shared;
    tgx_attention j;
    ready(c, &j, 1);
    shared = heads(out->sizes, out->rank - 2);
    j.items = (int64_t)shared * mask_parts(&j);
    if (!out->count) return 0;
    if (!j.keys || !j.items || !heads(j.batch, j.rank)) {
        memset(j.out, 0, (size_t)(out->count * j.size));
        return 0;
    }
    j.sharing = (int64_t)(heads(j.batch, j.rank) / shared);
    j.shares = least(c->notes[0], j.items);
    return tgx_range(c, run_mask, &j, j.shares, 1);
}
TGX_KERNEL(attention_mask_backward, mask_shape, mask_run, 0)
