/* See sample_slopes.c.
 *
 * Series of eight variables are summed side by side, each to its own end: what a variable gives does not depend on those beside it.
 * Variables are sorted by the series that serves them first. Rejected: one variable after the other, where the chain of products is
 * waited for, at three times the time. */
#include <math.h>
#include "sample_slopes.h"
#include "vecmath.h"

enum { LANES = 8, LONGEST = 1 << 20 };
#define INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors of a width that a machine lacks: what is inlined passes none */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t marks __attribute__((vector_size(LANES * sizeof(int64_t))));

INLINE lanes where(marks which, lanes x, lanes y) { return (lanes)(((marks)x & which) | ((marks)y & ~which)); }
INLINE lanes magnitude(lanes x) { return (lanes)((marks)x & INT64_MAX); }
INLINE int any(marks which) {
    int64_t all = 0;
    for (int k = 0; k < LANES; k++) all |= which[k];
    return all != 0;
}

/* ---- gamma ------------------------------------------------------------------------------------------------------- */

/* Far up, x as a series in the normal variable z of its place: x = a + z sqrt(a) + (z^2 - 1) / 3 + ... */
static double gamma_large(double a, double x) {
    double root = sqrt(a), z = (x - a) / root;
    for (int i = 0; i < 6; i++) {
        double off = a + z * root + (z * z - 1) / 3 + (z * z * z - 7 * z) / (36 * root) - x;
        z -= off / (root + 2 * z / 3 + (3 * z * z - 7) / (36 * root));
    }
    return 1 + z / (2 * root) - (z * z * z - 7 * z) / (72 * a * root);
}

/* Left of the mean. Terms x^(n+1) / (a (a+1) ... (a+n)), each times psi(a+n+1) - log(x), with rise = psi(a+1) - log(x); those
 * that follow are bounded by a geometric series. */
INLINE lanes gamma_series(lanes a, lanes x, lanes rise, double least) {
    lanes term = x / a, factor = rise, next = a + 1, sum = a - a;
    marks live = term == term;
    for (int n = 1; any(live) && n < LONGEST; n++) {
        const lanes part = where(live, term * factor, sum - sum), inverse = 1 / next;
        sum += part;
        live &= ~((next > x) & (magnitude(part) * next < least * magnitude(sum) * (next - x))) & (magnitude(part) < 1e300);
        factor += inverse, term *= x * inverse, next += 1;
    }
    return sum;
}

/* Right of the mean what is left of 1 is small, and so is its slope, which the series would find as a difference. The upper part
 * is e^(-x) x^a / Gamma(a) times the continued fraction 1 / (x + 1 - a + 1 (a - 1) / (x + 3 - a + 2 (a - 2) / ...)), whose
 * convergents q / p are derived with them. rise as above. */
INLINE lanes gamma_tail(lanes a, lanes x, lanes rise, double least) {
    lanes zero = a - a, value = zero, p1 = zero + 1, q1 = zero, dp1 = zero, dq1 = zero, p = x + 1 - a, q = p1, dp = -p1, dq = zero;
    marks live = zero == zero;
    for (int n = 1; any(live) && n < LONGEST; n++) {
        const lanes above = n * (a - n), below = x + (2 * n + 1) - a, scale = where(p > 1e50, zero + 1e-50, zero + 1);
        const lanes next_p = below * p + above * p1, next_q = below * q + above * q1;
        const lanes next_dp = below * dp - p + (above * dp1 + n * p1), next_dq = below * dq - q + (above * dq1 + n * q1);
        p1 = p * scale, q1 = q * scale, dp1 = dp * scale, dq1 = dq * scale;
        p = next_p * scale, q = next_q * scale, dp = next_dp * scale, dq = next_dq * scale;
        if (n % 4) continue;
        const lanes inverse = 1 / p, fraction = q * inverse, found = x * ((1 / a - rise) * fraction + (dq - fraction * dp) * inverse);
        const lanes off = magnitude(found - value);
        value = where(live, found, value);
        live &= (off > least * magnitude(found)) & (off < 1e300);
    }
    return value;
}

/* ---- beta -------------------------------------------------------------------------------------------------------- */

/* F is the density times S = x (1 - x) / a * sum of c_n x^n with c_n = (a+b)_n / (a+1)_n, by its lower end; `own` says
 * whether the derivative is with respect to a or to b. Gives S * rise + dS. */
INLINE lanes beta_series(lanes a, lanes total, lanes x, lanes rise, const int own, double least) {
    lanes term = x * (1 - x) / a, slope = own ? rise - 1 / a : rise, sum = a - a, above = total, below = a + 1;
    marks live = sum == sum;
    for (int n = 0; any(live) && n < LONGEST; n++) {
        const lanes part = where(live, term * slope, term - term), both = 1 / (above * below), ratio = above * above * both * x;
        sum += part;
        live &= ~((ratio < 1) & (magnitude(part) < least * magnitude(sum) * (1 - ratio))) & (magnitude(part) < 1e300);
        slope += own ? (below - above) * both : below * both;
        term *= ratio, above += 1, below += 1;
    }
    return sum;
}
INLINE lanes beta_own(lanes a, lanes total, lanes x, lanes rise, double least) { return beta_series(a, total, x, rise, 1, least); }
INLINE lanes beta_other(lanes a, lanes total, lanes x, lanes rise, double least) { return beta_series(a, total, x, rise, 0, least); }

