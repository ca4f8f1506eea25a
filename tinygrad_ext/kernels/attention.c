/* Attention, and its derivative, over some rows of queries of one head at a time, so that the whole matrix of scores never exists.
 *
 * Keys and values of a head are laid out once (product_packed.h). A block of rows then goes through the first product, softmax.h's
 * rows and the second product while its scores are in the cache. The numbers of a row do not depend on the others of its block.
 * The derivative makes the weights of a block again (Dao et al. 2022), and adds it to the gradients of keys and values. Rejected:
 * tiles over the keys too, with running maxima; they save memory only where one row of scores is larger than the cache, and cost a
 * second pass over the result. */
#include "attention_bf16.h"

enum { QUERY, KEY, VALUE, MASK, CAUSAL, SCALE, GRAD };
enum { SCORES = 1 << 15, LEAST_ROWS = 6, MOST_ROWS = 48 };      /* of a block: numbers, and rows; of the derivative twice as many */

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

static void measure(const tgx_call *c, tgx_attention *j, int back) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY), *v = tgx_in(c, VALUE);
    *j = (tgx_attention){.q = q, .k = k, .v = v, .mask = tgx_given(c, MASK) ? tgx_in(c, MASK) : NULL, .wide = q->dtype == TGX_F64,
                 .grad = back ? tgx_in(c, GRAD) : NULL, .back = back, .causal = (int)tgx_int(c, CAUSAL), .scale = tgx_float(c, SCALE), .size = tgx_itemsize[q->dtype],
                 .rows = q->sizes[q->rank - 2], .depth = q->sizes[q->rank - 1], .keys = k->sizes[k->rank - 2],
                 .width = v->sizes[v->rank - 1]};
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

/* (query, key, value, attn_mask, is_causal, scale) */
static int shape(tgx_call *c) {
    int64_t batch[TGX_MAX_DIMS + 2];
    int rank;
    tgx_attention j;
    if (fits(c, &j, 0, batch, &rank) || give(c, 0, batch, rank, j.rows, j.width)) return TGX_FAILED;
    return need_room(c, &j, heads(batch, rank) * (double)j.blocks);
}

/* (query, key, value, attn_mask, is_causal, scale, grad) -> gradients of query, key and value, each as large as the whole batch */
static int back_shape(tgx_call *c) {
    int64_t batch[TGX_MAX_DIMS + 2];
    const tgx_tensor *g = tgx_in(c, GRAD);
    int rank;
    tgx_attention j;
    if (fits(c, &j, 1, batch, &rank)) return TGX_FAILED;
    batch[rank] = j.rows, batch[rank + 1] = j.width;
    if (g->dtype != j.q->dtype || g->rank != rank + 2 || memcmp(g->sizes, batch, (size_t)(rank + 2) * sizeof *batch))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "scaled_dot_product_attention: the gradient must be of dtype %s and shape %s, got %s %s",
                        tgx_dtype_title(j.q->dtype), tgx_sizes_text(batch, rank + 2), tgx_dtype_title(g->dtype), tgx_shape_text(g));
    if (give(c, 0, batch, rank, j.rows, j.depth) || give(c, 1, batch, rank, j.keys, j.depth)
        || give(c, 2, batch, rank, j.keys, j.width)) return TGX_FAILED;
    return need_room(c, &j, heads(batch, rank));
}

/* n, or up to the end of the last part of the keys that products take at a time. */
static int64_t whole_parts(const tgx_attention *j, int64_t n) {
    return least(j->keys, (n + TGX_MIDDLE_DEPTH - 1) / TGX_MIDDLE_DEPTH * TGX_MIDDLE_DEPTH);
}

#define BLOCKS(T) \
/* Rows of a matrix behind each other, times a number. */ \
static void scaled_##T(const tgx_tensor *t, const T *from, int64_t rows, int64_t columns, T scale, T *to) { \
    const ptrdiff_t row = step_of(t, 1), col = step_of(t, 0); \
    for (int64_t r = 0; r < rows; r++, from += row) \
        for (int64_t i = 0; i < columns; i++) *to++ = from[i * col] * scale; \
} \
/* The weights of rows from `first` on, in the place of the scores of n keys, behind which are zeros up to `end`. scales: what they \
 * are still to be multiplied by, or NULL. blind: which rows see nothing; their weights are zeros. */ \
