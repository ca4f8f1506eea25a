/* Kernels that put tensors together: cat and stack. A small contiguous piece goes row by row through memcpy, any other
 * through the general copy, whose plan would cost a small piece more than its bytes. */
#include "channels.h"
#include "part.h"

enum { PAIRS_GRAIN = 65536 };

/* Copy t to the places start .. start + width of out's dimension dim; t may lack that dimension (stack). */
static int put(tgx_call *c, const tgx_tensor *out, const tgx_tensor *t, int dim, int64_t start, int64_t width) {
    tgx_part to, from;
    if (t->count == 0) return 0;
    if (t->flags & out->flags & TGX_CONTIGUOUS && t->dtype == out->dtype && t->count <= TGX_SMALL) {
        int64_t inner = out->strides[dim] * tgx_itemsize[t->dtype], row = inner * width, pitch = inner * out->sizes[dim];
        char *at = out->data + start * inner, *end = t->data + t->count * tgx_itemsize[t->dtype];
#define ROWS(T) for (const char *x = t->data; x < end; x += sizeof(T), at += pitch) memcpy(at, x, sizeof(T)); return 0
        switch (row) {                  /* single elements: no call for each */
        case 1: ROWS(uint8_t);
        case 2: ROWS(uint16_t);
        case 4: ROWS(uint32_t);
        case 8: ROWS(uint64_t);
        default: for (const char *x = t->data; x < end; x += row, at += pitch) memcpy(at, x, (size_t)row); return 0;
        }
    }
    tgx_part_of(&to, out), tgx_part_cut(&to, dim, start, width);
    tgx_part_of(&from, t);
    if (t->rank < out->rank) tgx_part_insert(&from, dim);
    return c->services->copy(&to.t, &from.t);
}

/* ---- cat: (tensors, dim) ----------------------------------------------------------------------------------------- */

/* The dtype that holds elements of both, or TGX_FAILED. */
static int joined(tgx_call *c, int a, int b) {
    int dtype = tgx_promote(a, b);
    return dtype < 0 || (tgx_is_complex(dtype) && (tgx_is_natural(a) || tgx_is_natural(b))) ? tgx_fail(c, TGX_RUNTIME_ERROR, TGX_NO_PROMOTION, tgx_dtype_title(a), tgx_dtype_title(b)) : dtype;
}

/* cat passes over tensors of shape (0,), whatever the shape of the others. */
static inline int skipped(const tgx_tensor *t) { return t->rank == 1 && t->sizes[0] == 0; }

static int check_cat(tgx_call *c, const tgx_tensor *first, const tgx_tensor *t, int dim, int at) {
    if (t->rank != first->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Tensors must have same number of dimensions: got %d and %d. cat(): tensor number %d in "
                        "the list has shape %s, the first %s", first->rank, t->rank, at, tgx_shape_text(t), tgx_shape_text(first));
    for (int i = 0; i < t->rank; i++)
        if (i != dim && t->sizes[i] != first->sizes[i])
            return tgx_fail(c, TGX_RUNTIME_ERROR, "Sizes of tensors must match except in dimension %d. Expected size %lld but got size "
                            "%lld for tensor number %d in the list.", dim, (long long)first->sizes[i], (long long)t->sizes[i], at);
    return 0;
}

static int cat_shape(tgx_call *c) {
    const tgx_value *v = &c->args[0];
    const tgx_tensor *t, *first = NULL;
    int64_t total = 0;
    double elements = 0;
    if (!v->n) return tgx_fail(c, TGX_VALUE_ERROR, "torch.cat(): expected a non-empty list of Tensors");
    int dtype = v->tensors[0]->dtype;
    for (int i = 0; i < v->n; i++) {
        t = v->tensors[i];
        if (t->rank == 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "zero-dimensional tensor (at position %d) cannot be concatenated. Use stack() or "
                            "unsqueeze it.", i);
        if (!first && !skipped(t)) first = t;
        if (t->dtype != dtype && (dtype = joined(c, dtype, t->dtype)) < 0) return TGX_FAILED;
    }
    if (!first) return tgx_like(c, 0, v->tensors[0], dtype), 0; /* nothing but passed-over tensors: any dim will do */
    if (tgx_wrap_arg(c, 1, first->rank)) return TGX_FAILED;
    int dim = (int)tgx_int(c, 1);
    for (int i = 0; i < v->n; i++) {
        t = v->tensors[i];
        if (skipped(t)) continue;
        if (t != first && check_cat(c, first, t, dim, i)) return TGX_FAILED;
        total += t->sizes[dim], elements += (double)t->count;
    }
    tgx_output *o = tgx_fresh(c, 0, first->rank, dtype);
    for (int i = 0; i < first->rank; i++) o->dims[i] = first->sizes[i];
    o->dims[dim] = total;
    if (elements > 1e9 && tgx_check_sizes(c, o->dims, o->rank, c->title)) return TGX_FAILED;
    for (int i = 0; i < v->n; i++)
        if (!skipped(v->tensors[i]) && !tgx_channels_inside(v->tensors[i])) return 0;
    return tgx_keep_channels(c, first);
}

