/* Kernels that copy elements to other places: flip, roll, tril, diag_embed, pad. repeat.c has the repeats.
 *
 * Most are one or a few strided copies between well-chosen windows of input and output, so the general copy does the work,
 * in threads where it pays. */
#include "channels.h"
#include "part.h"
#include "walk.h"

static const int64_t LIMIT = (int64_t)1 << 60; /* no size is that large */

/* ---- flip: (self, dims), a copy read through negative strides ---------------------------------------------------- */

static int flip_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const tgx_value *dims = &c->args[1];
    uint64_t seen = 0;
    for (int i = 0; i < dims->n; i++) {
        int64_t d = dims->ints[i];
        if (tgx_wrap(c, &d, t->rank)) return TGX_FAILED;
        if (seen >> d & 1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "dim %d appears multiple times in the list of dims %s: flip() takes each dimension once",
                            (int)d, tgx_sizes_text(dims->ints, dims->n));
        seen |= (uint64_t)1 << d;
    }
    c->notes[0] = (int64_t)seen;
    tgx_like_order(c, 0, t, t->dtype);
    return 0;
}

static int flip_run(tgx_call *c) {
    tgx_part from;
    tgx_tensor *t = tgx_part_of(&from, tgx_in(c, 0));
    if (t->count == 0) return 0;
    for (int d = 0; d < t->rank; d++) {
        if (!((uint64_t)c->notes[0] >> d & 1)) continue;
        t->data += (t->sizes[d] - 1) * t->strides[d] * tgx_itemsize[t->dtype];
        t->strides[d] = -t->strides[d];
    }
    return c->services->copy(tgx_out(c, 0), t);
}
TGX_KERNEL(flip, flip_shape, flip_run, 0)

/* ---- roll: (self, shifts, dims), without dims over the elements in row-major order ------------------------------- */

/* How many dimensions are named; none by None too. */
static int rolled(const tgx_call *c) { return tgx_given(c, 2) ? (int)c->args[2].n : 0; }

static int roll_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const tgx_value *shifts = &c->args[1], *dims = &c->args[2];
    const int named = rolled(c);
    if (shifts->n == 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "roll(): `shifts` required: give at least one");
    if (named != shifts->n && !(named == 0 && shifts->n == 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "shifts and dimensions must align. shifts: %d, dims:%d", shifts->n, named);
    for (int i = 0; i < named; i++) {
        int64_t d = dims->ints[i];
        if (t->rank == 0)
            return tgx_fail(c, TGX_INDEX_ERROR, "Dimension specified as %lld but tensor has no dimensions", (long long)d);
        if (tgx_wrap(c, &d, t->rank)) return TGX_FAILED;
    }
    if (t->count == 0) tgx_like_order(c, 0, t, t->dtype);
    else tgx_like(c, 0, t, t->dtype);
    if (named) return tgx_keep_channels(c, t);
    tgx_need_dense(c, 0);
    return 0;
}

static inline int64_t modulo(int64_t v, int64_t n) { return (v %= n) < 0 ? v + n : v; }

/* Copy from to to, rolled in dimensions dim and up: each one that moves cuts the tensor in two. */
static int roll_into(tgx_call *c, const tgx_tensor *to, const tgx_tensor *from, const int64_t *shifts, int dim) {
    tgx_part a, b;
    int code;
    while (dim < to->rank && shifts[dim] == 0) dim++;
    if (dim == to->rank) return c->services->copy(to, from);
    int64_t by = shifts[dim], rest = to->sizes[dim] - by;
    tgx_part_of(&a, to), tgx_part_of(&b, from);
    if ((code = roll_into(c, tgx_part_cut(&a, dim, by, rest), tgx_part_cut(&b, dim, 0, rest), shifts, dim + 1))) return code;
    tgx_part_of(&a, to), tgx_part_of(&b, from);
    return roll_into(c, tgx_part_cut(&a, dim, 0, by), tgx_part_cut(&b, dim, rest, by), shifts, dim + 1);
}

