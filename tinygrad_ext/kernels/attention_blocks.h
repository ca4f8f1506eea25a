/* Blocks of rows of one head in float32 and float64: their weights, their results and what they give to the derivatives. */
#ifndef TGX_ATTENTION_BLOCKS_H
#define TGX_ATTENTION_BLOCKS_H
#include "attention_job.h"

enum { MOST_ROWS = 48 };       /* of a block */

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
static void over_keys_##T(const tgx_attention *j, const char *laid, int64_t columns, int64_t rows, int64_t n, const T *scores, \
                          T *out) { \
    for (int64_t at = 0; at < n; at += TGX_MIDDLE_DEPTH) \
        j->products->times(laid + at * tgx_packed_count(columns, 1) * (int64_t)sizeof(T), columns, \
                           least(j->keys - at, TGX_MIDDLE_DEPTH), rows, scores + at, j->stride, 1, at ? out : NULL, columns, out, columns); \
} \
/* Drops weights of n keys, or their gradients, where there is dropout. */ \
static void drop_##T(const tgx_attention *j, const char *kept, int64_t first, int64_t rows, int64_t n, T *numbers) { \
    for (int64_t r = 0; kept && r < rows; r++) \
        kept_##T(j, numbers + r * j->stride, n, kept + (first + r) * step_of(j->kept, 1), (T)j->factor); \
} \
/* Rows from `first` on: the means of the values. */ \
static void block_##T(const tgx_attention *j, char *room, const char *q, const char *mask, const char *kept, int64_t first, \
                      int64_t rows, T *out) { \
    const int64_t n = j->causal ? least(first + rows, j->keys) : j->keys, end = whole_parts(j, n); \
    uint8_t blind[MOST_ROWS]; \
    T scales[MOST_ROWS]; \
    weights_##T(j, room, q, mask, first, rows, n, end, scales, blind); \
    drop_##T(j, kept, first, rows, n, (T *)(room + j->scores_at)); \
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
/* Weights of rows from `first` on, as they are before dropout, and what the gradient gives to their scores: zeros up to `end`. */ \
static void slopes_##T(const tgx_attention *j, char *room, const char *q, const char *grad, const char *mask, const char *kept, \
                       int64_t first, int64_t rows, int64_t n, int64_t end) { \
    T *scores = (T *)(room + j->scores_at), *seen = (T *)(room + j->seen_at), *slopes = (T *)(room + j->slopes_at); \
    uint8_t blind[MOST_ROWS]; \
    weights_##T(j, room, q, mask, first, rows, n, end, NULL, blind); \
    scaled_##T(j->grad, (const T *)grad + first * step_of(j->grad, 1), rows, j->width, 1, seen); \
    for (int64_t r = 0; r < rows; r++) \
        if (blind[r]) memset(seen + r * j->width, 0, (size_t)j->width * sizeof(T)); \
    if (j->width) j->products->times(room + j->values_at, n, j->width, rows, seen, j->width, 1, NULL, 0, slopes, j->stride); \
    else memset(slopes, 0, (size_t)(rows * j->stride) * sizeof(T)); \
    drop_##T(j, kept, first, rows, n, slopes); \
    for (int64_t r = 0; r < rows; r++) { \
        char *row = (char *)(slopes + r * j->stride); \
        tgx_softmax_job job = {.out = row, .a = row, .b = (const char *)(scores + r * j->stride), .n = end, .inner = 1}; \
        memset(row + n * (int64_t)sizeof(T), 0, (size_t)(end - n) * sizeof(T)); \
        j->slopes(&job, 0, 1); \
    } \
} \
/* Rows from `first` on: their own gradient, and their part of that of the keys and values they see. */ \
static void back_##T(const tgx_attention *j, char *room, const char *q, const char *grad, const char *mask, const char *kept, \
                     int64_t first, int64_t rows, T *of_q, T *of_k, T *of_v) { \
    const int64_t n = j->causal ? least(first + rows, j->keys) : j->keys, end = whole_parts(j, n); \
    T *scores = (T *)(room + j->scores_at), *seen = (T *)(room + j->seen_at), *slopes = (T *)(room + j->slopes_at); \
    slopes_##T(j, room, q, grad, mask, kept, first, rows, n, end); \
    over_keys_##T(j, room + j->across_at, j->depth, rows, n, slopes, of_q); \
    for (int64_t i = 0; i < rows * j->depth; i++) of_q[i] *= (T)j->scale; \
    over_rows_##T(j, room, rows, n, slopes, (const T *)(room + j->part_at), j->depth, of_k); \
    drop_##T(j, kept, first, rows, n, scores); \
    over_rows_##T(j, room, rows, n, scores, seen, j->width, of_v); \
} \
/* Adds what some rows give to the gradient of the mask. A number that several rows or keys share gets their sum. */ \
static void to_mask_##T(const tgx_attention *j, const char *room, int64_t rows, int64_t n, int one_row, int one_key, T *to) { \
    const T *slopes = (const T *)(room + j->slopes_at); \
    for (int64_t r = 0; r < rows; r++, slopes += j->stride, to += one_row ? 0 : one_key ? 1 : j->keys) { \
        T sum = 0; \
        if (one_key) for (int64_t i = 0; i < n; i++) sum += slopes[i]; \
        else for (int64_t i = 0; i < n; i++) to[i] += slopes[i]; \
        if (one_key) *to += sum; \
    } \
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
#endif
