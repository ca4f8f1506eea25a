/* The Airy function Ai and its slope: polynomials on [-5, 2.5], beyond that the leading behaviour times a fit in
 * zeta = 2/3 |x|^(3/2) (DLMF 9.7). */
#ifndef TGX_SPECIAL_AIRY_H
#define TGX_SPECIAL_AIRY_H
#include "chebyshev.h"

/* Ai(x) on -5 <= x <= -2.5. */
static const double vm_c_ai_low[] = {
    -0x1.c08b30f6dbd64p-6, -0x1.6b89f8ba95450p-2, 0x1.74fedd833cb21p-3, 0x1.0d6a5026b48ffp-3, -0x1.3cf8b5a60531ep-5,
    -0x1.0a82a3c61c3cap-7, 0x1.aebf717ad2980p-9, 0x1.91054f34308a4p-15, -0x1.0b9ffad87cc1dp-13, 0x1.6e4b23756e456p-17,
    0x1.2e09fc53f8226p-19, -0x1.dc64ffda73242p-22, -0x1.1f74ebcc8bd46p-28, 0x1.0d17158ac1de6p-27,
    -0x1.3e79e8e7ad100p-31, -0x1.068b3b890d4dep-34, 0x1.9b588588f670bp-37, -0x1.d8a4e845e3ea0p-43,
    -0x1.d62cf961c5833p-44, 0x1.5241fbc32a9dep-47, 0x1.3082dcb8f2d7dp-52, -0x1.b26d89ce91804p-54, 0x1.3583c155dc227p-58
};
/* Ai(x) on -2.5 <= x <= 0. */
static const double vm_c_ai_left[] = {
    0x1.3a9b838790b5ap-2, 0x1.cc43ad692f5fdp-3, -0x1.98099ffcd9e41p-3, 0x1.81cc09dfda6b3p-7, 0x1.b99e2c927f7e9p-7,
    -0x1.82a58268a8df9p-9, -0x1.ce833d778b9bcp-14, 0x1.e4a7ff9a14058p-14, -0x1.a2d393cb88cffp-17,
    -0x1.31b0809d67c07p-20, 0x1.a02fa17943fa4p-22, -0x1.949d4b971cbcap-26, -0x1.e4f2ec8f4f02cp-29,
    0x1.7ad77da74316fp-31, -0x1.954639458f073p-36, -0x1.9192aac92b1c1p-38, 0x1.a9899bc93f10ep-41,
    -0x1.8ed2d9c1ea028p-47, -0x1.9fb7bbc374f50p-48, 0x1.433148f06215dp-51
};
/* Ai(x) on 0 <= x <= 1.25. */
static const double vm_c_ai_right[] = {
    0x1.bac50839561f3p-3, -0x1.074bdfc0a82b3p-3, 0x1.75d0e166e96c7p-7, 0x1.be2122a5f95ffp-11, -0x1.191e432578d9fp-12,
    0x1.5273aaa3af996p-16, 0x1.47177ec683bfap-22, -0x1.62d8b5bc1396dp-23, 0x1.86cae9c7c0218p-27, -0x1.03cb241affd66p-36,
    -0x1.a872555d67e8bp-35, 0x1.bc0c57142e0fcp-39, -0x1.da1e64525bafep-46, -0x1.274174fed211fp-47,
    0x1.2c639c6d63946p-51, -0x1.ce9653515e060p-58
};
/* Ai(x) on 1.25 <= x <= 2.5. */
static const double vm_c_ai_high[] = {
    0x1.98b8e02c786d2p-5, -0x1.51bcb9a486da1p-5, 0x1.fdc4d65cb9500p-8, -0x1.823ceff6faea0p-11, 0x1.e99be97b3b0fdp-17,
    0x1.51d230c0ae8bap-18, -0x1.60ce83da97d4ep-21, 0x1.1884307f18ef4p-25, 0x1.3d7a508cb97efp-31, -0x1.ac5d9d6447a3bp-33,
    0x1.af403ccd8ce5fp-37, -0x1.769cabe3d45fdp-43, -0x1.f725e6abfb235p-46, 0x1.3d65a540dfa06p-49,
    -0x1.033815b40136fp-54, -0x1.3a0888e03d324p-59
};
/* Ai'(x) on -5 <= x <= -2.5. */
static const double vm_c_ai_slope_low[] = {
    -0x1.fbce11737f081p-12, 0x1.75e2ca1dabf56p-2, 0x1.2255d3774dbdep-1, -0x1.bdd063cf03e8bp-3, -0x1.07b465b92443ep-4,
    0x1.eab929d4f005cp-6, 0x1.671f067bfc629p-11, -0x1.a2c918b3fe3dep-10, 0x1.39a06f5dd0071p-13, 0x1.2d4247ff923aep-15,
    -0x1.00996f2466a9ap-17, -0x1.8f68a8cbcf0b1p-24, 0x1.5aba9822f75f3p-23, -0x1.b3afa1e606c88p-27,
    -0x1.8b4ebbe8ba91dp-30, 0x1.45c7b89709bcap-32, -0x1.7de29b269cfe4p-38, -0x1.a5f2b810e85c5p-39,
    0x1.3dcc3e197ef05p-42, 0x1.35c1fa496687ap-47, -0x1.c605565b2c6b1p-49, 0x1.4fc7641cebf20p-53, 0x1.10705edc94321p-56
};
/* Ai'(x) on -2.5 <= x <= 0. */
static const double vm_c_ai_slope_left[] = {
    0x1.9339424fc5cfdp-3, -0x1.1ae392e173c16p-1, 0x1.1818efdcff4cbp-5, 0x1.5c5435ad07a8cp-4, -0x1.6db7d19274018p-6,
    -0x1.3dc84ba462514p-10, 0x1.4edb0d634de10p-10, -0x1.4232cfb20e04dp-13, -0x1.19d62ef008b7fp-16,
    0x1.9b9b37b25431dp-18, -0x1.add532313c498p-22, -0x1.251a71bbf21cap-24, 0x1.e7c751d2d0bfap-27,
    -0x1.112519615a4c7p-31, -0x1.2dcdfb419df4dp-33, 0x1.5181d6b7a0acbp-36, -0x1.3ff6557b3f764p-42,
    -0x1.761fc17c16caap-43, 0x1.309b069943f0ep-46, 0x1.66acf49e0e972p-57, -0x1.36b28bf3051b0p-53, 0x1.813100ed42822p-57
};
/* Ai'(x) on 0 <= x <= 1.25. */
static const double vm_c_ai_slope_right[] = {
    -0x1.9c95227394a5ep-3, 0x1.1d05a0bfa2d25p-4, 0x1.16220b48a71acp-7, -0x1.c0fc0befca277p-9, 0x1.4e92030895bfbp-12,
    0x1.9bf231ee6a9fap-18, -0x1.f0d3cd8cecd6fp-19, 0x1.36f99ccffb9a6p-22, -0x1.59e3e6fa12f92p-32,
    -0x1.a8b7cfd14d3e8p-30, 0x1.e6f3ce73b2efcp-34, -0x1.15e9cf9557301p-40, -0x1.802aef4c8801ap-42,
    0x1.a3b4c09e5b29ep-46, -0x1.575cd1dba93cbp-52, -0x1.ad67f593b209ap-55, 0x1.c9f650aea3e93p-59
};
/* Ai'(x) on 1.25 <= x <= 2.5. */
static const double vm_c_ai_slope_high[] = {
    -0x1.1c81db697c433p-4, 0x1.993dedad7ddc0p-5, -0x1.ca28dcbba5cbbp-8, 0x1.6d42301ccf2a6p-13, 0x1.54dd9b2ea0162p-14,
    -0x1.a6dbddf601577p-17, 0x1.85b536f8c53fap-21, 0x1.04b3ba36833f4p-26, -0x1.81ecdc953adfbp-28, 0x1.ae11a4aee9a22p-32,
    -0x1.95a21f1ccafacp-38, -0x1.2e981ea343c8ap-40, 0x1.9c277ddadba89p-44, -0x1.6928782700686p-49,
    -0x1.d8fd7f829fbffp-54, 0x1.bfa63b67b157ap-57
};
/* Ai(x) e^zeta x^(1/4) from 2.5 on, t = 2 zeta(2.5) / zeta - 1. */
static const double vm_c_ai_far[] = {
    0x1.1d824e3c5695cp-2, -0x1.9c960db3db0afp-9, 0x1.fabc51001692cp-14, -0x1.0c522a842049bp-17, 0x1.81511f20db15fp-21,
    -0x1.535c28f97ec6dp-24, 0x1.5b5c723f17b80p-27, -0x1.8fb8f52bcfebcp-30, 0x1.f9be56fc5cec0p-33,
    -0x1.5a41d738a547fp-35, 0x1.fb231d75441e7p-38, -0x1.89ac533ccbf3cp-40, 0x1.41a46d5071337p-42,
    -0x1.1302ce1283c2fp-44, 0x1.e9d7470854122p-47, -0x1.c49d0f8c9a375p-49, 0x1.b079b8053ca4bp-51,
    -0x1.aa1e78eb234e2p-53, 0x1.afe53fe8dd620p-55, -0x1.c159af2f2cfe7p-57, 0x1.df0257e345b59p-59
};
/* Ai'(x) e^zeta x^(-1/4) there. */
static const double vm_c_ai_slope_far[] = {
    -0x1.25a7a15f2714bp-2, -0x1.284dd085fbdd7p-8, 0x1.329e28cfd9fb5p-13, -0x1.329d78ed9f7a0p-17, 0x1.abae644d12485p-21,
    -0x1.720ba0527eb08p-24, 0x1.763d8be22b2ccp-27, -0x1.aae8780e838e7p-30, 0x1.0c473524b7707p-32,
    -0x1.6d6d53d82791bp-35, 0x1.0a779cd771a53p-37, -0x1.9c3c738551bccp-40, 0x1.4fcd7c81fc225p-42,
    -0x1.1e620b16bcabbp-44, 0x1.fcf6543e5a3bdp-47, -0x1.d55d3ec9a8bbap-49, 0x1.bfb4d4700cdc3p-51,
    -0x1.b8723bfde7689p-53, 0x1.bdcc74ec43e21p-55, -0x1.cf3c0b0ba56bbp-57, 0x1.ed3f5e4d18990p-59
};
/* sine part of Ai: t = 2 (zeta(5) / zeta)^2 - 1. */
static const double vm_c_ai_f[] = {
    0x1.ffd50d9b4fff3p-1, -0x1.555cb8af0ff3dp-12, 0x1.15cbe6ec96533p-19, -0x1.4e3b27487acdep-25, 0x1.7718e726f3eabp-30,
    -0x1.3f8af8d452af8p-34, 0x1.705b8868d8666p-38, -0x1.0b61f33acc18ep-41, 0x1.d1ddccff4eaa7p-45,
    -0x1.d6cdf5580dcd9p-48, 0x1.0d2fadf137134p-50, -0x1.55cd7fbc96b8dp-53, 0x1.daedfe20b95c0p-56
};
/* cosine part of Ai, times zeta: t = 2 (zeta(5) / zeta)^2 - 1. */
static const double vm_c_ai_g[] = {
    0x1.1b189fcfa903cp-4, -0x1.54e5fcb58b29bp-12, 0x1.08cf61a638df8p-18, -0x1.cb19ff15f61dbp-24, 0x1.49e061a6ca498p-28,
    -0x1.5173ac9656fa5p-32, 0x1.c0e9074b3b1cfp-36, -0x1.6e24c2c7d15fcp-39, 0x1.5fb191381b349p-42,
    -0x1.827029bca2789p-45, 0x1.db57d50400a5cp-48, -0x1.41e7befc4ddd6p-50, 0x1.d9e1c24b312ebp-53,
    -0x1.77351114943a6p-55, 0x1.3ce2894e11579p-57, -0x1.1b7e0a004774ep-59
};
/* cosine part of Ai': t = 2 (zeta(5) / zeta)^2 - 1. */
static const double vm_c_ai_p[] = {
    0x1.00196ae261c1cp+0, 0x1.9444cf49b05b8p-12, -0x1.2eec601b07fe7p-19, 0x1.62c7aae8f3b5ep-25, -0x1.88ede32f8811fp-30,
    0x1.4c1fb7d2f26eap-34, -0x1.7ce23f32b8fa6p-38, 0x1.137541f239037p-41, -0x1.de9c4c90ecb0ap-45, 0x1.e2a3d92393eeep-48,
    -0x1.137948015bdc6p-50, 0x1.5d48eba0a6764p-53, -0x1.e4bd89172996ap-56
};
/* sine part of Ai', times zeta: t = 2 (zeta(5) / zeta)^2 - 1. */
static const double vm_c_ai_q[] = {
    -0x1.8cb680ad05d6ap-4, 0x1.7dd3558120cacp-12, -0x1.1bf94a3ca34b1p-18, 0x1.e36c1b8339bb1p-24, -0x1.57e8c2119a2c3p-28,
    0x1.5d9c9dd1e102fp-32, -0x1.cf1710603cbfbp-36, 0x1.7885b8a854f52p-39, -0x1.68cad90f52895p-42, 0x1.8badd8931debcp-45,
    -0x1.e5f3edc6f08f6p-48, 0x1.48a9e7bb134eep-50, -0x1.e34c9261ff8e1p-53, 0x1.7e4d25da3bac6p-55,
    -0x1.429c193e50e3ap-57, 0x1.20676a21e4f89p-59
};

