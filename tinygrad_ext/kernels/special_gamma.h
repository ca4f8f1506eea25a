/* The incomplete gamma functions and the Hurwitz zeta function.
 *
 * Q and P of DLMF 8.2: the power series left of a + 1, Legendre's continued fraction right of it, and near a large `a`
 * Temme's uniform expansion with four terms (1979; DLMF 8.12), whose coefficients follow from its recurrence in 60-digit
 * arithmetic. The factor x^a e^-x / gamma(a) goes through a (x/a - 1 - log(x/a)), which does not cancel.
 *
 * `least` is what may be left of a sum: what a double shows, or, of float32, four digits behind the last. The fraction is a pair of
 * recurrences, whose divisions nothing waits for; Lentz's form of it, two divisions one after the other a step, took four times
 * as long. */
#ifndef TGX_SPECIAL_GAMMA_H
#define TGX_SPECIAL_GAMMA_H
#include "chebyshev.h"

#define VM_LEAST_F64 1e-17
#define VM_LEAST_F32 1e-10

static const double vm_c_zeta_minus_1[] = {0x1.4a34cc4a60fa6p-1, 0x1.9dd002780310ap-3, 0x1.51322ac7d8483p-4, 
    0x1.2e831d94f99b7p-5, 0x1.1c26130249124p-6, 0x1.1196d0a679c47p-7, 0x1.0b36af86396e9p-8, 0x1.073e7b02d6ae0p-9, 
    0x1.04b8ce96ee5f8p-10, 0x1.0318df2459954p-11, 0x1.020a5b2cd3042p-12, 0x1.01593a1177bd6p-13, 0x1.00e4af2b4e156p-14, 
    0x1.0097bcbf11bedp-15, 0x1.0064cdeb22f0fp-16, 0x1.0043073686681p-17, 0x1.002c9953744ccp-18, 0x1.001db08f9ba4ap-19, 
    0x1.0013c594466eap-20, 0x1.000d2bab28121p-21, 0x1.0008c66cec77dp-22, 0x1.0005d8f13858cp-23, 0x1.0003e59ffde12p-24, 
    0x1.000298ea55633p-25, 0x1.0001bb316ccdap-26, 0x1.0001276b90845p-27, 0x1.0000c4ed05ae3p-28, 0x1.0000834601a87p-29};
/* c0 of Temme, by powers of eta. */
static const double vm_c_temme0[] = {
    -0x1.5555555555555p-2, 0x1.5555555555555p-4, -0x1.e573ac901e574p-7, 0x1.2f684bda12f68p-10, 0x1.71de3a556c734p-12,
    -0x1.76e06fec7273bp-13, 0x1.48c5892f7cd83p-15, -0x1.255370652afc1p-19, -0x1.f1b22f594c6b5p-20,
    0x1.bd6d21e4b4109p-21, -0x1.7b5f9a2d0465cp-23, 0x1.ccf5ceb7f0d9fp-28, 0x1.6097d55c37c1cp-27, -0x1.2d2197c7a2faap-28,
    0x1.f6e66d24d5c8ap-31, -0x1.c0d9b6edf2b0bp-36, -0x1.0070a87340428p-34, 0x1.ac9475c463659p-36,
    -0x1.61ca701fd754ap-38, 0x1.ef98008f5eec2p-44
};
/* c1 of Temme, by powers of eta. */
static const double vm_c_temme1[] = {
    -0x1.e573ac901e574p-10, -0x1.c71c71c71c71cp-9, 0x1.5ac056b015ac0p-9, -0x1.0394f6f09e723p-10, 0x1.af83440e53dbcp-13,
    -0x1.af83440e53dbcp-22, -0x1.2fa4ae89e5af0p-16, 0x1.00a9cabd6b83ep-17, -0x1.b0bdfcc629cbap-20,
    0x1.3f59230a8357cp-28, 0x1.280f2cde3f847p-23, -0x1.ee23d0cba8aeep-25, 0x1.9aa7a30de114cp-27, -0x1.349fbca3a377bp-36
};
/* c2 of Temme, by powers of eta. */
static const double vm_c_temme2[] = {
    0x1.0ee643b990ee6p-8, -0x1.5f7268edab4c8p-9, 0x1.948b0fcd6e9e0p-11, 0x1.0db20a88f4696p-19, -0x1.c253efaa1a932p-14,
    0x1.bbf43daf4fe53p-15, -0x1.ac2d05890f2c3p-17, 0x1.26154ae39151dp-25, 0x1.7058929663937p-20, -0x1.522cb05171911p-21
};
/* c3 of Temme, by powers of eta. */
static const double vm_c_temme3[] = {
    0x1.547d93b34e2b6p-11, 0x1.e13ce465fa859p-13, -0x1.ebfb188b7ca00p-12, 0x1.18b9b5bf2d984p-12, -0x1.3d2a3a29b5d9dp-14,
    -0x1.0152a1871f27ap-22, 0x1.73df462204ef4p-17, -0x1.7cd6f27b3f020p-18
};

