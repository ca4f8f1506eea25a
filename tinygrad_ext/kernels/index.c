/* self[i, j, ...] with tensors in place of ints: index, index_put and the derivative.
 *
 * The result has the dimensions before the index, the common shape of the index tensors, and the dimensions behind it; or
 * that shape in front, when the index tensors do not stand side by side. Masks become the coordinates of their true elements
 * first, so that any mixture of masks and numbers is one case. */
#include "advanced.h"
#include "iterate.h"
#include "make.h"
#include "masks.h"
#include <stdio.h>

/* ---- a list of index tensors ------------------------------------------------------------------------------------- */

typedef struct {
    int n, rank;                        /* dimensions that index tensors stand for; of their common shape */
    int64_t points, wide, masked;       /* wide: most elements of a mask; masked: most coordinates of one */
    int dims[TGX_MAX_DIMS];
    int64_t common[TGX_MAX_DIMS];
} indices;

static int count_row(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) {
    int64_t *total = (int64_t *)data[1];
    for (ptrdiff_t i = 0; i < n; i++) *total += data[0][i * s[0]] != 0;
    return 0;
}

static int64_t count_true(const tgx_tensor *mask) {
    int64_t total = 0, none[TGX_MAX_DIMS] = {0};
    tgx_iter it;
    if (mask->flags & TGX_CONTIGUOUS) return tgx_mask_loops()->count_true(mask->data, mask->dtype, mask->count);
    tgx_iter_begin(&it, mask->sizes, mask->rank);
    tgx_iter_add(&it, mask->data, mask->sizes, mask->strides, mask->rank, 1);
    tgx_iter_add(&it, (char *)&total, mask->sizes, none, mask->rank, 0);
    tgx_iter_plan(&it);
    tgx_iter_run(&it, count_row, NULL);
    return total;
}

/* A mask is counted by shape, and another thread may write to it afterwards. run keeps to the first count: the bit of a
 * mask with one element is in notes[0], the count of the others, which is the same for all, in notes[1]. */
static int64_t counted(tgx_call *c, const tgx_tensor *mask, int k, int again) {
    int64_t n, bit = (int64_t)((uint64_t)1 << k);
    if (again) return c->notes[0] & bit ? 1 : c->notes[1];
    n = count_true(mask);
    if (n == 1) c->notes[0] |= bit;
    else c->notes[1] = n;
    return n;
}

static int check_mask(tgx_call *c, const tgx_tensor *table, const tgx_tensor *mask, int at) {
    for (int i = 0; i < mask->rank; i++)
        if (mask->sizes[i] != table->sizes[at + i])
            return tgx_fail(c, TGX_INDEX_ERROR, "The shape of the mask %s at index %d does not match the shape of the indexed tensor "
                            "%s at index %d", tgx_shape_text(mask), i, tgx_shape_text(table), at + i);
    return 0;
}

static int refuse_shapes(tgx_call *c, const tgx_value *list) {
    char text[TGX_TEXT / 2] = "";
    size_t used = 0;
    for (int k = 0; k < list->n && used < sizeof text; k++) {
        const tgx_tensor *t = list->tensors[k];
        int64_t n;
        if (!t) continue;
        n = tgx_is_mask(t->dtype) ? counted(c, t, k, 1) : 0;
        for (int i = tgx_is_mask(t->dtype) ? t->rank : 1; i > 0 && used < sizeof text; i--)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                                     tgx_is_mask(t->dtype) ? tgx_sizes_text(&n, 1) : tgx_shape_text(t));
    }
    return tgx_fail(c, TGX_INDEX_ERROR, "shape mismatch: indexing tensors could not be broadcast together with shapes %s", text);
}

static int check_number(tgx_call *c, const tgx_tensor *table, const tgx_value *list) {
    int total = 0;
    for (int k = 0; k < list->n; k++) {
        const tgx_tensor *t = list->tensors[k];
        total += t && tgx_is_mask(t->dtype) ? t->rank : 1;
    }
    if (total <= table->rank) return 0;
    return tgx_fail(c, TGX_INDEX_ERROR, "too many indices for tensor of dimension %d (got %d)", table->rank, total);
}

