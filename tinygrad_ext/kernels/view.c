/* Views: other shapes, and other dtypes, over the same memory. Nothing here copies, but where a shape has no
 * strides (reshape and its like) or row-major memory is asked for. Rejected: kernels whose results are fresh tensors only,
 * which would leave views a special case in Python. */
#include <stdio.h>
#include "extent.h"
#include "tgx.h"
#include "view.h"

int tgx_numbers(tgx_call *c, int i, const int64_t **values) {
    const tgx_value *v = &c->args[i];
    *values = v->tag == TGX_INTS ? v->ints : v->tag == TGX_TENSOR ? v->tensor->sizes : &v->i;
    int n = v->tag == TGX_INTS ? v->n : v->tag == TGX_TENSOR ? v->tensor->rank : 1;
    return n <= TGX_MAX_DIMS ? n : tgx_fail(c, TGX_RUNTIME_ERROR, "expected at most %d numbers, got %d", TGX_MAX_DIMS, n);
}

/* A view on argument 0, which has still to get its strides, in the sizes of argument i (those of a tensor: view_as). */
static tgx_output *of_sizes(tgx_call *c, int i) {
    const int64_t *given;
    int n = tgx_numbers(c, i, &given);
    if (n < 0) return NULL;
    tgx_output *o = tgx_view(c, 0, 0, n);
    for (int k = 0; k < n; k++) o->sizes[k] = given[k];
    return o;
}

/* ---- another shape ----------------------------------------------------------------------------------------------- */

static int bad_sizes(tgx_call *c, const tgx_tensor *t, const int64_t *sizes, int n) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "shape '%s' is invalid for input of size %lld", tgx_sizes_text(sizes, n), (long long)t->count);
}

/* Replace a -1 in the sizes; they must have as many elements as t. */
static int infer(tgx_call *c, const tgx_tensor *t, int64_t *sizes, int n) {
    int unknown = -1;
    int64_t known;
    for (int i = 0; i < n; i++) {
        if (sizes[i] >= 0) continue;
        if (sizes[i] != -1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "invalid shape dimension %lld: sizes are not negative, but for one -1 to be inferred",
                            (long long)sizes[i]);
        if (unknown >= 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "only one dimension can be inferred: the shape has -1 twice");
        unknown = i, sizes[i] = 1;
    }
    if (tgx_counted(c, sizes, n, &known, "view")) return TGX_FAILED; /* a product that wraps around could equal the count */
    if (unknown < 0) return known == t->count ? 0 : bad_sizes(c, t, sizes, n);
    sizes[unknown] = -1;
    if (known == 0 && t->count == 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension "
                        "size -1 can be any value and is ambiguous", tgx_sizes_text(sizes, n));
    if (known == 0 || t->count % known) return bad_sizes(c, t, sizes, n);
    sizes[unknown] = t->count / known;
    return 0;
}

static void dense_strides(const int64_t *sizes, int n, int64_t *strides) {
    int64_t step = 1;
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = step;
        if (sizes[i] > 1) step = (int64_t)((uint64_t)step * (uint64_t)sizes[i]); /* it may wrap where another size is 0 */
    }
}

/* Strides that show t's memory in another shape; 0 when there are none. */
static int find_strides(const tgx_tensor *t, const int64_t *sizes, int n, int64_t *strides) {
    int d = n - 1;
    int64_t chunk = 1, filled = 1, base;
    if (t->count == 0 || t->rank == 0) {
        dense_strides(sizes, n, strides);
        return 1;
    }
    base = t->strides[t->rank - 1];
    for (int i = t->rank - 1; i >= 0; i--) {
        chunk *= t->sizes[i];
        /* the end of a run of dimensions that lie behind each other */
        if (i > 0 && (t->sizes[i - 1] == 1 || t->strides[i - 1] == chunk * base)) continue;
        while (d >= 0 && (filled < chunk || sizes[d] == 1)) {
            strides[d] = filled * base;
            filled *= sizes[d--];
        }
        if (filled != chunk) return 0;
        if (i > 0) base = t->strides[i - 1], chunk = filled = 1;
    }
    return d == -1;
}

/* (self, size) */
static int view_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = of_sizes(c, 1);
    if (!o || infer(c, t, o->sizes, o->rank)) return TGX_FAILED;
    if (find_strides(t, o->sizes, o->rank, o->strides)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "view size is not compatible with input tensor's size and stride (at least one dimension "
                    "spans across two contiguous subspaces). Use .reshape(...) instead.");
}
TGX_KERNEL(view, view_shape, NULL, TGX_WINDOW)

/* A view where there are strides for the sizes in o, else fresh memory. */
static int shaped(tgx_output *o, const tgx_tensor *t) {
    if (!find_strides(t, o->sizes, o->rank, o->strides)) o->origin = TGX_FRESH, o->strides = NULL;
    return 0;
}

/* All elements in row-major order. */
static int copied_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_tensor to = *tgx_out(c, 0);
    int64_t strides[TGX_MAX_DIMS];
    dense_strides(t->sizes, t->rank, strides);
    to.sizes = t->sizes, to.strides = strides, to.rank = t->rank;
    return c->services->copy(&to, t);
}

