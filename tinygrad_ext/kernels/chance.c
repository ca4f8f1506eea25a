/* Kernels that draw by given probabilities and weights. See sample.h. */
#include "random_parts.h"
#include "random_sample.h"
#include "sample.h"
#include "walk.h"

/* One probability for each element, that of the arguments that is number `from`; it broadcasts. */
static int each_shape(tgx_call *c, int from) {
    const tgx_tensor *p = tgx_in(c, from);
    if (!tgx_is_float(p->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"bernoulli\" not implemented for '%s': expected probabilities tensor to have floating "
                        "type, or one number p", tgx_dtype_title(p->dtype));
    if (!tgx_broadcasts(p, tgx_in(c, 0)))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "output with shape %s doesn't match the broadcast shape of p %s: bernoulli_()",
                        tgx_shape_text(tgx_in(c, 0)), tgx_shape_text(p));
    if (c->meta) return 0;
    int dtype = p->dtype == TGX_F64 ? TGX_F64 : TGX_F32;
    tgx_need_dtype(c, from, dtype);
    if (from || c->target || !(p->flags & TGX_CONTIGUOUS)) c->scratch_bytes += tgx_in(c, 0)->count * tgx_itemsize[dtype];
    return tgx_need_real(c, c->outputs[0].dtype, "bernoulli_");
}

typedef struct { int dtype, of_chances; const char *out, *chances; } each_t;

static void fill_each(const void *what, tgx_stream *s, void *out, int64_t n) {
    const each_t *d = what;
    const int64_t at = ((const char *)out - d->out) / tgx_itemsize[d->dtype];
    tgx_random_bernoulli_each(s, d->dtype, out, n, d->of_chances, d->chances + at * tgx_itemsize[d->of_chances]);
}

/* The memory that is filled, as far as it is not the result's own, and behind it the probabilities in the same order. */
static int each_run(tgx_call *c, int from, int generator) {
    const tgx_tensor *out = tgx_out(c, 0), *p = tgx_in(c, from);
    int64_t strides[TGX_MAX_DIMS];
    tgx_tensor dense = *out, chances = *out;
    int apart;
    dense.strides = chances.strides = strides;
    tgx_order_strides(out, strides);
    apart = !tgx_same_strides(out, strides);
    if (apart) dense.data = c->scratch;
    chances.dtype = p->dtype, chances.data = (char *)c->scratch + (apart ? tgx_aligned(out->count * tgx_itemsize[out->dtype]) : 0);
    if (tgx_same_sizes(p, out) && tgx_same_strides(p, strides)) chances.data = p->data;
    else c->services->copy(&chances, p);
    if (!tgx_random_are_chances(p->dtype, chances.data, out->count))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected p_in >= 0 && p_in <= 1 to be true, but got false: every element of p must be in "
                        "[0, 1]; pass probabilities, for instance through sigmoid()");
    const each_t each = {out->dtype, p->dtype, dense.data, chances.data};
    const tgx_random_whole whole = {dense.data, out->count, tgx_itemsize[out->dtype], p->dtype == TGX_F64 ? 2 : 1, 0};
    tgx_random_shared(c, c->args[generator].pointer, &whole, fill_each, &each);
    return apart ? c->services->copy(out, &dense) : 0;
}

/* (self, generator): self holds the probabilities */
static int bernoulli_shape(tgx_call *c) {
    tgx_like_self(c);
    return each_shape(c, 0);
}
static int bernoulli_run(tgx_call *c) { return each_run(c, 0, 1); }
TGX_KERNEL(bernoulli, bernoulli_shape, bernoulli_run, TGX_SERIAL | TGX_ANY_LAYOUT)

/* (self, p, generator) */
static int bernoulli_tensor_shape(tgx_call *c) {
    tgx_like_self(c);
    return each_shape(c, 1);
}
static int bernoulli_tensor_run(tgx_call *c) { return each_run(c, 1, 2); }
TGX_KERNEL(bernoulli_tensor, bernoulli_tensor_shape, bernoulli_tensor_run, TGX_SERIAL)

/* ---- by weight --------------------------------------------------------------------------------------------------- */

/* (self, num_samples, replacement, generator): indices, a row for each row of weights */
static int multinomial_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t samples = tgx_int(c, 1);
    if (!tgx_is_float(t->dtype))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "multinomial only supports floating-point dtypes for input, got: %s. Convert the weights with "
                        "float().", tgx_dtype_title(t->dtype));
    if (t->rank != 1 && t->rank != 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "prob_dist must be 1 or 2 dim, got %d: multinomial takes a vector of weights, or a matrix with "
                        "one distribution a row", t->rank);
    int64_t categories = t->sizes[t->rank - 1];
    if (categories == 0 && (t->rank == 1 || t->sizes[0]))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "multinomial: input %s has no categories to draw from", tgx_shape_text(t));
    if (samples <= 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "cannot sample n_sample <= 0 samples: multinomial got num_samples=%lld", (long long)samples);
    if (!c->meta && !tgx_int(c, 2) && samples > categories)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "cannot sample n_sample > prob_dist.size(-1) samples without replacement: num_samples=%lld, input "
                        "has %lld categories; pass replacement=True to draw one more than once", (long long)samples, (long long)categories);
    tgx_need(c, 0, t->dtype == TGX_F64 ? TGX_F64 : TGX_F32);
    tgx_output *o = tgx_fresh(c, 0, t->rank, TGX_I64);
    o->dims[0] = t->sizes[0], o->dims[t->rank - 1] = samples;
    return 0;
}

static int multinomial_run(tgx_call *c) {
    const tgx_tensor *w = tgx_in(c, 0);
    int64_t rows = w->rank == 2 ? w->sizes[0] : 1, categories = w->sizes[w->rank - 1];
    int code = tgx_random_multinomial(c->args[3].pointer, w->dtype, w->data, rows, categories, (int64_t *)tgx_out(c, 0)->data, tgx_int(c, 1),
                                      (int)tgx_int(c, 2));
    if (code == TGX_NO_MEMORY)
        return tgx_fail(c, TGX_MEMORY_ERROR, "multinomial: cannot allocate %lld bytes of scratch memory", (long long)(16 * categories));
    return !code ? 0 : tgx_fail(c, TGX_RUNTIME_ERROR, "probability tensor contains either `inf`, `nan` or element < 0, or is an invalid "
                                "multinomial distribution (sum of probabilities <= 0): pass weights, for instance through softmax()");
}
TGX_KERNEL(multinomial, multinomial_shape, multinomial_run, TGX_SERIAL)
