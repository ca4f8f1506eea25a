/* gather, and the scatter family: an index tensor as large as the result names places along one dimension.
 *
 * Scattering is cut along another dimension than the indexed one, so that no two threads write to one place and sums add up
 * in the order of the index whatever the number of threads. All indices are checked before the first write. */
#include "gather.h"
#include "isa.h"
#include "make.h"
#include "once.h"
#include "walk.h"

extern const tgx_gather_table tgx_gathers_base, tgx_gathers_avx2, tgx_gathers_avx512;

const tgx_gather_table *tgx_gather_loops_here(void) {
    static const tgx_gather_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_gathers);
    return chosen;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int check_index(tgx_call *c, int arg, int rank, const char *title, const char *what) {
    const tgx_tensor *index = tgx_in(c, arg);
    if (index->dtype != TGX_I32 && index->dtype != TGX_I64)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): Expected dtype int32/int64 for index, got %s", title,
                        tgx_dtype_title(index->dtype));
    if ((index->rank ? index->rank : 1) != (rank ? rank : 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Index tensor must have the same number of dimensions as %s tensor: %s() got %d and %d",
                        what, title, index->rank, rank);
    tgx_need_dtype(c, arg, TGX_I64);
    return 0;
}

static int check_sizes(tgx_call *c, const tgx_tensor *table, const tgx_tensor *index, int dim) {
    for (int i = 0; i < index->rank; i++)
        if (i != dim && index->sizes[i] > table->sizes[i])
            return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected index %s to be no larger than self %s apart from dimension %d",
                            tgx_shape_text(index), tgx_shape_text(table), dim);
    return 0;
}

static int check_source(tgx_call *c, const tgx_tensor *table, const tgx_tensor *index, const tgx_tensor *source, int dim) {
    if (source->rank != index->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Index tensor must have the same number of dimensions as src tensor: scatter() got %d and "
                        "%d", index->rank, source->rank);
    for (int i = 0; i < index->rank; i++)
        if (index->sizes[i] > source->sizes[i])
            return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected index %s to be no larger than self %s apart from dimension %d and to be no "
                            "larger size than src %s", tgx_shape_text(index), tgx_shape_text(table), dim, tgx_shape_text(source));
    return 0;
}

/* The error for the first index outside the bounds. */
static int refuse_outside(tgx_call *c, const tgx_tensor *index, int dim, int64_t size) {
    int64_t at[TGX_MAX_DIMS] = {0};
    const char *p = index->data;
    for (int64_t n = 0; n < index->count; n++) {
        int64_t k = tgx_once((const int64_t *)p);
        if (k < 0 || k >= size)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "index %lld is out of bounds for dimension %d with size %lld", (long long)k, dim,
                            (long long)size);
        for (int d = index->rank - 1; d >= 0; d--) {
            p += index->strides[d] * 8;
            if (++at[d] < index->sizes[d]) break;
            p -= index->sizes[d] * index->strides[d] * 8;
            at[d] = 0;
        }
    }
    return tgx_fail(c, TGX_RUNTIME_ERROR, "an index is out of bounds for dimension %d with size %lld", dim, (long long)size);
}

static void add(tgx_iter *it, const tgx_tensor *t) {
    tgx_iter_add(it, t->data, t->sizes, t->strides, t->rank, tgx_itemsize[t->dtype]);
}

/* ---- gather: (self, dim, index, sparse_grad) --------------------------------------------------------------------- */

static int gather_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *given = tgx_in(c, 2);
    if (tgx_wrap_arg(c, 1, x->rank)) return TGX_FAILED;
    tgx_like(c, 0, given, x->dtype);
    c->work = given->count + 1;
    if (given->count == 0) return 0;        /* of any dtype and rank, as PyTorch takes it */
    tgx_tensor table = tgx_lifted(x), index = tgx_lifted(given);
    if (check_index(c, 2, x->rank, "gather", "input")) return TGX_FAILED;
    for (int i = 0; i < index.rank; i++)
        if (i != tgx_int(c, 1) && index.sizes[i] > table.sizes[i])
            return tgx_fail(c, TGX_RUNTIME_ERROR, "Size does not match at dimension %d expected index %s to be no larger than self %s "
                            "apart from dimension %d", i, tgx_shape_text(&index), tgx_shape_text(&table), (int)tgx_int(c, 1));
    return 0;
}