static int cat_run(tgx_call *c) {
    const tgx_value *v = &c->args[0];
    const tgx_tensor *out = tgx_out(c, 0);
    int dim = (int)tgx_int(c, 1), code;
    int64_t start = 0;
    for (int i = 0; i < v->n; i++) {
        const tgx_tensor *t = v->tensors[i];
        if (skipped(t)) continue;
        if ((code = put(c, out, t, dim, start, t->sizes[dim]))) return code;
        start += t->sizes[dim];
    }
    return 0;
}
TGX_KERNEL(cat, cat_shape, cat_run, TGX_APART | TGX_JOINS | TGX_NATURAL)

/* ---- stack: (tensors, dim) --------------------------------------------------------------------------------------- */

static int stack_shape(tgx_call *c) {
    const tgx_value *v = &c->args[0];
    if (!v->n) return tgx_fail(c, TGX_RUNTIME_ERROR, "stack expects a non-empty TensorList");
    const tgx_tensor *first = v->tensors[0];
    int dtype = first->dtype;
    if (tgx_wrap_arg(c, 1, first->rank + 1)) return TGX_FAILED;
    if (first->rank == TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "stack(): a tensor has at most %d dimensions, and the entries have them all", TGX_MAX_DIMS);
    for (int i = 1; i < v->n; i++) {
        if (!tgx_same_sizes(v->tensors[i], first))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d",
                            tgx_shape_text(first), tgx_shape_text(v->tensors[i]), i);
        if ((dtype = joined(c, dtype, v->tensors[i]->dtype)) < 0) return TGX_FAILED;
    }
    int dim = (int)tgx_int(c, 1);
    tgx_output *o = tgx_fresh(c, 0, first->rank + 1, dtype);
    for (int i = 0; i < first->rank; i++) o->dims[i + (i >= dim)] = first->sizes[i];
    o->dims[dim] = v->n;
    int inside = dim == 0 && first->rank == 4 && !c->target; /* images, all channels_last: each as it lies */
    for (int i = 0; inside && i < v->n; i++) inside = tgx_channels_inside(v->tensors[i]);
    if (inside) {
        o->strides = o->dims + TGX_MAX_DIMS, o->strides[0] = first->count;
        tgx_channels_strides(first->sizes, 4, o->strides + 1);
    }
    return (double)first->count * v->n > 1e9 ? tgx_check_sizes(c, o->dims, o->rank, c->title) : 0;
}

typedef struct { const char *x, *y; char *to; int size; } pairs_t;

#define PAIRS(T) do { \
    const T *x = (const T *)p->x, *y = (const T *)p->y; \
    T *to = (T *)p->to; \
    for (ptrdiff_t i = lo; i < hi; i++) to[2 * i] = x[i], to[2 * i + 1] = y[i]; \
} while (0)

static int put_pairs(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const pairs_t *p = context;
    if (p->size == 4) PAIRS(uint32_t);
    else PAIRS(uint64_t);
    return 0;
}

/* Two tensors, element by element, in one pass: how complex numbers are put together. */
static int pairs(tgx_call *c, const tgx_tensor *out, const tgx_tensor *a, const tgx_tensor *b, int dim) {
    pairs_t p = {a->data, b->data, out->data, tgx_itemsize[out->dtype]};
    if (!(a->flags & b->flags & TGX_CONTIGUOUS) || a->dtype != out->dtype || b->dtype != out->dtype || out->strides[dim] != 1) return 0;
    if (p.size != 4 && p.size != 8) return 0;
    tgx_range(c, put_pairs, &p, a->count, PAIRS_GRAIN);
    return 1;
}

static int stack_run(tgx_call *c) {
    const tgx_value *v = &c->args[0];
    int code;
    if (v->n == 2 && pairs(c, tgx_out(c, 0), v->tensors[0], v->tensors[1], (int)tgx_int(c, 1))) return 0;
    for (int i = 0; i < v->n; i++)
        if ((code = put(c, tgx_out(c, 0), v->tensors[i], (int)tgx_int(c, 1), i, 1))) return code;
    return 0;
}
TGX_KERNEL(stack, stack_shape, stack_run, TGX_APART | TGX_JOINS | TGX_NATURAL)