/* The dimension of each index tensor, masks standing for as many as they have, and the shape that they have together. */
static int open_indices(tgx_call *c, indices *x, const tgx_tensor *table, const tgx_value *list, int again) {
    int at = 0;
    x->n = x->rank = 0, x->points = 1, x->wide = x->masked = 0;
    if (!again) c->notes[0] = c->notes[1] = 0;
    if (check_number(c, table, list)) return TGX_FAILED;
    for (int k = 0; k < list->n; k++) {
        const tgx_tensor *t = list->tensors[k];
        int64_t n;
        tgx_tensor row = {.sizes = &n, .rank = 1};
        if (!t) {
            at++;
            continue;
        }
        if (!tgx_is_mask(t->dtype)) {
            if (t->dtype != TGX_I32 && t->dtype != TGX_I64)
                return tgx_fail(c, TGX_INDEX_ERROR, "tensors used as indices must be long, int, byte or bool tensors, got %s. Convert "
                                "it with .long().", tgx_dtype_title(t->dtype));
            if (tgx_broadcast(x->common, &x->rank, t)) return refuse_shapes(c, list);
            x->dims[x->n++] = at++;
            continue;
        }
        if (check_mask(c, table, t, at)) return TGX_FAILED;
        n = counted(c, t, k, again);
        if (t->rank && tgx_broadcast(x->common, &x->rank, &row)) return refuse_shapes(c, list);
        x->wide = t->count > x->wide ? t->count : x->wide;
        x->masked = t->rank * n > x->masked ? t->rank * n : x->masked;
        for (int i = 0; i < t->rank; i++) x->dims[x->n++] = at++;
    }
    for (int i = 0; i < x->rank; i++) x->points *= x->common[i];
    return 0;
}

/* Scratch: offsets, one index tensor in the common shape, coordinates of a mask, and the mask. */
static int64_t room(const indices *x) { return (2 * x->points + x->masked) * (int64_t)sizeof(int64_t) + x->wide; }

/* Shape of table[indices]. */
static int picked(tgx_call *c, const indices *x, const tgx_tensor *table, int64_t *sizes, int *rank) {
    int first = x->dims[x->n - 1] - x->dims[0] == x->n - 1 ? x->dims[0] : 0, k = 0;
    *rank = 0;
    if (table->rank - x->n + x->rank > TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "an indexed tensor would have more than %d dimensions", TGX_MAX_DIMS);
    for (int i = 0; i <= table->rank; i++) {
        if (i == first)
            for (int j = 0; j < x->rank; j++) sizes[(*rank)++] = x->common[j];
        if (k < x->n && x->dims[k] == i) k++;
        else if (i < table->rank) sizes[(*rank)++] = table->sizes[i];
    }
    return 0;
}

static tgx_tensor vector(void *data, int64_t *n, int dtype) {
    static int64_t one = 1;
    return (tgx_tensor){.data = data, .sizes = n, .strides = &one, .count = *n, .rank = 1, .dtype = (int8_t)dtype,
                        .flags = TGX_CONTIGUOUS};
}

/* Contiguous numbers in the common shape; `into` is room for them. */
static const int64_t *common_numbers(tgx_call *c, indices *x, const tgx_tensor *t, int64_t *into) {
    int64_t strides[TGX_MAX_DIMS], step = 1;
    tgx_tensor to = {.data = (char *)into, .sizes = x->common, .strides = strides, .count = x->points, .rank = x->rank,
                     .dtype = TGX_I64, .flags = TGX_CONTIGUOUS};
    if (t->dtype == TGX_I64 && t->flags & TGX_CONTIGUOUS && tgx_same_sizes(t, &to)) return (const int64_t *)t->data;
    for (int i = x->rank - 1; i >= 0; i--) strides[i] = step, step *= x->common[i];
    if (x->points) c->services->copy(&to, t);
    return into;
}

/* The coordinates of a mask's elements, a row for each dimension. */
static int64_t *coordinates(tgx_call *c, const tgx_tensor *mask, int64_t n, int64_t *into, char *spare) {
    const char *data = mask->data;
    if (!(mask->flags & TGX_CONTIGUOUS)) {
        int64_t strides[TGX_MAX_DIMS], step = 1;
        tgx_tensor to = *mask;
        for (int i = mask->rank - 1; i >= 0; i--) strides[i] = step, step *= mask->sizes[i];
        to.data = spare, to.strides = strides, to.flags = TGX_CONTIGUOUS;
        if (mask->count) c->services->copy(&to, mask);
        data = spare;
    }
    tgx_mask_loops()->true_coordinates(data, mask->dtype, mask->sizes, mask->rank, 0, mask->count, n, n, into);
    return into;
}

/* Offsets of all points, and the table's side of the plan. */
static int aim(tgx_call *c, indices *x, tgx_picks *p, const tgx_tensor *table, const tgx_value *list) {
    int64_t *offset = c->scratch, *into = offset + x->points, *rows = into + x->points;
    int d = 0, flags = TGX_NEGATIVE | TGX_FIRST;
    p->points = x->points;
    tgx_picks_lay(p, table, x->dims, x->n);
    for (int k = 0; k < list->n; k++) {
        const tgx_tensor *t = list->tensors[k];
        int mask = t && tgx_is_mask(t->dtype);
        int64_t n = mask ? counted(c, t, k, 1) : 0;
        if (!t) continue;
        if (mask) coordinates(c, t, n, rows, (char *)(rows + x->masked));
        for (int i = 0; i < (mask ? t->rank : 1); i++, d++, flags = TGX_NEGATIVE) {
            tgx_tensor row = vector(rows + i * n, &n, TGX_I64);
            if (tgx_picks_aim(c, p, offset, table, x->dims[d], common_numbers(c, x, mask ? &row : t, into), flags, TGX_OUT_INDEX,
                              ""))
                return TGX_FAILED;
        }
    }
    return 0;
}

