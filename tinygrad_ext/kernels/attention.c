/* Attention over some rows of queries of one head at a time, so that the whole matrix of scores never exists.
 *
 * Keys and values of a head are laid out once (product_packed.h). A block of rows then goes through the first product, softmax.h's
 * rows and the second product while its scores are in the cache. The numbers of a row do not depend on the others of its block. */
#include <math.h>
#include <string.h>
#include "product.h"
#include "softmax.h"
#include "tgx.h"

enum { QUERY, KEY, VALUE, MASK, CAUSAL, SCALE };
enum { SCORES = 1 << 15, LEAST_ROWS = 6, MOST_ROWS = 48 };      /* of a block: numbers, and rows */

typedef struct {
    const tgx_tensor *q, *k, *v, *mask;
    int rank, wide, causal;                 /* rank: of the batch */
    const int64_t *batch;
    int64_t rows, keys, depth, width, size, step, blocks, items, shares;
    double scale;
    char *out, *room;
    int64_t values_at, part_at, scores_at, room_size;
    const tgx_packed_products *products;
    tgx_softmax_fn softmax;
} job_t;

static int64_t aligned(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* What a share of the work needs for itself: keys, values, a block of queries, its scores. */
static void plan(job_t *j) {
    const int64_t fit = SCORES / (j->keys ? j->keys : 1) / LEAST_ROWS * LEAST_ROWS;
    j->step = fit < LEAST_ROWS ? LEAST_ROWS : least(fit, MOST_ROWS);
    j->blocks = (j->rows + j->step - 1) / j->step;
    j->values_at = aligned(tgx_packed_count(j->keys, j->depth) * j->size);
    j->part_at = j->values_at + aligned(tgx_packed_count(j->width, j->keys) * j->size);
    j->scores_at = j->part_at + aligned(j->step * j->depth * j->size);
    j->room_size = j->scores_at + aligned(j->step * j->keys * j->size);
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

static void measure(const tgx_call *c, job_t *j) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY), *v = tgx_in(c, VALUE);
    *j = (job_t){.q = q, .k = k, .v = v, .mask = tgx_given(c, MASK) ? tgx_in(c, MASK) : NULL, .wide = q->dtype == TGX_F64,
                 .causal = (int)tgx_int(c, CAUSAL), .scale = tgx_float(c, SCALE), .size = tgx_itemsize[q->dtype],
                 .rows = q->sizes[q->rank - 2], .depth = q->sizes[q->rank - 1], .keys = k->sizes[k->rank - 2],
                 .width = v->sizes[v->rank - 1]};
    plan(j);
}

/* (query, key, value, attn_mask, is_causal, scale) */
static int shape(tgx_call *c) {
    const tgx_tensor *q = tgx_in(c, QUERY), *k = tgx_in(c, KEY), *v = tgx_in(c, VALUE);
    job_t j;
    if (q->dtype != TGX_F32 && q->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"attention\" not implemented for '%s': give float32 or float64", tgx_dtype_title(q->dtype));
    if (q->rank < 2 || k->rank < 2 || v->rank < 2) return refuse(c, "two dimensions at least are needed");
    if (k->dtype != q->dtype || v->dtype != q->dtype) return refuse(c, "query, key and value must be of one dtype");
    if (q->sizes[q->rank - 1] != k->sizes[k->rank - 1]) return refuse(c, "query and key must have as many columns");
    if (k->sizes[k->rank - 2] != v->sizes[v->rank - 2]) return refuse(c, "key and value must have as many rows");
    measure(c, &j);
    tgx_output *o = tgx_fresh(c, 0, 0, q->dtype);
    for (int i = QUERY; i <= VALUE; i++) {
        tgx_tensor batch = *tgx_in(c, i);
        batch.rank -= 2;
        if (tgx_broadcast(o->dims, &o->rank, &batch)) return refuse(c, "the leading dimensions must be equal, or 1");
    }
    double items = (double)j.blocks;
    for (int i = 0; i < o->rank; i++) items *= (double)o->dims[i];
    o->dims[o->rank] = j.rows, o->dims[o->rank + 1] = j.keys;
    o->rank += 2;
    if (j.mask && !mask_fits(j.mask, o->dims, o->rank))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "scaled_dot_product_attention: attn_mask has shape %s, and the scores have %s; sizes must be equal, or 1",
                        tgx_shape_text(j.mask), tgx_sizes_text(o->dims, o->rank));
    o->dims[o->rank - 1] = j.width;
    if (j.mask && j.mask->dtype != TGX_BOOL) tgx_need_dtype(c, MASK, q->dtype);
    if (tgx_check_sizes(c, o->dims, o->rank, "scaled_dot_product_attention")) return TGX_FAILED;
    if ((double)j.keys * (double)(j.depth + j.width + j.step) > 1e14)
        return c->meta ? 0 : tgx_fail(c, TGX_MEMORY_ERROR, "scaled_dot_product_attention: cannot allocate room for %lld keys", (long long)j.keys);
    c->notes[0] = c->services->num_threads();
    if (items < (double)c->notes[0]) c->notes[0] = (int64_t)items;      /* room for as many shares as there are blocks */
    c->scratch_bytes = j.room_size * c->notes[0];
    return 0;
}

static const char *head_of(const job_t *j, const tgx_tensor *t, int64_t head) {
    ptrdiff_t at = 0;
    for (int d = j->rank - 1; d >= 0; d--) {
        const int own = d - j->rank + t->rank - 2;
        if (own >= 0 && t->sizes[own] != 1) at += head % j->batch[d] * t->strides[own];
        head /= j->batch[d];
    }
    return t->data + at * tgx_itemsize[t->dtype];
}

