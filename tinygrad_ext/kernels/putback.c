/* Derivatives of views of parts: a gradient is put back where its elements were read, among zeros; and the same windows
 * written to in a copy, for programs that change no memory.
 *
 * Which window that is, the view's own shape says when it is asked about the result, so that a view and its derivative cannot
 * differ. Where windows overlap, an element that was read several times gets the sum, in index order and one thread. */
#include "extent.h"
#include "tgx.h"
#include "view.h"
#include "walk.h"
#include "window.h"

/* ---- sums into windows whose elements may share memory ----------------------------------------------------------- */

#define SAME(v) (v)
#define SUMS(T, WIDE, LOAD, STORE) \
    static void add_##T(char *o, ptrdiff_t os, const char *a, ptrdiff_t as, int64_t n) { \
        for (int64_t i = 0; i < n; i++, o += os, a += as) { \
            WIDE sum = LOAD(*(T *)o) + LOAD(*(const T *)a); \
            *(T *)o = STORE(sum); \
        } \
    } \
    static void share_##T(char *data, const int64_t *counts, int64_t n) { \
        T *p = (T *)data; \
        for (int64_t i = 0; i < n; i++) \
            if (counts[i] > 1) { WIDE part = LOAD(p[i]) / (WIDE)counts[i]; p[i] = STORE(part); } \
    }
typedef uint16_t f16;
typedef uint16_t bf16;
SUMS(f16, float, tgx_f16_to_f32, tgx_f32_to_f16)
SUMS(bf16, float, tgx_bf16_to_f32, tgx_f32_to_bf16)
SUMS(float, float, SAME, SAME)
SUMS(double, double, SAME, SAME)
SUMS(tgx_c64, tgx_c64, SAME, SAME)
SUMS(tgx_c128, tgx_c128, SAME, SAME)

typedef void (*add_fn)(char *, ptrdiff_t, const char *, ptrdiff_t, int64_t);
typedef void (*share_fn)(char *, const int64_t *, int64_t);
static const add_fn adds[TGX_NTYPES] = {
    [TGX_F16] = add_f16, [TGX_BF16] = add_bf16, [TGX_F32] = add_float, [TGX_F64] = add_double,
    [TGX_C64] = add_tgx_c64, [TGX_C128] = add_tgx_c128};
static const share_fn share_outs[TGX_NTYPES] = {
    [TGX_F16] = share_f16, [TGX_BF16] = share_bf16, [TGX_F32] = share_float, [TGX_F64] = share_double,
    [TGX_C64] = share_tgx_c64, [TGX_C128] = share_tgx_c128};

/* Move both pointers to the next row (all dimensions but the last); 0 when there is none. */
static int next_row(int64_t *index, const int64_t *sizes, int ndim, char **a, const ptrdiff_t *as, const char **b,
                    const ptrdiff_t *bs) {
    for (int d = ndim - 2; d >= 0; d--) {
        *a += as[d];
        *b += bs[d];
        if (++index[d] < sizes[d]) return 1;
        *a -= as[d] * sizes[d];
        *b -= bs[d] * sizes[d];
        index[d] = 0;
    }
    return 0;
}

static int empty(const int64_t *sizes, int ndim) {
    for (int d = 0; d < ndim; d++)
        if (sizes[d] == 0) return 1;
    return 0;
}

/* to[i] += from[i] over all indices, which may meet in to. Both are of the same sizes and dtype. */
static void add_into(const tgx_tensor *to, const tgx_tensor *from) {
    int64_t index[TGX_MAX_DIMS] = {0};
    ptrdiff_t to_steps[TGX_MAX_DIMS], from_steps[TGX_MAX_DIMS];
    char *a = to->data;
    const char *b = from->data;
    int n = to->rank;
    if (empty(to->sizes, n)) return;
    for (int i = 0; i < n; i++) {
        to_steps[i] = to->strides[i] * tgx_itemsize[to->dtype];
        from_steps[i] = from->strides[i] * tgx_itemsize[from->dtype];
    }
    do {
        if (n == 0) adds[to->dtype](a, 0, b, 0, 1);
        else adds[to->dtype](a, to_steps[n - 1], b, from_steps[n - 1], to->sizes[n - 1]);
    } while (next_row(index, to->sizes, n, &a, to_steps, &b, from_steps));
}