/* Where series would be long. F is the density times x (1 - x) V with the continued fraction
 * V = 1 / (b_0 + a_1 / (b_1 + a_2 / (b_2 + ...))), whose convergents are derived with them as above:
 * a_n = (a + n - 1) (a + b + n - 1) n (b - n) x^2 / (a + 2n - 1)^2,
 * b_n = n + n (b - n) x / (a + 2n - 1) + (a + n) (a (1 - x) - b x + 1 + n (2 - x)) / (a + 2n + 1). */
INLINE lanes beta_fraction(lanes a, lanes b, lanes x, lanes rest, lanes rise, const int own, double least) {
    const lanes zero = a - a, start = a * rest - b * x + 1, total = a + b;
    lanes value = zero, p1 = zero + 1, q1 = zero, dp1 = zero, dq1 = zero, q = p1, dq = zero;
    lanes p = a * start / (a + 1), dp = own ? (start / (a + 1) + a * rest) / (a + 1) : -a * x / (a + 1);
    marks live = zero == zero;
    for (int n = 1; any(live) && n < LONGEST; n++) {
        const lanes under = 1 / (a + (2 * n - 1)), over = 1 / (a + (2 * n + 1)), inner = start + n * (1 + rest), left = n * x * under;
        const lanes half = (a + (n - 1)) * x * under * left, outer = (a + n) * over;
        const lanes above = half * (total + (n - 1)) * (b - n), below = n + left * (b - n) + outer * inner;
        const lanes d_above = own ? (x * left * under * (total + (n - 1)) + half - 2 * half * (total + (n - 1)) * under) * (b - n)
                                  : half * (total + (n - 1) + (b - n));
        const lanes d_below = own ? -left * (b - n) * under + (inner * (1 - outer) + (a + n) * rest) * over : left - outer * x;
        const lanes scale = where(magnitude(p) > 1e50, zero + 1e-50, zero + 1);
        const lanes next_p = below * p + above * p1, next_q = below * q + above * q1;
        const lanes next_dp = below * dp + d_below * p + above * dp1 + d_above * p1;
        const lanes next_dq = below * dq + d_below * q + above * dq1 + d_above * q1;
        p1 = p * scale, q1 = q * scale, dp1 = dp * scale, dq1 = dq * scale;
        p = next_p * scale, q = next_q * scale, dp = next_dp * scale, dq = next_dq * scale;
        if (n % 4) continue;
        const lanes inverse = 1 / p, fraction = q * inverse, found = x * rest * (fraction * rise + (dq - fraction * dp) * inverse);
        const lanes off = magnitude(found - value);
        value = where(live, found, value);
        live &= (off > least * magnitude(found)) & (off < 1e300);
    }
    return value;
}

/* Of two large parameters: log(x / (1 - x)) as a series in the normal variable z of its place, by its cumulants, those of the
 * logarithms of two gamma variables (Cornish and Fisher). 0 where z is not small. */
static int beta_large(double a, double b, double x, double *out) {
    const double u = 1 / a, v = 1 / b;
    const double k2 = u + v + (u * u + v * v) / 2 + (u * u * u + v * v * v) / 6, k3 = -u * u * (1 + u) + v * v * (1 + v);
    const double k4 = u * u * u * (2 + 3 * u) + v * v * v * (2 + 3 * v), s = sqrt(k2), c3 = k3 / (6 * k2), c4 = k4 / (24 * s * k2);
    const double c5 = k3 * k3 / (36 * s * k2 * k2), place = log1p((x * b - (1 - x) * a) / ((1 - x) * a));
    const double off = place + (u - v) / 2 + (u * u - v * v) / 12;
    double z = off / s;
    if (!(z * z < 36)) return 0;
    for (int i = 0; i < 6; i++)
        z -= (s * z + c3 * (z * z - 1) + c4 * (z * z * z - 3 * z) - c5 * (2 * z * z * z - 5 * z) - off)
             / (s + 2 * c3 * z + c4 * (3 * z * z - 3) - c5 * (6 * z * z - 5));
    /* of the cumulants by a, and of the factors above */
    const double d1 = u + u * u / 2 + u * u * u / 6, d2 = -u * u * (1 + u), d3 = u * u * u * (2 + 3 * u);
    const double d4 = -u * u * u * u * (6 + 12 * u);
    const double r = d2 / k2, e3 = d3 / (6 * k2) - c3 * r, e4 = d4 / (24 * s * k2) - 1.5 * c4 * r;
    const double e5 = 2 * k3 * d3 / (36 * s * k2 * k2) - 2.5 * c5 * r;
    *out = x * (1 - x) * (d1 + s * r / 2 * z + e3 * (z * z - 1) + e4 * (z * z * z - 3 * z) - e5 * (2 * z * z * z - 5 * z));
    return 1;
}

