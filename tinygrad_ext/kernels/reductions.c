/* Kernels of reductions. The walk and the folds are in reduce.c and reduce_isa.h; here: dimensions, dtypes, results.
 *
 * A reduction's result depends neither on layout nor on threads, see reduce.h. */
#include "reductions.h"
#include "isa.h"

extern const tgx_reducer_table tgx_reducers_base, tgx_reducers_avx2, tgx_reducers_avx512;

static const tgx_reducer *reducer_of(int64_t op, int dtype) {
    static const tgx_reducer_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_reducers);
    return &(*chosen)[op][dtype];
}

/* ---- which dimensions, which result ------------------------------------------------------------------------------ */

int tgx_named_dims(tgx_call *c, int arg, uint64_t *mask) {
    const tgx_value *v = &c->args[arg];
    const tgx_tensor *t = tgx_in(c, 0);
    const int64_t *dims = v->tag == TGX_INTS ? v->ints : &v->i;
    int n = v->tag == TGX_INTS ? v->n : 1;
    if (n) *mask = 0;
    for (int i = 0; i < n; i++) {
        int64_t d = dims[i];
        if (tgx_wrap(c, &d, t->rank)) return TGX_FAILED;
        if (*mask >> d & 1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "dim %d appears multiple times in the list of dims: name each dimension once, got %s "
                            "for a tensor of shape %s", (int)d, tgx_sizes_text(dims, n), tgx_shape_text(t));
        *mask |= (uint64_t)1 << d;
    }
    return 0;
}

tgx_output *tgx_reduced(tgx_call *c, int k, const tgx_tensor *t, uint64_t mask, int keepdim, int dtype) {
    tgx_output *o = tgx_fresh(c, k, 0, dtype);
    for (int i = 0; i < t->rank; i++) {
        if (!(mask >> i & 1)) o->dims[o->rank++] = t->sizes[i];
        else if (keepdim) o->dims[o->rank++] = 1;
    }
    return o;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void plan(tgx_reduction *p, const tgx_tensor *t, int dtype, int64_t op, uint64_t mask) {
    p->reducer = reducer_of(op, dtype);
    tgx_reduction_plan(p, t->data, t->sizes, t->strides, t->rank, mask, tgx_itemsize[dtype]);
}

/* What a large one needs. A plan is large too, so functions that have one stand apart from those for small tensors. */
static __attribute__((noinline)) void reserve_for_large(tgx_call *c, int op, int dtype, uint64_t mask) {
    tgx_reduction p;
    plan(&p, tgx_in(c, 0), dtype, op, mask);
    if (tgx_reduction_scattered(&p) && !tgx_reduction_turned(&p)) tgx_need(c, 0, dtype);
    /* few results: threads share the spans of each */
    if (p.nspans > 1 && p.ntiles < 4 * c->services->num_threads()) c->scratch_bytes = p.nspans * (int64_t)sizeof(tgx_acc);
}

int tgx_reduction_shape(tgx_call *c, int op, int dtype, uint64_t mask) {
    if (!reducer_of(op, dtype)->block)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the argument first, for example "
                        "with .float()", c->title, tgx_dtype_title(dtype));
    c->notes[0] = op, c->notes[1] = (int64_t)mask;
    tgx_need_dtype(c, 0, dtype);
    if (tgx_in(c, 0)->count > TGX_SMALL && !c->meta) reserve_for_large(c, op, dtype, mask);
    return 0;
}

typedef struct { tgx_reduction *plan; tgx_acc *parts; int64_t tile; } job_t;

static int tiles(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    tgx_reduction_tiles(((job_t *)context)->plan, lo, hi);
    return 0;
}

static int spans(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    job_t *job = context;
    tgx_reduction_spans(job->plan, job->tile, lo, hi, job->parts);
    return 0;
}

