/* Views that show parts of a tensor: one index, a range, a diagonal, windows, all pieces of a split. They have a shape and no
 * run: the caller makes the view of what shape says, and putback.c asks the same shape where a gradient belongs. */
#include "extent.h"
#include "tgx.h"
#include "view.h"
#include "window.h"

/* Result k: `length` elements along dim, from `start` on; bounds are the caller's business. */
static void part(tgx_call *c, int k, int dim, int64_t start, int64_t length, int64_t step) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = tgx_view(c, k, 0, t->rank);
    for (int i = 0; i < t->rank; i++) o->sizes[i] = t->sizes[i], o->strides[i] = t->strides[i];
    o->sizes[dim] = length;
    /* a step beyond the end may be huge: what is never stepped over keeps its stride */
    if (tgx_times(t->strides[dim], step, &o->strides[dim])) o->strides[dim] = t->strides[dim];
    o->offset = length ? start * t->strides[dim] : 0;
}

/* Result k: element `index` of dim. */
static void without(tgx_call *c, int k, int dim, int64_t index) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_output *o = tgx_view(c, k, 0, t->rank - 1);
    for (int i = 0, n = 0; i < t->rank; i++)
        if (i != dim) o->sizes[n] = t->sizes[i], o->strides[n++] = t->strides[i];
    o->offset = t->count ? index * t->strides[dim] : 0;
}

/* ---- one index, a range ------------------------------------------------------------------------------------------ */

/* (self, dim, index) */
static int select_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (t->rank == 0)
        return tgx_fail(c, TGX_INDEX_ERROR, "select() cannot be applied to a 0-dim tensor: it has no dimension to take an index of");
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    int dim = (int)tgx_int(c, 1);
    int64_t index = tgx_int(c, 2), size = t->sizes[dim];
    if (index < -size || index >= size)
        return tgx_fail(c, TGX_INDEX_ERROR, "select(): index %lld out of range for tensor of size %s at dimension %d", (long long)index,
                        tgx_shape_text(t), dim);
    without(c, 0, dim, index < 0 ? index + size : index);
    return 0;
}
TGX_KERNEL(select, select_shape, NULL, TGX_WINDOW)

/* (self, dim, start, length) */
static int narrow_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (t->rank == 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "narrow() cannot be applied to a 0-dim tensor.");
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    int dim = (int)tgx_int(c, 1);
    int64_t start = tgx_int(c, 2), length = tgx_int(c, 3), size = t->sizes[dim];
    if (length < 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "narrow(): length must be non-negative. Got %lld.", (long long)length);
    if (start < -size || start > size)
        return tgx_fail(c, TGX_INDEX_ERROR, "narrow(): start out of range (expected to be in range of [%lld, %lld], but got %lld)",
                        (long long)-size, (long long)size, (long long)start);
    if (start < 0) start += size;
    if (length > size - start)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start,
                        (long long)length, (long long)size);
    part(c, 0, dim, start, length, 1);
    return 0;
}
TGX_KERNEL(narrow, narrow_shape, NULL, TGX_WINDOW)

/* A slice bound as Python reads it: negative counts from the end, outside means up to the end. */
static int64_t clamped(const tgx_call *c, int i, int64_t size, int64_t missing) {
    if (!tgx_given(c, i)) return missing;
    int64_t v = tgx_int(c, i);
    if (v < 0) v += size;
    return v < 0 ? 0 : v > size ? size : v;
}

/* (self, dim, start, end, step) */
static int slice_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t step = tgx_int(c, 4);
    if (t->rank == 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "slice() cannot be applied to a 0-dim tensor.");
    if (step <= 0) return tgx_fail(c, TGX_VALUE_ERROR, "step must be greater than zero");
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    int dim = (int)tgx_int(c, 1);
    int64_t start = clamped(c, 2, t->sizes[dim], 0), end = clamped(c, 3, t->sizes[dim], t->sizes[dim]);
    /* not (end - start + step - 1): that could overflow */
    part(c, 0, dim, start, end > start ? (end - start - 1) / step + 1 : 0, step);
    return 0;
}
TGX_KERNEL(slice, slice_shape, NULL, TGX_WINDOW)

