/* Views: dimensions of size 1 that come and go, and other orders of dimensions. */
#include "tgx.h"
#include "view.h"

/* ---- dimensions of size 1 ---------------------------------------------------------------------------------------- */

/* Without those of the dimensions in the mask that have size 1. */
static int squeezed(tgx_call *c, uint64_t mask) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = tgx_view(c, 0, 0, t->rank);
    o->rank = 0;
    for (int i = 0; i < t->rank; i++)
        if (t->sizes[i] != 1 || !(mask >> i & 1)) tgx_take(o, o->rank++, t, i);
    return 0;
}

static int squeeze_shape(tgx_call *c) { return squeezed(c, ~(uint64_t)0); }
TGX_KERNEL(squeeze, squeeze_shape, NULL, TGX_WINDOW)

/* (self, dim), (self, dims) */
static int squeeze_dims_shape(tgx_call *c) {
    const int64_t *dims;
    int n = tgx_numbers(c, 1, &dims);
    uint64_t mask = 0;
    for (int i = 0; i < n; i++) {
        int64_t d = dims[i];
        if (tgx_wrap(c, &d, tgx_in(c, 0)->rank)) return TGX_FAILED;
        if (mask >> d & 1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "squeeze(): dim %d appears multiple times in the list of dims %s", (int)d, tgx_sizes_text(dims, n));
        mask |= (uint64_t)1 << d;
    }
    return n < 0 ? TGX_FAILED : squeezed(c, mask);
}
TGX_KERNEL(squeeze_dims, squeeze_dims_shape, NULL, TGX_WINDOW)

/* (self, dim) */
static int unsqueeze_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (tgx_wrap_arg(c, 1, t->rank + 1)) return TGX_FAILED;
    if (t->rank == TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "unsqueeze(): a tensor has at most %d dimensions, and self has them all", TGX_MAX_DIMS);
    int d = (int)tgx_int(c, 1);
    tgx_output *o = tgx_view(c, 0, 0, t->rank + 1);
    for (int i = 0; i < t->rank; i++) tgx_take(o, i + (i >= d), t, i);
    o->sizes[d] = 1;
    /* the stride that a contiguous tensor has here, so that flattening around the new dimension stays a view */
    o->strides[d] = d < t->rank ? t->sizes[d] * t->strides[d] : 1;
    return 0;
}
TGX_KERNEL(unsqueeze, unsqueeze_shape, NULL, TGX_WINDOW)

/* ---- order of dimensions ----------------------------------------------------------------------------------------- */

/* (self, dims) */
static int permute_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const int64_t *dims;
    int n = tgx_numbers(c, 1, &dims);
    uint64_t seen = 0;
    if (n < 0) return TGX_FAILED;
    if (n != t->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "permute(): number of dimensions in the tensor input does not match the length of the desired "
                        "ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %d", t->rank, n);
    tgx_output *o = tgx_view(c, 0, 0, n);
    for (int i = 0; i < n; i++) {
        int64_t d = dims[i];
        if (tgx_wrap(c, &d, n)) return TGX_FAILED;
        if (seen >> d & 1) return tgx_fail(c, TGX_RUNTIME_ERROR, "permute(): duplicate dims are not allowed.");
        seen |= (uint64_t)1 << d;
        tgx_take(o, i, t, (int)d);
    }
    return 0;
}
TGX_KERNEL(permute, permute_shape, NULL, TGX_WINDOW)

static int swapped(tgx_call *c, const tgx_tensor *t, int a, int b) {
    tgx_output *o = tgx_view(c, 0, 0, t->rank);
    for (int i = 0; i < t->rank; i++) tgx_take(o, i, t, i);
    if (t->rank) tgx_take(o, a, t, b), tgx_take(o, b, t, a);
    return 0;
}

/* (self, dim0, dim1) */
static int transpose_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (tgx_wrap_arg(c, 1, t->rank) || tgx_wrap_arg(c, 2, t->rank)) return TGX_FAILED;
    return swapped(c, t, (int)tgx_int(c, 1), (int)tgx_int(c, 2));
}
TGX_KERNEL(transpose, transpose_shape, NULL, TGX_WINDOW)

static int t_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (t->rank > 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "t() expects a tensor with <= 2 dimensions, but self is %dD. Use .mT or .transpose(dim0, "
                        "dim1).", t->rank);
    return swapped(c, t, 0, t->rank - 1);
}
TGX_KERNEL(t, t_shape, NULL, TGX_WINDOW)

/* Wrapped dims, none of them twice, and their mask. */
static int distinct(tgx_call *c, const int64_t *given, int n, int rank, const char *name, int64_t *dims, uint64_t *mask) {
    *mask = 0;
    for (int i = 0; i < n; i++) {
        dims[i] = given[i];
        if (tgx_wrap(c, &dims[i], rank)) return TGX_FAILED;
        if (*mask >> dims[i] & 1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "movedim: repeated dim in `%s` (%s)", name, tgx_sizes_text(given, n));
        *mask |= (uint64_t)1 << dims[i];
    }
    return 0;
}

/* (self, source, destination): ints or lists of them */
static int movedim_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const int64_t *from, *to;
    int64_t source[TGX_MAX_DIMS], place[TGX_MAX_DIMS], order[TGX_MAX_DIMS];
    uint64_t taken, filled;
    int n = tgx_numbers(c, 1, &from), m = tgx_numbers(c, 2, &to), k = 0;
    if (n < 0 || m < 0) return TGX_FAILED;
    if (n != m)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "movedim: Invalid source or destination dims: source (%s dims) should contain the same "
                        "number of dims as destination (%s dims)", tgx_sizes_text(from, n), tgx_sizes_text(to, m));
    if (distinct(c, from, n, t->rank, "source", source, &taken) || distinct(c, to, n, t->rank, "destination", place, &filled))
        return TGX_FAILED;
    for (int i = 0; i < n; i++) order[place[i]] = source[i];
    tgx_output *o = tgx_view(c, 0, 0, t->rank);
    for (int i = 0; i < t->rank; i++) {
        if (!(filled >> i & 1)) {
            while (taken >> k & 1) k++;
            order[i] = k++;
        }
        tgx_take(o, i, t, (int)order[i]);
    }
    return 0;
}
TGX_KERNEL(movedim, movedim_shape, NULL, TGX_WINDOW)