static __attribute__((noinline)) int run_large(tgx_call *c, tgx_reduction *p) {
    job_t job = {p, c->scratch, 0};
    if (p->ntiles >= 4 * c->services->num_threads() || p->nspans * (int64_t)sizeof(tgx_acc) > c->scratch_bytes)
        return tgx_range(c, tiles, &job, p->ntiles, 1 + TGX_SMALL * p->ntiles / tgx_in(c, 0)->count);
    for (job.tile = 0; job.tile < p->ntiles; job.tile++) {
        tgx_range(c, spans, &job, p->nspans, 1);
        tgx_reduction_fold(p, job.tile, job.parts);
    }
    return 0;
}

int tgx_reduction_run(tgx_call *c, const tgx_scalar *aux, tgx_tensor *out, tgx_tensor *out2) {
    const tgx_tensor *t = tgx_in(c, 0);
    tgx_reduction p;
    p.aux = aux, p.out = p.out2 = NULL;
    if (out) p.out = out->data, p.osize = tgx_itemsize[out->dtype];
    if (out2) p.out2 = out2->data, p.osize2 = tgx_itemsize[out2->dtype];
    if (t->flags & TGX_CONTIGUOUS && t->count <= TGX_SMALL) {
        p.reducer = reducer_of(c->notes[0], t->dtype), p.itemsize = tgx_itemsize[t->dtype];
        if (tgx_reduction_at_once(&p, t->data, t->sizes, t->rank, (uint64_t)c->notes[1])) return 0;
    }
    plan(&p, t, t->dtype, c->notes[0], (uint64_t)c->notes[1]);
    if (t->count > TGX_SMALL) return run_large(c, &p);
    tgx_reduction_tiles(&p, 0, p.ntiles);
    return 0;
}

static int run_to_first(tgx_call *c) { return tgx_reduction_run(c, NULL, tgx_out(c, 0), NULL); }
static int run_to_second(tgx_call *c) { return tgx_reduction_run(c, NULL, NULL, tgx_out(c, 0)); }
static int run_to_both(tgx_call *c) { return tgx_reduction_run(c, NULL, tgx_out(c, 0), tgx_out(c, 1)); }

/* ---- sum, mean, prod --------------------------------------------------------------------------------------------- */

/* Sum-like: integers become int64 unless a dtype is asked for. Numbers of arguments; -1 for what the form lacks. */
static int fold_shape(tgx_call *c, int op, int dim, int keepdim, int dtype) {
    const tgx_tensor *t = tgx_in(c, 0);
    int want = tgx_given(c, dtype) ? (int)tgx_int(c, dtype) : t->dtype;
    int own = tgx_is_integral(t->dtype) && tgx_is_integral(want) ? t->dtype : want;
    int made = tgx_is_integral(own) ? TGX_I64 : own;
    uint64_t mask = TGX_ALL_DIMS;
    if (tgx_given(c, dtype) && tgx_is_natural(want))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': ask for int64", c->title, tgx_dtype_title(want));
    if (tgx_is_natural(own)) own = TGX_I64;
    if (dim >= 0 && tgx_dim_mask(c, dim, &mask)) return TGX_FAILED;
    tgx_reduced(c, 0, t, mask, keepdim >= 0 && tgx_int(c, keepdim), tgx_given(c, dtype) ? want : made)->via = (int8_t)made;
    return tgx_reduction_shape(c, op, own, mask);
}

static int sum_shape(tgx_call *c) { return fold_shape(c, TGX_SUM, -1, -1, 1); }
static int sum_dim_shape(tgx_call *c) { return fold_shape(c, TGX_SUM, 1, 2, 3); }
static int prod_shape(tgx_call *c) { return fold_shape(c, TGX_PROD, -1, -1, 1); }
static int prod_dim_shape(tgx_call *c) { return fold_shape(c, TGX_PROD, 1, 2, 3); }
static int nansum_shape(tgx_call *c) {
    return fold_shape(c, tgx_is_integral(tgx_in(c, 0)->dtype) ? TGX_SUM : TGX_NANSUM, 1, 2, 3);
}
TGX_KERNEL(sum, sum_shape, run_to_first, TGX_NATURAL)
TGX_KERNEL(sum_dim, sum_dim_shape, run_to_first, TGX_NATURAL)
TGX_KERNEL(nansum, nansum_shape, run_to_first, TGX_NATURAL)
TGX_KERNEL(prod, prod_shape, run_to_first, TGX_NATURAL)
TGX_KERNEL(prod_dim, prod_dim_shape, run_to_first, TGX_NATURAL)