/* (self, shape) */
static int reshape_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = of_sizes(c, 1);
    return !o || infer(c, t, o->sizes, o->rank) ? TGX_FAILED : shaped(o, t);
}
TGX_KERNEL(reshape, reshape_shape, copied_run, TGX_WINDOW)

/* (self, start_dim, end_dim) */
static int flatten_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (tgx_wrap_arg(c, 1, t->rank) || tgx_wrap_arg(c, 2, t->rank)) return TGX_FAILED;
    int first = (int)tgx_int(c, 1), last = (int)tgx_int(c, 2), n = first + 1;
    if (first > last)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "flatten() has invalid args: start_dim cannot come after end_dim, got %d and %d", first, last);
    if (first == last && t->rank) return tgx_same(c, 0, 0), 0; /* as PyTorch: the tensor itself */
    tgx_output *o = tgx_view(c, 0, 0, t->rank ? t->rank - (last - first) : 1);
    for (int i = 0; i < first; i++) o->sizes[i] = t->sizes[i];
    if (tgx_counted(c, t->sizes + first, t->rank ? last - first + 1 : 0, &o->sizes[first], "flatten")) return TGX_FAILED;
    for (int i = last + 1; i < t->rank; i++) o->sizes[n++] = t->sizes[i];
    return shaped(o, t);
}
TGX_KERNEL(flatten, flatten_shape, copied_run, TGX_WINDOW)

static int ravel_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = tgx_view(c, 0, 0, 1);
    o->sizes[0] = t->count;
    shaped(o, t);
    if (o->strides && t->count > 1 && o->strides[0] != 1) o->origin = TGX_FRESH, o->strides = NULL; /* as PyTorch: dense */
    return 0;
}
TGX_KERNEL(ravel, ravel_shape, copied_run, TGX_WINDOW)

#define APART "unflatten got an unexpected error: "

/* Which of the sizes is -1, which becomes 1 for now; -1 when none is. */
static int find_unknown(tgx_call *c, int64_t *sizes, int n, int *unknown) {
    *unknown = -1;
    for (int i = 0; i < n; i++) {
        if (sizes[i] < -1 || (sizes[i] == -1 && *unknown >= 0))
            return tgx_fail(c, TGX_RUNTIME_ERROR, APART "sizes %s may hold one -1 and nothing below it", tgx_sizes_text(sizes, n));
        if (sizes[i] == -1) *unknown = i, sizes[i] = 1;
    }
    return 0;
}

/* (self, dim, sizes) */
static int unflatten_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const int64_t *given;
    int64_t known, *sizes;
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    int dim = (int)tgx_int(c, 1), n = tgx_numbers(c, 2, &given), unknown;
    if (n < 0) return TGX_FAILED;
    if (n == 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "unflatten: sizes must be non-empty; give the sizes that the dimension is taken apart into");
    if (t->rank == 0 || t->rank - 1 + n > TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, APART "a tensor of %d dimensions cannot have one taken apart into %d", t->rank, n);
    tgx_output *o = tgx_view(c, 0, 0, t->rank - 1 + n);
    for (int i = 0; i < t->rank; i++) o->sizes[i < dim ? i : i + n - 1] = t->sizes[i];
    sizes = o->sizes + dim;
    for (int i = 0; i < n; i++) sizes[i] = given[i];
    if (find_unknown(c, sizes, n, &unknown) || tgx_counted(c, sizes, n, &known, "unflatten")) return TGX_FAILED;
    if (unknown >= 0 && known == 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, APART "beside a size 0 the one that is -1 can be anything");
    if (unknown < 0 ? known != t->sizes[dim] : t->sizes[dim] % known)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "unflatten: Provided sizes %s don't multiply up to the size of dim %d (%lld) in the input "
                        "tensor", tgx_sizes_text(given, n), dim, (long long)t->sizes[dim]);
    if (unknown >= 0) sizes[unknown] = t->sizes[dim] / known;
    return shaped(o, t);
}
TGX_KERNEL(unflatten, unflatten_shape, copied_run, TGX_WINDOW)

/* (self, memory_format): self where it lies so already */
static int contiguous_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t step = 1;
    int same = 1, rank = tgx_given(c, 1) ? (int)tgx_int(c, 1) + 2 : 0; /* 4 for channels_last, 5 for channels_last_3d */
    if (rank < TGX_CHANNELS_LAST + 2) {
        if (t->flags & TGX_CONTIGUOUS) tgx_same(c, 0, 0);
        else tgx_like(c, 0, t, t->dtype);
        return 0;
    }
    if (t->rank != rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "required rank %d tensor to use channels_last%s format: this one has %d dimensions",
                        rank, rank == 5 ? "_3d" : "", t->rank);
    tgx_output *o = tgx_like(c, 0, t, t->dtype);
    o->strides = o->dims;
    for (int k = 0; k < rank; k++) { /* the channels, then the places from the last to the first, then the examples */
        int i = k == 0 ? 1 : k < rank - 1 ? rank - k : 0;
        o->strides[i] = step;
        same &= t->sizes[i] == 1 || t->strides[i] == step;
        if (tgx_times(step, t->sizes[i], &step)) step = INT64_MAX; /* which no memory can hold: the caller says so */
    }
    if (same || t->count == 0) tgx_same(c, 0, 0);
    return 0;
}

