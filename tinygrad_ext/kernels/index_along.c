/* One index vector along one dimension: index_select, index_add, index_copy, index_fill; and take and put over all elements.
 *
 * An index stands for a whole block of inner dimensions, which moves at once (advanced.h). Rejected: gather with the vector
 * repeated over the block, 11 times as long for the rows of a 1000 x 1000 matrix. */
#include "advanced.h"
#include "make.h"
#include "numbers.h"

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int check_vector(tgx_call *c, const tgx_tensor *index, const char *title) {
    if (index->rank <= 1) return 0;
    return tgx_fail(c, TGX_INDEX_ERROR, "%s(): Index is supposed to be a vector, but got dim: %d with type: %s and size: %s", title,
                    index->rank, tgx_dtype_title(index->dtype), tgx_shape_text(index));
}

static int check_index(tgx_call *c, const tgx_tensor *index, const char *title) {
    if (index->dtype != TGX_I64 && index->dtype != TGX_I32)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): Expected dtype int32 or int64 for index, got %s", title,
                        tgx_dtype_title(index->dtype));
    return check_vector(c, index, title);
}

/* ---- reading: (self, dim, index) --------------------------------------------------------------------------------- */

static int index_select_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *index = tgx_in(c, 2);
    tgx_output *o;
    if (check_index(c, index, "index_select") || tgx_wrap_arg(c, 1, x->rank)) return TGX_FAILED;
    if (tgx_is_natural(x->dtype) && x->rank < 2) /* as in PyTorch, which copies rows but not elements */
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"index_select\" not implemented for '%s': convert the vector first, for example with "
                        ".long()", tgx_dtype_title(x->dtype));
    if (x->rank == 0 && index->count != 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                        (long long)index->count);
    if (x->rank && !x->sizes[tgx_int(c, 1)] && index->count)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "index_select(): self indexing axis dim should be positive: dimension %lld has no elements",
                        (long long)tgx_int(c, 1));
    tgx_need(c, 2, TGX_I64);
    o = tgx_fresh(c, 0, x->rank, x->dtype);
    c->work = 1;
    for (int i = 0; i < x->rank; i++) c->work *= o->dims[i] = i == tgx_int(c, 1) ? index->count : x->sizes[i];
    c->work += index->count;
    c->scratch_bytes = tgx_offsets_room(index->count);
    return 0;
}

static int index_select_run(tgx_call *c) {
    tgx_tensor table = tgx_lifted(tgx_in(c, 0));
    return tgx_picks_read_along(c, &table, (int)tgx_int(c, 1), tgx_in(c, 2), 0, TGX_OUT_SELECT, "index_select", tgx_out(c, 0));
}
TGX_KERNEL(index_select, index_select_shape, index_select_run, TGX_NATURAL)

/* (grad, size, dim, index): zeros with grad added where it was read. */
static int index_select_backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *index = tgx_in(c, 3);
    const tgx_output *o = &c->outputs[0];
    if (check_index(c, index, "_index_select_backward") || tgx_sized(c, 0, 1, g->dtype) || tgx_wrap_arg(c, 2, o->rank))
        return TGX_FAILED;
    for (int i = -1; i < o->rank; i++)
        if (i < 0 ? g->rank != o->rank : g->sizes[i] != (i == tgx_int(c, 2) ? index->count : o->dims[i]))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "shape mismatch: grad of shape %s is none of an index_select of %lld from %s",
                            tgx_shape_text(g), (long long)index->count, tgx_sizes_text(o->dims, o->rank));
    tgx_need_dense(c, 0);
    tgx_need(c, 3, TGX_I64);
    c->scratch_bytes = tgx_offsets_room(index->count);
    return 0;
}

static int index_select_backward_run(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0);
    tgx_tensor *out = tgx_out(c, 0), table = tgx_lifted(out);
    int64_t few[TGX_FEW];
    tgx_picks p;
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    if (tgx_picks_along(c, &p, few, &table, (int)tgx_int(c, 2), tgx_in(c, 3), 0, TGX_OUT_SELECT, "index_select")) return TGX_FAILED;
    tgx_picks_write(c, &p, g->data, g->count, TGX_ADD);
    return 0;
}
TGX_KERNEL(index_select_backward, index_select_backward_shape, index_select_backward_run, 0)

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Put values, dense or one element, where the index of argument 2 points to in the result. */
static int put(tgx_call *c, const void *values, int64_t count, int move, int flags, int outside, const char *title) {
    tgx_tensor table = tgx_lifted(tgx_out(c, 0));
    int64_t few[TGX_FEW];
    tgx_picks p;
    if (tgx_picks_along(c, &p, few, &table, (int)tgx_int(c, 1), tgx_in(c, 2), flags, outside, title)) return TGX_FAILED;
    tgx_picks_write(c, &p, values, count, move);
    return 0;
}

