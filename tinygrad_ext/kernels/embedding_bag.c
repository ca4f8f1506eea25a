/* Sums, means and maxima of rows that are looked up by number, a bag of them at a time, without the rows in between.
 *
 * A bag is what lies between two offsets. Each bag is a piece of work of its own, added up in the order of its indices, so bits do
 * not depend on threads. Rejected: rows gathered first and reduced afterwards, which writes and reads them all once more. */
#include <math.h>
#include "once.h"
#include "tgx.h"

enum { WEIGHT, INDICES, OFFSETS, FACTORS, MODE, LAST, PADDING, PERIOD };
enum { SUM, MEAN, MOST };

typedef struct {
    tgx_call *c;
    int64_t bags, count, rows, width;
    int mode;
} job;

/* How the words of `mode` are told apart; -1 for none of them. */
static int mode_of(const char *word) { return !strcmp(word, "sum") ? SUM : !strcmp(word, "mean") ? MEAN : !strcmp(word, "max") ? MOST : -1; }

static inline int is_padding(const tgx_call *c, int64_t row) {
    int64_t period = tgx_int(c, PERIOD);
    return tgx_int(c, PADDING) >= 0 && (period ? row % period : row) == tgx_int(c, PADDING);
}

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
            return tgx_fail(c, TGX_RUNTIME_ERROR, "expected per_sample_weights of input's shape %s and weight's type %s, but embedding_bag got shape "
                            "%s and type %s", tgx_shape_text(indices), tgx_dtype_title(w->dtype), tgx_shape_text(f), tgx_dtype_title(f->dtype));
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

/* Where bag i starts and ends among the indices. */
static int bounds(const job *k, int64_t i, int64_t *from, int64_t *to) {
    const tgx_tensor *offsets = tgx_in(k->c, OFFSETS);
    const int64_t *at = (const int64_t *)offsets->data;
    *from = tgx_once(at + i);
    *to = i + 1 < offsets->count ? tgx_once(at + i + 1) : k->count;
    if (i == 0 && *from)
        return tgx_fail(k->c, TGX_RUNTIME_ERROR, "offsets[0] has to be 0, i.e. the first sequence in the mini-batch has to start from position 0. "
                        "However, got %lld", (long long)*from);
    if (*from < 0 || *from > *to || *to > k->count)
        return tgx_fail(k->c, TGX_RUNTIME_ERROR, "embedding_bag: offsets have to rise and end within the %lld indices, but bag %lld goes from %lld "
                        "to %lld", (long long)k->count, (long long)i, (long long)*from, (long long)*to);
    return 0;
}

#define BAGS(T) static int bags_##T(void *context, ptrdiff_t lo, ptrdiff_t hi) { \
    job *k = context; \
    tgx_call *c = k->c; \
    const int64_t *at = (const int64_t *)tgx_in(c, INDICES)->data; \
    const T *w = (const T *)tgx_in(c, WEIGHT)->data, *factors = tgx_given(c, FACTORS) ? (const T *)tgx_in(c, FACTORS)->data : NULL; \
    int64_t *bag = (int64_t *)tgx_out(c, 1)->data, *sizes = (int64_t *)tgx_out(c, 2)->data, *most = (int64_t *)tgx_out(c, 3)->data; \
    for (int64_t b = lo; b < hi; b++) { \
        T *out = (T *)tgx_out(c, 0)->data + b * k->width; \
        int64_t from, to, n = 0; \
        if (bounds(k, b, &from, &to)) return TGX_FAILED; \
        memset(out, 0, (size_t)k->width * sizeof(T)); \
        for (int64_t j = 0; j < k->width && k->mode == MOST; j++) most[b * k->width + j] = -1; \
        for (int64_t i = from; i < to; i++) { \
            int64_t row = tgx_once(at + i); \
            if (row < 0 || row >= k->rows) \
                return tgx_fail(c, TGX_INDEX_ERROR, "embedding_bag: Expected idx >= 0 && idx < num_embeddings, which is %lld, but found idx " \
                                "to be %lld", (long long)k->rows, (long long)row); \
            bag[i] = b; \
            if (is_padding(c, row)) continue; \
            const T *x = w + row * k->width; \
            if (k->mode == MOST) { \
                int64_t *chosen = most + b * k->width; \
                for (int64_t j = 0; j < k->width; j++) \
                    if (!n || x[j] > out[j]) out[j] = x[j], chosen[j] = row; \
            } else if (factors) \
                for (int64_t j = 0; j < k->width; j++) out[j] += x[j] * factors[i]; \
            else \
                for (int64_t j = 0; j < k->width; j++) out[j] += x[j]; \
            n++; \
        } \
        sizes[b] = n; \
        if (k->mode == MEAN && n) for (int64_t j = 0; j < k->width; j++) out[j] /= (T)n; \
        if (k->mode != MOST) most[b] = n; \
    } \
    return 0; }
BAGS(float)
BAGS(double)

static int run(tgx_call *c) {
    const tgx_tensor *w = tgx_in(c, WEIGHT), *indices = tgx_in(c, INDICES);
    job k = {c, tgx_out(c, 2)->count, indices->count, w->sizes[0], w->sizes[1], mode_of(c->args[MODE].text)};
    int64_t end = k.bags ? k.count : 0; /* of the indices that are in a bag */
    if (tgx_int(c, LAST)) end = tgx_once((const int64_t *)tgx_in(c, OFFSETS)->data + k.bags);
    for (int64_t i = end < 0 ? 0 : end; i < k.count; i++) ((int64_t *)tgx_out(c, 1)->data)[i] = -1;
    int64_t each = k.bags ? 1 + k.count * k.width / k.bags : 1;
    return tgx_range(c, w->dtype == TGX_F64 ? bags_double : bags_float, &k, k.bags, 1 + TGX_SMALL / each);
}
TGX_KERNEL(embedding_bag, shape, run, 0)