static int contiguous_run(tgx_call *c) { return c->services->copy(tgx_out(c, 0), tgx_in(c, 0)); }
TGX_KERNEL(contiguous, contiguous_shape, contiguous_run, TGX_WINDOW)

/* ---- repeated ---------------------------------------------------------------------------------------------------- */

static int expand_bad(tgx_call *c, const tgx_tensor *t, const tgx_output *o, int i, int k) {
    if (k < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "The expanded size of the tensor (%lld) isn't allowed in a leading, non-existing dimension %d",
                        (long long)o->sizes[i], i);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
                    "dimension %d. Target sizes: %s. Tensor sizes: %s", (long long)o->sizes[i], (long long)t->sizes[k], i,
                    tgx_sizes_text(o->sizes, o->rank), tgx_shape_text(t));
}

/* (self, size, implicit) */
static int expand_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = of_sizes(c, 1);
    int64_t count;
    if (!o) return TGX_FAILED;
    int n = o->rank, added = n - t->rank;
    if (added < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "expand(%s, size=%s): the number of sizes provided (%d) must be greater or equal to the "
                        "number of dimensions in the tensor (%d)", tgx_shape_text(t), tgx_sizes_text(o->sizes, n), n, t->rank);
    for (int i = n - 1; i >= 0; i--) { /* from the last one on: a new dimension of size 1 steps over all that follow */
        int k = i - added;
        o->strides[i] = 0;
        if (k < 0) {
            if (o->sizes[i] < 0) return expand_bad(c, t, o, i, k);
            if (o->sizes[i] == 1 && i < n - 1 && t->rank && tgx_times(o->sizes[i + 1], o->strides[i + 1], &o->strides[i])) o->strides[i] = INT64_MAX;
            continue;
        }
        if (o->sizes[i] == -1) o->sizes[i] = t->sizes[k];
        if (o->sizes[i] == t->sizes[k]) o->strides[i] = t->strides[k];
        else if (t->sizes[k] != 1) return expand_bad(c, t, o, i, k);
    }
    return tgx_counted(c, o->sizes, n, &count, "expand");
}
TGX_KERNEL(expand, expand_shape, NULL, TGX_WINDOW)

/* ---- another dtype over the same bytes --------------------------------------------------------------------------- */

#define SIZES "to view %s as %s (different element sizes)"

static int divisible(tgx_call *c, const char *what, int64_t value, int64_t ratio) {
    if (value % ratio == 0) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "self.%s must be divisible by %lld " SIZES ", but got %lld", what, (long long)ratio,
                    tgx_dtype_title(tgx_in(c, 0)->dtype), tgx_dtype_title((int)tgx_int(c, 1)), (long long)value);
}

/* Elements that are `ratio` times larger: all but the last stride and size count in them. */
static int larger(tgx_call *c, const tgx_tensor *t, tgx_output *o, int64_t ratio) {
    char name[32];
    int last = t->rank - 1;
    int64_t nbytes;
    if (divisible(c, "size(-1)", t->sizes[last], ratio) || divisible(c, "storage_offset()", c->services->offset(t, &nbytes), ratio))
        return TGX_FAILED;
    for (int i = 0; i < last; i++) {
        if (t->strides[i] % ratio) {
            snprintf(name, sizeof name, "stride(%d)", i);
            return divisible(c, name, t->strides[i], ratio);
        }
        o->strides[i] /= ratio;
    }
    o->sizes[last] /= ratio;
    return 0;
}

/* (self, dtype) */
static int view_dtype_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int dtype = (int)tgx_int(c, 1), last = t->rank - 1;
    const char *was = tgx_dtype_title(t->dtype), *title = tgx_dtype_title(dtype);
    int64_t before = tgx_itemsize[t->dtype], after = tgx_itemsize[dtype], ratio = before / after;
    tgx_output *o = tgx_view(c, 0, 0, t->rank);
    o->dtype = (int8_t)dtype;
    for (int i = 0; i < t->rank; i++) tgx_take(o, i, t, i);
    if (before == after) return 0;
    if (t->rank == 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "self.dim() cannot be 0 " SIZES, was, title);
    if (t->strides[last] != 1 && (before > after || t->sizes[last] % (after / before) == 0))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "self.stride(-1) must be 1 " SIZES ", but got %lld", was, title, (long long)t->strides[last]);
    if (before < after) return larger(c, t, o, after / before);
    for (int i = 0; i < last; i++) o->strides[i] *= ratio;
    o->sizes[last] *= ratio;
    return 0;
}
TGX_KERNEL(view_dtype, view_dtype_shape, NULL, TGX_WINDOW)