static int gather_run(tgx_call *c) {
    int64_t strides[TGX_MAX_DIMS];
    tgx_tensor table = tgx_lifted(tgx_in(c, 0)), index = tgx_lifted(tgx_in(c, 2)), out = tgx_lifted(tgx_out(c, 0));
    int dim = (int)tgx_int(c, 1), width = tgx_itemsize[table.dtype];
    tgx_scalar aux[2];
    tgx_iter it;
    if (out.count == 0) return 0;
    for (int i = 0; i < table.rank; i++) strides[i] = i == dim ? 0 : table.strides[i];
    aux[0].i = table.sizes[dim], aux[1].i = table.strides[dim] * width;
    tgx_iter_begin(&it, out.sizes, out.rank);
    add(&it, &out);
    tgx_iter_add(&it, table.data, out.sizes, strides, out.rank, width);
    it.stays |= 1u << 1;        /* an index reaches beyond its element */
    add(&it, &index);
    if (!tgx_walk(c->services, &it, tgx_gather_loops_here()->gather[__builtin_ctz((unsigned)width)], aux)) return 0;
    return refuse_outside(c, &index, dim, table.sizes[dim]);
}
TGX_KERNEL(gather, gather_shape, gather_run, 0)

/* ---- scatter ----------------------------------------------------------------------------------------------------- */

typedef struct {                /* the index's shape, walked with one addressed tensor */
    tgx_tensor index, table, source;
    int cut;                    /* dimension that threads share, or -1 */
    int64_t table_strides[TGX_MAX_DIMS];        /* 0 along the indexed dimension */
    const int64_t *source_strides;
    tgx_loop loop;
    tgx_scalar aux[2];
} scatter_job;

static int scatter_part(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const scatter_job *w = context;
    int64_t sizes[TGX_MAX_DIMS];
    int rank = w->index.rank, width = tgx_itemsize[w->table.dtype], at = w->cut < 0 ? 0 : w->cut;
    tgx_iter it;
    memcpy(sizes, w->index.sizes, (size_t)rank * sizeof(int64_t));
    if (w->cut >= 0) sizes[w->cut] = hi - lo;
    else lo = 0;
    tgx_iter_begin(&it, sizes, rank);
    tgx_iter_add(&it, w->index.data + lo * w->index.strides[at] * 8, sizes, w->index.strides, rank, 8);
    tgx_iter_add(&it, w->table.data + lo * w->table_strides[at] * width, sizes, w->table_strides, rank, width);
    it.stays |= 1u << 1;
    tgx_iter_add(&it, w->source.data + lo * w->source_strides[at] * width, sizes, w->source_strides, rank, width);
    tgx_iter_plan(&it);
    return tgx_iter_run(&it, w->loop, w->aux);
}

static int check_bounds(tgx_call *c, const tgx_tensor *index, int dim, int64_t size) {
    tgx_scalar aux;
    tgx_iter it;
    aux.i = size;
    tgx_iter_begin(&it, index->sizes, index->rank);
    add(&it, index);
    tgx_iter_plan(&it);
    return tgx_iter_run(&it, tgx_gather_loops_here()->check, &aux) ? refuse_outside(c, index, dim, size) : 0;
}