/* The result starts as self; the index is asked for as run wants it. */
static void open_put(tgx_call *c) {
    tgx_need(c, 2, TGX_I64);
    tgx_writes(c, 0, 0);
    c->scratch_bytes = tgx_offsets_room(tgx_in(c, 2)->count);
}

/* source has the shape of self but for `dim`, where it is as long as the index. */
static int check_source(tgx_call *c, const tgx_tensor *self, int dim, const tgx_tensor *index, const tgx_tensor *source) {
    tgx_tensor x = tgx_lifted(self), s = tgx_lifted(source);
    int64_t n = s.sizes[dim < s.rank ? dim : 0];
    if (n != index->count)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "index_add_(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for "
                        "dim: %d", (long long)index->count, (long long)n, dim);
    for (int i = 0; i < x.rank; i++)
        if (s.rank != x.rank || (i != dim && s.sizes[i] != x.sizes[i]))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "index_add_(): source tensor shape must match self tensor shape, excluding the "
                            "specified dimension. Got self.shape = %s source.shape = %s", tgx_shape_text(self), tgx_shape_text(source));
    return 0;
}

typedef void (*scale_fn)(char *to, const char *from, int64_t n, const void *by);
#define SCALE(TAG, T, PRODUCT) static void scale_##TAG(char *to, const char *from, int64_t n, const void *by) { \
    const T y = *(const T *)by; \
    for (int64_t i = 0; i < n; i++) { const T x = ((const T *)from)[i]; ((T *)to)[i] = PRODUCT; } }
SCALE(b8, uint8_t, x & y)
SCALE(u8, uint8_t, (uint8_t)(x * y))
SCALE(i8, uint8_t, (uint8_t)(x * y))
SCALE(i16, uint16_t, (uint16_t)((uint32_t)x * y))
SCALE(i32, uint32_t, x * y)
SCALE(i64, uint64_t, x * y)
SCALE(f16, uint16_t, tgx_f32_to_f16(tgx_f16_to_f32(x) * tgx_f16_to_f32(y)))
SCALE(bf16, uint16_t, tgx_f32_to_bf16(tgx_bf16_to_f32(x) * tgx_bf16_to_f32(y)))
SCALE(f32, float, x * y)
SCALE(f64, double, x * y)
SCALE(c64, tgx_c64, TIMES(x, y))
SCALE(c128, tgx_c128, TIMES(x, y))
static const scale_fn SCALES[TGX_NTYPES] = {TGX_OF_BOOL(scale_), TGX_OF_INT(scale_), TGX_OF_HALF(scale_), TGX_OF_FLOAT(scale_),
                                            TGX_OF_COMPLEX(scale_)};

static int is_one(const tgx_value *alpha) { return alpha->kind == TGX_IS_INT && alpha->number->i == 1; }

static int check_alpha(tgx_call *c, const tgx_tensor *source, const tgx_value *alpha) {
    const tgx_scalar *n = alpha->number;
    return tgx_refuse_complex(c, n, source->dtype) || tgx_check_number(c, alpha, source->dtype) ? TGX_FAILED : 0;
}

/* Bytes of scratch before the scaled source. */
static int64_t behind(int64_t points) { return (tgx_offsets_room(points) + 15) & ~(int64_t)15; }

/* (self, dim, index, source, alpha) */
static int index_add_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *index = tgx_in(c, 2), *s = tgx_in(c, 3);
    if (check_index(c, index, "index_add_") || tgx_wrap_arg(c, 1, x->rank)) return TGX_FAILED;
    if (x->dtype != s->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "index_add_(): self (%s) and source (%s) must have the same scalar type",
                        tgx_dtype_title(x->dtype), tgx_dtype_title(s->dtype));
    if (check_source(c, x, (int)tgx_int(c, 1), index, s) || (!is_one(&c->args[4]) && check_alpha(c, s, &c->args[4])))
        return TGX_FAILED;
    open_put(c);
    tgx_need_dense(c, 3);
    if (!is_one(&c->args[4])) c->scratch_bytes = behind(index->count) + s->count * tgx_itemsize[s->dtype];
    return 0;
}

