/* Rows by number: embedding, its derivative, rows cut to a length; classes as vectors.
 *
 * The derivative adds rows in the order of the indices, so its bits are always the same; threads take columns. Rejected: threads
 * that share the indices, which may meet in a row: each would need a table of its own, as large as the result. */
#include <math.h>
#include "make.h"
#include "once.h"
#include "tgx.h"

static int require_float(tgx_call *c, int dtype, const char *op) {
    if (dtype == TGX_F32 || dtype == TGX_F64) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the input to float32 or float64 first", op,
                    tgx_dtype_title(dtype));
}

static int need_indices(tgx_call *c, int arg) {
    int dtype = tgx_in(c, arg)->dtype;
    if (dtype != TGX_I64 && dtype != TGX_I32)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
                        "Int; but got %s instead (while checking arguments for embedding). Convert it with .long().",
                        tgx_dtype_title(dtype));
    tgx_need(c, arg, TGX_I64);
    return 0;
}

static int refuse_row(tgx_call *c, int64_t row, int64_t rows) {
    return tgx_fail(c, TGX_INDEX_ERROR, "index out of range in self: embedding has rows 0 to %lld, but indices hold %lld",
                    (long long)rows - 1, (long long)row);
}

/* The row that index i names, read once: another thread may be writing to the indices. Negative when it has been refused. */
static inline int64_t row_at(tgx_call *c, const int64_t *at, int64_t i, int64_t rows) {
    int64_t row = tgx_once(at + i);
    return row >= 0 && row < rows ? row : refuse_row(c, row, rows);
}

/* What the threads share. One that meets a row there is not notes it and gives up; the caller says so. */
typedef struct {
    const int64_t *at, *often;
    const char *from;
    char *to;
    int64_t n, width, rows, padding, outside;
} rows_t;

static int outside(rows_t *job, int64_t row) {
    __atomic_store_n(&job->outside, row, __ATOMIC_RELAXED);
    return TGX_INDEX;
}

/* What the threads ended with; the first index outside is named, or that which a thread met if it has changed since. */
static int ended(tgx_call *c, rows_t *job, int code) {
    if (code != TGX_INDEX) return code;
    for (int64_t i = 0; i < job->n; i++)
        if (row_at(c, job->at, i, job->rows) < 0) return TGX_FAILED;
    return refuse_row(c, job->outside, job->rows);
}

static int check_matrix(tgx_call *c, const tgx_tensor *t, const char *name) {
    if (t->rank == 2) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "'%s' must be 2-D: (rows, size of a row), but has shape %s", name, tgx_shape_text(t));
}

/* ---- embedding: (weight, indices, padding_idx, scale_grad_by_freq, sparse) --------------------------------------- */

static int embedding_shape(tgx_call *c) {
    const tgx_tensor *w = tgx_in(c, 0), *indices = tgx_in(c, 1);
    tgx_output *o;
    if (check_matrix(c, w, "weight") || need_indices(c, 1)) return TGX_FAILED;
    if (indices->rank >= TGX_MAX_DIMS) return tgx_fail(c, TGX_RUNTIME_ERROR, "embedding: indices have too many dimensions");
    tgx_need_dense(c, 0);
    o = tgx_fresh(c, 0, indices->rank + 1, w->dtype);
    for (int i = 0; i < indices->rank; i++) o->dims[i] = indices->sizes[i];
    o->dims[indices->rank] = w->sizes[1];
    c->work = 1 + indices->count * w->sizes[1];
    return 0;
}

static int copy_rows(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    rows_t *job = given;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t row = tgx_once(job->at + i);
        if (row < 0 || row >= job->rows) return outside(job, row);
        memcpy(job->to + i * job->width, job->from + row * job->width, (size_t)job->width);
    }
    return 0;
}

static int embedding_run(tgx_call *c) {
    const tgx_tensor *w = tgx_in(c, 0), *indices = tgx_in(c, 1);
    rows_t job = {.at = (const int64_t *)indices->data, .from = w->data, .to = tgx_out(c, 0)->data, .n = indices->count,
                  .width = w->sizes[1] * tgx_itemsize[w->dtype], .rows = w->sizes[0]};
    return ended(c, &job, tgx_range(c, copy_rows, &job, job.n, 1 + TGX_SMALL / (1 + w->sizes[1])));
}
TGX_KERNEL(embedding, embedding_shape, embedding_run, 0)

/* ---- (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq) ---------------------------------------- */