/* Write source, of the index's rank or one element for all, into table. Sizes and dtypes have been checked. */
static int scatter_into(tgx_call *c, const tgx_tensor *table, int dim, const tgx_tensor *index, const tgx_tensor *source, int kind) {
    int64_t still[TGX_MAX_DIMS] = {0};
    scatter_job w = {.index = tgx_lifted(index), .table = tgx_lifted(table), .source = *source, .cut = -1};
    int64_t units;
    int code;
    if (index->count == 0) return 0;
    if (check_bounds(c, &w.index, dim, w.table.sizes[dim])) return TGX_FAILED;
    for (int i = 0; i < w.index.rank; i++) {
        w.table_strides[i] = i == dim ? 0 : w.table.strides[i];
        if (i != dim && (w.cut < 0 || w.index.sizes[i] > w.index.sizes[w.cut])) w.cut = i;
    }
    w.source_strides = source->rank == w.index.rank ? source->strides : still;
    w.loop = tgx_gather_loops_here()->scatter[kind][table->dtype];
    w.aux[0].i = w.table.sizes[dim], w.aux[1].i = w.table.strides[dim] * tgx_itemsize[table->dtype];
    units = w.cut < 0 ? 1 : w.index.sizes[w.cut];
    if (index->count <= TGX_SMALL) code = scatter_part(&w, 0, units);
    else code = tgx_range(c, scatter_part, &w, units, 1 + TGX_SMALL * units / index->count);
    /* the indices were right a moment ago: another thread writes to them */
    return code ? refuse_outside(c, &w.index, dim, w.table.sizes[dim]) : 0;
}

static int refuse_dtype(tgx_call *c, int dtype, const char *title) {
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert self and src first, for example with "
                    ".float()", title, tgx_dtype_title(dtype));
}

/* (self, dim, index, src or value, ...): the result is self, changed. */
static int scattered_shape(tgx_call *c, int kind, const char *title) {
    const tgx_tensor *x = tgx_in(c, 0);
    const tgx_value *src = &c->args[3];
    tgx_tensor table = tgx_lifted(x), index = tgx_lifted(tgx_in(c, 2)), source;
    if (src->tag == TGX_TENSOR && src->tensor->dtype != x->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "scatter(): Expected self.dtype to be equal to src.dtype, got %s and %s",
                        tgx_dtype_title(x->dtype), tgx_dtype_title(src->tensor->dtype));
    if (src->tag == TGX_NUMBER && tgx_check_number(c, src, x->dtype)) return TGX_FAILED;
    if (tgx_wrap_arg(c, 1, x->rank)) return TGX_FAILED;
    if (index.count == 0) {                 /* of any dtype and rank, as in gather: nothing is written */
        tgx_writes(c, 0, 0);
        return 0;
    }
    if (check_index(c, 2, x->rank, "scatter", "self")) return TGX_FAILED;
    if (src->tag == TGX_TENSOR) {
        source = tgx_lifted(src->tensor);
        if (check_source(c, &table, &index, &source, (int)tgx_int(c, 1))) return TGX_FAILED;
    }
    if (!tgx_gather_loops_here()->scatter[kind][x->dtype]) return refuse_dtype(c, x->dtype, title);
    if (check_sizes(c, &table, &index, (int)tgx_int(c, 1))) return TGX_FAILED;
    tgx_writes(c, 0, 0);
    return 0;
}

static int scattered_run(tgx_call *c, int kind) {
    const tgx_value *src = &c->args[3];
    const tgx_tensor *out = tgx_out(c, 0);
    int64_t number[2];
    tgx_tensor source = {.data = (char *)number, .count = 1};
    if (src->tag == TGX_TENSOR) source = tgx_lifted(src->tensor);
    else tgx_put_number(number, out->dtype, src->number);
    return scatter_into(c, out, (int)tgx_int(c, 1), tgx_in(c, 2), &source, kind);
}

static int scatter_shape(tgx_call *c) { return scattered_shape(c, TGX_SCATTER_SET, "scatter"); }
static int scatter_run(tgx_call *c) { return scattered_run(c, TGX_SCATTER_SET); }
TGX_KERNEL(scatter, scatter_shape, scatter_run, 0)

static int scatter_add_shape(tgx_call *c) { return scattered_shape(c, TGX_SCATTER_ADD, "scatter"); }
static int scatter_add_run(tgx_call *c) { return scattered_run(c, TGX_SCATTER_ADD); }
TGX_KERNEL(scatter_add, scatter_add_shape, scatter_add_run, 0)