/* counts[p] = how many indices of the window address element p. */
static void count_window(int64_t *counts, const int64_t *strides, const int64_t *sizes, int ndim) {
    int64_t index[TGX_MAX_DIMS] = {0};
    if (empty(sizes, ndim)) return;
    for (;;) {
        ++*counts;
        int d = ndim - 1;
        for (; d >= 0; d--) {
            counts += strides[d];
            if (++index[d] < sizes[d]) break;
            counts -= strides[d] * sizes[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

static int refuse_dtype(tgx_call *c, int dtype) {
    if (adds[dtype]) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"as_strided_backward\" not implemented for '%s'", tgx_dtype_title(dtype));
}

/* ---- a view's window on the result ------------------------------------------------------------------------------- */

typedef struct {
    tgx_tensor t;
    tgx_output said;
    int64_t dims[2 * TGX_MAX_DIMS];
} window;

/* What finds the window on `whole`; may fail. */
typedef int (*cut_fn)(tgx_call *c, const tgx_tensor *whole, window *w);

/* The window that a view shows of `whole`; args are the view's, the tensor still missing. */
static int cut(tgx_call *c, const tgx_kernel *view, tgx_value *args, const tgx_tensor *whole, window *w) {
    tgx_value *own = c->args;
    tgx_output *outputs = c->outputs;
    int code;
    args[0].tag = TGX_TENSOR, args[0].tensor = (tgx_tensor *)whole;
    w->said.dims = w->dims;
    c->args = args, c->outputs = &w->said;
    code = view->shape(c);
    c->args = own, c->outputs = outputs;
    if (code) return code;
    w->t = *whole;
    w->t.sizes = w->said.sizes, w->t.strides = w->said.strides, w->t.rank = w->said.rank, w->t.flags = 0;
    if (w->said.offset) w->t.data += w->said.offset * tgx_itemsize[whole->dtype];
    return 0;
}

/* Sizes of argument 1, on which the gradient must fit its window. */
static int put_shape(tgx_call *c, cut_fn find) {
    static int64_t still[TGX_MAX_DIMS];
    tgx_tensor *grad = tgx_in(c, 0), whole = {.strides = still, .dtype = grad->dtype};
    tgx_output *o = &c->outputs[0];
    window w;
    if (tgx_sized(c, 0, 1, grad->dtype) || tgx_check_sizes(c, o->sizes, o->rank, "empty")) return TGX_FAILED;
    whole.sizes = o->sizes, whole.rank = o->rank;
    if (find(c, &whole, &w)) return TGX_FAILED;
    if (tgx_broadcasts(grad, &w.t)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "output with shape %s doesn't match the broadcast shape %s", tgx_shape_text(&w.t),
                    tgx_shape_text(grad));
}

/* Zeros, and the window on them. */
static int open_window(tgx_call *c, cut_fn find, window *w) {
    const tgx_tensor *out = tgx_out(c, 0);
    if (out->count) memset(out->data, 0, (size_t)(out->count * tgx_itemsize[out->dtype]));
    return find(c, out, w);
}

static int put_run(tgx_call *c, cut_fn find) {
    window w;
    return open_window(c, find, &w) ? TGX_FAILED : c->services->copy(&w.t, tgx_in(c, 0));
}

static int needs_dim(tgx_call *c, const tgx_tensor *whole) {
    if (whole->rank) return 0;
    return tgx_fail(c, TGX_INDEX_ERROR, "%s(): input_sizes must have at least one dimension, got []", c->title);
}

/* (grad_output, input_sizes, dim, index) */
static int cut_select(tgx_call *c, const tgx_tensor *whole, window *w) {
    tgx_value args[] = {{0}, c->args[2], c->args[3]};
    return needs_dim(c, whole) ? TGX_FAILED : cut(c, &tgx_kernel_select, args, whole, w);
}
static int select_backward_shape(tgx_call *c) { return put_shape(c, cut_select); }
static int select_backward_run(tgx_call *c) { return put_run(c, cut_select); }
TGX_KERNEL(select_backward, select_backward_shape, select_backward_run, 0)

/* (grad_output, input_sizes, dim, start, step): as many elements as grad_output has */
static int cut_slice(tgx_call *c, const tgx_tensor *whole, window *w) {
    tgx_value args[] = {{0}, c->args[2], c->args[3], {.tag = TGX_NONE}, c->args[4]};
    const tgx_tensor *grad = tgx_in(c, 0);
    int64_t dim = tgx_int(c, 2), step = tgx_int(c, 4), start = tgx_given(c, 3) ? tgx_int(c, 3) : 0, size;
    if (needs_dim(c, whole) || tgx_wrap(c, &dim, whole->rank)) return TGX_FAILED;
    if (grad->rank != whole->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_slice_backward(): grad_output of shape %s is no slice of %s", tgx_shape_text(grad),
                        tgx_shape_text(whole));
    if (step > 0 && cut(c, &tgx_kernel_slice, args, whole, w)) return TGX_FAILED;
    if (step > 0 && grad->sizes[dim] <= w->t.sizes[dim]) {
        w->t.sizes[dim] = grad->sizes[dim];
        return 0;
    }
    size = whole->sizes[dim];
    start = start < -size ? 0 : start < 0 ? start + size : start < size ? start : size;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "_slice_backward(): %lld elements from %lld on in steps of %lld do not fit in %s",
                    (long long)grad->sizes[dim], (long long)start, (long long)step, tgx_shape_text(whole));
}
static int slice_backward_shape(tgx_call *c) { return put_shape(c, cut_slice); }
static int slice_backward_run(tgx_call *c) { return put_run(c, cut_slice); }
TGX_KERNEL(slice_backward, slice_backward_shape, slice_backward_run, 0)

/* (grad_output, input_sizes, offset, dim1, dim2) */
static int cut_diagonal(tgx_call *c, const tgx_tensor *whole, window *w) {
    tgx_value args[] = {{0}, c->args[2], c->args[3], c->args[4]};
    return cut(c, &tgx_kernel_diagonal, args, whole, w);
}
static int diagonal_backward_shape(tgx_call *c) { return put_shape(c, cut_diagonal); }
static int diagonal_backward_run(tgx_call *c) { return put_run(c, cut_diagonal); }
TGX_KERNEL(diagonal_backward, diagonal_backward_shape, diagonal_backward_run, 0)

/* ---- a window written to, the rest kept: (self, src, ...) ---------------------------------------------------------- */

static int scatter_shape(tgx_call *c, cut_fn find) {
    const tgx_tensor *src = tgx_in(c, 1);
    tgx_tensor whole = *tgx_in(c, 0);
    window w;
    whole.data = NULL;
    tgx_writes(c, 0, 0);
    if (find(c, &whole, &w)) return TGX_FAILED;
    if (tgx_same_sizes(src, &w.t)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
                    c->title, tgx_shape_text(src), tgx_shape_text(&w.t));
}

static int scatter_run(tgx_call *c, cut_fn find) {
    window w;
    return find(c, tgx_out(c, 0), &w) ? TGX_FAILED : c->services->copy(&w.t, tgx_in(c, 1));
}

static int select_scatter_shape(tgx_call *c) { return scatter_shape(c, cut_select); }
static int select_scatter_run(tgx_call *c) { return scatter_run(c, cut_select); }
TGX_KERNEL(select_scatter, select_scatter_shape, select_scatter_run, TGX_NATURAL)

static int cut_part(tgx_call *c, const tgx_tensor *whole, window *w) {
    tgx_value args[] = {{0}, c->args[2], c->args[3], c->args[4], c->args[5]};
    return cut(c, &tgx_kernel_slice, args, whole, w);
}
static int slice_scatter_shape(tgx_call *c) { return scatter_shape(c, cut_part); }
static int slice_scatter_run(tgx_call *c) { return scatter_run(c, cut_part); }
TGX_KERNEL(slice_scatter, slice_scatter_shape, slice_scatter_run, TGX_NATURAL)

static int diagonal_scatter_shape(tgx_call *c) { return scatter_shape(c, cut_diagonal); }
static int diagonal_scatter_run(tgx_call *c) { return scatter_run(c, cut_diagonal); }
TGX_KERNEL(diagonal_scatter, diagonal_scatter_shape, diagonal_scatter_run, TGX_NATURAL)

/* (self, src, size, stride, offset): self has one dimension and stands for memory. */
static int cut_window(tgx_call *c, const tgx_tensor *whole, window *w) {
    const int64_t step = whole->count > 1 ? whole->strides[0] : 1, bytes = tgx_itemsize[whole->dtype], *sizes, *strides;
    const int n = tgx_numbers(c, 2, &sizes), m = tgx_numbers(c, 3, &strides);
    if (n < 0 || m < 0) return TGX_FAILED;
    if (whole->rank != 1 || n != m)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "as_strided_scatter(): expected memory of one dimension and as many sizes as strides, "
                        "got %s, %d and %d", tgx_shape_text(whole), n, m);
    int64_t room = whole->count * bytes;
    for (int d = 0; d < n; d++)
        if (!sizes[d]) room = TGX_ANY_ROOM; /* no element, so nothing points outside */
    if (tgx_inside(c, sizes, strides, n, tgx_int(c, 4), whole->dtype, room, "as_strided_scatter")) return TGX_FAILED;
    w->t = *whole;
    w->t.sizes = (int64_t *)sizes, w->t.strides = w->dims, w->t.rank = n, w->t.flags = 0, w->t.count = 1;
    for (int d = 0; d < n; d++) w->dims[d] = strides[d] * step, w->t.count *= sizes[d];
    if (w->t.count && w->t.data) w->t.data += tgx_int(c, 4) * step * bytes;
    return 0;
}
static int window_scatter_shape(tgx_call *c) { return scatter_shape(c, cut_window); }
static int window_scatter_run(tgx_call *c) { return scatter_run(c, cut_window); }
TGX_KERNEL(window_scatter, window_scatter_shape, window_scatter_run, TGX_NATURAL)

/* (self, value, wrap): one value where all indices are alike. */
static int fill_diagonal_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (x->rank < 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "dimensions must larger than 1: fill_diagonal_ got %s", tgx_shape_text(x));
    for (int i = 1; i < x->rank && x->rank > 2; i++)
        if (x->sizes[i] != x->sizes[0])
            return tgx_fail(c, TGX_RUNTIME_ERROR, "all dimensions of input must be of equal length: fill_diagonal_ got %s",
                            tgx_shape_text(x));
    if (tgx_refuse_complex(c, c->args[1].number, x->dtype) || tgx_check_number(c, &c->args[1], x->dtype)) return TGX_FAILED;
    tgx_writes(c, 0, 0);
    return 0;
}