static int any_mean_shape(tgx_call *c, int dim, int keepdim, int dtype) {
    const tgx_tensor *t = tgx_in(c, 0);
    int want = tgx_given(c, dtype) ? (int)tgx_int(c, dtype) : t->dtype;
    uint64_t mask = TGX_ALL_DIMS;
    if (tgx_is_integral(want))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "mean(): could not infer output dtype. %s dtype must be either a floating point or "
                        "complex dtype. Got: %s. Pass dtype=float32, or convert the tensor with .float().",
                        tgx_given(c, dtype) ? "Optional" : "Input", tgx_dtype_title(want));
    if (dim >= 0 && tgx_dim_mask(c, dim, &mask)) return TGX_FAILED;
    tgx_reduced(c, 0, t, mask, keepdim >= 0 && tgx_int(c, keepdim), want);
    return tgx_reduction_shape(c, TGX_MEAN, want, mask);
}

static int mean_shape(tgx_call *c) { return any_mean_shape(c, -1, -1, 1); }
static int mean_dim_shape(tgx_call *c) { return any_mean_shape(c, 1, 2, 3); }
TGX_KERNEL(mean, mean_shape, run_to_first, TGX_NATURAL)
TGX_KERNEL(mean_dim, mean_dim_shape, run_to_first, TGX_NATURAL)

/* ---- any, all, count --------------------------------------------------------------------------------------------- */

/* Bool, but uint8 stays uint8. Here, unlike elsewhere, an empty list reduces nothing. */
static int truth_shape(tgx_call *c, int op, int dim, int keepdim) {
    const tgx_tensor *t = tgx_in(c, 0);
    uint64_t mask = TGX_ALL_DIMS;
    if (dim >= 0 && c->args[dim].tag == TGX_INTS && c->args[dim].n == 0) mask = 0;
    else if (dim >= 0 && tgx_dim_mask(c, dim, &mask)) return TGX_FAILED;
    tgx_reduced(c, 0, t, mask, keepdim >= 0 && tgx_int(c, keepdim), t->dtype == TGX_U8 ? TGX_U8 : TGX_BOOL);
    return tgx_reduction_shape(c, op, tgx_is_natural(t->dtype) ? TGX_BOOL : t->dtype, mask);
}

static int any_shape(tgx_call *c) { return truth_shape(c, TGX_ANY, -1, -1); }
static int any_dim_shape(tgx_call *c) { return truth_shape(c, TGX_ANY, 1, 2); }
static int all_shape(tgx_call *c) { return truth_shape(c, TGX_ALL, -1, -1); }
static int all_dim_shape(tgx_call *c) { return truth_shape(c, TGX_ALL, 1, 2); }
TGX_KERNEL(any, any_shape, run_to_first, TGX_NATURAL)
TGX_KERNEL(any_dim, any_dim_shape, run_to_first, TGX_NATURAL)
TGX_KERNEL(all, all_shape, run_to_first, TGX_NATURAL)
TGX_KERNEL(all_dim, all_dim_shape, run_to_first, TGX_NATURAL)

static int count_nonzero_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    uint64_t mask;
    if (tgx_dim_mask(c, 1, &mask)) return TGX_FAILED;
    tgx_reduced(c, 0, t, mask, 0, TGX_I64);
    return tgx_reduction_shape(c, TGX_COUNT, t->dtype, mask);
}
TGX_KERNEL(count_nonzero, count_nonzero_shape, run_to_first, 0)

/* ---- largest and smallest ---------------------------------------------------------------------------------------- */

