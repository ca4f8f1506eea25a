/* Kernels of masks: nonzero, masked_select, masked_fill, masked_scatter. The loops are in masks_isa.h.
 *
 * Where the result's size depends on the mask, shape counts and run fills as many places: between the two another thread
 * may write to the mask, see masks.h. */
#include "casts.h"
#include "make.h"
#include "masks.h"
#include "part.h"
#include "walk.h"

/* ---- counting ---------------------------------------------------------------------------------------------------- */

enum { BLOCK = 256 };

typedef struct { int64_t n; int dtype; } count_t;

static int count_row(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {
    count_t *count = (count_t *)(void *)aux;
    if (strides[0] == tgx_itemsize[count->dtype]) {
        count->n += tgx_mask_loops()->count_true(data[0], count->dtype, n);
        return 0;
    }
    char room[BLOCK * sizeof(tgx_c128)], *at[TGX_MAX_OPERANDS] = {room, data[0]};
    const ptrdiff_t steps[] = {tgx_itemsize[count->dtype], strides[0]};
    for (ptrdiff_t i = 0, m; i < n; i += m, at[1] += m * strides[0]) { /* side by side they are counted in vectors */
        m = n - i < BLOCK ? n - i : BLOCK;
        tgx_cast_loop(count->dtype, count->dtype)(at, steps, m, NULL);
        count->n += tgx_mask_loops()->count_true(room, count->dtype, m);
    }
    return 0;
}

/* Elements of t that are not zero, in any layout. */
static int64_t count(const tgx_tensor *t) {
    tgx_iter it;
    count_t found = {0, t->dtype};
    if (t->flags & TGX_CONTIGUOUS) return tgx_mask_loops()->count_true(t->data, t->dtype, t->count);
    tgx_iter_begin(&it, t->sizes, t->rank);
    tgx_iter_add(&it, t->data, t->sizes, t->strides, t->rank, tgx_itemsize[t->dtype]);
    tgx_iter_plan(&it);
    tgx_iter_run(&it, count_row, (const tgx_scalar *)(void *)&found);
    return found.n;
}

/* ---- in parts ---------------------------------------------------------------------------------------------------- */

/* A large mask is gone through in PARTS parts: each counts its elements, then knows where its own go. */
enum { PARTS = 16, LARGE = 1 << 17 };

typedef struct {
    const tgx_tensor *t; /* nonzero: whose elements are looked for */
    const char *x;
    char *out;
    const uint8_t *mask;
    int64_t n, ends[PARTS + 1]; /* places in the result */
    int width;
} parts_t;

static int64_t begin_of(const parts_t *p, int64_t part) { return part == PARTS ? p->n : p->n / PARTS * part; }

static int count_parts(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    parts_t *p = context;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t from = begin_of(p, i), n = begin_of(p, i + 1) - from;
        p->ends[i + 1] = p->t ? tgx_mask_loops()->count_true(p->t->data + from * tgx_itemsize[p->t->dtype], p->t->dtype, n)
                              : tgx_mask_loops()->count_true((const char *)p->mask + from, TGX_BOOL, n);
    }
    return 0;
}

/* Where each part of the `count` results begins, however many there are by now; `fill` writes them. */
static void in_parts(tgx_call *c, parts_t *p, int64_t count, int (*fill)(void *, ptrdiff_t, ptrdiff_t)) {
    tgx_range(c, count_parts, p, PARTS, 1);
    p->ends[0] = 0;
    for (int i = 1; i <= PARTS; i++) p->ends[i] = p->ends[i - 1] + p->ends[i] < count ? p->ends[i - 1] + p->ends[i] : count;
    p->ends[PARTS] = count; /* zeros, where the mask lost elements */
    tgx_range(c, fill, p, PARTS, 1);
}

/* ---- nonzero: (self), n x rank ----------------------------------------------------------------------------------- */

static int nonzero_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = tgx_fresh(c, 0, 2, TGX_I64);
    o->strides = o->dims + TGX_MAX_DIMS;
    o->dims[0] = count(t), o->dims[1] = t->rank;
    o->strides[0] = 1, o->strides[1] = o->dims[0] > 1 ? o->dims[0] : 1; /* dimension by dimension */
    tgx_need_dense(c, 0);
    return 0;
}

