/* How a gamma or Dirichlet variable changes with its concentration while its place in the distribution stays.
 *
 * With the distribution function F(x; a) that is -(dF/da) / (dF/dx), the implicit derivative. F of both is the density
 * times a series of positive terms, so the derivative with respect to a is taken term by term, the logarithm of each term
 * being a sum of simple fractions. PyTorch's own values come from fitted fractions, good to about three digits; these are
 * good to eight and better. The series are in sample_slopes_isa.h. */
#include "isa.h"
#include "sample_slopes.h"
#include "tgx.h"

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static int slope_shape(tgx_call *c, int n, const char *op) {
    const tgx_tensor *first = tgx_in(c, 0);
    int dtype = first->dtype;
    if (dtype != TGX_F32 && dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': pass float32 or float64", op, tgx_dtype_title(dtype));
    for (int i = 1; i < n; i++)
        if (!tgx_same_sizes(first, tgx_in(c, i)) || tgx_in(c, i)->dtype != dtype)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: all tensors must have one shape and dtype, got %s and %s; broadcast them first", op,
                            tgx_shape_text(first), tgx_shape_text(tgx_in(c, i)));
    for (int i = 0; i < n; i++) tgx_need_dense(c, i);
    tgx_like(c, 0, first, dtype);
    return 0;
}

/* Elements [from, from + n) of an argument in double precision. */
static void take(const tgx_call *c, int arg, ptrdiff_t from, ptrdiff_t n, double *to) {
    const tgx_tensor *t = tgx_in(c, arg);
    if (t->dtype == TGX_F64) memcpy(to, (const double *)t->data + from, (size_t)n * sizeof *to);
    else for (ptrdiff_t i = 0; i < n; i++) to[i] = ((const float *)t->data)[from + i];
}

static void put(const tgx_call *c, ptrdiff_t from, ptrdiff_t n, const double *values) {
    const tgx_tensor *out = tgx_out(c, 0);
    if (out->dtype == TGX_F64) memcpy((double *)out->data + from, values, (size_t)n * sizeof *values);
    else for (ptrdiff_t i = 0; i < n; i++) ((float *)out->data)[from + i] = (float)values[i];
}

/* What may be left of a series: of float32 four digits behind the last. */
static double least_of(const tgx_call *c) { return tgx_out(c, 0)->dtype == TGX_F64 ? 1e-17 : 1e-12; }

static int gamma_range(void *job, ptrdiff_t from, ptrdiff_t to) {
    double a[TGX_SLOPES], x[TGX_SLOPES], found[TGX_SLOPES];
    const tgx_slope_table *slopes = TGX_PICK(tgx_slopes);
    for (ptrdiff_t n; from < to; from += n) {
        n = to - from < TGX_SLOPES ? to - from : TGX_SLOPES;
        take(job, 0, from, n, a), take(job, 1, from, n, x);
        slopes->gamma(n, a, x, least_of(job), found);
        put(job, from, n, found);
    }
    return 0;
}

static int beta_range(void *job, ptrdiff_t from, ptrdiff_t to) {
    double x[TGX_SLOPES], a[TGX_SLOPES], total[TGX_SLOPES], found[TGX_SLOPES];
    const tgx_slope_table *slopes = TGX_PICK(tgx_slopes);
    for (ptrdiff_t n; from < to; from += n) {
        n = to - from < TGX_SLOPES ? to - from : TGX_SLOPES;
        take(job, 0, from, n, x), take(job, 1, from, n, a), take(job, 2, from, n, total);
        slopes->beta(n, x, a, total, least_of(job), found);
        for (ptrdiff_t i = 0; i < n; i++)
            if (x[i] != 1) found[i] /= 1 - x[i];        /* at 1 the quotient's limit was found */
        put(job, from, n, found);
    }
    return 0;
}

/* (self, output): concentrations and what was drawn */
static int standard_gamma_grad_shape(tgx_call *c) { return slope_shape(c, 2, "_standard_gamma_grad"); }
static int standard_gamma_grad_run(tgx_call *c) { return tgx_range(c, gamma_range, c, tgx_out(c, 0)->count, TGX_SLOPES); }
TGX_KERNEL(standard_gamma_grad, standard_gamma_grad_shape, standard_gamma_grad_run, 0)

/* (x, alpha, total): what was drawn, its concentration, the sum of the vector's */
static int dirichlet_grad_shape(tgx_call *c) { return slope_shape(c, 3, "_dirichlet_grad"); }
static int dirichlet_grad_run(tgx_call *c) { return tgx_range(c, beta_range, c, tgx_out(c, 0)->count, TGX_SLOPES); }
TGX_KERNEL(dirichlet_grad, dirichlet_grad_shape, dirichlet_grad_run, 0)
