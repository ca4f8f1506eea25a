/* Kernels that make tensors by size, by a number and like another, copies, and the in-place fills. See make.h.
 *
 * The arguments of a record stand before its kernels; "options" are the five of every factory. */
#include <math.h>
#include "make.h"
#include "view.h"

static const tgx_scalar ONE = {.f = 1, .i = 1, .given = 1};
static int ones_run(tgx_call *c) { return tgx_fill_number(c, &ONE); }
static int nothing_run(tgx_call *c) { return (void)c, 0; }

/* What stands for "not set" where that is to be seen: nan, the largest integer, true. See tensor/unset.py. */
static int unset_run(tgx_call *c) {
    int dtype = tgx_out(c, 0)->dtype;
    int bits = 8 * (int)tgx_itemsize[dtype] - tgx_is_signed(dtype);
    tgx_scalar last = {.f = NAN, .i = bits < 64 ? (int64_t)(((uint64_t)1 << bits) - 1) : -1, .given = 1};
    return tgx_fill_number(c, dtype == TGX_BOOL ? &ONE : &last);
}

/* ---- by size: (size, options) ------------------------------------------------------------------------------------ */

static int sized_shape(tgx_call *c) {
    int dtype = tgx_made_dtype(c, 1, c->services->default_dtype());
    return dtype < 0 ? TGX_FAILED : tgx_made(c, 0, dtype);
}
TGX_KERNEL(zeros, sized_shape, tgx_fill_zero, TGX_NATURAL)
TGX_KERNEL(ones, sized_shape, ones_run, TGX_NATURAL)

/* (size, options, memory_format) */
static int empty_shape(tgx_call *c) {
    int64_t format = tgx_given(c, 6) ? tgx_int(c, 6) : TGX_CONTIGUOUS_FORMAT;
    if (sized_shape(c)) return TGX_FAILED;
    if (format == TGX_PRESERVE_FORMAT)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "unsupported memory format Preserve: empty() cannot keep an order, there is no tensor whose "
                        "order could be kept. Use contiguous_format, or empty_like().");
    if (format == TGX_CONTIGUOUS_FORMAT) return 0;
    int64_t sizes[TGX_MAX_DIMS];
    tgx_output *o = &c->outputs[0];
    tgx_tensor t = {.sizes = sizes, .rank = o->rank};
    memcpy(sizes, o->dims, (size_t)o->rank * sizeof *sizes);
    if (tgx_made_like(c, &t, o->dtype, 6)) return TGX_FAILED;
    memcpy(o->dims + TGX_MAX_DIMS, sizes, (size_t)o->rank * sizeof *sizes);
    o->sizes = o->dims + TGX_MAX_DIMS;
    return 0;
}
TGX_KERNEL(empty, empty_shape, nothing_run, TGX_ANY_LAYOUT | TGX_NATURAL)
TGX_KERNEL(empty_told, empty_shape, unset_run, TGX_ANY_LAYOUT | TGX_NATURAL)

/* The sizes are an argument, and the strides the next one. */
static int strided(tgx_call *c, int size, int dtype) {
    const tgx_value *strides = &c->args[size + 1];
    if (dtype < 0 || tgx_made(c, size, dtype)) return TGX_FAILED;
    tgx_output *o = &c->outputs[0];
    if (strides->n != o->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "empty_strided: dimensionality of sizes (%d) must match dimensionality of strides (%d)",
                        (int)o->rank, (int)strides->n);
    o->strides = o->dims + o->rank;
    for (int i = 0; i < o->rank; i++) {
        if (strides->ints[i] < 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "empty_strided: negative strides are not supported, got strides %s; flip() a tensor "
                            "instead", tgx_sizes_text(strides->ints, strides->n));
        o->strides[i] = strides->ints[i];
    }
    return 0;
}

/* (size, stride, options) */
static int empty_strided_shape(tgx_call *c) { return strided(c, 0, tgx_made_dtype(c, 2, c->services->default_dtype())); }
TGX_KERNEL(empty_strided, empty_strided_shape, nothing_run, TGX_NATURAL)
TGX_KERNEL(empty_strided_told, empty_strided_shape, unset_run, TGX_NATURAL)

/* ---- of a number ------------------------------------------------------------------------------------------------- */

/* One element of a half may become infinite, as where tensors are made of numbers; what fills more must be held, as in PyTorch. */
static int check_filling(tgx_call *c, const tgx_value *v, int dtype) {
    const tgx_output *o = &c->outputs[0];
    int64_t count = 1;
    for (int d = 0; d < o->rank; d++) count *= (o->sizes ? o->sizes : o->dims)[d];
    return count == 1 && (dtype == TGX_F16 || dtype == TGX_BF16) ? 0 : tgx_check_number(c, v, dtype);
}

/* (size, fill_value, options): the value's kind of number gives the dtype. */
static int full_shape(tgx_call *c) {
    int dtype = tgx_made_dtype(c, 2, tgx_dtype_of_number(c, &c->args[1]));
    return dtype < 0 || tgx_made(c, 0, dtype) ? TGX_FAILED : check_filling(c, &c->args[1], dtype);
}
static int full_run(tgx_call *c) { return tgx_fill_number(c, c->args[1].number); }
TGX_KERNEL(full, full_shape, full_run, TGX_NATURAL)

