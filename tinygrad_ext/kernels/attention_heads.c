/* Attention, and its derivative, of heads whose scores are few: a head at a time, whose scores, weights and slopes are made and used
 * while they lie in the first caches, by the products that matmul takes for such sizes. The weights are a result, which the derivative
 * reads: to make them again, as attention.c does, costs more than a way through memory.
 *
 * Against one op after the other over all heads, whose scores go through memory eight times: of 64 heads of 64 x 64 x 16 with backward
 * 823 us and 869, where the multiplications alone take 427 and the exponentials 100, of one of 4 x 4 x 4 10 and 16. */
#include "attention_job.h"

enum { QUERY, KEY, VALUE, SCALE, WEIGHTS, GRAD };       /* the last two of the derivative */

typedef struct {
    tgx_attention j;
    const tgx_tensor *weights, *to[3];
    int dtype;
} heads_t;

static int refuse(tgx_call *c, const char *what) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "scaled_dot_product_attention of whole heads: %s: got query %s, key %s, value %s", what,
                    tgx_shape_text(tgx_in(c, QUERY)), tgx_shape_text(tgx_in(c, KEY)), tgx_shape_text(tgx_in(c, VALUE)));
}

static int alike(const tgx_tensor *a, const tgx_tensor *b, int dims) {
    return !memcmp(a->sizes, b->sizes, (size_t)dims * sizeof *a->sizes);
}

static int fits(tgx_call *c) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY), *v = tgx_in(c, VALUE);
    if (q->dtype != TGX_F32 && q->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"attention\" of whole heads not implemented for '%s': give float32 or float64",
                        tgx_dtype_title(q->dtype));
    if (k->dtype != q->dtype || v->dtype != q->dtype) return refuse(c, "query, key and value must be of one dtype");
    if (q->rank < 2 || k->rank != q->rank || v->rank != q->rank) return refuse(c, "they must have as many dimensions, two at least");
    const int batch = q->rank - 2;
    if (!alike(q, k, batch) || !alike(k, v, batch + 1)) return refuse(c, "they must have one batch, key and value as many rows");
    if (q->sizes[batch + 1] != k->sizes[batch + 1] || q->sizes[batch + 1] != v->sizes[batch + 1])
        return refuse(c, "they must have as many columns");
    for (int i = 0; i < 2; i++)
        if (q->sizes[batch + i] < 1 || k->sizes[batch + i] < 1 || q->sizes[batch + i] > TGX_MIDDLE_DEPTH
            || k->sizes[batch + i] > TGX_MIDDLE_DEPTH) return refuse(c, "a head has 1 to 256 rows and columns");
    return 0;
}

static void need_room(tgx_call *c, int back) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY);
    const int64_t rows = q->sizes[q->rank - 2], each = rows * q->sizes[q->rank - 1] + (back ? rows * k->sizes[k->rank - 2] : 0);
    int64_t heads = 1;
    for (int i = 0; i < q->rank - 2; i++) heads *= q->sizes[i];
    c->notes[0] = least(c->services->num_threads(), heads);
    c->notes[1] = aligned(each * tgx_itemsize[q->dtype]);
    c->scratch_bytes = c->notes[0] * c->notes[1];
}

static void scores_of(const tgx_call *c, int64_t *sizes) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY);
    memcpy(sizes, q->sizes, (size_t)(q->rank - 1) * sizeof *sizes);
    sizes[q->rank - 1] = k->sizes[k->rank - 2];
}

/* (query, key, value, scale) -> the means, in query's order of dimensions, and the weights */
static int shape(tgx_call *c) {
    if (fits(c)) return TGX_FAILED;
    const tgx_tensor *q = tgx_in(c, QUERY);
    tgx_like_order(c, 0, q, q->dtype);
    tgx_output *o = tgx_fresh(c, 1, q->rank, q->dtype);
    scores_of(c, o->dims);
    need_room(c, 0);
    return tgx_check_sizes(c, o->dims, o->rank, "scaled_dot_product_attention");
}

