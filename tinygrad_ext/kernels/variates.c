/* Kernels that draw gamma, Dirichlet, Poisson and binomial variables, each with a parameter of its own. See random_variates.h. */
#include <float.h>
#include <math.h>
#include "random_variates.h"
#include "tgx.h"

static int need_float(tgx_call *c, int i, const char *op, int halves) {
    int dtype = tgx_in(c, i)->dtype;
    if (dtype == TGX_F32 || dtype == TGX_F64 || (halves && tgx_is_float(dtype))) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': pass float32 or float64 parameters", op,
                    tgx_dtype_title(dtype));
}

static double read(const tgx_tensor *t, int64_t i) { return t->dtype == TGX_F64 ? ((double *)t->data)[i] : (double)((float *)t->data)[i]; }

static void write(const tgx_tensor *t, int64_t i, double value) {
    if (t->dtype == TGX_F64) ((double *)t->data)[i] = value;
    else ((float *)t->data)[i] = (float)value;
}

/* The result, of the shape of argument 0, which run finds dense; half types are drawn as float32. */
static int drawn_shape(tgx_call *c, const char *op, int halves) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (need_float(c, 0, op, halves)) return TGX_FAILED;
    tgx_need(c, 0, t->dtype == TGX_F64 ? TGX_F64 : TGX_F32);
    tgx_like(c, 0, t, t->dtype)->via = t->dtype == TGX_F64 ? TGX_F64 : TGX_F32;
    return 0;
}

/* (self, generator): rates */
static int poisson_shape(tgx_call *c) { return drawn_shape(c, "poisson_cpu", 1); }
static int poisson_run(tgx_call *c) {
    const tgx_tensor *rate = tgx_in(c, 0), *out = tgx_out(c, 0);
    for (int64_t i = 0; i < out->count; i++) {
        double r = read(rate, i);
        if (!(r >= 0 && r < 9e18))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "invalid Poisson rate, expected rate to be non-negative: poisson got %g at position %lld", r,
                            (long long)i);
        write(out, i, (double)tgx_draw_poisson(c->args[1].pointer, r));
    }
    return 0;
}
TGX_KERNEL(poisson, poisson_shape, poisson_run, TGX_SERIAL)

/* (count, prob, generator): two tensors of one shape */
static int binomial_shape(tgx_call *c) {
    const tgx_tensor *count = tgx_in(c, 0), *prob = tgx_in(c, 1);
    if (drawn_shape(c, "binomial_cpu", 1) || need_float(c, 1, "binomial_cpu", 1)) return TGX_FAILED;
    if (!tgx_same_sizes(count, prob) || count->dtype != prob->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "binomial: count %s of %s and prob %s of %s must have one shape and dtype; broadcast them first",
                        tgx_shape_text(count), tgx_dtype_title(count->dtype), tgx_shape_text(prob), tgx_dtype_title(prob->dtype));
    tgx_need(c, 1, count->dtype == TGX_F64 ? TGX_F64 : TGX_F32);
    return 0;
}
static int binomial_run(tgx_call *c) {
    const tgx_tensor *count = tgx_in(c, 0), *prob = tgx_in(c, 1), *out = tgx_out(c, 0);
    for (int64_t i = 0; i < out->count; i++) write(out, i, tgx_draw_binomial(c->args[2].pointer, read(count, i), read(prob, i)));
    return 0;
}
TGX_KERNEL(binomial, binomial_shape, binomial_run, TGX_SERIAL)

/* (self, generator): concentrations */
static int standard_gamma_shape(tgx_call *c) { return drawn_shape(c, "gamma", 0); }
static int standard_gamma_run(tgx_call *c) {
    const tgx_tensor *alpha = tgx_in(c, 0), *out = tgx_out(c, 0);
    tgx_stream *s = c->args[1].pointer;
    for (int64_t i = 0; i < out->count; i++)
        if (out->dtype == TGX_F64) ((double *)out->data)[i] = tgx_draw_gamma(s, ((double *)alpha->data)[i]);
        else ((float *)out->data)[i] = tgx_draw_gamma_f32(s, ((float *)alpha->data)[i]);
    return 0;
}
TGX_KERNEL(standard_gamma, standard_gamma_shape, standard_gamma_run, TGX_SERIAL)

/* (self, generator): concentrations, a vector each row; gamma variables in double, over their sum */
static int sample_dirichlet_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (drawn_shape(c, "dirichlet", 0)) return TGX_FAILED;
    if (t->rank < 1) return tgx_fail(c, TGX_RUNTIME_ERROR, "_sample_dirichlet: expected vectors of concentrations, got a tensor without dimensions");
    c->scratch_bytes = t->count * (int64_t)sizeof(double);
    return 0;
}
static int sample_dirichlet_run(tgx_call *c) {
    const tgx_tensor *alpha = tgx_in(c, 0), *out = tgx_out(c, 0);
    int64_t width = out->sizes[out->rank - 1], rows = width ? out->count / width : 0;
    double least = out->dtype == TGX_F64 ? DBL_MIN : FLT_MIN, *drawn = c->scratch;
    double most = out->dtype == TGX_F64 ? nextafter(1.0, 0.0) : (double)nextafterf(1.0f, 0.0f);
    for (int64_t i = 0; i < out->count; i++) drawn[i] = tgx_draw_gamma(c->args[1].pointer, read(alpha, i));
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = row * width; i < (row + 1) * width; i++) sum += drawn[i];
        for (int64_t i = row * width; i < (row + 1) * width; i++) write(out, i, fmin(fmax(drawn[i] / sum, least), most));
    }
    return 0;
}
TGX_KERNEL(sample_dirichlet, sample_dirichlet_shape, sample_dirichlet_run, TGX_SERIAL)