/* The step of rows (1) or columns (0) of a matrix; none where there is one for all. */
static ptrdiff_t step_of(const tgx_tensor *t, int rows) {
    const int d = t->rank - 1 - rows;
    return t->sizes[d] == 1 ? 0 : t->strides[d];
}

#define BLOCKS(T) \
static void scaled_##T(const job_t *j, const T *q, int64_t rows, T *to) { \
    const ptrdiff_t row = step_of(j->q, 1), col = step_of(j->q, 0); \
    const T scale = (T)j->scale; \
    for (int64_t r = 0; r < rows; r++, q += row) \
        for (int64_t i = 0; i < j->depth; i++) *to++ = q[i * col] * scale; \
} \
/* Hides from a row of scores what the mask hides; whether something is left. */ \
static int masked_##T(const job_t *j, T *scores, int64_t n, const char *mask) { \
    const ptrdiff_t col = step_of(j->mask, 0); \
    int some = 0; \
    if (j->mask->dtype == TGX_BOOL) { \
        const uint8_t *seen = (const uint8_t *)mask; \
        for (int64_t i = 0; i < n; i++) { \
            some |= seen[i * col]; \
            scores[i] = seen[i * col] ? scores[i] : (T)-INFINITY; \
        } \
        return some; \
    } \
    const T *more = (const T *)mask; \
    for (int64_t i = 0; i < n; i++) { \
        some |= more[i * col] != (T)-INFINITY; \
        scores[i] += more[i * col]; \
    } \
    return some; \
} \
/* Rows from `first` on: their weights in the place of the scores of n keys, then the means of the values. */ \
static void block_##T(const job_t *j, char *room, const char *q, const char *mask, int64_t first, int64_t rows, T *out) { \
    T *part = (T *)(room + j->part_at), *scores = (T *)(room + j->scores_at); \
    const int64_t keys = j->keys, n = j->causal ? least(first + rows, keys) : keys; \
    const int64_t end = least(keys, (n + TGX_MIDDLE_DEPTH - 1) / TGX_MIDDLE_DEPTH * TGX_MIDDLE_DEPTH); \
    uint8_t blind[MOST_ROWS]; \
    scaled_##T(j, (const T *)q + first * step_of(j->q, 1), rows, part); \
    if (j->depth) j->products->times(room, n, j->depth, rows, part, j->depth, NULL, 0, scores, keys); \
    else memset(scores, 0, (size_t)(rows * keys) * sizeof(T)); \
    for (int64_t r = 0; r < rows; r++) { \
        T *row = scores + r * keys; \
        const int64_t seen = j->causal ? least(first + r + 1, n) : n; \
        blind[r] = mask && !masked_##T(j, row, seen, mask + (first + r) * step_of(j->mask, 1) * tgx_itemsize[j->mask->dtype]); \
        if (blind[r]) { \
            memset(row, 0, (size_t)end * sizeof(T)); \
            continue; \
        } \
        tgx_softmax_job weights = {.out = (char *)row, .a = (const char *)row, .n = seen, .inner = 1}; \
        j->softmax(&weights, 0, 1); \
        memset(row + seen, 0, (size_t)(end - seen) * sizeof(T)); \
    } \
    for (int64_t at = 0; at < n; at += TGX_MIDDLE_DEPTH) \
        j->products->times(room + j->values_at + at * tgx_packed_count(j->width, 1) * (int64_t)sizeof(T), j->width, \
                           least(keys - at, TGX_MIDDLE_DEPTH), rows, scores + at, keys, at ? out : NULL, j->width, out, j->width); \
    for (int64_t r = 0; r < rows; r++) \
        if (blind[r]) memset(out + r * j->width, 0, (size_t)j->width * sizeof(T)); \
}
BLOCKS(float)
BLOCKS(double)

/* Lay out keys and values of a head. */
static void lay(const job_t *j, char *room, int64_t head) {
    const char *k = head_of(j, j->k, head), *v = head_of(j, j->v, head);
    const tgx_shape keys = {.n = j->keys, .k = j->depth, .b_row = step_of(j->k, 0), .b_col = step_of(j->k, 1)};
    if (j->depth) j->products->lay(&keys, k, room);
    for (int64_t at = 0; at < j->keys; at += TGX_MIDDLE_DEPTH) {
        const tgx_shape values = {.n = j->width, .k = least(j->keys - at, TGX_MIDDLE_DEPTH), .b_row = step_of(j->v, 1), .b_col = step_of(j->v, 0)};
        j->products->lay(&values, v + at * values.b_row * j->size, room + j->values_at + at * tgx_packed_count(j->width, 1) * j->size);
    }
}

static int run_shares(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = given;
    for (; lo < hi; lo++) {
        char *room = j->room + lo * j->room_size;
        int64_t laid = -1;
        for (int64_t item = j->items * lo / j->shares; item < j->items * (lo + 1) / j->shares; item++) {
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

static int run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0);
    job_t j;
    measure(c, &j);
    if (!out->count) return 0;
    if (!j.keys) {
        memset(out->data, 0, (size_t)(out->count * j.size));
        return 0;
    }
    j.rank = out->rank - 2, j.batch = out->sizes, j.out = out->data, j.room = c->scratch;
    j.products = tgx_packed(out->dtype), j.softmax = tgx_softmax_loops()->forward[j.wide];
    j.items = out->count / (j.rows * j.width) * j.blocks;
    j.shares = least(c->notes[0], j.items);
    return tgx_range(c, run_shares, &j, j.shares, 1);
}
TGX_KERNEL(attention, shape, run, 0)