/* Whether the series by the end of which a is the parameter would be long: its terms fall off as a normal density, or by their first
 * ratio. */
static int is_long(double a, double total, double x) {
    enum { TERMS = 1000 };
    const double b = total - a, ratio = total / (a + 1) * x;
    return 36 * a * total > (double)TERMS * TERMS * b && 36 > TERMS * (1 - ratio);
}

/* ---- variables by their series ------------------------------------------------------------------------------------ */

/* Eight at a time of the n that `at` names; the last one again where there are fewer. */
INLINE lanes of(const double *values, const int *at, int first, int n) {
    lanes found;
    for (int k = 0; k < LANES; k++) found[k] = values[at[first + k < n ? first + k : n - 1]];
    return found;
}
INLINE void to(double *values, const int *at, int first, int n, lanes found) {
    for (int k = 0; k < LANES && first + k < n; k++) values[at[first + k]] = found[k];
}

static void gamma_slopes(ptrdiff_t n, const double *a, const double *x, double least, double *out) {
    int at[2][TGX_SLOPES], count[2] = {0, 0};
    double rise[TGX_SLOPES];
    _Pragma("omp simd") for (ptrdiff_t i = 0; i < n; i++) rise[i] = vm_digamma_positive_f64(a[i] + 1) - vm_log_f64(x[i]);
    for (int i = 0; i < n; i++) {
        const double far = x[i] - a[i];
        if (isnan(x[i]) || !(a[i] > 0)) out[i] = NAN;
        else if (!(x[i] > 0)) out[i] = 0;
        else if (isinf(x[i]) || isinf(a[i])) out[i] = isinf(a[i]) ? 1 : x[i];
        else if (a[i] > 1e5 && far * far < 36 * a[i]) out[i] = gamma_large(a[i], x[i]);
        else if (x[i] > 1e10 && a[i] < 1e-8 * x[i]) /* the first terms of the upper part */
            out[i] = (1 / a[i] - rise[i]) * (1 + (a[i] - 1) / x[i]) + 1 / x[i];
        else at[far > 1][count[far > 1]++] = i;
    }
    for (int i = 0; i < count[0]; i += LANES)
        to(out, at[0], i, count[0], gamma_series(of(a, at[0], i, count[0]), of(x, at[0], i, count[0]), of(rise, at[0], i, count[0]), least));
    for (int i = 0; i < count[1]; i += LANES)
        to(out, at[1], i, count[1], gamma_tail(of(a, at[1], i, count[1]), of(x, at[1], i, count[1]), of(rise, at[1], i, count[1]),
                                               least < 1e-15 ? 1e-15 : least));
}

static void beta_slopes(ptrdiff_t n, const double *x, const double *a, const double *total, double least, double *out) {
    int at[4][TGX_SLOPES], count[4] = {0, 0, 0, 0};
    double rise[TGX_SLOPES];
    _Pragma("omp simd") for (ptrdiff_t i = 0; i < n; i++)
        rise[i] = vm_log_f64(x[i]) - vm_digamma_positive_f64(a[i]) + vm_digamma_positive_f64(total[i]);
    for (int i = 0; i < n; i++) {
        const double b = total[i] - a[i], u = 1 / a[i], w = 1 / total[i];
        if (a[i] > 1e4) rise[i] = vm_log_f64(x[i]) + log1p(b * u) + (u - w) / 2 + (u * u - w * w) / 12; /* nearly equal digammas */
        const int upper = x[i] > (a[i] + 1) / (total[i] + 2);
        if (isnan(x[i]) || !(a[i] > 0) || !(total[i] > 0)) out[i] = NAN;
        else if (!(x[i] > 0 && x[i] < 1)) out[i] = x[i] == 1 && b > 0 ? rise[i] / b : 0; /* of the slope over 1 - x the limit */
        else if (a[i] > 1e5 && b > 1e5 && beta_large(a[i], b, x[i], &out[i])) continue;
        else {
            const int way = upper + 2 * (upper ? is_long(b, total[i], 1 - x[i]) : is_long(a[i], total[i], x[i]));
            at[way][count[way]++] = i;
        }
    }
    for (int way = 0; way < 4; way++)
        for (int i = 0; i < count[way]; i += LANES) {
            const lanes own = of(a, at[way], i, count[way]), all = of(total, at[way], i, count[way]);
            const lanes place = of(x, at[way], i, count[way]), rises = of(rise, at[way], i, count[way]);
            const double end = least < 1e-15 ? 1e-15 : least;
            to(out, at[way], i, count[way],
               way == 0 ? -beta_own(own, all, place, rises, least)
               : way == 1 ? beta_other(all - own, all, 1 - place, rises, least)
               : way == 2 ? -beta_fraction(own, all - own, place, 1 - place, rises, 1, end)
                          : beta_fraction(all - own, own, 1 - place, place, rises, 0, end));
        }
}

const tgx_slope_table ISA(tgx_slopes) = {gamma_slopes, beta_slopes};