static int roll_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    const tgx_value *given = &c->args[1], *dims = &c->args[2];
    int64_t shifts[TGX_MAX_DIMS] = {0}, one = 1;
    if (t->count == 0) return 0;
    if (rolled(c) == 0) {
        tgx_tensor from = *t, to = *out;
        from.sizes = to.sizes = &from.count, from.strides = to.strides = &one, from.rank = to.rank = 1;
        shifts[0] = modulo(given->ints[0], t->count);
        return roll_into(c, &to, &from, shifts, 0);
    }
    for (int i = 0; i < dims->n; i++) {
        int64_t d = dims->ints[i];
        tgx_wrap(c, &d, t->rank);
        shifts[d] = modulo(shifts[d] + modulo(given->ints[i], t->sizes[d]), t->sizes[d]);
    }
    return roll_into(c, out, t, shifts, 0);
}
TGX_KERNEL(roll, roll_shape, roll_run, TGX_NATURAL)

/* ---- tril and triu: (self, diagonal) ----------------------------------------------------------------------------- */

typedef struct {
    char *to;
    const char *from;
    int64_t rows, columns, diagonal, itemsize;
    int upper;
} triangle_t;

/* Rows lo .. hi of all matrices: copy what belongs to the triangle (unless in place), zero the rest. */
static int triangle_rows(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const triangle_t job = *(const triangle_t *)context;
    int64_t width = job.columns * job.itemsize, row = lo % job.rows;
    for (int64_t k = lo; k < hi; k++) {
        /* the first column that is upper (triu) or no longer lower (tril) */
        int64_t cut = row + job.diagonal + !job.upper;
        cut = (cut < 0 ? 0 : cut > job.columns ? job.columns : cut) * job.itemsize;
        char *to = job.to + k * width;
        const char *from = job.from + k * width;
        memset(job.upper ? to : to + cut, 0, (size_t)(job.upper ? cut : width - cut));
        if (++row == job.rows) row = 0;
        if (to == from) continue;
        if (job.upper) memcpy(to + cut, from + cut, (size_t)(width - cut));
        else memcpy(to, from, (size_t)cut);
    }
    return 0;
}

static int triangle_shape(tgx_call *c, const char *name) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (t->rank < 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: input tensor must have at least 2 dimensions, got shape %s", name, tgx_shape_text(t));
    tgx_output *o = tgx_like(c, 0, t, t->dtype);
    if (t->flags & TGX_CONTIGUOUS) o->origin = TGX_OVER, o->of = 0;
    tgx_need_dense(c, 0);
    return 0;
}

static int triangle_run(tgx_call *c, int upper) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t diagonal = tgx_int(c, 1);
    triangle_t job = {.to = tgx_out(c, 0)->data, .from = t->data, .rows = t->sizes[t->rank - 2], .columns = t->sizes[t->rank - 1],
                      .diagonal = diagonal > LIMIT ? LIMIT : diagonal < -LIMIT ? -LIMIT : diagonal,
                      .itemsize = tgx_itemsize[t->dtype], .upper = upper};
    if (t->count == 0) return 0;
    int64_t rows = t->count / job.columns;
    return tgx_range(c, triangle_rows, &job, rows, t->count > TGX_SMALL ? 1 + TGX_SMALL / job.columns : rows);
}

static int tril_shape(tgx_call *c) { return triangle_shape(c, "tril"); }
static int triu_shape(tgx_call *c) { return triangle_shape(c, "triu"); }
static int tril_run(tgx_call *c) { return triangle_run(c, 0); }
static int triu_run(tgx_call *c) { return triangle_run(c, 1); }
TGX_KERNEL(tril, tril_shape, tril_run, 0)
TGX_KERNEL(triu, triu_shape, triu_run, 0)

/* ---- diag_embed: (self, offset, dim1, dim2), the last dimension becomes a diagonal among zeros ------------------- */

static int diag_embed_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t offset = tgx_int(c, 1), dim1 = tgx_int(c, 2), dim2 = tgx_int(c, 3), d1 = dim1, d2 = dim2;
    int rank = t->rank + 1, k = 0;
    if (rank > TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "diag_embed(): a tensor has at most %d dimensions, and self has them all", TGX_MAX_DIMS);
    if (tgx_wrap(c, &d1, rank) || tgx_wrap(c, &d2, rank)) return TGX_FAILED;
    if (t->rank == 0)
        return tgx_fail(c, TGX_INDEX_ERROR, "diag_embed(): self must have at least one dimension, which becomes the diagonal; it is 0-dim");
    if (d1 == d2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1, (long long)dim2);
    if (offset > LIMIT || offset < -LIMIT)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "diag_embed: storage size calculation overflowed with offset=%lld", (long long)offset);
    tgx_output *o = tgx_fresh(c, 0, rank, t->dtype);
    for (int i = 0; i < rank; i++)
        o->dims[i] = i == d1 || i == d2 ? t->sizes[t->rank - 1] + (offset >= 0 ? offset : -offset) : t->sizes[k++];
    return tgx_check_sizes(c, o->dims, rank, "diag_embed");
}