static int has_mask(const tgx_value *list) {
    for (int k = 0; k < list->n; k++)
        if (list->tensors[k] && tgx_is_mask(list->tensors[k]->dtype)) return 1;
    return 0;
}

/* The only index, a mask as large as the table, or NULL. */
static const tgx_tensor *lone_mask(const tgx_tensor *table, const tgx_value *list) {
    const tgx_tensor *m = list->n == 1 ? list->tensors[0] : NULL;
    return m && tgx_is_mask(m->dtype) && m->rank == table->rank && m->rank ? m : NULL;
}

/* The only index, numbers for the first dimension, which is what most are, or NULL. */
static const tgx_tensor *first_only(const tgx_tensor *table, const tgx_value *list) {
    const tgx_tensor *t = list->n == 1 && table->rank ? list->tensors[0] : NULL;
    return t && t->dtype == TGX_I64 && t->flags & TGX_CONTIGUOUS ? t : NULL;
}

/* ---- index: (self, indices) -------------------------------------------------------------------------------------- */

static int index_first(tgx_call *c, const tgx_tensor *x, const tgx_tensor *i) {
    int rank = i->rank + x->rank - 1;
    tgx_output *o;
    if (rank > TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "an indexed tensor would have more than %d dimensions", TGX_MAX_DIMS);
    o = tgx_fresh(c, 0, rank, x->dtype);
    for (int d = 0; d < i->rank; d++) o->dims[d] = i->sizes[d];
    for (int d = 1; d < x->rank; d++) o->dims[i->rank + d - 1] = x->sizes[d];
    c->scratch_bytes = tgx_offsets_room(i->count);
    return 0;
}

static int index_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *only = first_only(x, &c->args[1]), *mask;
    indices all;
    if (only) return index_first(c, x, only);
    if (c->meta && has_mask(&c->args[1]))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "aten::index: how many elements a mask picks depends on its values, and meta "
                        "tensors have none");
    if ((mask = lone_mask(x, &c->args[1]))) {
        if (check_mask(c, x, mask, 0)) return TGX_FAILED;
        c->scratch_bytes = mask->flags & TGX_CONTIGUOUS ? 0 : mask->count;
        tgx_need_dense(c, 0);
        tgx_fresh(c, 0, 1, x->dtype)->dims[0] = count_true(mask);
        return 0;
    }
    if (open_indices(c, &all, x, &c->args[1], 0)) return TGX_FAILED;
    if (all.n == 0) {
        tgx_writes(c, 0, 0);
        return 0;
    }
    c->scratch_bytes = room(&all);
    return picked(c, &all, x, tgx_fresh(c, 0, 0, x->dtype)->dims, &c->outputs[0].rank);
}

static int index_masked(tgx_call *c, const tgx_tensor *mask) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_tensor *out = tgx_out(c, 0);
    const char *data = mask->data;
    if (!(mask->flags & TGX_CONTIGUOUS)) {
        tgx_tensor to = *x;
        to.data = c->scratch, to.dtype = mask->dtype;
        if (mask->count) c->services->copy(&to, mask);
        data = c->scratch;
    }
    tgx_compress(c, out->data, x->data, (const uint8_t *)data, mask->count, out->count, tgx_itemsize[x->dtype]);
    return 0;
}

static int index_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *only = first_only(x, &c->args[1]), *mask = lone_mask(x, &c->args[1]);
    tgx_picks p;
    indices all;
    if (only) return tgx_picks_read_along(c, x, 0, only, TGX_NEGATIVE, TGX_OUT_INDEX, "index", tgx_out(c, 0));
    if (mask) return index_masked(c, mask);
    if (open_indices(c, &all, x, &c->args[1], 1)) return TGX_FAILED;
    if (all.n == 0) return 0;
    if (aim(c, &all, &p, x, &c->args[1])) return TGX_FAILED;
    return tgx_picks_read(c, &p, tgx_out(c, 0));
}
TGX_KERNEL(index, index_shape, index_run, TGX_MAY_READ | TGX_NATURAL)

/* ---- index_put: (self, indices, values, accumulate) -------------------------------------------------------------- */

typedef struct { int rank; int64_t count, sizes[TGX_MAX_DIMS]; } shape_t;

static int is_of(const tgx_tensor *t, const shape_t *s) {
    return t->rank == s->rank && !memcmp(t->sizes, s->sizes, (size_t)s->rank * sizeof(int64_t));
}