static int index_add_run(tgx_call *c) {
    const tgx_tensor *s = tgx_in(c, 3);
    char *values = s->data;
    int64_t by[2];
    if (!is_one(&c->args[4])) {
        values = (char *)c->scratch + behind(tgx_in(c, 2)->count);
        tgx_put_number(by, s->dtype, c->args[4].number);
        SCALES[s->dtype](values, s->data, s->count, by);
    }
    return put(c, values, s->count, TGX_ADD, 0, TGX_OUT_RUNTIME, "index_add_");
}
TGX_KERNEL(index_add, index_add_shape, index_add_run, 0)

/* (self, dim, index, source) */
static int index_copy_shape(tgx_call *c) {
    const tgx_tensor *self = tgx_in(c, 0), *index = tgx_in(c, 2), *source = tgx_in(c, 3);
    tgx_tensor x = tgx_lifted(self), s = tgx_lifted(source);
    int dim;
    if (check_vector(c, index, "index_copy_") || tgx_wrap_arg(c, 1, self->rank)) return TGX_FAILED;
    dim = (int)tgx_int(c, 1);
    if (index->dtype != TGX_I64)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "index_copy_(): Expected a long tensor for index, but got %s",
                        tgx_dtype_title(index->dtype));
    if (self->dtype != source->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "index_copy_(): self and source expected to have the same dtype, but got (self) %s and "
                        "(source) %s", tgx_dtype_title(self->dtype), tgx_dtype_title(source->dtype));
    if (source->rank && self->rank && source->rank != self->rank)
        return tgx_fail(c, TGX_INDEX_ERROR, "index_copy_(): When source and destination are not scalars, their dimensionality must "
                        "match. Source dimensionality (%d), destination dimensionality (%d)", source->rank, self->rank);
    if (s.rank != x.rank)
        return tgx_fail(c, TGX_INDEX_ERROR, "index_copy_(): source of shape %s does not fit self of shape %s", tgx_shape_text(source),
                        tgx_shape_text(self));
    if (s.sizes[dim] != index->count)
        return tgx_fail(c, TGX_INDEX_ERROR, "index_copy_(): Number of indices (%lld) should be equal to source.size(dim) (%lld)",
                        (long long)index->count, (long long)s.sizes[dim]);
    for (int i = 0; i < x.rank; i++)
        if (i != dim && x.sizes[i] != s.sizes[i])
            return tgx_fail(c, TGX_RUNTIME_ERROR, "index_copy_(): Source/destination tensor must have same slice shapes. Got "
                            "destination %s and source %s, which differ in dimension %d.", tgx_shape_text(self), tgx_shape_text(source),
                            i);
    open_put(c);
    tgx_need_dense(c, 3);
    return 0;
}

static int index_copy_run(tgx_call *c) {
    return put(c, tgx_in(c, 3)->data, tgx_in(c, 3)->count, TGX_WRITE, 0, TGX_OUT_COPY, "index_copy_");
}
TGX_KERNEL(index_copy, index_copy_shape, index_copy_run, 0)

/* (self, dim, index, value): a number or a 0-dim tensor. */
static int index_fill_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *index = tgx_in(c, 2);
    const tgx_value *value = &c->args[3];
    if (check_vector(c, index, "index_fill_") || tgx_wrap_arg(c, 1, x->rank)) return TGX_FAILED;
    if (index->dtype != TGX_I64)
        return tgx_fail(c, TGX_INDEX_ERROR, "index_fill_(): Expected dtype int64 for index, got %s.", tgx_dtype_title(index->dtype));
    if (value->tag == TGX_TENSOR && value->tensor->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
                        "dimension(s).", value->tensor->rank);
    if (value->tag == TGX_NUMBER && (tgx_refuse_complex(c, value->number, x->dtype) || tgx_check_number(c, value, x->dtype))) return TGX_FAILED;
    open_put(c);
    tgx_warn_repeated(c, "index_fill_", "tensor[mask] = scalar");
    return 0;
}

static int complex_element(tgx_call *c, const tgx_tensor *value, int dtype) {
    const double *d = (const double *)value->data;
    const float *f = (const float *)value->data;
    tgx_scalar n = value->dtype == TGX_C64 ? (tgx_scalar){f[0], f[1], 0, 1} : (tgx_scalar){d[0], d[1], 0, 1};
    return tgx_refuse_complex(c, &n, dtype);
}