static int coordinates_of_parts(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const parts_t *p = context;
    for (ptrdiff_t i = lo; i < hi; i++)
        tgx_mask_loops()->true_coordinates(p->t->data, p->t->dtype, p->t->sizes, p->t->rank, begin_of(p, i), begin_of(p, i + 1),
                                           p->ends[PARTS], p->ends[i + 1] - p->ends[i], (int64_t *)p->out + p->ends[i]);
    return 0;
}

static int nonzero_run(tgx_call *c) {
    const int64_t count = tgx_out(c, 0)->sizes[0];
    parts_t p = {.t = tgx_in(c, 0), .out = tgx_out(c, 0)->data, .n = tgx_in(c, 0)->count};
    if (p.n >= LARGE) in_parts(c, &p, count, coordinates_of_parts);
    else tgx_mask_loops()->true_coordinates(p.t->data, p.t->dtype, p.t->sizes, p.t->rank, 0, p.n, count, count, (int64_t *)p.out);
    return 0;
}
TGX_KERNEL(nonzero, nonzero_shape, nonzero_run, TGX_READS)

/* ---- what the others share --------------------------------------------------------------------------------------- */

/* Result 0 in the sizes that self and mask, arguments 0 and 1, broadcast to. */
static tgx_output *common(tgx_call *c, const char *title) {
    const tgx_tensor *self = tgx_in(c, 0), *mask = tgx_in(c, 1);
    tgx_output *o = tgx_fresh(c, 0, self->rank, self->dtype);
    memcpy(o->dims, self->sizes, (size_t)self->rank * sizeof *o->dims);
    int at = tgx_broadcast(o->dims, &o->rank, mask) - 1;
    if (at < 0) return tgx_check_sizes(c, o->dims, o->rank, title) ? NULL : o;
    tgx_fail(c, TGX_RUNTIME_ERROR, "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d: "
             "%s() got self %s and mask %s, which do not broadcast", (long long)o->dims[at],
             (long long)mask->sizes[at - (o->rank - mask->rank)], at, title, tgx_shape_text(self), tgx_shape_text(mask));
    return NULL;
}

static int has_sizes(const tgx_tensor *t, const int64_t *sizes, int rank) {
    return t->rank == rank && !memcmp(t->sizes, sizes, (size_t)rank * sizeof *sizes);
}

/* Scratch for spread(). */
static int64_t spread_bytes(const tgx_tensor *t, const int64_t *sizes, int rank) {
    int64_t bytes = tgx_itemsize[t->dtype];
    if (t->flags & TGX_CONTIGUOUS && has_sizes(t, sizes, rank)) return 0;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(bytes, sizes[i], &bytes) || bytes > (int64_t)1 << 60) bytes = (int64_t)1 << 60; /* more than there is */
    return (bytes + 63) & ~(int64_t)63;
}

/* The elements of t in row-major order in larger sizes: where they are, or copied to *room, which moves on. */
static const char *spread(tgx_call *c, const tgx_tensor *t, int64_t *sizes, int rank, char **room) {
    int64_t bytes = spread_bytes(t, sizes, rank);
    tgx_part to;
    tgx_tensor like = {.sizes = sizes, .strides = sizes, .rank = rank, .dtype = t->dtype, .count = 1};
    if (!bytes) return t->data;
    c->services->copy(tgx_part_dense(&to, &like, *room), t);
    *room += bytes;
    return to.t.data;
}

static int64_t product(const int64_t *sizes, int rank) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= sizes[i];
    return n;
}

/* ---- masked_select: (self, mask) --------------------------------------------------------------------------------- */

static int masked_select_shape(tgx_call *c) {
    const tgx_tensor *self = tgx_in(c, 0), *mask = tgx_in(c, 1);
    if (mask->dtype != TGX_BOOL)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "masked_select: expected BoolTensor for mask, got %s: compare first, as in x > 0",
                        tgx_dtype_title(mask->dtype));
    tgx_output *o = common(c, "masked_select");
    if (!o) return TGX_FAILED;
    c->scratch_bytes = spread_bytes(self, o->dims, o->rank) + spread_bytes(mask, o->dims, o->rank);
    int64_t n = mask->count ? product(o->dims, o->rank) / mask->count * count(mask) : 0;
    o->rank = 1, o->dims[0] = n;
    return 0;
}

static int compress_parts(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const parts_t *p = context;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t from = begin_of(p, i), n = begin_of(p, i + 1) - from;
        tgx_mask_loops()->compress(p->out + p->ends[i] * p->width, p->x + from * p->width, p->mask + from, n,
                                   p->ends[i + 1] - p->ends[i], p->width);
    }
    return 0;
}