static void weights_##T(const tgx_attention *j, char *room, const char *q, const char *mask, int64_t first, int64_t rows, int64_t n, \
                        int64_t end, T *scales, uint8_t *blind) { \
    T *part = (T *)(room + j->part_at), *scores = (T *)(room + j->scores_at); \
    scaled_##T(j->q, (const T *)q + first * step_of(j->q, 1), rows, j->depth, (T)j->scale, part); \
    if (j->depth) j->products->times(room, n, j->depth, rows, part, j->depth, 1, NULL, 0, scores, j->stride); \
    else memset(scores, 0, (size_t)(rows * j->stride) * sizeof(T)); \
    for (int64_t r = 0; r < rows; r++) { \
        T *row = scores + r * j->stride; \
        const int64_t seen = j->causal ? least(first + r + 1, n) : n; \
        blind[r] = mask && !masked_##T(j, row, seen, mask + (first + r) * step_of(j->mask, 1) * tgx_itemsize[j->mask->dtype]); \
        if (blind[r]) { \
            memset(row, 0, (size_t)end * sizeof(T)); \
            if (scales) scales[r] = 0; \
            continue; \
        } \
        tgx_softmax_job weights = {.out = (char *)row, .a = (const char *)row, .scales = scales ? (char *)(scales + r) : NULL, \
                                   .n = seen, .inner = 1}; \
        j->softmax(&weights, 0, 1); \
        memset(row + seen, 0, (size_t)(end - seen) * sizeof(T)); \
    } \
} \
/* Some rows of scores or slopes times keys or values, laid out by parts: the sum over n keys. */ \
static void over_keys_##T(const tgx_attention *j, const char *laid, int64_t columns, int64_t rows, int64_t n, const T *scores, T *out) { \
    for (int64_t at = 0; at < n; at += TGX_MIDDLE_DEPTH) \
        j->products->times(laid + at * tgx_packed_count(columns, 1) * (int64_t)sizeof(T), columns, least(j->keys - at, TGX_MIDDLE_DEPTH), \
                           rows, scores + at, j->stride, 1, at ? out : NULL, columns, out, columns); \
} \
/* Rows from `first` on: the means of the values. */ \
static void block_##T(const tgx_attention *j, char *room, const char *q, const char *mask, int64_t first, int64_t rows, T *out) { \
    const int64_t n = j->causal ? least(first + rows, j->keys) : j->keys, end = whole_parts(j, n); \
    uint8_t blind[MOST_ROWS]; \
    T scales[MOST_ROWS]; \
    weights_##T(j, room, q, mask, first, rows, n, end, scales, blind); \
    over_keys_##T(j, room + j->values_at, j->width, rows, n, (const T *)(room + j->scores_at), out); \
    for (int64_t r = 0; r < rows; r++, out += j->width) { \
        if (blind[r]) memset(out, 0, (size_t)j->width * sizeof(T)); \
        else for (int64_t i = 0; i < j->width; i++) out[i] *= scales[r]; \
    } \
} \
/* Adds what some rows give to the gradients of keys and values: the sum over rows of scores or slopes, transposed, times `rows`. */ \
static void over_rows_##T(const tgx_attention *j, char *room, int64_t rows, int64_t n, const T *scores, const T *by, int64_t columns, \
                          T *to) { \
    const tgx_shape all = {.n = columns, .k = rows, .b_row = columns, .b_col = 1}; \
    if (!columns) return; \
    j->products->lay(&all, by, room + j->block_at); \
    j->products->times(room + j->block_at, columns, rows, n, scores, 1, j->stride, to, columns, to, columns); \
} \
/* Rows from `first` on: their own gradient, and their part of that of the keys and values they see. */ \
static void back_##T(const tgx_attention *j, char *room, const char *q, const char *grad, const char *mask, int64_t first, int64_t rows, \
                     T *of_q, T *of_k, T *of_v) { \
    const int64_t n = j->causal ? least(first + rows, j->keys) : j->keys, end = whole_parts(j, n); \
    T *scores = (T *)(room + j->scores_at), *seen = (T *)(room + j->seen_at), *slopes = (T *)(room + j->slopes_at); \
    uint8_t blind[MOST_ROWS]; \
    weights_##T(j, room, q, mask, first, rows, n, end, NULL, blind); \
    scaled_##T(j->grad, (const T *)grad + first * step_of(j->grad, 1), rows, j->width, 1, seen); \
    for (int64_t r = 0; r < rows; r++) \
        if (blind[r]) memset(seen + r * j->width, 0, (size_t)j->width * sizeof(T)); \
    if (j->width) j->products->times(room + j->values_at, n, j->width, rows, seen, j->width, 1, NULL, 0, slopes, j->stride); \
    else memset(slopes, 0, (size_t)(rows * j->stride) * sizeof(T)); \
    for (int64_t r = 0; r < rows; r++) { \
        char *row = (char *)(slopes + r * j->stride); \
        tgx_softmax_job job = {.out = row, .a = row, .b = (const char *)(scores + r * j->stride), .n = end, .inner = 1}; \
        memset(row + n * (int64_t)sizeof(T), 0, (size_t)(end - n) * sizeof(T)); \
        j->slopes(&job, 0, 1); \
    } \
    over_keys_##T(j, room + j->across_at, j->depth, rows, n, slopes, of_q); \
    for (int64_t i = 0; i < rows * j->depth; i++) of_q[i] *= (T)j->scale; \
    over_rows_##T(j, room, rows, n, slopes, (const T *)(room + j->part_at), j->depth, of_k); \
    over_rows_##T(j, room, rows, n, scores, seen, j->width, of_v); \
}
BLOCKS(float)
BLOCKS(double)

