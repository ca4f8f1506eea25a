/* How a gamma or Dirichlet variable changes with its concentration while its place in the distribution stays.
 *
 * With the distribution function F(x; a) that is -(dF/da) / (dF/dx), the implicit derivative. F of both is the density
 * times a series of positive terms, so the derivative with respect to a is taken term by term, the logarithm of each term
 * being a sum of simple fractions. PyTorch's own values come from fitted fractions, good to about three digits; these are
 * good to eight and better. */
#include <math.h>
#include "tgx.h"
#include "vecmath.h"

enum { LONGEST = 1 << 20 };

/* Digamma; what lies right of zero, which is all that is drawn from, needs no reflection. */
static double psi(double y) { return y >= 0 ? vm_digamma_positive_f64(y) : vm_digamma_f64(y); }

/* ---- gamma ------------------------------------------------------------------------------------------------------- */

/* Far up, x as a series in the normal variable z of its place: x = a + z sqrt(a) + (z^2 - 1) / 3 + ... */
static double gamma_slope_large(double a, double x) {
    double root = sqrt(a), z = (x - a) / root;
    for (int i = 0; i < 6; i++) {
        double off = a + z * root + (z * z - 1) / 3 + (z * z * z - 7 * z) / (36 * root) - x;
        z -= off / (root + 2 * z / 3 + (3 * z * z - 7) / (36 * root));
    }
    return 1 + z / (2 * root) - (z * z * z - 7 * z) / (72 * a * root);
}

/* Terms x^(n+1) / (a (a+1) ... (a+n)), each times psi(a+n+1) - log(x); those that follow are bounded by a geometric series. */
static double gamma_slope(double a, double x, double least) {
    if (isnan(a) || isnan(x)) return a + x;
    if (x <= 0) return 0;
    if (a > 1e5) return gamma_slope_large(a, x);
    double term = x / a, factor = psi(a + 1) - log(x), sum = 0, next = a + 1;
    for (int n = 1; n < LONGEST; n++, next += 1) {
        const double part = term * factor, inverse = 1 / next;
        sum += part;
        if (next > x && fabs(part) * next < least * fabs(sum) * (next - x)) break;
        factor += inverse, term *= x * inverse;
    }
    return sum;
}

/* ---- beta -------------------------------------------------------------------------------------------------------- */

/* F is the density times S = x (1 - x) / a * sum of c_n x^n with c_n = (a+b)_n / (a+1)_n, by its lower end; `own` says
 * whether the derivative is with respect to a or to b. Returns S * rise + dS. */
static double beta_series(double a, double b, double x, double rest, double rise, int own, double least) {
    double term = x * rest / a, slope = own ? rise - 1 / a : rise, sum = 0, above = a + b, below = a + 1;
    for (int n = 0; n < LONGEST; n++, above += 1, below += 1) {
        const double part = term * slope, inverse = 1 / below, ratio = above * inverse * x;
        sum += part;
        if (ratio < 1 && fabs(part) < least * fabs(sum) * (1 - ratio)) break;
        slope += 1 / above - (own ? inverse : 0), term *= ratio;
    }
    return sum;
}

/* dx/da of a beta variable x with the parameters a and total - a. */
static double beta_slope(double x, double a, double total, double least) {
    if (!(x > 0 && x < 1)) return isnan(x) ? x : 0;
    double b = total - a, rise = log(x) - psi(a) + psi(total);
    if (x <= (a + 1) / (total + 2)) return -beta_series(a, b, x, 1 - x, rise, 1, least);
    return beta_series(b, a, 1 - x, x, rise, 0, least);
}

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

static double at(const tgx_call *c, int arg, int64_t i) {
    const tgx_tensor *t = tgx_in(c, arg);
    return t->dtype == TGX_F64 ? ((double *)t->data)[i] : (double)((float *)t->data)[i];
}

static void put(const tgx_call *c, int64_t i, double value) {
    const tgx_tensor *out = tgx_out(c, 0);
    if (out->dtype == TGX_F64) ((double *)out->data)[i] = value;
    else ((float *)out->data)[i] = (float)value;
}

/* What may be left of a series: of float32 four digits behind the last. */
static double least_of(const tgx_call *c) { return tgx_out(c, 0)->dtype == TGX_F64 ? 1e-17 : 1e-12; }

static int gamma_range(void *job, ptrdiff_t from, ptrdiff_t to) {
    const double least = least_of(job);
    for (ptrdiff_t i = from; i < to; i++) put(job, i, gamma_slope(at(job, 0, i), at(job, 1, i), least));
    return 0;
}

static int beta_range(void *job, ptrdiff_t from, ptrdiff_t to) {
    const double least = least_of(job);
    for (ptrdiff_t i = from; i < to; i++) {
        double x = at(job, 0, i);
        put(job, i, beta_slope(x, at(job, 1, i), at(job, 2, i), least) / (1 - x));
    }
    return 0;
}

/* (self, output): concentrations and what was drawn */
static int standard_gamma_grad_shape(tgx_call *c) { return slope_shape(c, 2, "_standard_gamma_grad"); }
static int standard_gamma_grad_run(tgx_call *c) { return tgx_range(c, gamma_range, c, tgx_out(c, 0)->count, 256); }
TGX_KERNEL(standard_gamma_grad, standard_gamma_grad_shape, standard_gamma_grad_run, 0)

/* (x, alpha, total): what was drawn, its concentration, the sum of the vector's */
static int dirichlet_grad_shape(tgx_call *c) { return slope_shape(c, 3, "_dirichlet_grad"); }
static int dirichlet_grad_run(tgx_call *c) { return tgx_range(c, beta_range, c, tgx_out(c, 0)->count, 256); }
TGX_KERNEL(dirichlet_grad, dirichlet_grad_shape, dirichlet_grad_run, 0)