static int embedding_backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *indices = tgx_in(c, 1);
    int64_t rows = tgx_int(c, 2), width = g->rank ? g->sizes[g->rank - 1] : 0;
    int dtype = tgx_is_half(g->dtype) ? TGX_F32 : g->dtype;
    tgx_output *o;
    if (need_indices(c, 1) || (!tgx_is_complex(dtype) && require_float(c, dtype, "embedding_dense_backward"))) return TGX_FAILED;
    if (rows < 0 || g->rank == 0 || g->count != indices->count * width)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "embedding_dense_backward: grad_output of shape %s does not fit indices %s",
                        tgx_shape_text(g), tgx_shape_text(indices));
    tgx_need(c, 0, dtype);
    o = tgx_fresh(c, 0, 2, g->dtype);
    o->dims[0] = rows, o->dims[1] = width, o->via = (int8_t)dtype;
    if (tgx_int(c, 4)) c->scratch_bytes = rows * (int64_t)sizeof(int64_t);
    return 0;
}

enum { COLUMNS = 16, WIDE = 512, BLOCK = 256 };    /* columns that a thread takes at least; those of a row that pay for taking some; indices */

/* Of rows lo to hi, or of columns lo to hi in steps of COLUMNS. A thread that has some of the rows picks their indices without a
 * branch first. */
#define ADD_ROWS(T) \
static inline void add_row_##T(const rows_t *job, int64_t i, int64_t row, int64_t first, int64_t width) { \
    const T *g = (const T *)job->from + i * job->width + first; \
    T *to = (T *)job->to + row * job->width + first; \
    if (job->often) { \
        const T scale = (T)1 / (T)job->often[row]; \
        for (int64_t k = 0; k < width; k++) to[k] += g[k] * scale; \
    } else \
        for (int64_t k = 0; k < width; k++) to[k] += g[k]; \
} \
static int add_all_##T(rows_t *job, int64_t first, int64_t width) { \
    for (int64_t i = 0; i < job->n; i++) { \
        const int64_t row = tgx_once(job->at + i); \
        if (row < 0 || row >= job->rows) return outside(job, row); \
        if (row != job->padding) add_row_##T(job, i, row, first, width); \
    } \
    return 0; \
} \
static int add_rows_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
    rows_t *job = given; \
    int64_t at[BLOCK], row[BLOCK]; \
    if (job->width > WIDE) return add_all_##T(job, lo * COLUMNS, (hi * COLUMNS < job->width ? hi * COLUMNS : job->width) - lo * COLUMNS); \
    if (hi - lo == job->rows) return add_all_##T(job, 0, job->width); \
    for (int64_t start = 0, n = 0; start < job->n; start += BLOCK, n = 0) { \
        for (int64_t i = start; i < job->n && i < start + BLOCK; i++) { \
            const int64_t r = tgx_once(job->at + i); \
            if (r < 0 || r >= job->rows) return outside(job, r); \
            at[n] = i, row[n] = r; \
            n += (r >= lo) & (r < hi) & (r != job->padding); \
        } \
        for (int64_t i = 0; i < n; i++) add_row_##T(job, at[i], row[i], 0, job->width); \
    } \
    return 0; \
}
ADD_ROWS(float)
ADD_ROWS(double)

static int embedding_backward_run(tgx_call *c) {
    const tgx_tensor *indices = tgx_in(c, 1);
    tgx_tensor *out = tgx_out(c, 0);
    const int64_t *at = (const int64_t *)indices->data;
    int64_t *often = tgx_int(c, 4) ? c->scratch : NULL;
    int64_t width = out->sizes[1] * (tgx_is_complex(out->dtype) ? 2 : 1);    /* a complex number adds up like two real ones */
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    if (often) {
        memset(often, 0, (size_t)c->scratch_bytes);
        for (int64_t i = 0; i < indices->count; i++) {
            int64_t row = row_at(c, at, i, tgx_int(c, 2));
            if (row < 0) return TGX_FAILED;
            often[row]++;
        }
    }
    rows_t job = {at, often, tgx_in(c, 0)->data, out->data, indices->count, width, tgx_int(c, 2), tgx_int(c, 3)};
    const int single = out->dtype == TGX_F32 || out->dtype == TGX_C64;
    const int64_t parts = width > WIDE ? (width + COLUMNS - 1) / COLUMNS : job.rows;
    return ended(c, &job, tgx_range_once(c, single ? add_rows_float : add_rows_double, &job, parts,
                                         1 + TGX_SMALL * parts / (1 + width * indices->count)));
}
TGX_KERNEL(embedding_backward, embedding_backward_shape, embedding_backward_run, 0)

/* ---- (self, indices, max_norm, norm_type): the named rows get at most the length max_norm ------------------------ */

static int embedding_renorm_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (need_indices(c, 1) || require_float(c, t->dtype, "_embedding_renorm") || check_matrix(c, t, "self")) return TGX_FAILED;
    tgx_like(c, 0, t, t->dtype);
    c->scratch_bytes = t->sizes[0];                             /* which rows were met */
    return 0;
}

static double add_power(double total, double v, double p) {
    if (p == 2) return total + v * v;
    if (p == 1) return total + v;
    if (p == 0) return total + (v != 0);
    if (p == INFINITY) return v > total ? v : total;
    if (p == -INFINITY) return v < total ? v : total;
    return total + pow(v, p);
}