/* Rows of a matrix with a key each, so that sums over keys run by parts. */
static void lay_by_keys(const tgx_attention *j, const tgx_tensor *t, const char *from, int64_t columns, char *to) {
    for (int64_t at = 0; at < j->keys; at += TGX_MIDDLE_DEPTH) {
        const int64_t depth = least(j->keys - at, TGX_MIDDLE_DEPTH);
        const tgx_shape part = {.n = columns, .k = depth, .b_row = step_of(t, 1), .b_col = step_of(t, 0)};
        j->products->lay(&part, from + at * part.b_row * j->size, to + at * tgx_packed_count(columns, 1) * j->size);
    }
}

/* Lay out keys and values of a head. */
static void lay(const tgx_attention *j, char *room, int64_t head) {
    const char *k = head_of(j, j->k, head), *v = head_of(j, j->v, head);
    const tgx_shape keys = {.n = j->keys, .k = j->depth, .b_row = step_of(j->k, 0), .b_col = step_of(j->k, 1)};
    const tgx_shape values = {.n = j->keys, .k = j->width, .b_row = step_of(j->v, 0), .b_col = step_of(j->v, 1)};
    if (j->depth) j->products->lay(&keys, k, room);
    if (!j->back) lay_by_keys(j, j->v, v, j->width, room + j->values_at);
    else {
        if (j->width) j->products->lay(&values, v, room + j->values_at);
        lay_by_keys(j, j->k, k, j->depth, room + j->across_at);
    }
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
            const char *q = head_of(j, j->q, head), *mask = j->mask ? head_of(j, j->mask, head) : NULL;
            char *out = j->out + (head * j->rows + first) * j->width * j->size;
            if (head != laid) lay(j, room, laid = head);
            if (j->wide) block_double(j, room, q, mask, first, rows, (double *)out);
            else block_float(j, room, q, mask, first, rows, (float *)out);
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
            const char *mask = j->mask ? head_of(j, j->mask, head) : NULL;
            char *of_q = j->out + head * j->rows * j->depth * j->size, *of_k = j->of_k + head * j->keys * j->depth * j->size;
            char *of_v = j->of_v + head * j->keys * j->width * j->size;
            memset(of_k, 0, (size_t)(j->keys * j->depth * j->size));
            memset(of_v, 0, (size_t)(j->keys * j->width * j->size));
            lay(j, room, head);
            for (int64_t first = 0; first < j->rows; first += j->step) {
                const int64_t rows = least(j->step, j->rows - first);
                char *to = of_q + first * j->depth * j->size;
                if (j->wide) back_double(j, room, q, grad, mask, first, rows, (double *)to, (double *)of_k, (double *)of_v);
                else back_float(j, room, q, grad, mask, first, rows, (float *)to, (float *)of_k, (float *)of_v);
            }
        }
    }
    return 0;
}

/* What both need: loops, room and the batch, whose sizes stand in front of a result's. */
static void ready(const tgx_call *c, tgx_attention *j, int back) {
    const tgx_tensor *out = tgx_out(c, 0);
    measure(c, j, back);
    j->rank = out->rank - 2, j->batch = out->sizes, j->out = out->data, j->room = c->scratch;
    if (!tgx_is_half(out->dtype)) j->products = tgx_packed(out->dtype);
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