/* with a fifth argument, reduce */
static int scatter_with_shape(tgx_call *c) {
    const char *how = c->args[4].text;
    int add = !strcmp(how, "add");
    if (!add && strcmp(how, "multiply"))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "reduce argument must be either add or multiply, got '%s'. scatter_reduce() has sum, "
                        "prod, mean, amax and amin.", how);
    c->notes[0] = add ? TGX_SCATTER_ADD : TGX_SCATTER_MUL;
    return scattered_shape(c, (int)c->notes[0], "scatter");
}
static int scatter_with_run(tgx_call *c) { return scattered_run(c, (int)c->notes[0]); }
TGX_KERNEL(scatter_with, scatter_with_shape, scatter_with_run, 0)

/* (grad, size, dim, index): zeros with grad added where gather read it. */
static int gather_backward_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0);
    tgx_tensor table, grad = tgx_lifted(g), index = tgx_lifted(tgx_in(c, 3));
    tgx_output *o = &c->outputs[0];
    if (tgx_sized(c, 0, 1, g->dtype) || tgx_wrap_arg(c, 2, o->rank)) return TGX_FAILED;
    if (g->count == 0) return 0;
    if (check_index(c, 3, o->rank, "gather", "input")) return TGX_FAILED;
    table = tgx_lifted(&(tgx_tensor){.sizes = o->dims, .rank = o->rank});
    if (check_source(c, &table, &index, &grad, (int)tgx_int(c, 2))) return TGX_FAILED;
    return check_sizes(c, &table, &index, (int)tgx_int(c, 2));
}

static int gather_backward_run(tgx_call *c) {
    tgx_tensor grad = tgx_lifted(tgx_in(c, 0)), *out = tgx_out(c, 0);
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    return grad.count ? scatter_into(c, out, (int)tgx_int(c, 2), tgx_in(c, 3), &grad, TGX_SCATTER_ADD) : 0;
}
TGX_KERNEL(gather_backward, gather_backward_shape, gather_backward_run, 0)

/* ---- scatter_reduce: (self, dim, index, src, reduce, include_self) ----------------------------------------------- */

typedef struct { const char *name; int kind, mean; } reduction;
static const reduction reductions[] = {{"sum", TGX_SCATTER_ADD, 0}, {"prod", TGX_SCATTER_MUL, 0}, {"mean", TGX_SCATTER_ADD, 1},
                                       {"amax", TGX_SCATTER_MAX, 0}, {"amin", TGX_SCATTER_MIN, 0},
                                       {"max", TGX_SCATTER_MAX, 0}, {"min", TGX_SCATTER_MIN, 0}};

/* What changes nothing in a reduction. */
static void put_neutral(void *to, int kind, int dtype) {
    int bits = tgx_is_complex(dtype) ? 64 : 8 * tgx_itemsize[dtype], low = kind == TGX_SCATTER_MAX;     /* those have no order */
    int64_t least = dtype == TGX_U8 ? 0 : (int64_t)(~(uint64_t)0 << (bits - 1)), most = dtype == TGX_U8 ? 255 : ~least;
    tgx_scalar s = {.given = 1};
    if (kind == TGX_SCATTER_MUL) s.f = 1, s.i = 1;
    else if (kind != TGX_SCATTER_ADD && dtype == TGX_BOOL) s.i = !low;
    else if (kind != TGX_SCATTER_ADD) s.f = low ? -__builtin_inf() : __builtin_inf(), s.i = low ? least : most;
    tgx_put_number(to, dtype, &s);
}