/* log gamma(1 + a) for |a| <= 1/2. */
VM_RARE double vm_lgamma1p(double a) {
    double sum = 0.0;
    for (int k = 29; k >= 2; k--) sum = (vm_c_zeta_minus_1[k - 2] / k) + sum * -a;
    return a * (0.42278433509846713939 + a * sum) - log1p(a);
}

/* u - log(1 + u). */
VM_RARE double vm_minus_log1p(double u) {
    if (fabs(u) > 0.4) return u - log1p(u);
    double r = u / (2.0 + u), s = r * r, sum = 0.0;
    for (int k = 35; k >= 3; k -= 2) sum = sum * s + 1.0 / k;
    return r * (u - 2.0 * s * sum);
}

/* x^a e^-x / gamma(a); of float32 by one exponential, whose argument has digits to spare. */
VM_RARE double vm_gamma_density(double a, double x, double least) {
    if (a < 8.0) {
        if (least > VM_LEAST_F64) return exp(a * log(x) - x - vm_lgamma_positive_f64(a));
        if (x < 300.0) return pow(x, a) * exp(-x) / tgamma(a);
        return exp(a * log(x) - x - lgamma(a));
    }
    double i = 1.0 / a, w = i * i;
    double stirling = i * (1.0 / 12 - w * (1.0 / 360 - w * (1.0 / 1260 - w * (1.0 / 1680 - w * (1.0 / 1188 - w * 691.0 / 360360)))));
    return sqrt(a / 6.28318530717958647693) * exp(-a * vm_minus_log1p((x - a) / a) - stirling);
}

VM_RARE double vm_gamma_series(double a, double x, double least) {
    double term = 1.0, sum = 1.0;
    for (double n = a + 1.0; term * n > sum * least * (n - x); n += 1.0) sum += term *= x / n;
    return sum * vm_gamma_density(a, x, least) / a;
}

VM_RARE double vm_gamma_fraction(double a, double x, double least) {
    const double density = vm_gamma_density(a, x, least);
    double b = x + 1.0 - a, p = 1.0, q = b, p_before = 0.0, q_before = 1.0, h = p / q;
    if (density == 0.0) return 0.0;
    for (double n = 1.0; n < 1e5; n += 1.0) {
        double an = n * (a - n), p_next = (b += 2.0) * p + an * p_before, q_next = b * q + an * q_before;
        p_before = p, q_before = q, p = p_next, q = q_next;
        double before = h;
        h = p / q;
        if (fabs(h - before) <= 10.0 * least * fabs(h)) break;
        if (fabs(q) > 1e100) p *= 1e-100, q *= 1e-100, p_before *= 1e-100, q_before *= 1e-100;
    }
    return h * density;
}

/* Q for small x and small a, where 1 - P cancels: 1 - x^a / gamma(1 + a) less the rest of the series of P. */
VM_RARE double vm_gamma_upper_small(double a, double x, double least) {
    double factor = 1.0, sum = 0.0;
    for (int n = 1; n < 200; n++) {
        factor *= -x / n;
        double term = factor / (a + n);
        sum += term;
        if (fabs(term) <= least * fabs(sum)) break;
    }
    double log_gamma = a <= 0.5 ? vm_lgamma1p(a) : lgamma(1.0 + a), e = a * log(x) - log_gamma;
    return -expm1(e) - a * exp(e) * sum;
}