/* ---- several parts ----------------------------------------------------------------------------------------------- */

static int split_dim(tgx_call *c, int i, const char *name) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (t->rank) return tgx_wrap_arg(c, i, t->rank);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s expects at least a 1-dimensional tensor. A 0-dim tensor has nothing to cut; unsqueeze it "
                    "first.", name);
}

/* `count` parts of `each` elements; what is left over makes the last ones shorter. */
static int pieces(tgx_call *c, int dim, int64_t each, int64_t count) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t start = 0, size = t->sizes[dim], length;
    int code = tgx_results(c, count, t->rank);
    if (code) return code;
    for (int k = 0; k < count; k++, start += length) {
        length = each < size - start ? each : size - start;
        part(c, k, dim, start, length, 1);
    }
    return 0;
}

/* (self, split_size, dim) */
static int split_shape(tgx_call *c) {
    if (split_dim(c, 2, "split")) return TGX_FAILED;
    int dim = (int)tgx_int(c, 2);
    int64_t each = tgx_int(c, 1), size = tgx_in(c, 0)->sizes[dim];
    if (each < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "split expects split_size be non-negative, but got split_size=%lld", (long long)each);
    if (each == 0 && size)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
                        (long long)size);
    return pieces(c, dim, each, size ? (size - 1) / each + 1 : 1);
}
TGX_KERNEL(split, split_shape, NULL, TGX_WINDOW)

/* (self, chunks, dim) */
static int chunk_shape(tgx_call *c) {
    if (split_dim(c, 2, "chunk")) return TGX_FAILED;
    int dim = (int)tgx_int(c, 2);
    int64_t chunks = tgx_int(c, 1), size = tgx_in(c, 0)->sizes[dim];
    if (chunks <= 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "chunk expects `chunks` to be greater than 0, got: %lld", (long long)chunks);
    if (size == 0) return pieces(c, dim, 0, chunks);
    int64_t each = (size - 1) / chunks + 1;
    return pieces(c, dim, each, (size - 1) / each + 1);
}
TGX_KERNEL(chunk, chunk_shape, NULL, TGX_WINDOW)

/* (self, split_sizes, dim) */
static int split_sizes_shape(tgx_call *c) {
    if (split_dim(c, 2, "split_with_sizes")) return TGX_FAILED;
    int dim = (int)tgx_int(c, 2), n = c->args[1].n, code;
    const int64_t *lengths = c->args[1].ints;
    int64_t size = tgx_in(c, 0)->sizes[dim], start = 0;
    for (int k = 0; k < n && start >= 0; k++) {
        if (lengths[k] < 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "split_with_sizes expects split_sizes have only non-negative entries, but got "
                            "split_sizes=%s", tgx_sizes_text(lengths, n));
        start = lengths[k] > size - start ? -1 : start + lengths[k];
    }
    if (start != size)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension "
                        "%d), but got split_sizes=%s", (long long)size, dim, tgx_sizes_text(lengths, n));
    if ((code = tgx_results(c, n, tgx_in(c, 0)->rank))) return code;
    start = 0;
    for (int k = 0; k < n; start += lengths[k++]) part(c, k, dim, start, lengths[k], 1);
    return 0;
}
TGX_KERNEL(split_sizes, split_sizes_shape, NULL, TGX_WINDOW)

/* (self, dim) */
static int unbind_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int code;
    if (t->rank == 0)
        return tgx_fail(c, TGX_INDEX_ERROR, "Dimension specified as %lld but tensor has no dimensions", (long long)tgx_int(c, 1));
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    int dim = (int)tgx_int(c, 1);
    if ((code = tgx_results(c, t->sizes[dim], t->rank))) return code;
    for (int k = 0; k < t->sizes[dim]; k++) without(c, k, dim, k);
    return 0;
}
TGX_KERNEL(unbind, unbind_shape, NULL, TGX_WINDOW)

/* ---- diagonals and windows --------------------------------------------------------------------------------------- */

