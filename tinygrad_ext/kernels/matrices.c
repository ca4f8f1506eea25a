/* Kernels whose elements follow from their position in a matrix: unit matrices, the index pairs of triangles. */
#include "make.h"

/* ---- eye: (n, options), (n, m, options) -------------------------------------------------------------------------- */

static int any_eye_shape(tgx_call *c, int64_t n, int64_t m, int options) {
    int dtype = tgx_made_dtype(c, options, c->services->default_dtype());
    if (n < 0 || m < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s must be greater or equal to 0, got %lld: eye takes numbers of rows and columns",
                        n < 0 ? "n" : "m", (long long)(n < 0 ? n : m));
    tgx_output *o = tgx_fresh(c, 0, 2, dtype);
    o->dims[0] = n, o->dims[1] = m;
    return dtype < 0 ? TGX_FAILED : 0;
}
static int eye_shape(tgx_call *c) { return any_eye_shape(c, tgx_int(c, 0), tgx_int(c, 0), 1); }
static int eye_m_shape(tgx_call *c) { return any_eye_shape(c, tgx_int(c, 0), tgx_int(c, 1), 2); }

static int eye_run(tgx_call *c) {
    static const tgx_scalar one = {.f = 1, .i = 1, .given = 1};
    const tgx_tensor *out = tgx_out(c, 0);
    int64_t n = out->sizes[0] < out->sizes[1] ? out->sizes[0] : out->sizes[1];
    int64_t step = (out->strides[0] + out->strides[1]) * tgx_itemsize[out->dtype];
    int code = tgx_fill_zero(c);
    for (int64_t i = 0; i < n && !code; i++) tgx_put_number(out->data + i * step, out->dtype, &one);
    return code;
}
TGX_KERNEL(eye, eye_shape, eye_run, 0)
TGX_KERNEL(eye_m, eye_m_shape, eye_run, 0)

/* ---- index pairs: (row, col, offset, options) -------------------------------------------------------------------- */

/* Rows [start, stop) have elements in the triangle on and below (lower), or on and above, a diagonal. */
typedef struct { int64_t columns, offset, start, stop; int lower; } triangle_t;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Columns [*first, *last) of row r. */
static void ends(const triangle_t *t, int64_t r, int64_t *first, int64_t *last) {
    int64_t edge = least(most(r + t->offset + (t->lower ? 1 : 0), 0), t->columns);
    *first = t->lower ? 0 : edge;
    *last = t->lower ? edge : t->columns;
}

/* Elements: some full rows and a ramp of rows that differ by one; -1 for more than 2^42. */
static int64_t count(const triangle_t *t) {
    int64_t mid = least(most(t->lower ? t->columns - t->offset - 1 : -t->offset, t->start), t->stop);
    int64_t top = t->lower ? t->start : mid, end = t->lower ? mid : t->stop, whole = (t->stop - t->start) - (end - top);
    int64_t first, last, both = 0;
    if (end > top) {
        ends(t, top, &first, &last);
        both = last - first;
        ends(t, end - 1, &first, &last);
        both += last - first;
    }
    if ((double)whole * (double)t->columns + 0.5 * (double)(end - top) * (double)both > (double)((int64_t)1 << 42)) return -1;
    return whole * t->columns + (end - top) * both / 2;
}

static triangle_t triangle_of(const tgx_call *c, int lower) {
    int64_t rows = tgx_int(c, 0), columns = tgx_int(c, 1);
    if (rows == 0 || columns == 0) rows = 0;
    int64_t offset = least(most(tgx_int(c, 2), -rows), columns);
    return (triangle_t){.columns = columns, .offset = offset, .lower = lower, .start = lower ? most(-offset, 0) : 0,
                        .stop = lower ? rows : most(least(rows, columns - offset), 0)};
}

static int triangle_shape(tgx_call *c, int lower) {
    const int64_t sizes[2] = {tgx_int(c, 0), tgx_int(c, 1)};
    int dtype = tgx_made_dtype(c, 3, TGX_I64);
    if (sizes[0] < 0 || sizes[1] < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s must be non-negative, got %lld", sizes[0] < 0 ? "row" : "col",
                        (long long)sizes[sizes[0] >= 0]);
    if (tgx_check_sizes(c, sizes, 2, "triangle indices")) return TGX_FAILED;
    triangle_t t = triangle_of(c, lower);
    int64_t n = count(&t);
    if (n < 0)
        return tgx_fail(c, TGX_MEMORY_ERROR, "cannot allocate the index pairs of a triangle of %lld x %lld; use a smaller one",
                        (long long)sizes[0], (long long)sizes[1]);
    tgx_output *o = tgx_fresh(c, 0, 2, dtype);
    o->dims[0] = 2, o->dims[1] = n, o->via = TGX_I64;
    return dtype < 0 ? TGX_FAILED : 0;
}

static int triangle_run(tgx_call *c, int lower) {
    triangle_t t = triangle_of(c, lower);
    int64_t n = tgx_out(c, 0)->sizes[1], *rows = (int64_t *)tgx_out(c, 0)->data, *columns = rows + n, first, last, k = 0;
    for (int64_t r = t.start; r < t.stop; r++) {
        ends(&t, r, &first, &last);
        for (int64_t column = first; column < last && k < n; column++, k++) rows[k] = r, columns[k] = column;
    }
    return 0;
}
static int tril_indices_shape(tgx_call *c) { return triangle_shape(c, 1); }
static int tril_indices_run(tgx_call *c) { return triangle_run(c, 1); }
static int triu_indices_shape(tgx_call *c) { return triangle_shape(c, 0); }
static int triu_indices_run(tgx_call *c) { return triangle_run(c, 0); }
TGX_KERNEL(tril_indices, tril_indices_shape, tril_indices_run, 0)
TGX_KERNEL(triu_indices, triu_indices_shape, triu_indices_run, 0)
