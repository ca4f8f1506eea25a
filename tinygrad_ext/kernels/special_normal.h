/* The normal distribution's functions: erfcx, log of the distribution function, quantiles. */
#ifndef TGX_SPECIAL_NORMAL_H
#define TGX_SPECIAL_NORMAL_H
#include "chebyshev.h"

/* (1 + 2 a) e^(a^2) erfc a for a >= 0, t = (a - 7/2) / (a + 7/2). */
static const double vm_c_erfcx[] = {
    0x1.2d7956b513883p+0, -0x1.ab575879cd7e2p-10, -0x1.65bb4ca444603p-4, 0x1.db3742832fea0p-5, -0x1.8ec9d7e6e0c49p-6,
    0x1.ed73c6507dd60p-8, -0x1.c925ec7847a67p-10, 0x1.286e3f1fc4abbp-12, -0x1.84fa6fe7d1aacp-16, -0x1.1b6fc0516716ep-19,
    0x1.d69bb0b33d865p-21, -0x1.063ce911f4139p-24, -0x1.260fe335a76a2p-26, 0x1.d21ae1af1a336p-29, 0x1.1800df95d785ep-32,
    -0x1.127fd3c0d821ap-33, -0x1.3759a2862c4acp-39, 0x1.378a6eb843878p-38, -0x1.2f4bdee09cf36p-45,
    -0x1.73fb0704db3bcp-43, 0x1.122a8d511c46cp-49, 0x1.dbaa6ca9607a8p-48, 0x1.09a8bf1ab7ccbp-55, -0x1.406aa617fb329p-52
};
/* erfinv(x) / x on |x| <= 3/4, t = 2 (x / 0.75)^2 - 1. */
static const double vm_c_erfinv[] = {
    0x1.f2efd1865bb77p-1, 0x1.900fb0c67e4eep-4, 0x1.5df50381edbe2p-7, 0x1.7e4f126b51889p-10, 0x1.d04cde08462c9p-13,
    0x1.2bee82b1fdaddp-15, 0x1.938774495c02dp-18, 0x1.1752c667058fep-20, 0x1.8afd22f468170p-23, 0x1.1be2a177bad8bp-25,
    0x1.9d693c6c51becp-28, 0x1.3038a56337b3ap-30, 0x1.c3b0bc4c1ded0p-33, 0x1.51d00b94d6667p-35, 0x1.fc7e7a6803483p-38,
    0x1.80cd431ff069ap-40, 0x1.2496a94951b79p-42, 0x1.bed0cb69e80c4p-45, 0x1.5670936de2b7dp-47, 0x1.0751986aae92cp-49,
    0x1.962ab10062904p-52, 0x1.3a195b721d21cp-54, 0x1.e6fd89d58783ap-57
};
/* -Phi^-1(e^(-r^2)) on 1.4 <= r <= 2.4, t linear in r. */
static const double vm_c_quantile_a[] = {
    0x1.ea469d72752bdp+0, 0x1.a728641638d96p-1, -0x1.67af53f5ac713p-7, 0x1.1cd1d6d9b8f64p-10, -0x1.d830572d2fe81p-14,
    0x1.951444203762cp-17, -0x1.6567d5d6feeb7p-20, 0x1.42e0539db01e6p-23, -0x1.298810c4e2613p-26, 0x1.16c26a76a60a1p-29,
    -0x1.08cb5081cb9aep-32, 0x1.fcd966644734fp-36, -0x1.ed9f0a7b7173bp-39, 0x1.e2b9cb78e75bep-42,
    -0x1.db533224105dfp-45, 0x1.d6d0ac2a3d757p-48, -0x1.d4c1451b79296p-51, 0x1.d4d16e7e8043ap-54
};
/* -Phi^-1(e^(-r^2)) on 2.4 <= r <= 4.5, t linear in r. */
static const double vm_c_quantile_b[] = {
    0x1.15ae3453111bep+2, 0x1.97c4e6a7ffe61p+0, -0x1.9a14bfcce5c67p-7, 0x1.93eda27b2d5bbp-10, -0x1.9b863e73d3d03p-13,
    0x1.acdce23b7d119p-16, -0x1.c6a56a1224456p-19, 0x1.e8cf4ff4bdc96p-22, -0x1.09ffb3b5b8441p-24, 0x1.24ad6097d3dc6p-27,
    -0x1.4539b389c1a5cp-30, 0x1.6ca3355fac936p-33, -0x1.9c22698599bc6p-36, 0x1.d532658d81262p-39,
    -0x1.0cce8a998f899p-41, 0x1.35c5954f92adap-44, -0x1.66cc042eec631p-47, 0x1.a175198cc5953p-50, -0x1.e7a88c0382db9p-53
};
/* -Phi^-1(e^(-r^2)) on 4.5 <= r <= 10.0, t linear in r. */
static const double vm_c_quantile_c[] = {
    0x1.3d6be19b41b47p+3, 0x1.fda2f12346309p+1, -0x1.dc29daff2ae07p-7, 0x1.3ab3de78ff13fp-9, -0x1.ab9f1d3a8a7f9p-12,
    0x1.27bbbe3f6e97cp-14, -0x1.9e2fd76bd1d23p-17, 0x1.24c49583c79e3p-19, -0x1.a0f02db1a0becp-22, 0x1.2aad56deae926p-24,
    -0x1.ae1babd8a335dp-27, 0x1.37127da9dce0ap-29, -0x1.c3c473a21e636p-32, 0x1.49419d61269dcp-34,
    -0x1.e194ff2b2faa9p-37, 0x1.6153fd07af770p-39, -0x1.0406be8899b61p-41, 0x1.7fd865ca8e26fp-44,
    -0x1.1c1ab8c141562p-46, 0x1.a5af41f0d2682p-49, -0x1.39bdc2a3e1a64p-51
};
/* -Phi^-1(e^(-r^2)) on 10.0 <= r <= 27.5, t linear in r. */
static const double vm_c_quantile_d[] = {
    0x1.a5851aaf48ccap+4, 0x1.8e0d7ec731115p+3, -0x1.bc7de5f2c5622p-7, 0x1.837f538f481fcp-9, -0x1.594f4be6f46d9p-11,
    0x1.38182ed868387p-13, -0x1.1ce60a1327567p-15, 0x1.06048c202045dp-17, -0x1.e4c197102a710p-20, 0x1.c284b2654100fp-22,
    -0x1.a44eff53405b1p-24, 0x1.8963385c3ad15p-26, -0x1.7133251f95ccep-28, 0x1.5b514ae3ad729p-30,
    -0x1.4767aa438a8bcp-32, 0x1.3531897c2af3ep-34, -0x1.24772982b4932p-36, 0x1.150aba800621ap-38,
    -0x1.06c6266aa17d0p-40, 0x1.f312ddd608245p-43, -0x1.da72e5c59fb89p-45, 0x1.c37dfcaf61760p-47,
    -0x1.ae0c21702fe22p-49, 0x1.99fa96e7497dcp-51
};