void tgx_compress(tgx_call *c, char *out, const char *x, const uint8_t *mask, int64_t n, int64_t count, int width) {
    parts_t p = {.x = x, .out = out, .mask = mask, .n = n, .width = width};
    if (n >= LARGE) in_parts(c, &p, count, compress_parts);
    else tgx_mask_loops()->compress(out, x, mask, n, count, width);
}

static int masked_select_run(tgx_call *c) {
    const tgx_tensor *self = tgx_in(c, 0), *mask = tgx_in(c, 1), *out = tgx_out(c, 0);
    int64_t sizes[TGX_MAX_DIMS];
    int32_t rank = self->rank;
    char *room = c->scratch;
    memcpy(sizes, self->sizes, (size_t)rank * sizeof *sizes);
    tgx_broadcast(sizes, &rank, mask);
    const char *x = spread(c, self, sizes, rank, &room), *m = spread(c, mask, sizes, rank, &room);
    tgx_compress(c, out->data, x, (const uint8_t *)m, product(sizes, rank), out->count, tgx_itemsize[self->dtype]);
    return 0;
}
TGX_KERNEL(masked_select, masked_select_shape, masked_select_run, TGX_READS)

/* ---- elements in order to the places under a mask ---------------------------------------------------------------- */

/* Write the elements of argument `from` to the places of out that argument `mask` names. */
static int scatter(tgx_call *c, int mask, int from) {
    const tgx_tensor *m = tgx_in(c, mask), *source = tgx_in(c, from), *out = tgx_out(c, 0);
    char *room = c->scratch;
    const uint8_t *bytes = (const uint8_t *)spread(c, m, out->sizes, out->rank, &room);
    int64_t n = tgx_mask_loops()->count_true((const char *)bytes, TGX_BOOL, out->count);
    if (n > source->count)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "masked_scatter: Number of elements of source < number of ones in mask: %lld < %lld",
                        (long long)source->count, (long long)n);
    tgx_mask_loops()->expand(out->data, source->data, bytes, out->count, source->count, tgx_itemsize[out->dtype]);
    return 0;
}

/* _masked_select_backward: (grad, size, mask): zeros with grad's elements under the mask, in the common sizes. */
static int masked_select_backward_shape(tgx_call *c) {
    const tgx_tensor *grad = tgx_in(c, 0), *mask = tgx_in(c, 2);
    if (mask->dtype != TGX_BOOL)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_masked_select_backward: expected BoolTensor for mask, got %s", tgx_dtype_title(mask->dtype));
    if (tgx_sized(c, 0, 1, grad->dtype)) return TGX_FAILED;
    tgx_output *o = &c->outputs[0];
    if (tgx_broadcast(o->dims, &o->rank, mask))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_masked_select_backward: mask of shape %s and size %s do not broadcast", tgx_shape_text(mask),
                        tgx_sizes_text(o->dims, o->rank));
    tgx_need_dense(c, 0);
    c->scratch_bytes = spread_bytes(mask, o->dims, o->rank);
    return 0;
}

static int masked_select_backward_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0);
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    return scatter(c, 2, 0);
}
TGX_KERNEL(masked_select_backward, masked_select_backward_shape, masked_select_backward_run, 0)

/* (self, mask, source) */
static int masked_scatter_shape(tgx_call *c) {
    const tgx_tensor *self = tgx_in(c, 0), *mask = tgx_in(c, 1), *source = tgx_in(c, 2);
    if (mask->dtype != TGX_BOOL)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "masked_scatter_ only supports boolean masks, but got mask with dtype torch.%s",
                        tgx_dtype_name(mask->dtype));
    if (self->dtype != source->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "masked_scatter: expected self and source to have same dtypes but got %s and %s",
                        tgx_dtype_title(self->dtype), tgx_dtype_title(source->dtype));
    tgx_output *o = common(c, "masked_scatter");
    if (!o) return TGX_FAILED;
    tgx_need_dense(c, 2);
    c->scratch_bytes = spread_bytes(mask, o->dims, o->rank);
    return 0;
}

static int masked_scatter_run(tgx_call *c) {
    int code = c->services->copy(tgx_out(c, 0), tgx_in(c, 0));
    return code ? code : scatter(c, 1, 2);
}
TGX_KERNEL(masked_scatter, masked_scatter_shape, masked_scatter_run, 0)