static int diag_embed_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    int64_t offset = tgx_int(c, 1), d1 = tgx_int(c, 2), d2 = tgx_int(c, 3), along;
    tgx_part to;
    int k = 0;
    tgx_wrap(c, &d1, out->rank), tgx_wrap(c, &d2, out->rank);
    memset(out->data, 0, (size_t)(out->count * tgx_itemsize[out->dtype]));
    if (t->count == 0) return 0;
    along = offset >= 0 ? offset * out->strides[d2] : -offset * out->strides[d1];
    tgx_part_of(&to, t);
    to.t.data = out->data + along * tgx_itemsize[out->dtype], to.t.flags = 0;
    for (int i = 0; i < out->rank; i++)
        if (i != d1 && i != d2) to.t.strides[k++] = out->strides[i];
    to.t.strides[k] = out->strides[d1] + out->strides[d2];
    return c->services->copy(&to.t, t);
}
TGX_KERNEL(diag_embed, diag_embed_shape, diag_embed_run, TGX_NATURAL)

/* ---- constant_pad_nd: (self, pad, value), pairs from the last dimension on; negative ones cut off ----------------- */

static int pad_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const tgx_value *pad = &c->args[1];
    if (pad->n % 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Padding length must be divisible by 2: each dimension takes a pair, got %d numbers", pad->n);
    if (pad->n > 2 * t->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Padding length should be less than or equal to two times the input dimension but got "
                        "padding length %d and input of dimension %d", pad->n, t->rank);
    tgx_output *o = tgx_fresh(c, 0, t->rank, t->dtype);
    for (int i = 0; i < t->rank; i++) o->dims[i] = t->sizes[i];
    for (int i = 0; i < pad->n / 2; i++) {
        int d = t->rank - 1 - i;
        int64_t low = pad->ints[2 * i], high = pad->ints[2 * i + 1];
        if (low <= -LIMIT || low >= LIMIT || high <= -LIMIT || high >= LIMIT)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "constant_pad_nd: storage size calculation overflowed with pad=%s",
                            tgx_sizes_text(pad->ints, pad->n));
        o->dims[d] += low + high;
        /* narrow() refuses first to cut more than there is */
        if (o->dims[d] < 0 || t->sizes[d] + (low < 0 ? low : 0) + (high < 0 ? high : 0) < 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "constant_pad_nd(): the input size %lld, plus negative padding %lld and %lld, resulted in "
                            "a negative output size, which is invalid. Check dimension %d of your input.", (long long)t->sizes[d],
                            (long long)low, (long long)high, d);
    }
    if (tgx_check_sizes(c, o->dims, t->rank, "constant_pad_nd") || tgx_check_number(c, &c->args[2], t->dtype)) return TGX_FAILED;
    return tgx_keep_channels(c, t);
}

static int pad_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    const tgx_value *pad = &c->args[1];
    _Alignas(16) char value[16];
    tgx_part to, from;
    tgx_put_number(value, t->dtype, c->args[2].number);
    int code = tgx_fill(c->services, out, value);
    if (code) return code;
    tgx_part_of(&to, out), tgx_part_of(&from, t);
    for (int i = 0; i < pad->n / 2; i++) {
        int d = t->rank - 1 - i;
        int64_t low = pad->ints[2 * i], high = pad->ints[2 * i + 1];
        int64_t length = t->sizes[d] + (low < 0 ? low : 0) + (high < 0 ? high : 0);
        tgx_part_cut(&from, d, low < 0 ? -low : 0, length);
        tgx_part_cut(&to, d, low > 0 ? low : 0, length);
    }
    return c->services->copy(&to.t, &from.t);
}
TGX_KERNEL(constant_pad, pad_shape, pad_run, TGX_NATURAL)