/* (query, key, value, scale, weights, grad) -> gradients of query, key and value */
static int back_shape(tgx_call *c) {
    if (fits(c)) return TGX_FAILED;
    const tgx_tensor *q = tgx_in(c, QUERY), *w = tgx_in(c, WEIGHTS), *g = tgx_in(c, GRAD);
    int64_t sizes[TGX_MAX_DIMS];
    scores_of(c, sizes);
    if (w->dtype != q->dtype || w->rank != q->rank || memcmp(w->sizes, sizes, (size_t)w->rank * sizeof *sizes))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "scaled_dot_product_attention of whole heads: the weights must be of dtype %s and shape "
                        "%s, got %s %s", tgx_dtype_title(q->dtype), tgx_sizes_text(sizes, q->rank), tgx_dtype_title(w->dtype),
                        tgx_shape_text(w));
    if (g->dtype != q->dtype || !tgx_same_sizes(g, q))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "scaled_dot_product_attention of whole heads: the gradient must be of dtype %s and shape "
                        "%s, got %s %s", tgx_dtype_title(q->dtype), tgx_shape_text(q), tgx_dtype_title(g->dtype), tgx_shape_text(g));
    tgx_need_dense(c, WEIGHTS);
    for (int i = 0; i < 3; i++) tgx_like_order(c, i, tgx_in(c, i), q->dtype);
    need_room(c, 1);
    return 0;
}

static void product(const heads_t *h, int64_t m, int64_t n, int64_t k, const void *a, ptrdiff_t a_row, ptrdiff_t a_col, const void *b,
                    ptrdiff_t b_row, ptrdiff_t b_col, void *to, ptrdiff_t row, ptrdiff_t col) {
    const tgx_small p = {.s = {m, n, k, a_row, a_col, b_row, b_col, row, col}, .a = a, .b = b, .c = to, .alpha = 1};
    tgx_small_product(&p, h->dtype);
}

#define SCALED(T) \
/* Rows of a matrix behind each other, times a number; and the same where they lie. */ \
static void scaled_##T(const T *restrict from, ptrdiff_t row, ptrdiff_t col, int64_t rows, int64_t columns, T scale, T *restrict to) { \
    for (int64_t r = 0; r < rows; r++, from += row, to += columns) { \
        if (col == 1) for (int64_t i = 0; i < columns; i++) to[i] = from[i] * scale; \
        else for (int64_t i = 0; i < columns; i++) to[i] = from[i * col] * scale; \
    } \
} \
static void scale_##T(T *at, ptrdiff_t row, ptrdiff_t col, int64_t rows, int64_t columns, T scale) { \
    for (int64_t r = 0; r < rows; r++, at += row) { \
        if (col == 1) for (int64_t i = 0; i < columns; i++) at[i] *= scale; \
        else for (int64_t i = 0; i < columns; i++) at[i * col] *= scale; \
    } \
}
SCALED(float)
SCALED(double)

#define MATRIX(h, t, name) \
    const ptrdiff_t name##_row = step_of(t, 1), name##_col = step_of(t, 0); \
    char *const name = (char *)head_of(&(h)->j, t, head)

static void scaled_queries(const heads_t *h, const char *q, char *to) {
    const tgx_attention *j = &h->j;
    const ptrdiff_t row = step_of(j->q, 1), col = step_of(j->q, 0);
    if (j->wide) scaled_double((const double *)q, row, col, j->rows, j->depth, j->scale, (double *)to);
    else scaled_float((const float *)q, row, col, j->rows, j->depth, (float)j->scale, (float *)to);
}

static void forward(const heads_t *h, char *room, int64_t head) {
    const tgx_attention *j = &h->j;
    char *const w = h->weights->data + head * j->rows * j->keys * j->size;
    MATRIX(h, j->q, q);
    MATRIX(h, j->k, k);
    MATRIX(h, j->v, v);
    MATRIX(h, h->to[0], to);
    (void)q_row, (void)q_col;
    tgx_softmax_job job = {.out = w, .a = w, .n = j->keys, .inner = 1};
    scaled_queries(h, q, room);
    product(h, j->rows, j->keys, j->depth, room, j->depth, 1, k, k_col, k_row, w, j->keys, 1);
    j->softmax(&job, 0, j->rows);
    product(h, j->rows, j->depth, j->keys, w, j->keys, 1, v, v_row, v_col, to, to_row, to_col);
}