static int refuse_none(tgx_call *c, const tgx_tensor *t, int kind) {
    return tgx_fail(c, kind, "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                    "the 'dim' argument. Got a tensor of shape %s.", c->title, tgx_shape_text(t));
}

int tgx_look_for_empty(tgx_call *c, const tgx_tensor *t, uint64_t mask) {
    for (int i = 0; i < t->rank; i++) {
        if (!(mask >> i & 1) || t->sizes[i]) continue;
        if (mask == TGX_ALL_DIMS) return refuse_none(c, t, TGX_RUNTIME_ERROR);
        return tgx_fail(c, TGX_INDEX_ERROR, "%s(): Expected reduction dim %d to have non-zero size: self has shape %s, and no element "
                        "to choose. Reduce another dimension.", c->title, i, tgx_shape_text(t));
    }
    return 0;
}

static int extreme_shape(tgx_call *c, int op, int dim, int keepdim) {
    const tgx_tensor *t = tgx_in(c, 0);
    uint64_t mask = TGX_ALL_DIMS;
    if ((dim >= 0 && tgx_dim_mask(c, dim, &mask)) || tgx_refuse_empty(c, t, mask)) return TGX_FAILED;
    tgx_reduced(c, 0, t, mask, keepdim >= 0 && tgx_int(c, keepdim), t->dtype);
    return tgx_reduction_shape(c, op, t->dtype, mask);
}

static int max_shape(tgx_call *c) { return extreme_shape(c, TGX_MAX, -1, -1); }
static int min_shape(tgx_call *c) { return extreme_shape(c, TGX_MIN, -1, -1); }
static int amax_shape(tgx_call *c) { return extreme_shape(c, TGX_MAX, 1, 2); }
static int amin_shape(tgx_call *c) { return extreme_shape(c, TGX_MIN, 1, 2); }
TGX_KERNEL(max, max_shape, run_to_first, 0)
TGX_KERNEL(min, min_shape, run_to_first, 0)
TGX_KERNEL(amax, amax_shape, run_to_first, 0)
TGX_KERNEL(amin, amin_shape, run_to_first, 0)

/* (values, indices) along one dimension. */
static int extreme_at_shape(tgx_call *c, int op) {
    const tgx_tensor *t = tgx_in(c, 0);
    uint64_t mask;
    if (tgx_dim_mask(c, 1, &mask) || tgx_refuse_empty(c, t, mask)) return TGX_FAILED;
    tgx_reduced(c, 0, t, mask, (int)tgx_int(c, 2), t->dtype);
    tgx_reduced(c, 1, t, mask, (int)tgx_int(c, 2), TGX_I64);
    return tgx_reduction_shape(c, op, t->dtype, mask);
}

static int max_dim_shape(tgx_call *c) { return extreme_at_shape(c, TGX_ARGMAX); }
static int min_dim_shape(tgx_call *c) { return extreme_at_shape(c, TGX_ARGMIN); }
TGX_KERNEL(max_dim, max_dim_shape, run_to_both, 0)
TGX_KERNEL(min_dim, min_dim_shape, run_to_both, 0)

static int arg_shape(tgx_call *c, int op) {
    const tgx_tensor *t = tgx_in(c, 0);
    uint64_t mask;
    if (tgx_dim_mask(c, 1, &mask)) return TGX_FAILED;
    if (t->dtype == TGX_BOOL)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): does not support bool input: convert it with .int()", c->title);
    if (t->count == 0 && mask == TGX_ALL_DIMS) return refuse_none(c, t, TGX_INDEX_ERROR);
    if (tgx_refuse_empty(c, t, mask)) return TGX_FAILED;
    tgx_reduced(c, 0, t, mask, (int)tgx_int(c, 2), TGX_I64);
    return tgx_reduction_shape(c, op, t->dtype, mask);
}

static int argmax_shape(tgx_call *c) { return arg_shape(c, TGX_ARGMAX); }
static int argmin_shape(tgx_call *c) { return arg_shape(c, TGX_ARGMIN); }
TGX_KERNEL(argmax, argmax_shape, run_to_second, 0)
TGX_KERNEL(argmin, argmin_shape, run_to_second, 0)