VM_RARE double vm_power_sum(const double *c, int n, double x) {
    double sum = 0.0;
    for (int k = n - 1; k >= 0; k--) sum = sum * x + c[k];
    return sum;
}

/* Near a large `a`: P with upper 0, Q with upper 1. */
VM_RARE double vm_gamma_uniform(double a, double x, int upper) {
    double u = (x - a) / a, eta = copysign(sqrt(2.0 * vm_minus_log1p(u)), u), i = 1.0 / a;
    double sum = vm_power_sum(vm_c_temme0, 20, eta)
               + i * (vm_power_sum(vm_c_temme1, 14, eta) + i * (vm_power_sum(vm_c_temme2, 10, eta) + i * vm_power_sum(vm_c_temme3, 8, eta)));
    double rest = exp(-0.5 * a * eta * eta) / sqrt(6.28318530717958647693 * a) * sum;
    double argument = eta * sqrt(0.5 * a);
    return 0.5 * erfc(upper ? argument : -argument) + (upper ? rest : -rest);
}

VM_RARE double vm_gamma_part(double a, double x, int upper, double least) {
    if (!(a >= 0.0 && x >= 0.0)) return (double)NAN;
    if (a == 0.0) return x > 0.0 ? !upper : (double)NAN;
    if (x == 0.0) return upper;
    if (isinf(a)) return isinf(x) ? (double)NAN : upper;
    if (isinf(x)) return !upper;
    if (a >= 1e4 && fabs(x - a) < 0.4 * a) return vm_gamma_uniform(a, x, upper);
    if (upper && x <= 1.1 && (x <= 0.5 ? -0.4 / log(x) >= a : x * 1.1 >= a)) return vm_gamma_upper_small(a, x, least);
    if (x < a + 1.0) return upper ? 1.0 - vm_gamma_series(a, x, least) : vm_gamma_series(a, x, least);
    return upper ? vm_gamma_fraction(a, x, least) : 1.0 - vm_gamma_fraction(a, x, least);
}
VM_RARE double vm_igamma_f64(double a, double x) { return vm_gamma_part(a, x, 0, VM_LEAST_F64); }
VM_RARE double vm_igammac_f64(double a, double x) { return vm_gamma_part(a, x, 1, VM_LEAST_F64); }
VM_RARE float vm_igamma_f32(float a, float x) { return (float)vm_gamma_part(a, x, 0, VM_LEAST_F32); }
VM_RARE float vm_igammac_f32(float a, float x) { return (float)vm_gamma_part(a, x, 1, VM_LEAST_F32); }

/* sum (k + q)^-s: terms up to q >= 10 + s, then Euler and Maclaurin's formula. */
VM_RARE double vm_zeta_f64(double s, double q) {
    static const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510,
                                       43867.0 / 798, -174611.0 / 330};
    if (s == 1.0) return (double)INFINITY;
    if (!(s > 1.0) || q != q) return (double)NAN;
    if (q <= 0.0) {
        if (q == floor(q)) return (double)INFINITY;
        if (s != floor(s)) return (double)NAN;
    }
    if (isinf(s)) return q > 1.0 ? 0.0 : q == 1.0 ? 1.0 : (double)INFINITY;
    double sum = 0.0;
    if (q < -1e6) return (double)NAN; /* that many terms are nobody's wish */
    for (; q < 10.0 + s; q += 1.0) {
        double term = pow(q, -s);
        sum += term;
        if (q > 0.0 && term <= 1e-17 * sum && s > 20.0) return sum;     /* of two zeros too */
    }
    double power = pow(q, -s), factor = s / 2.0;
    sum += power * q / (s - 1.0) + 0.5 * power;
    power /= q;
    for (int k = 0; k < 10; k++) {
        double term = bernoulli[k] * factor * power;
        sum += term;
        if (fabs(term) < 1e-18 * sum) break;
        power /= q * q;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / ((2 * k + 3) * (2 * k + 4));
    }
    return sum;
}

VM_ROUNDED2(zeta)

#endif