/* e^(x^2) erfc x. */
VM_RARE double vm_erfcx_f64(double x) {
    if (x < -26.7) return (double)INFINITY;
    double a = fabs(x), t = a > 1e300 ? 1.0 : (a - 3.5) / (a + 3.5);
    double tail = VM_SUM(vm_c_erfcx, t) / (1.0 + 2.0 * a);
    if (!(x < 0.0)) return tail;
    double high = (double)(float)x, low = x - high;
    return 2.0 * exp(high * high) * exp(low * (x + high)) - tail;
}

#define VM_SQRT_HALF 0.70710678118654752440
/* e^(-x^2 / 2), the square in two parts. */
VM_RARE double vm_bell(double x) {
    double high = (double)(float)x, low = x - high;
    return exp(-0.5 * high * high) * exp(-0.5 * low * (x + high));
}

/* Left of -1 by erfcx, for the rounding of x / sqrt(2) would cost erfc many ulp. */
VM_RARE double vm_ndtr_f64(double x) {
    if (x < -1.0 && x > -40.0) return 0.5 * vm_erfcx_f64(-x * VM_SQRT_HALF) * vm_bell(x);
    return x > 1.0 && x < 40.0 ? 1.0 - vm_ndtr_f64(-x) : 0.5 * erfc(-x * VM_SQRT_HALF);
}

/* Left of -1 by erfcx, so that nothing underflows. */
VM_RARE double vm_log_ndtr_f64(double x) {
    double t = x * VM_SQRT_HALF;
    if (x < -1.0) return log(0.5 * vm_erfcx_f64(-t)) - 0.5 * x * x;
    return log1p(-vm_ndtr_f64(-x));
}

/* -x where the normal distribution function of x is e^(-r^2), up to 1/8. */
VM_RARE double vm_quantile_tail(double r) {
    if (r <= 2.4) return VM_SUM(vm_c_quantile_a, (r - 1.9) / 0.5);
    if (r <= 4.5) return VM_SUM(vm_c_quantile_b, (r - 3.45) / 1.05);
    if (r <= 10.0) return VM_SUM(vm_c_quantile_c, (r - 7.25) / 2.75);
    return VM_SUM(vm_c_quantile_d, (r - 18.75) / 8.75);
}

VM_RARE double vm_erfinv_f64(double x) {
    double a = fabs(x);
    if (a >= 1.0) return a == 1.0 ? copysign((double)INFINITY, x) : (double)NAN;
    if (!(a > 0.75)) return x * VM_SUM(vm_c_erfinv, 2.0 * (x / 0.75) * (x / 0.75) - 1.0);
    return copysign(VM_SQRT_HALF * vm_quantile_tail(sqrt(-log(0.5 * (1.0 - a)))), x);
}

VM_RARE double vm_ndtri_f64(double p) {
    if (!(p > 0.0 && p < 1.0)) return p == 0.0 ? -(double)INFINITY : p == 1.0 ? (double)INFINITY : (double)NAN;
    if (p < 0.125) return -vm_quantile_tail(sqrt(-log(p)));
    if (p > 0.875) return vm_quantile_tail(sqrt(-log1p(-p)));
    double x = 2.0 * (p - 0.5);
    return 1.41421356237309504880 * x * VM_SUM(vm_c_erfinv, 2.0 * (x / 0.75) * (x / 0.75) - 1.0);
}

VM_ROUNDED(erfcx)
VM_ROUNDED(ndtr)
VM_ROUNDED(log_ndtr)
VM_ROUNDED(erfinv)
VM_ROUNDED(ndtri)

#endif
