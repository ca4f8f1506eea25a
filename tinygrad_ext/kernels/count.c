/* How often elements occur: small numbers, elements between borders, elements of sorted rows.
 *
 * Few counts are kept four times, for neighbours that count the same number would wait for each other's sum. Borders are mostly
 * at equal distances: where an element would lie then is looked at first, and only where it does not lie there it is searched. */
#include "casts.h"
#include "make.h"
#include "tgx.h"

/* ---- small numbers: (self, weights, size) -> counts, or sums of weights, which are added one after the other -------- */

enum { SELF, WEIGHTS, SIZE };
enum { COPIES = 4, FEW = 2048, PIECE = 512 };

static int bincount_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, SELF), *w = tgx_given(c, WEIGHTS) ? tgx_in(c, WEIGHTS) : NULL;
    const int64_t size = tgx_int(c, SIZE);
    if (!tgx_is_integral(x->dtype) || (w && w->dtype != TGX_F32 && w->dtype != TGX_F64))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"bincount\" not implemented for '%s': it counts integers, and adds weights of float32 or "
                        "float64", tgx_dtype_title(tgx_is_integral(x->dtype) ? w->dtype : x->dtype));
    if (x->rank != 1 || size < 0 || (w && (w->rank != 1 || w->count != x->count)))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_bincount: expected a vector, weights as many and a size that is not negative, got %s, weights %s and size %lld",
                        tgx_shape_text(x), w ? tgx_shape_text(w) : "None", (long long)size);
    if (w) tgx_need_dense(c, WEIGHTS);
    tgx_output *o = tgx_fresh(c, 0, 1, w ? w->dtype : TGX_I64);
    o->dims[0] = size;
    if (!w && size <= FEW) c->scratch_bytes = COPIES * size * (int64_t)sizeof(int64_t);
    return tgx_check_sizes(c, o->dims, 1, "_bincount");
}

/* n numbers into four counts in turn, until one lies outside: how many were counted. */
static int64_t count_few(const int64_t *x, int64_t n, int64_t size, int64_t *each) {
    const uint64_t end = (uint64_t)size, *v = (const uint64_t *)x;
    int64_t *b = each + size, *c = b + size, *d = c + size, i = 0;
    for (; i + 4 <= n && v[i] < end && v[i + 1] < end && v[i + 2] < end && v[i + 3] < end; i += 4)
        each[v[i]]++, b[v[i + 1]]++, c[v[i + 2]]++, d[v[i + 3]]++;
    for (; i < n && v[i] < end; i++) each[v[i]]++;
    return i;
}

static int bincount_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, SELF), *w = tgx_given(c, WEIGHTS) ? tgx_in(c, WEIGHTS) : NULL;
    const int64_t n = t->count, size = tgx_int(c, SIZE), step = t->strides[0] * tgx_itemsize[t->dtype];
    tgx_tensor *out = tgx_out(c, 0);
    int64_t *counts = (int64_t *)out->data, *each = c->scratch_bytes ? c->scratch : NULL, room[PIECE];
    const ptrdiff_t steps[] = {sizeof *room, step};
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    if (each) memset(each, 0, (size_t)c->scratch_bytes);
    for (int64_t at = 0; at < n; at += PIECE) { /* numbers of any dtype are near when they have become int64 */
        const int64_t m = n - at < PIECE ? n - at : PIECE, *x = room;
        char *both[] = {(char *)room, t->data + at * step};
        int64_t i = 0;
        tgx_cast_loop(t->dtype, TGX_I64)(both, steps, m, NULL);
#define NUMBERS(DO) for (; i < m && (uint64_t)x[i] < (uint64_t)size; i++) DO
        if (w && w->dtype == TGX_F32) NUMBERS(((float *)out->data)[x[i]] += ((const float *)w->data)[at + i];)
        else if (w) NUMBERS(((double *)out->data)[x[i]] += ((const double *)w->data)[at + i];)
        else if (each) i = count_few(x, m, size, each);
        else NUMBERS(counts[x[i]]++;)
        if (i < m)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "_bincount: the number %lld lies outside of %lld counts", (long long)x[i], (long long)size);
    }
    for (int64_t k = 0; each && k < size; k++) counts[k] = each[k] + each[size + k] + each[2 * size + k] + each[3 * size + k];
    return 0;
}
TGX_KERNEL(bincount, bincount_shape, bincount_run, 0)

/* ---- between borders: (self, edges, weights) -> counts in the dtype of self, or sums of weights. Borders in rows are those of the
 * parts of self along its first dimension ------------------------------------------------------------------------- */

static int count_between_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *edges = tgx_in(c, 1), *w = tgx_given(c, 2) ? tgx_in(c, 2) : NULL;
    if (!tgx_is_native_float(x->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"histogram\" not implemented for '%s': convert the input with .float()",
                        tgx_dtype_title(x->dtype));
    const int r = edges->rank - 1;
    if (r < 0 || r > 1 || edges->sizes[r] < 2 || (r && (!x->rank || x->sizes[0] != edges->sizes[0])) || edges->dtype != x->dtype || (w && (!tgx_same_sizes(w, x) || w->dtype != x->dtype)))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_count_between: expected a vector of at least 2 borders and as many weights as elements, all of "
                        "one dtype, got %s, borders %s and weights %s", tgx_shape_text(x), tgx_shape_text(edges),
                        w ? tgx_shape_text(w) : "None");
    for (int i = 0; i < (w ? 3 : 2); i++) tgx_need_dense(c, i);
    tgx_output *o = tgx_fresh(c, 0, edges->rank, x->dtype);
    if (r) o->dims[0] = edges->sizes[0];
    o->dims[r] = edges->sizes[r] - 1;
    c->work = x->count;
    c->scratch_bytes = (edges->sizes[r] - 1) * (int64_t)sizeof(int64_t); /* of counts or of sums in double precision */
    return 0;
}