/* ---- masked_fill: (self, mask, value), value a number or a tensor without dimensions ----------------------------- */

static int masked_fill_shape(tgx_call *c) {
    const tgx_tensor *self = tgx_in(c, 0), *mask = tgx_in(c, 1);
    if (mask->dtype != TGX_BOOL)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "masked_fill_ only supports boolean masks, but got mask with dtype torch.%s: compare first, "
                        "as in x > 0", tgx_dtype_name(mask->dtype));
    tgx_output *o = common(c, "masked_fill");
    if (!o) return TGX_FAILED;
    if (c->args[2].tag == TGX_TENSOR && tgx_in(c, 2)->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
                        "dimension(s). where() takes values of any shape.", tgx_in(c, 2)->rank);
    if (has_sizes(self, o->dims, o->rank)) o = tgx_like_order(c, 0, self, self->dtype), o->origin = TGX_OVER, o->of = 0;
    tgx_warn_repeated(c, "masked_fill_", "tensor[mask] = scalar");
    return 0;
}

/* The number in a tensor without dimensions. */
static tgx_scalar number_in(const tgx_tensor *t) {
    tgx_scalar s = {.given = 1};
    _Alignas(16) char as_wide[16];
    int whole = tgx_is_integral(t->dtype);
    tgx_loop loop = tgx_cast_loop(t->dtype, whole ? TGX_I64 : TGX_C128);
    char *data[2] = {as_wide, t->data};
    ptrdiff_t steps[2] = {0, 0};
    loop(data, steps, 1, NULL);
    if (whole) {
        memcpy(&s.i, as_wide, sizeof s.i);
        s.f = (double)s.i;
        return s;
    }
    memcpy(&s.f, as_wide, sizeof s.f), memcpy(&s.im, as_wide + sizeof s.f, sizeof s.im);
    s.i = s.f > -9.2e18 && s.f < 9.2e18 ? (int64_t)s.f : 0;
    return s;
}

static void add(tgx_iter *it, const tgx_tensor *t) {
    tgx_iter_add(it, t->data, t->sizes, t->strides, t->rank, tgx_itemsize[t->dtype]);
}

/* Elements that share memory: it is the value where the mask names one of them, so what it does not name is not written. */
static int fill_repeated(const tgx_tensor *out, const tgx_tensor *mask, const char *value, int width) {
    for (int64_t i = 0; i < out->count; i++) {
        int64_t at = 0, of = 0, left = i;
        for (int d = out->rank - 1, m = mask->rank - 1; d >= 0; left /= out->sizes[d--], m--) {
            at += left % out->sizes[d] * out->strides[d];
            if (m >= 0 && mask->sizes[m] > 1) of += left % out->sizes[d] * mask->strides[m];
        }
        if (mask->data[of]) memcpy(out->data + at * width, value, (size_t)width);
    }
    return 0;
}

static int masked_fill_run(tgx_call *c) {
    static int64_t one = 1, still = 0;
    const tgx_tensor *out = tgx_out(c, 0);
    int width = tgx_itemsize[out->dtype], log = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : 4;
    const tgx_value *given = &c->args[2];
    tgx_scalar number = given->tag == TGX_TENSOR ? number_in(given->tensor) : *given->number;
    _Alignas(16) char value[16];
    tgx_iter it;
    tgx_value shown = {.tag = TGX_NUMBER, .number = &number};
    shown.kind = given->tag != TGX_TENSOR ? given->kind : tgx_is_integer(given->tensor->dtype) ? TGX_IS_INT : TGX_IS_FLOAT;
    if (tgx_refuse_complex(c, &number, out->dtype) || tgx_check_number(c, &shown, out->dtype)) return TGX_FAILED;
    tgx_put_number(value, out->dtype, &number);
    tgx_iter_begin(&it, out->sizes, out->rank);
    add(&it, out), add(&it, tgx_in(c, 0)), add(&it, tgx_in(c, 1));
    tgx_iter_add(&it, value, &one, &still, 1, width);
    if (tgx_is_expanded(out)) return fill_repeated(out, tgx_in(c, 1), value, width);
    return tgx_walk(c->services, &it, tgx_mask_loops()->fill[log], NULL);
}
TGX_KERNEL(masked_fill, masked_fill_shape, masked_fill_run, TGX_REPEATS_INPLACE)