/* Where the indices, opened in x, point to in the table: the shape that the values must broadcast to. */
static int target(tgx_call *c, const indices *x, const tgx_tensor *table, shape_t *s) {
    s->rank = table->rank, s->count = 1;
    if (x->n == 0) memcpy(s->sizes, table->sizes, (size_t)table->rank * sizeof(int64_t));
    else if (picked(c, x, table, s->sizes, &s->rank)) return TGX_FAILED;
    for (int i = 0; i < s->rank; i++) s->count *= s->sizes[i];
    return 0;
}

static int check_values(tgx_call *c, const tgx_tensor *v, const shape_t *s) {
    for (int i = 0; i < v->rank; i++) {
        int k = s->rank - v->rank + i;
        if (k >= 0 && (v->sizes[i] == 1 || v->sizes[i] == s->sizes[k])) continue;
        return tgx_fail(c, TGX_RUNTIME_ERROR, "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of "
                        "shape %s", tgx_shape_text(v), tgx_sizes_text(s->sizes, s->rank));
    }
    return 0;
}

/* Bytes before the values in scratch. */
static int64_t behind(const indices *x) { return (room(x) + 15) & ~(int64_t)15; }

static int put_shape(tgx_call *c, const tgx_tensor *table, int list, int values) {
    const tgx_tensor *v = tgx_in(c, values);
    indices x;
    shape_t s;
    if (c->meta && has_mask(&c->args[list])) return 0;
    if (open_indices(c, &x, table, &c->args[list], 0) || target(c, &x, table, &s)) return TGX_FAILED;
    if (!(v->count == 1 && has_mask(&c->args[list])) && check_values(c, v, &s)) return TGX_FAILED; /* as masked_fill */
    c->scratch_bytes = behind(&x);
    if (is_of(v, &s)) tgx_need_dense(c, values);
    else if (v->count != 1) c->scratch_bytes += s.count * tgx_itemsize[v->dtype];
    return 0;
}

/* Values as the plan wants them: dense, or one element for all. */
static const char *dense_values(tgx_call *c, const indices *x, const tgx_tensor *v, shape_t *s) {
    int64_t strides[TGX_MAX_DIMS], step = 1;
    tgx_tensor to = {.data = (char *)c->scratch + behind(x), .sizes = s->sizes, .strides = strides, .count = s->count,
                     .rank = s->rank, .dtype = v->dtype, .flags = TGX_CONTIGUOUS};
    if (v->count == 1 || is_of(v, s)) return v->data;
    for (int i = s->rank - 1; i >= 0; i--) strides[i] = step, step *= s->sizes[i];
    if (s->count) c->services->copy(&to, v);
    return to.data;
}

static int put_run(tgx_call *c, tgx_tensor *table, int list, int values, int move) {
    const tgx_tensor *v = tgx_in(c, values);
    indices x;
    shape_t s;
    tgx_picks p;
    const char *from;
    if (open_indices(c, &x, table, &c->args[list], 1) || target(c, &x, table, &s)) return TGX_FAILED;
    if (x.n == 0) return c->services->copy(table, v);
    if (aim(c, &x, &p, table, &c->args[list])) return TGX_FAILED;
    from = dense_values(c, &x, v, &s);
    tgx_picks_write(c, &p, from, v->count == 1 ? 1 : s.count, move);
    return 0;
}

static int index_put_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *v = tgx_in(c, 2);
    if (x->dtype != v->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Index put requires the source and destination dtypes match, got %s for the destination "
                        "and %s for the source.", tgx_dtype_title(x->dtype), tgx_dtype_title(v->dtype));
    tgx_writes(c, 0, 0);
    tgx_warn_repeated(c, "index_put_", "tensor[indices] = tensor");
    return put_shape(c, x, 1, 2);
}
static int index_put_run(tgx_call *c) { return put_run(c, tgx_out(c, 0), 1, 2, tgx_int(c, 3) ? TGX_ADD : TGX_WRITE); }
TGX_KERNEL(index_put, index_put_shape, index_put_run, TGX_MAY_READ | TGX_REPEATS_INPLACE)

/* (grad, size, indices): zeros with grad added where the indices read it. */
static int index_backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0);
    if (tgx_sized(c, 0, 1, g->dtype)) return TGX_FAILED;
    tgx_tensor table = {.sizes = c->outputs[0].dims, .rank = c->outputs[0].rank, .dtype = g->dtype};
    return put_shape(c, &table, 2, 0);
}

static int index_backward_run(tgx_call *c) {
    tgx_tensor *out = tgx_out(c, 0);
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    return put_run(c, out, 2, 0, TGX_ADD);
}
TGX_KERNEL(index_backward, index_backward_shape, index_backward_run, TGX_MAY_READ)
