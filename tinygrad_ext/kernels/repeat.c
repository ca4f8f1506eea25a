/* Kernels of repeats: of whole dimensions, of each element, and as often as a tensor says.
 *
 * A repeat is one strided copy whose source stands still along the new dimensions. Rejected: joining copies, a pass for each
 * dimension; repeating 1000 x 1000 floats twice in both took 2.1 times as long by cat. */
#include "tgx.h"

/* How often a size is repeated. */
static int times(tgx_call *c, int64_t repeats, int64_t size, const char *name, int64_t *out) {
    int64_t pair[2] = {repeats, size};
    if (repeats < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: Trying to create tensor with negative dimension %lld: a number of repeats is %lld", name,
                        (long long)((uint64_t)repeats * (uint64_t)size), (long long)repeats);
    if (tgx_check_sizes(c, pair, 2, name)) return TGX_FAILED;
    *out = repeats * size;
    return 0;
}

typedef struct {
    int64_t sizes[3 * TGX_MAX_DIMS], to[3 * TGX_MAX_DIMS], from[3 * TGX_MAX_DIMS];
    int n;
} walk_t;

static inline void add(walk_t *w, int64_t size, int64_t to, int64_t from) {
    if (size != 1) w->sizes[w->n] = size, w->to[w->n] = to, w->from[w->n++] = from;
}

/* Fill out, whose dimension i is outer[i] times t's size times inner[i]; NULL for nothing but ones. t's dimensions are the last
 * ones. The sizes, taken apart and without ones, are at most as many as out has bits in its count, so they fit. */
static int copy_repeated(tgx_call *c, const int64_t *outer, const int64_t *inner) {
    const tgx_tensor *out = tgx_out(c, 0), *t = tgx_in(c, 0);
    walk_t w;
    w.n = 0;
    if (out->count == 0) return 0;
    for (int i = 0; i < out->rank; i++) {
        int k = i - (out->rank - t->rank);
        int64_t size = k >= 0 ? t->sizes[k] : 1, each = inner ? inner[i] : 1;
        if (outer) add(&w, outer[i], out->strides[i] * size * each, 0);
        add(&w, size, out->strides[i] * each, k >= 0 ? t->strides[k] : 0);
        add(&w, each, out->strides[i], 0);
    }
    tgx_tensor to = *out, from = *t;
    to.rank = from.rank = w.n, to.sizes = from.sizes = w.sizes, to.strides = w.to, from.strides = w.from, to.flags = from.flags = 0;
    from.count = to.count;
    return c->services->copy(&to, &from);
}

/* (self, repeats) */
static int repeat_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const tgx_value *repeats = &c->args[1];
    int more = repeats->n - t->rank;
    if (more < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
                        "repeat() got %d repeats for a tensor of %d dimensions", repeats->n, t->rank);
    if (tgx_sized(c, 0, 1, t->dtype)) return TGX_FAILED;
    tgx_output *o = &c->outputs[0];
    for (int i = 0; i < repeats->n; i++)
        if (times(c, repeats->ints[i], i >= more ? t->sizes[i - more] : 1, "repeat", &o->dims[i])) return TGX_FAILED;
    return tgx_check_sizes(c, o->dims, o->rank, "repeat");
}
static int repeat_run(tgx_call *c) { return copy_repeated(c, c->args[1].ints, NULL); }
TGX_KERNEL(repeat, repeat_shape, repeat_run, TGX_NATURAL)

/* _repeat_each: (self, repeats, dim), every element of dim that many times in a row */
static int repeat_each_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (tgx_wrap_arg(c, 2, t->rank)) return TGX_FAILED;
    if (tgx_int(c, 1) < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Repeats must be non-negative: repeat_interleave() got %lld", (long long)tgx_int(c, 1));
    if (t->rank == 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "_repeat_each() needs a dimension: a 0-dim tensor has none");
    tgx_output *o = tgx_fresh(c, 0, t->rank, t->dtype);
    for (int i = 0; i < t->rank; i++) o->dims[i] = t->sizes[i];
    int64_t *size = &o->dims[tgx_int(c, 2)];
    return times(c, tgx_int(c, 1), *size, "repeat_interleave", size) ? TGX_FAILED
                                                                      : tgx_check_sizes(c, o->dims, o->rank, "repeat_interleave");
}