#define SHORTEN(T) static int shorten_##T(tgx_call *c, T *data, const int64_t *at, int64_t n, int64_t rows, int64_t width) { \
    double most = tgx_float(c, 2), p = tgx_float(c, 3); \
    char *seen = memset(c->scratch, 0, (size_t)rows); \
    for (int64_t i = 0; i < n; i++) { \
        int64_t at_row = row_at(c, at, i, rows); \
        if (at_row < 0) return TGX_FAILED; \
        if (seen[at_row]) continue; \
        seen[at_row] = 1; \
        T *row = data + at_row * width; \
        double norm = p == -INFINITY && width ? INFINITY : 0; \
        for (int64_t k = 0; k < width; k++) norm = add_power(norm, fabs((double)row[k]), p); \
        if (p != 0 && p != 1 && !isinf(p)) norm = pow(norm, 1 / p); \
        if (norm > most) { \
            const T scale = (T)(most / (norm + 1e-7)); \
            for (int64_t k = 0; k < width; k++) row[k] *= scale; \
        } \
    } \
    return 0; }
SHORTEN(float)
SHORTEN(double)

static int embedding_renorm_run(tgx_call *c) {
    const tgx_tensor *indices = tgx_in(c, 1);
    tgx_tensor *out = tgx_out(c, 0);
    const int64_t *at = (const int64_t *)indices->data;
    if (out->count) c->services->copy(out, tgx_in(c, 0));
    if (out->dtype == TGX_F32) return shorten_float(c, (float *)out->data, at, indices->count, out->sizes[0], out->sizes[1]);
    return shorten_double(c, (double *)out->data, at, indices->count, out->sizes[0], out->sizes[1]);
}
TGX_KERNEL(embedding_renorm, embedding_renorm_shape, embedding_renorm_run, 0)

/* ---- one_hot: (self, num_classes) -------------------------------------------------------------------------------- */

static int refuse_class(tgx_call *c, int64_t k, int64_t classes) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Class values must be smaller than num_classes. Got %lld with num_classes=%lld", (long long)k,
                    (long long)classes);
}

/* The largest class number, of a tensor as it lies; -1 without any, and TGX_FAILED - 1 after a negative one. */
static int64_t largest(tgx_call *c, const tgx_tensor *t) {
    int64_t index[TGX_MAX_DIMS] = {0}, most = -1;
    const int64_t *p = (const int64_t *)t->data;
    for (int64_t n = 0; n < t->count; n++) {
        int64_t k = tgx_once(p);
        if (k < 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "Class values must be non-negative. Got %lld", (long long)k) - 1;
        if (k > most) most = k;
        for (int d = t->rank - 1; d >= 0; d--) {
            p += t->strides[d];
            if (++index[d] < t->sizes[d]) break;
            p -= t->sizes[d] * t->strides[d];
            index[d] = 0;
        }
    }
    return most;
}

static int one_hot_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t classes = tgx_int(c, 1), most;
    tgx_output *o;
    if (t->dtype != TGX_I64)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "one_hot is only applicable to index tensor of type LongTensor. Got %s; convert it with "
                        ".long().", tgx_dtype_title(t->dtype));
    if (c->meta && classes == -1)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "one_hot: a meta tensor has no largest class number; give num_classes");
    if (t->count == 0 && classes == -1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Can not infer total number of classes from empty tensor. Give num_classes.");
    if (t->count == 0 && classes <= 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Can not infer total number of classes from empty tensor. Give a positive num_classes, not "
                        "%lld.", (long long)classes);
    if (!c->meta && classes < 0) {
        most = largest(c, t);
        if (most < -1) return TGX_FAILED;
        if (classes != -1) return refuse_class(c, most, classes);
        classes = most + 1;
    }
    if (t->rank >= TGX_MAX_DIMS) return tgx_fail(c, TGX_RUNTIME_ERROR, "one_hot: the input has too many dimensions");
    tgx_need_dense(c, 0);
    o = tgx_fresh(c, 0, t->rank + 1, TGX_I64);
    for (int i = 0; i < t->rank; i++) o->dims[i] = t->sizes[i];
    o->dims[t->rank] = classes;
    return 0;
}

static int one_hot_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_tensor *out = tgx_out(c, 0);
    int64_t *to = (int64_t *)out->data, classes = out->sizes[out->rank - 1], most = largest(c, t);
    if (most < -1) return TGX_FAILED;
    if (most >= classes) return refuse_class(c, most, classes);
    tgx_clear(c, to, out->count * (int64_t)sizeof *to);
    for (int64_t i = 0; i < t->count; i++, to += classes) {
        int64_t k = tgx_once((const int64_t *)t->data + i);
        if (k < 0 || k >= classes) return refuse_class(c, k, classes);      /* it was smaller a moment ago: another thread writes */
        to[k] = 1;
    }
    return 0;
}
TGX_KERNEL(one_hot, one_hot_shape, one_hot_run, TGX_MAY_READ)