/* (s, options) */
static int scalar_tensor_shape(tgx_call *c) {
    int dtype = tgx_made_dtype(c, 1, c->services->default_dtype());
    tgx_fresh(c, 0, 0, dtype);
    return dtype < 0 ? TGX_FAILED : check_filling(c, &c->args[0], dtype);
}
static int scalar_tensor_run(tgx_call *c) { return tgx_fill_number(c, c->args[0].number); }
TGX_KERNEL(scalar_tensor, scalar_tensor_shape, scalar_tensor_run, TGX_NATURAL)

/* ---- like another: (self, options, memory_format), (self, size, options) ----------------------------------------- */

static int like_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int dtype = tgx_made_dtype(c, 1, t->dtype);
    return dtype < 0 ? TGX_FAILED : tgx_made_like(c, t, dtype, 6);
}
TGX_KERNEL(empty_like, like_shape, nothing_run, TGX_NATURAL)
TGX_KERNEL(empty_like_told, like_shape, unset_run, TGX_NATURAL)
TGX_KERNEL(zeros_like, like_shape, tgx_fill_zero, TGX_NATURAL)
TGX_KERNEL(ones_like, like_shape, ones_run, TGX_NATURAL)

static int new_shape(tgx_call *c) {
    int dtype = tgx_made_dtype(c, 2, tgx_in(c, 0)->dtype);
    return dtype < 0 ? TGX_FAILED : tgx_made(c, 1, dtype);
}
TGX_KERNEL(new_empty, new_shape, nothing_run, TGX_NATURAL)
TGX_KERNEL(new_empty_told, new_shape, unset_run, TGX_NATURAL)
TGX_KERNEL(new_zeros, new_shape, tgx_fill_zero, TGX_NATURAL)
TGX_KERNEL(new_ones, new_shape, ones_run, TGX_NATURAL)

/* (self, size, stride, options) */
static int new_empty_strided_shape(tgx_call *c) { return strided(c, 1, tgx_made_dtype(c, 3, tgx_in(c, 0)->dtype)); }
TGX_KERNEL(new_empty_strided, new_empty_strided_shape, nothing_run, TGX_NATURAL)
TGX_KERNEL(new_empty_strided_told, new_empty_strided_shape, unset_run, TGX_NATURAL)

/* (self, fill_value, options, memory_format) */
static int full_like_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int dtype = tgx_made_dtype(c, 2, t->dtype);
    return dtype < 0 || tgx_made_like(c, t, dtype, 7) ? TGX_FAILED : check_filling(c, &c->args[1], dtype);
}
TGX_KERNEL(full_like, full_like_shape, full_run, TGX_NATURAL)

/* (self, size, fill_value, options) */
static int new_full_shape(tgx_call *c) {
    int dtype = tgx_made_dtype(c, 3, tgx_in(c, 0)->dtype);
    return dtype < 0 || tgx_made(c, 1, dtype) ? TGX_FAILED : check_filling(c, &c->args[2], dtype);
}
static int new_full_run(tgx_call *c) { return tgx_fill_number(c, c->args[2].number); }
TGX_KERNEL(new_full, new_full_shape, new_full_run, TGX_NATURAL)

/* ---- the same elements ------------------------------------------------------------------------------------------- */

/* (self, memory_format) */
static int clone_shape(tgx_call *c) { return tgx_made_like(c, tgx_in(c, 0), tgx_in(c, 0)->dtype, 1); }
static int clone_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    if (!(t->flags & out->flags & TGX_CONTIGUOUS) || t->count > TGX_SMALL) return c->services->copy(out, t);
    if (t->count) memcpy(out->data, t->data, (size_t)t->count * (size_t)tgx_itemsize[t->dtype]);
    return 0;
}
TGX_KERNEL(clone, clone_shape, clone_run, TGX_NATURAL)

/* (self) */
static int detach_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = tgx_view(c, 0, 0, t->rank);
    o->sizes = t->sizes, o->strides = t->strides;
    return 0;
}
TGX_KERNEL(detach, detach_shape, NULL, TGX_WINDOW)

/* ---- in place ---------------------------------------------------------------------------------------------------- */

/* self is overwritten, or a tensor like it is made. */
static void over_self(tgx_call *c) {
    tgx_like_order(c, 0, tgx_in(c, 0), tgx_in(c, 0)->dtype);
    c->outputs[0].origin = TGX_OVER, c->outputs[0].of = 0;
}

/* (self, value): a number, or a tensor without dimensions */
static int fill_shape(tgx_call *c) {
    const tgx_value *v = &c->args[1];
    over_self(c);
    if (v->tag == TGX_NUMBER) return tgx_check_number(c, v, tgx_in(c, 0)->dtype);
    if (v->tensor->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions. Use copy_() "
                        "for a tensor that broadcasts.", (int)v->tensor->rank);
    return 0;
}
static int fill_run(tgx_call *c) {
    if (c->args[1].tag == TGX_NUMBER) return tgx_fill_number(c, c->args[1].number);
    return c->services->copy(tgx_out(c, 0), tgx_in(c, 1));
}
TGX_KERNEL(fill, fill_shape, fill_run, TGX_REPEATS | TGX_NATURAL)

/* (self) */
static int zero_shape(tgx_call *c) { return over_self(c), 0; }
TGX_KERNEL(zero, zero_shape, tgx_fill_zero, TGX_REPEATS | TGX_NATURAL)