static void backward(const heads_t *h, char *room, int64_t head) {
    const tgx_attention *j = &h->j;
    char *const w = h->weights->data + head * j->rows * j->keys * j->size, *const slopes = room + j->slopes_at;
    MATRIX(h, j->q, q);
    MATRIX(h, j->k, k);
    MATRIX(h, j->v, v);
    MATRIX(h, j->grad, g);
    MATRIX(h, h->to[0], of_q);
    MATRIX(h, h->to[1], of_k);
    MATRIX(h, h->to[2], of_v);
    (void)q_row, (void)q_col;
    tgx_softmax_job job = {.out = slopes, .a = slopes, .b = w, .n = j->keys, .inner = 1};
    product(h, j->keys, j->depth, j->rows, w, 1, j->keys, g, g_row, g_col, of_v, of_v_row, of_v_col);
    product(h, j->rows, j->keys, j->depth, g, g_row, g_col, v, v_col, v_row, slopes, j->keys, 1);
    j->slopes(&job, 0, j->rows);
    product(h, j->rows, j->depth, j->keys, slopes, j->keys, 1, k, k_row, k_col, of_q, of_q_row, of_q_col);
    if (j->wide) scale_double((double *)of_q, of_q_row, of_q_col, j->rows, j->depth, j->scale);
    else scale_float((float *)of_q, of_q_row, of_q_col, j->rows, j->depth, (float)j->scale);
    scaled_queries(h, q, room);
    product(h, j->keys, j->depth, j->rows, slopes, 1, j->keys, room, j->depth, 1, of_k, of_k_row, of_k_col);
}

static int run_heads(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const heads_t *h = given;
    for (; lo < hi; lo++) {
        char *room = h->j.room + lo * h->j.room_size;
        for (int64_t head = h->j.items * lo / h->j.shares; head < h->j.items * (lo + 1) / h->j.shares; head++) {
            if (h->j.back) backward(h, room, head);
            else forward(h, room, head);
        }
    }
    return 0;
}

static int run_both(tgx_call *c, int back) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY);
    heads_t h = {.j = {.q = q, .k = k, .v = tgx_in(c, VALUE), .grad = back ? tgx_in(c, GRAD) : NULL, .rank = q->rank - 2, .back = back,
                       .wide = q->dtype == TGX_F64, .batch = q->sizes, .rows = q->sizes[q->rank - 2], .depth = q->sizes[q->rank - 1],
                       .keys = k->sizes[k->rank - 2], .size = tgx_itemsize[q->dtype], .scale = tgx_float(c, SCALE),
                       .room = c->scratch, .room_size = c->notes[1]},
                 .weights = back ? tgx_in(c, WEIGHTS) : tgx_out(c, 1), .dtype = q->dtype};
    if (!q->count) return 0;
    for (int i = 0; i < (back ? 3 : 1); i++) h.to[i] = tgx_out(c, i);
    h.j.softmax = tgx_softmax_loops()->forward[h.j.wide];
    h.j.slopes = tgx_softmax_loops()->backward[h.j.wide];
    h.j.slopes_at = h.j.rows * h.j.depth * h.j.size;
    h.j.items = q->count / (h.j.rows * h.j.depth);
    h.j.shares = h.j.rows * h.j.keys * h.j.items < TGX_SMALL ? 1 : least(c->notes[0], h.j.items);
    return tgx_range(c, run_heads, &h, h.j.shares, 1);
}

static int run(tgx_call *c) { return run_both(c, 0); }
static int back_run(tgx_call *c) { return run_both(c, 1); }
TGX_KERNEL(attention_heads, shape, run, 0)
TGX_KERNEL(attention_heads_backward, back_shape, back_run, 0)