/* (self, offset, dim1, dim2): the elements whose index in dim2 is that in dim1 plus offset, along a new last dimension */
static int diagonal_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t offset = tgx_int(c, 1), d1 = tgx_int(c, 2), d2 = tgx_int(c, 3), rows, columns;
    int n = 0;
    if (tgx_wrap(c, &d1, t->rank) || tgx_wrap(c, &d2, t->rank)) return TGX_FAILED;
    if (d1 == d2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "diagonal dimensions cannot be identical %lld, %lld", (long long)tgx_int(c, 2),
                        (long long)tgx_int(c, 3));
    tgx_output *o = tgx_view(c, 0, 0, t->rank - 1);
    for (int i = 0; i < t->rank; i++)
        if (i != d1 && i != d2) o->sizes[n] = t->sizes[i], o->strides[n++] = t->strides[i];
    rows = offset < 0 ? t->sizes[d1] + offset : t->sizes[d1];
    columns = offset > 0 ? t->sizes[d2] - offset : t->sizes[d2];
    int64_t length = rows < columns ? rows : columns;
    o->sizes[n] = length > 0 ? length : 0;
    o->strides[n] = t->strides[d1] + t->strides[d2];
    if (length > 0 && t->count) o->offset = offset >= 0 ? offset * t->strides[d2] : -offset * t->strides[d1];
    return 0;
}
TGX_KERNEL(diagonal, diagonal_shape, NULL, TGX_WINDOW)

/* (self, dimension, size, step): all windows of `size` elements, `step` apart; the window is the last dimension */
static int unfold_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    int dim = (int)tgx_int(c, 1), n = t->rank;
    int64_t size = tgx_int(c, 2), step = tgx_int(c, 3), room = n ? t->sizes[dim] : 1, stride = n ? t->strides[dim] : 1;
    if (size < 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "size is %lld but must be >= 0", (long long)size);
    if (size > room)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "maximum size for tensor at dimension %d is %lld but size is %lld", dim, (long long)room,
                        (long long)size);
    if (step <= 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "step is %lld but must be > 0", (long long)step);
    if (n == TGX_MAX_DIMS) return tgx_fail(c, TGX_RUNTIME_ERROR, "tensor has too many (>%d) dims: %d", TGX_MAX_DIMS, n + 1);
    tgx_output *o = tgx_view(c, 0, 0, n + 1);
    for (int i = 0; i < n; i++) o->sizes[i] = t->sizes[i], o->strides[i] = t->strides[i];
    if (n) {
        o->sizes[dim] = (room - size) / step + 1;
        if (tgx_times(stride, step, &o->strides[dim])) o->strides[dim] = stride; /* of a single window */
    }
    o->sizes[n] = size, o->strides[n] = stride;
    return 0;
}
TGX_KERNEL(unfold, unfold_shape, NULL, TGX_WINDOW)

/* ---- any window -------------------------------------------------------------------------------------------------- */

/* (self, size, stride, storage_offset) */
static int as_strided_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const int64_t *sizes, *strides;
    int64_t room, start = c->services->offset(t, &room), offset = tgx_given(c, 3) ? tgx_int(c, 3) : start;
    int n = tgx_numbers(c, 1, &sizes), m = tgx_numbers(c, 2, &strides);
    if (n < 0 || m < 0) return TGX_FAILED;
    if (n != m)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "mismatch in length of strides and shape: as_strided() got %d sizes and %d strides", n, m);
    tgx_output *o = tgx_view(c, 0, 0, n);
    for (int i = 0; i < n; i++) {
        o->sizes[i] = sizes[i], o->strides[i] = strides[i];
        if (sizes[i]) continue;
        offset = offset < start ? offset : start; /* no element, so nothing points outside */
        room = TGX_ANY_ROOM;
    }
    o->offset = offset - start;
    return tgx_inside(c, sizes, strides, n, offset, t->dtype, room, "as_strided");
}
TGX_KERNEL(as_strided, as_strided_shape, NULL, TGX_WINDOW)