static int fill_diagonal_run(tgx_call *c) {
    const tgx_tensor *o = tgx_out(c, 0);
    const int64_t m = o->sizes[0], n = o->sizes[1], size = tgx_itemsize[o->dtype];
    int64_t one[2], step = 0;
    if (!o->count) return 0;
    tgx_put_number(one, o->dtype, c->args[1].number);
    for (int i = 0; i < o->rank; i++) step += o->strides[i];
    for (int64_t k = 0; k < (m < n ? m : n); k++) memcpy(o->data + k * step * size, one, (size_t)size);
    if (o->rank == 2 && tgx_int(c, 2)) /* again, each time below a row that is left out */
        for (int64_t at = n * (n + 1); at < m * n; at += n + 1)
            memcpy(o->data + (at / n * o->strides[0] + at % n * o->strides[1]) * size, one, (size_t)size);
    return 0;
}
TGX_KERNEL(fill_diagonal, fill_diagonal_shape, fill_diagonal_run, TGX_REPEATS)

/* ---- windows that may overlap ------------------------------------------------------------------------------------ */

/* (grad_in, input_sizes, dim, size, step) */
static int overlapping(const tgx_call *c) { return tgx_int(c, 4) < tgx_int(c, 3); }

static int cut_windows(tgx_call *c, const tgx_tensor *whole, window *w) {
    tgx_value args[] = {{0}, c->args[2], c->args[3], c->args[4]};
    if (cut(c, &tgx_kernel_unfold, args, whole, w)) return TGX_FAILED;
    if (!overlapping(c) || tgx_same_sizes(tgx_in(c, 0), &w->t)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "gradient of shape %s does not fit windows of shape %s", tgx_shape_text(tgx_in(c, 0)),
                    tgx_shape_text(&w->t));
}