static int repeat_each_run(tgx_call *c) {
    int64_t inner[TGX_MAX_DIMS];
    for (int i = 0; i < TGX_MAX_DIMS; i++) inner[i] = 1;
    inner[tgx_int(c, 2)] = tgx_int(c, 1);
    return copy_repeated(c, NULL, inner);
}
TGX_KERNEL(repeat_each, repeat_each_shape, repeat_each_run, TGX_NATURAL)

/* ---- repeat_interleave: (repeats, output_size), index i repeats[i] times ----------------------------------------- */

static inline int64_t count_at(const tgx_tensor *t, int64_t i) {
    const char *at = t->data + i * t->strides[0] * tgx_itemsize[t->dtype];
    return t->dtype == TGX_I64 ? *(const volatile int64_t *)at : *(const volatile int32_t *)at;
}

static int add_up(tgx_call *c, const tgx_tensor *t, int64_t *total) {
    *total = 0;
    for (int64_t i = 0; i < t->sizes[0]; i++) {
        int64_t count = count_at(t, i);
        if (count < 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "repeats can not be negative: repeat_interleave() got %lld at place %lld", (long long)count,
                            (long long)i);
        if (count > ((int64_t)1 << 60) - *total)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "repeat_interleave: storage size calculation overflowed with the sum of repeats");
        *total += count;
    }
    return 0;
}

/* Only with output_size the size is known where there are no elements to read, on meta tensors. */
static int repeat_counts_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t total = 0;
    if (t->dtype != TGX_I64 && t->dtype != TGX_I32)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"repeat_interleave_cpu\" not implemented for '%s': repeats must be int32 or int64",
                        tgx_dtype_title(t->dtype));
    if (t->rank != 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "repeat_interleave only accept 1D vector as repeat, got shape %s", tgx_shape_text(t));
    if (c->meta && !tgx_given(c, 1))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "repeat_interleave on meta tensors needs output_size=: the size follows from values");
    if (c->meta) total = tgx_int(c, 1);
    else if (add_up(c, t, &total)) return TGX_FAILED;
    if (tgx_given(c, 1) && tgx_int(c, 1) != total)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "allocated size does not match required size: output_size is %lld, the repeats add up to %lld",
                        (long long)tgx_int(c, 1), (long long)total);
    tgx_fresh(c, 0, 1, t->dtype)->dims[0] = total;
    return 0;
}

/* A place is written FEW times whatever its count, where there is room: the next one writes over what is too much, and no branch
 * hangs on a small count. */
enum { FEW = 4 };
#define PLACES(NAME, T) static void NAME(const tgx_tensor *t, T *to, int64_t n) { \
    int64_t at = 0; \
    for (int64_t i = 0; i < t->sizes[0]; i++) { \
        const int64_t left = n - at, count = count_at(t, i), end = at + (count > left ? left : count < 0 ? 0 : count); \
        if (left >= FEW && (uint64_t)count <= FEW) { \
            for (int k = 0; k < FEW; k++) to[at + k] = (T)i; \
            at = end; \
        } else for (; at < end; at++) to[at] = (T)i; \
    } \
    for (; at < n; at++) to[at] = 0; }
PLACES(places_i32, int32_t)
PLACES(places_i64, int64_t)

/* As many places as shape counted, whoever wrote to repeats since; what that leaves open becomes 0. */
static int repeat_counts_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    if (out->dtype == TGX_I64) places_i64(t, (int64_t *)out->data, out->count);
    else places_i32(t, (int32_t *)out->data, out->count);
    return 0;
}
TGX_KERNEL(repeat_counts, repeat_counts_shape, repeat_counts_run, TGX_MAY_READ)