static int index_fill_run(tgx_call *c) {
    const tgx_value *value = &c->args[3];
    int dtype = tgx_out(c, 0)->dtype;
    int64_t one[2];
    tgx_tensor to = {.data = (char *)one, .count = 1, .dtype = (int8_t)dtype, .flags = TGX_CONTIGUOUS};
    if (value->tag == TGX_NUMBER) tgx_put_number(one, dtype, value->number);
    else if (tgx_is_complex(value->tensor->dtype) && complex_element(c, value->tensor, dtype)) return TGX_FAILED;
    else c->services->copy(&to, value->tensor);
    return put(c, one, 1, TGX_WRITE, TGX_NEGATIVE, TGX_OUT_INDEX, "index_fill_");
}
TGX_KERNEL(index_fill, index_fill_shape, index_fill_run, TGX_REPEATS_INPLACE)

/* ---- over all elements: (self, index), numbers in row-major order ------------------------------------------------ */

static int take_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *index = tgx_in(c, 1);
    if (index->dtype != TGX_I64)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "take(): Expected a long tensor for index, but got %s", tgx_dtype_title(index->dtype));
    if (x->count == 0 && index->count) return tgx_fail(c, TGX_INDEX_ERROR, "take(): tried to take from an empty tensor");
    tgx_need_dense(c, 0);
    tgx_need_dense(c, 1);
    tgx_like(c, 0, index, x->dtype);
    c->work = 2 * index->count + 1;
    c->scratch_bytes = tgx_offsets_room(index->count);
    return 0;
}

static int take_run(tgx_call *c) {
    tgx_tensor flat = *tgx_in(c, 0);
    int64_t one = 1;
    flat.rank = 1, flat.sizes = &flat.count, flat.strides = &one;
    return tgx_picks_read_along(c, &flat, 0, tgx_in(c, 1), TGX_NEGATIVE, TGX_OUT_TAKE, "take", tgx_out(c, 0));
}
TGX_KERNEL(take, take_shape, take_run, 0)

/* (self, index, source, accumulate) */
static int put_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *index = tgx_in(c, 1), *source = tgx_in(c, 2);
    if (index->dtype != TGX_I64)
        return tgx_fail(c, TGX_INDEX_ERROR, "put_(): Expected a long tensor for index, but got %s", tgx_dtype_title(index->dtype));
    if (x->dtype != source->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype "
                        "= %s", tgx_dtype_title(x->dtype), tgx_dtype_title(source->dtype));
    if (index->count != source->count)
        return tgx_fail(c, TGX_INDEX_ERROR, "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
                        "%lld, index.numel() = %lld", (long long)source->count, (long long)index->count);
    if (x->count == 0 && index->count) return tgx_fail(c, TGX_INDEX_ERROR, "put_(): tried to put elements into an empty tensor");
    tgx_need_dense(c, 1), tgx_need_dense(c, 2);
    tgx_writes(c, 0, 0);
    c->scratch_bytes = tgx_offsets_room(index->count);
    return 0;
}

/* Offsets in row-major memory become those of a tensor's own strides. */
static void place(int64_t *offset, int64_t n, const tgx_tensor *t) {
    const int shift = __builtin_ctz((unsigned)tgx_itemsize[t->dtype]), narrow = t->count <= UINT32_MAX;
    for (int64_t k = 0; k < n; k++) {
        int64_t left = offset[k] >> shift, to = 0;
        for (int d = t->rank - 1; d > 0; d--) {     /* of 32 bits a division takes half as long */
            const int64_t size = t->sizes[d], above = narrow ? (uint32_t)left / (uint32_t)size : left / size;
            to += (left - above * size) * t->strides[d], left = above;
        }
        if (t->rank) to += left * t->strides[0];
        offset[k] = to * ((int64_t)1 << shift);
    }
}

static int put_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0), *source = tgx_in(c, 2);
    tgx_tensor flat = *out;
    int64_t one = 1, few[TGX_FEW];
    tgx_picks p;
    flat.rank = 1, flat.sizes = &flat.count, flat.strides = &one;
    if (tgx_picks_along(c, &p, few, &flat, 0, tgx_in(c, 1), TGX_NEGATIVE, TGX_OUT_TAKE, "put_")) return TGX_FAILED;
    if (!(out->flags & TGX_CONTIGUOUS)) place((int64_t *)p.offset, source->count, out);
    tgx_picks_write(c, &p, source->data, source->count, tgx_int(c, 3) ? TGX_ADD : TGX_WRITE);
    return 0;
}
TGX_KERNEL(put, put_shape, put_run, 0)