static int unfold_backward_shape(tgx_call *c) {
    if (put_shape(c, cut_windows)) return TGX_FAILED;
    return overlapping(c) ? refuse_dtype(c, tgx_in(c, 0)->dtype) : 0;
}

static int unfold_backward_run(tgx_call *c) {
    window w;
    if (!overlapping(c)) return put_run(c, cut_windows);
    if (open_window(c, cut_windows, &w)) return TGX_FAILED;
    add_into(&w.t, tgx_in(c, 0));
    return 0;
}
TGX_KERNEL(unfold_backward, unfold_backward_shape, unfold_backward_run, 0)

/* ---- from window to window: (self, stride, offset, into_size, into_stride, into_offset, by_source) --------------- */

typedef struct {               /* of the zeroed memory that both windows lie in */
    int64_t from, into;        /* elements before each window */
    int64_t count;
    int64_t bytes;             /* rounded up to whole counts, which follow where elements are shared out */
    int shared;                /* whether the window whose elements are shared out addresses some element several times */
} ground;

/* Elements from the first to the last of a window; 0 when it is empty. */
static int64_t extent(const int64_t *sizes, const int64_t *strides, int n) {
    int64_t reach = 1;
    if (empty(sizes, n)) return 0;
    for (int i = 0; i < n; i++) reach += (sizes[i] - 1) * strides[i];
    return reach;
}