static int scatter_reduce_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    const char *how = c->args[4].text;
    size_t k = 0;
    while (k < sizeof reductions / sizeof *reductions && strcmp(how, reductions[k].name)) k++;
    if (k == sizeof reductions / sizeof *reductions)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "reduce argument must be either sum, prod, mean, amax or amin, got %s", how);
    if (tgx_is_complex(x->dtype) && reductions[k].kind > TGX_SCATTER_MUL)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"scatter_reduce\" %s not implemented for '%s': complex numbers have no order, "
                        "reduce them by sum, prod or mean", how, tgx_dtype_title(x->dtype));
    c->notes[0] = reductions[k].kind, c->notes[1] = reductions[k].mean;
    if (scattered_shape(c, reductions[k].kind, tgx_int(c, 5) ? "scatter" : "scatter_reduce")) return TGX_FAILED;
    if (!reductions[k].mean) return 0;
    if (!tgx_gather_loops_here()->mean[x->dtype])
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"scatter_reduce\" mean not implemented for '%s': convert self and src first, "
                        "for example with .float()", tgx_dtype_title(x->dtype));
    const tgx_tensor index = tgx_lifted(tgx_in(c, 2));
    if (index.count && index.sizes[tgx_int(c, 1)] > UINT32_MAX - 1)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "scatter_reduce(): a mean counts up to 4294967294 elements along dim, got an index of "
                        "shape %s: add up its parts one after the other", tgx_shape_text(&index));
    c->scratch_bytes = x->count * (int64_t)sizeof(uint32_t);
    return 0;
}

/* Sums become means: divide by the number of elements that went into each. Where one index stands for whole rows, rows are counted.
 * Numbers of 32 bits: a million counts at random wait for memory, and of 64 bits twice as long. */
static int divide(tgx_call *c, const tgx_tensor *out, int dim, const tgx_tensor *index, int64_t include_self) {
    int64_t strides[TGX_MAX_DIMS], sizes[TGX_MAX_DIMS], of_rows[TGX_MAX_DIMS], step = 1;
    uint32_t one = 1;
    tgx_tensor counts = *out, at = *index, single = {.data = (char *)&one, .count = 1, .dtype = TGX_I32};
    tgx_iter it;
    int rows = out->rank > 1;
    if (!index->count) return 0;
    for (int i = 0; i < out->rank; i++) rows &= i == dim || (!index->strides[i] && index->sizes[i] == out->sizes[i]);
    counts.data = c->scratch, counts.sizes = sizes, counts.strides = strides, counts.dtype = TGX_I32, counts.flags = TGX_CONTIGUOUS;
    for (int i = out->rank - 1; i >= 0; i--) {
        sizes[i] = rows && i != dim ? 1 : out->sizes[i];
        strides[i] = step, step *= sizes[i];
    }
    if (rows) {
        memcpy(of_rows, sizes, sizeof sizes);
        of_rows[dim] = at.count = index->sizes[dim], at.sizes = of_rows;
    }
    counts.count = step;
    for (int64_t i = 0; i < step; i++) ((uint32_t *)counts.data)[i] = (uint32_t)include_self;
    if (scatter_into(c, &counts, dim, &at, &single, TGX_SCATTER_ADD)) return TGX_FAILED;
    for (int i = 0; rows && i < out->rank; i++) strides[i] = i == dim, sizes[i] = out->sizes[i];
    tgx_iter_begin(&it, out->sizes, out->rank);
    add(&it, out);
    add(&it, &counts);
    return tgx_walk(c->services, &it, tgx_gather_loops_here()->mean[out->dtype], NULL);
}

static int scatter_reduce_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0), *index = tgx_in(c, 2);
    int dim = (int)tgx_int(c, 1);
    int64_t neutral[2];
    tgx_tensor single = {.data = (char *)neutral, .count = 1};
    if (!tgx_int(c, 5)) {
        put_neutral(neutral, (int)c->notes[0], out->dtype);
        if (scatter_into(c, out, dim, index, &single, TGX_SCATTER_SET)) return TGX_FAILED;
    }
    if (scattered_run(c, (int)c->notes[0])) return TGX_FAILED;
    return c->notes[1] ? divide(c, out, dim, index, tgx_int(c, 5)) : 0;
}
TGX_KERNEL(scatter_reduce, scatter_reduce_shape, scatter_reduce_run, 0)