#define VM_ZETA_RIGHT 2.6352313834736494 /* zeta of 2.5 and of 5 */
#define VM_ZETA_LEFT 7.4535599249992989

/* zeta and what its rounding lost, which the exponential of a large one would multiply. */
VM_RARE double vm_airy_zeta(double a, double *low) {
    double root = sqrt(a), product = a * root;
    double lost = a > 0.0 ? a * (fma(-root, root, a) / (2.0 * root)) + fma(a, root, -product) : 0.0;
    double zeta = product * (2.0 / 3.0);
    *low = fma(product, 2.0 / 3.0, -zeta) + product * 0x1.5555555555555p-55 + lost * (2.0 / 3.0);
    return zeta;
}

/* slope: Ai' instead of Ai. */
VM_RARE double vm_airy(double x, int slope) {
    double a = fabs(x), low, zeta = vm_airy_zeta(a, &low);
    if (x > 110.0) return 0.0; /* less than the least number; of much larger ones zeta is none */
    if (isinf(zeta)) return slope ? (double)NAN : 0.0; /* |Ai| is below 1e-51 there, and its slope turns too fast */
    if (x > 2.5) {
        double t = 2.0 * VM_ZETA_RIGHT / zeta - 1.0, root = sqrt(sqrt(a)), e = exp(-zeta) * (1.0 - low);
        return slope ? VM_SUM(vm_c_ai_slope_far, t) * e * root : VM_SUM(vm_c_ai_far, t) * e / root;
    }
    if (x > 1.25) return slope ? VM_SUM(vm_c_ai_slope_high, (x - 1.875) / 0.625) : VM_SUM(vm_c_ai_high, (x - 1.875) / 0.625);
    if (x > 0.0) return slope ? VM_SUM(vm_c_ai_slope_right, x / 0.625 - 1.0) : VM_SUM(vm_c_ai_right, x / 0.625 - 1.0);
    if (x > -2.5) return slope ? VM_SUM(vm_c_ai_slope_left, x / 1.25 + 1.0) : VM_SUM(vm_c_ai_left, x / 1.25 + 1.0);
    if (x > -5.0) return slope ? VM_SUM(vm_c_ai_slope_low, (x + 3.75) / 1.25) : VM_SUM(vm_c_ai_low, (x + 3.75) / 1.25);
    if (x != x) return x;
    double q = VM_ZETA_LEFT / zeta, t = 2.0 * q * q - 1.0, root = sqrt(sqrt(a)) * 1.7724538509055160273;
    double angle = zeta + 0.78539816339744830962, sine = sin(angle), cosine = cos(angle);
    low += zeta - angle + 0.78539816339744830962;
    double cosine_low = fabs(low) < 1e-9 ? 1.0 : cos(low), sine_low = fabs(low) < 1e-9 ? low : sin(low);
    double s = sine * cosine_low + cosine * sine_low, c = cosine * cosine_low - sine * sine_low;
    if (slope) return -(c * VM_SUM(vm_c_ai_p, t) + s * VM_SUM(vm_c_ai_q, t) / zeta) * (root / 3.14159265358979323846);
    return (s * VM_SUM(vm_c_ai_f, t) - c * VM_SUM(vm_c_ai_g, t) / zeta) / root;
}
VM_RARE double vm_airy_ai_f64(double x) { return vm_airy(x, 0); }
VM_RARE double vm_airy_ai_slope_f64(double x) { return vm_airy(x, 1); }
VM_ROUNDED(airy_ai)
VM_ROUNDED(airy_ai_slope)

#endif