/* 0 when surely no two indices share memory: each stride steps over all that the smaller ones reach. */
static int overlaps(const int64_t *sizes, const int64_t *strides, int n) {
    int64_t reach = 0, last = -1, best = 0;
    for (int step = 0; step < n; step++) {
        int at = -1;
        /* strictly rising strides: two equal ones overlap anyway */
        for (int i = 0; i < n; i++)
            if (sizes[i] > 1 && strides[i] > last && (at < 0 || strides[i] < best)) at = i, best = strides[i];
        if (at < 0) break;
        if (best <= reach) return 1;
        reach += (sizes[at] - 1) * best;
        last = best;
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (sizes[i] > 1 && sizes[k] > 1 && strides[k] == strides[i]) return 1;
    return 0;
}

static ground survey(const tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const tgx_value *v = c->args;
    int64_t from = tgx_int(c, 2), into = tgx_int(c, 5), low = from < into ? from : into, a, b;
    ground g = {.from = from - low, .into = into - low};
    a = g.from + extent(t->sizes, v[1].ints, t->rank), b = g.into + extent(v[3].ints, v[4].ints, v[3].n);
    g.count = a > b ? a : b;
    g.bytes = (g.count * tgx_itemsize[t->dtype] + 7) & ~(int64_t)7;
    g.shared = tgx_int(c, 6) ? overlaps(t->sizes, v[1].ints, t->rank) : overlaps(v[3].ints, v[4].ints, v[3].n);
    return g;
}

static int rewindow_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const tgx_value *v = c->args;
    if (tgx_sized(c, 0, 3, t->dtype)) return TGX_FAILED;
    if (v[1].n != t->rank || v[4].n != v[3].n)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_rewindow(): sizes and strides differ in number");
    if (refuse_dtype(c, t->dtype)
        || tgx_inside(c, t->sizes, v[1].ints, t->rank, tgx_int(c, 2), t->dtype, TGX_LARGEST_MEMORY, "_rewindow")
        || tgx_inside(c, v[3].ints, v[4].ints, v[3].n, tgx_int(c, 5), t->dtype, TGX_LARGEST_MEMORY, "_rewindow"))
        return TGX_FAILED;
    ground g = survey(c);
    c->scratch_bytes = g.bytes + (g.shared ? g.count * (int64_t)sizeof(int64_t) : 0);
    return 0;
}

static int rewindow_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    const tgx_value *v = c->args;
    tgx_tensor source = *t, shown = *out;
    ground g = survey(c);
    char *memory = c->scratch;
    if (g.count == 0) return 0;
    memset(memory, 0, (size_t)c->scratch_bytes);
    source.data = memory + g.from * tgx_itemsize[t->dtype], source.strides = v[1].ints;
    shown.data = memory + g.into * tgx_itemsize[t->dtype], shown.strides = v[4].ints, shown.flags = 0;
    add_into(&source, t);
    if (g.shared) {
        int64_t *counts = (int64_t *)(memory + g.bytes);
        if (tgx_int(c, 6)) count_window(counts + g.from, v[1].ints, t->sizes, t->rank);
        else count_window(counts + g.into, v[4].ints, v[3].ints, v[3].n);
        share_outs[t->dtype](memory, counts, g.count);
    }
    return c->services->copy(out, &shown);
}
TGX_KERNEL(rewindow, rewindow_shape, rewindow_run, TGX_NATURAL)