/* The bin of x: its left border belongs to it, to the last one both do; -1 for none. */
#define BETWEEN(T, name)                                                                                              \
    static inline int64_t bin_##name(const T *edges, int64_t bins, T factor, T x) {                                    \
        if (!(x >= edges[0] && x <= edges[bins])) return -1;                                                           \
        const T guess = (x - edges[0]) * factor;                                                                       \
        int64_t at = guess > 0 && guess < (T)bins ? (int64_t)guess : guess > 0 ? bins - 1 : 0, above = bins;           \
        if (at >= bins) at = bins - 1;                                                                                 \
        if (edges[at] <= x && x < edges[at + 1]) return at;                                                            \
        if (x == edges[bins]) return bins - 1;                                                                         \
        for (at = 0; above - at > 1;) {                                                                                \
            const int64_t middle = (at + above) / 2;                                                                   \
            if (edges[middle] <= x) at = middle;                                                                       \
            else above = middle;                                                                                       \
        }                                                                                                              \
        return at;                                                                                                     \
    }                                                                                                                  \
    static void between_##name(const T *x, const T *w, int64_t n, const T *edges, int64_t bins, void *scratch, T *out) { \
        const T factor = (T)bins / (edges[bins] - edges[0]);                                                           \
        int64_t *counts = scratch, at;                                                                                 \
        double *sums = scratch;                                                                                        \
        memset(scratch, 0, (size_t)bins * sizeof(int64_t));                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            if ((at = bin_##name(edges, bins, factor, x[i])) < 0) continue;                                            \
            if (w) sums[at] += w[i];                                                                                   \
            else counts[at]++;                                                                                         \
        }                                                                                                              \
        for (int64_t k = 0; k < bins; k++) out[k] = w ? (T)sums[k] : (T)counts[k];                                     \
    }
BETWEEN(float, f32)
BETWEEN(double, f64)

static int count_between_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *edges = tgx_in(c, 1), *w = tgx_given(c, 2) ? tgx_in(c, 2) : NULL, *out = tgx_out(c, 0);
    const int64_t bins = edges->sizes[edges->rank - 1] - 1, rows = edges->rank > 1 ? edges->sizes[0] : 1, n = rows ? x->count / rows : 0;
#define RUN(T, name) for (int64_t i = 0; i < rows; i++)                                                                 \
        between_##name((const T *)x->data + i * n, w ? (const T *)w->data + i * n : NULL, n, (const T *)edges->data + i * (bins + 1), bins, \
                       c->scratch, (T *)out->data + i * bins)
    if (x->dtype == TGX_F32) RUN(float, f32);
    else RUN(double, f64);
    return 0;
}
TGX_KERNEL(count_between, count_between_shape, count_between_run, 0)

/* ---- of sorted rows: (self) -> the place where the first of the longest runs of equal elements ends ------------------ */

static int longest_run_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (x->rank == 0 || x->sizes[x->rank - 1] == 0)
        return tgx_fail(c, TGX_INDEX_ERROR, "_longest_run: expected rows of at least one element, got %s", tgx_shape_text(x));
    if (tgx_is_complex(x->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"_longest_run\" not implemented for '%s': complex numbers have no order",
                        tgx_dtype_title(x->dtype));
    if (tgx_is_half(x->dtype)) tgx_need(c, 0, TGX_F32);         /* their bits tell zeros apart and make nan equal */
    else tgx_need_dense(c, 0);
    tgx_output *o = tgx_fresh(c, 0, x->rank, TGX_I64);
    for (int i = 0; i < x->rank; i++) o->dims[i] = i < x->rank - 1 ? x->sizes[i] : 1;
    return 0;
}

#define LONGEST(T, name)                                                                   \
    static void longest_##name(const void *data, int64_t rows, int64_t n, int64_t *out) {  \
        const T *x = data;                                                                 \
        for (int64_t r = 0; r < rows; r++, x += n) {                                       \
            int64_t start = 0, most = 0, at = 0;                                           \
            for (int64_t i = 1; i < n; i++) {                                              \
                if (x[i] != x[i - 1]) start = i;                                           \
                else if (i - start > most) most = i - start, at = i;                       \
            }                                                                              \
            out[r] = at;                                                                   \
        }                                                                                  \
    }
LONGEST(uint8_t, u8)
LONGEST(int16_t, i16)
LONGEST(int32_t, i32)
LONGEST(int64_t, i64)
LONGEST(float, f32)
LONGEST(double, f64)

static int longest_run_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *out = tgx_out(c, 0);
    const int64_t rows = out->count, n = x->sizes[x->rank - 1];
    int64_t *at = (int64_t *)out->data;
    if (x->dtype == TGX_F32) longest_f32(x->data, rows, n, at);
    else if (x->dtype == TGX_F64) longest_f64(x->data, rows, n, at);
    else if (tgx_itemsize[x->dtype] == 1) longest_u8(x->data, rows, n, at);
    else if (tgx_itemsize[x->dtype] == 2) longest_i16(x->data, rows, n, at);
    else if (tgx_itemsize[x->dtype] == 4) longest_i32(x->data, rows, n, at);
    else longest_i64(x->data, rows, n, at);
    return 0;
}
TGX_KERNEL(longest_run, longest_run_shape, longest_run_run, TGX_NATURAL)
