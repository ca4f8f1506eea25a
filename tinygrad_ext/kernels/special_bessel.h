/* Bessel functions. J and Y are the C library's; I and K, scaled by e^-x and e^x, are fits near zero and far from it.
 *
 * Largest error measured, relative to the result: i0, i0e, i1, i1e, k0, k1 and their scaled forms in
 * tests/ops/test_special_functions.py, which compares with 30-digit values. */
#ifndef TGX_SPECIAL_BESSEL_H
#define TGX_SPECIAL_BESSEL_H
#include "chebyshev.h"

/* e^-x I0(x) on 0 <= x <= 8, t = x / 4 - 1. */
static const double vm_c_i0_near[] = {
    0x1.5a84e9035a22ap-2, -0x1.37febc057cd8dp-2, 0x1.5f7ac77ac88c0p-3, -0x1.84b70342d06eap-4, 0x1.93e8acea8a32dp-5,
    -0x1.84e9ef121b6f0p-6, 0x1.59961f3dde3ddp-7, -0x1.1b65e201aa849p-8, 0x1.adc758a12100ep-10, -0x1.2e2fd1f15eb52p-11,
    0x1.8b51b74107cabp-13, -0x1.e2b2659c41d5ap-15, 0x1.13f58be9a2859p-16, -0x1.2866fcba56427p-18, 0x1.2bf24978cf4acp-20,
    -0x1.1ec638f227f8dp-22, 0x1.03b769d4d6435p-24, -0x1.beaf68c0b30abp-27, 0x1.6d903a454cb34p-29,
    -0x1.1d4fe13ae9556p-31, 0x1.a98becc743c10p-34, -0x1.2fc957a946abcp-36, 0x1.9fe2fe19bd324p-39,
    -0x1.1164c62ee1af0p-41, 0x1.59b464b262627p-44, -0x1.a5022c297fbebp-47, 0x1.ee6d893f65ebap-50,
    -0x1.184eb721ebbb4p-52, 0x1.33362977da589p-55
};
/* sqrt(x) e^-x I0(x) from 8 on, t = 16 / x - 1. */
static const double vm_c_i0_far[] = {
    0x1.9be62aca809cbp-2, 0x1.b998ca2e59049p-9, 0x1.20fa378999e52p-14, 0x1.8412bc101c586p-19, 0x1.b8007d9cd616ep-23,
    0x1.8569280d6d56dp-26, 0x1.d2c64a9225b87p-29, 0x1.0f9ccc0f46f75p-31, 0x1.a24feabe8004fp-37, -0x1.1511d08397425p-35,
    -0x1.d0fd7357e7bf2p-37, -0x1.f904303178d66p-40, 0x1.94347fa268cecp-41, 0x1.b1c8c6b83c073p-42, 0x1.156ff0d5fc545p-46,
    -0x1.75d99cf68bb32p-45, -0x1.583fe7e65629ap-47, 0x1.12a919094e6d7p-48, 0x1.fee7da3eafb1fp-50,
    -0x1.8aee7d908de38p-52, -0x1.4600babd21fe4p-52, 0x1.3f3dd076041cdp-55, 0x1.9be1812d98421p-55,
    -0x1.646da6611912bp-58, -0x1.0adb754ca8b1dp-57
};
/* e^-x I1(x) / x on 0 <= x <= 8. */
static const double vm_c_i1_near[] = {
    0x1.02a63724a7ffap-3, -0x1.694d10469192ep-3, 0x1.a46dad536f53cp-4, -0x1.b1bbc537c9ebcp-5, 0x1.951e3e7bb2349p-6,
    -0x1.5a29f7913a26ap-7, 0x1.1065349d3a1b4p-8, -0x1.8cc620b3cd4a4p-10, 0x1.0c95db6c6df7dp-11, -0x1.533cad3d694fep-13,
    0x1.911b542c70d0bp-15, -0x1.bd5f9b8debbcfp-17, 0x1.d1c4ed511afc5p-19, -0x1.cc0798363992ap-21, 0x1.ae344b347d108p-23,
    -0x1.7dd3e24b8c3e8p-25, 0x1.4258e02395010p-27, -0x1.0361b28ea67e6p-29, 0x1.8ea34b43fdf6cp-32,
    -0x1.2510397eb07dep-34, 0x1.9cee2b21d3154p-37, -0x1.173835fb70366p-39, 0x1.6af784779d955p-42,
    -0x1.c628e1c8f0b3bp-45, 0x1.11d7f0615290cp-47, -0x1.3eaaa7e0d1573p-50, 0x1.663e3e593bfacp-53, -0x1.857d0c38a0576p-56
};
/* sqrt(x) e^-x I1(x) from 8 on. */
static const double vm_c_i1_far[] = {
    0x1.8ea18b55b1514p-2, -0x1.3fda053fcdb4cp-7, -0x1.cfd7f804aa9a6p-14, -0x1.048df49ca0373p-18, -0x1.0dbfd2e9e5443p-22,
    -0x1.c415394bb46c1p-26, -0x1.0790b9ad53528p-28, -0x1.334ca5423dd80p-31, -0x1.4dcf9d4504c0cp-36,
    0x1.1e1a1f1587865p-35, 0x1.f101f653c457bp-37, 0x1.1e7d3f6439fa3p-39, -0x1.953e1076ab493p-41, -0x1.cbc458e73e255p-42,
    -0x1.7a9482e6d22a0p-46, 0x1.80d3c26b3281ep-45, 0x1.776e1762d31e8p-47, -0x1.12db5138afbc7p-48,
    -0x1.0efcd8bc4d22ap-49, 0x1.7d68e5f04a2d1p-52, 0x1.55915fceb588ap-52, -0x1.2806c9c773320p-55,
    -0x1.acea3b2532276p-55, 0x1.45b8aea87b94bp-58, 0x1.1556db352e8eap-57
};
/* K0(x) + log(x / 2) I0(x) on 0 < x <= 2, t = x^2 / 2 - 1. */
static const double vm_c_k0_near[] = {
    -0x1.12166e9d2f61fp-2, 0x1.608d881213db9p-2, 0x1.26bf6554a9085p-5, 0x1.4b82e75633d73p-10, 0x1.7f900fe8cfca0p-16,
    0x1.102bce7f95efcp-22, 0x1.05c1367e58a13p-29, 0x1.6c25c475120bep-37, 0x1.7fb0ac384a073p-45, 0x1.3cee1e6b887dcp-53
};
/* x (K1(x) - log(x / 2) I1(x)) on 0 < x <= 2. */
static const double vm_c_k1_near[] = {
    0x1.867a1361008cap-1, -0x1.69a1b757b0dd4p-2, -0x1.f637243c1db74p-4, -0x1.c92939d7d4192p-8, -0x1.6ade2e5a3bd02p-13,
    -0x1.469b32c832e3ap-19, -0x1.7c41d145c31d0p-26, -0x1.3663bb84626cap-33, -0x1.77502ddd0e045p-41,
    -0x1.5dd517a0399e0p-49
};
/* sqrt(x) e^x K0(x) from 2 on, t = 4 / x - 1. */
static const double vm_c_k0_far[] = {
    0x1.385bd9f4e6907p+0, -0x1.019f72d4ff71ep-5, 0x1.9b891fca79342p-10, -0x1.0d797e7889f42p-13, 0x1.d413fcc7470a9p-17,
    -0x1.ebb547f18d3a9p-20, 0x1.2915981e3e46fp-22, -0x1.905541b54f2afp-25, 0x1.269a0033f428ep-27,
    -0x1.d29d5f22bf5e2p-30, 0x1.8956c819ff63dp-32, -0x1.5df95d2e7ca15p-34, 0x1.46808475fbf4dp-36,
    -0x1.3dafc3f00540bp-38, 0x1.40fa32fcce645p-40, -0x1.4f87721a3b2dbp-42, 0x1.69c4ecd913e48p-44,
    -0x1.9145ebaf9922fp-46, 0x1.c8d9c4a6808e8p-48, -0x1.0a690ed1130d0p-49, 0x1.3dbf96cd7929dp-51,
    -0x1.82f947bd75936p-53, 0x1.e092e5c062a6ap-55, -0x1.2feccb331b557p-56
};
/* sqrt(x) e^x K1(x) from 2 on. */
static const double vm_c_k1_far[] = {
    0x1.5c3d7aa062c8ap+0, 0x1.a9abef9e023fbp-4, -0x1.76946be66b48ap-9, 0x1.9965888f6908ep-13, -0x1.44d711dcdb2e5p-16,
    0x1.42fe31752d1b6p-19, -0x1.780528fada5c6p-22, 0x1.ed27c668fc461p-25, -0x1.637a49fe1e088p-27, 0x1.14f242a73d252p-29,
    -0x1.ccbc00365cf5fp-32, 0x1.956d008a43059p-34, -0x1.76b539401d12cp-36, 0x1.69ab846c05207p-38,
    -0x1.6adec61fc71a4p-40, 0x1.78ffa0409e616p-42, -0x1.94465d4c8014bp-44, 0x1.be3e9590877a3p-46,
    -0x1.f9d52362a3e00p-48, 0x1.25cedf006519fp-49, -0x1.5d2a3d9ce2a50p-51, 0x1.a7d5e4c65543cp-53,
    -0x1.0661525866f5ap-54, 0x1.4af1aa55c043fp-56
};

VM_RARE double vm_i0e_f64(double x) {
    double a = fabs(x);
    if (a <= 8.0) return VM_SUM(vm_c_i0_near, a / 4.0 - 1.0);
    return VM_SUM(vm_c_i0_far, 16.0 / a - 1.0) / sqrt(a);
}

VM_RARE double vm_i1e_f64(double x) {
    double a = fabs(x);
    if (a <= 8.0) return x * VM_SUM(vm_c_i1_near, a / 4.0 - 1.0);
    return copysign(VM_SUM(vm_c_i1_far, 16.0 / a - 1.0) / sqrt(a), x);
}

/* e^(a/2) twice: e^a overflows before the product does. */
VM_RARE double vm_grown(double scaled, double a) {
    if (a < 700.0) return scaled * exp(a);
    if (a > 1420.0) return copysign((double)INFINITY, scaled);
    double half = exp(0.5 * a);
    return scaled * half * half;
}
VM_RARE double vm_i0_f64(double x) { return x != x ? x : vm_grown(vm_i0e_f64(x), fabs(x)); }
VM_RARE double vm_i1_f64(double x) { return x != x ? x : vm_grown(vm_i1e_f64(x), fabs(x)); }

VM_RARE double vm_k0_near(double x) { return VM_SUM(vm_c_k0_near, 0.5 * x * x - 1.0) - log(0.5 * x) * vm_i0_f64(x); }
VM_RARE double vm_k1_near(double x) { return VM_SUM(vm_c_k1_near, 0.5 * x * x - 1.0) / x + log(0.5 * x) * vm_i1_f64(x); }

#define VM_BESSEL_K(n) \
    VM_RARE double vm_k##n##e_f64(double x) { \
        if (!(x > 0.0)) return x == 0.0 ? (double)INFINITY : (double)NAN; \
        if (x <= 2.0) return vm_k##n##_near(x) * exp(x); \
        return VM_SUM(vm_c_k##n##_far, 4.0 / x - 1.0) / sqrt(x); \
    } \
    VM_RARE double vm_k##n##_f64(double x) { \
        if (x > 0.0 && x <= 2.0) return vm_k##n##_near(x); \
        if (x > 690.0 && x < 800.0) return vm_k##n##e_f64(x) * exp(-0.5 * x) * exp(-0.5 * x); \
        return x > 0.0 ? vm_k##n##e_f64(x) * exp(-x) : vm_k##n##e_f64(x); \
    }
VM_BESSEL_K(0)
VM_BESSEL_K(1)
#undef VM_BESSEL_K

VM_RARE double vm_bessel_j0_f64(double x) { return j0(x); }
VM_RARE double vm_bessel_j1_f64(double x) { return j1(x); }
VM_RARE double vm_bessel_y0_f64(double x) { return x == 0.0 ? -(double)INFINITY : x < 0.0 ? (double)NAN : y0(x); }
VM_RARE double vm_bessel_y1_f64(double x) { return x == 0.0 ? -(double)INFINITY : x < 0.0 ? (double)NAN : y1(x); }

/* sin(x) / x and its slope; the slope by its series where the two terms cancel. */
VM_RARE double vm_spherical_j0_f64(double x) {
    if (isinf(x)) return 0.0;
    double a = x * x;
    return a < 1e-8 ? 1.0 - a / 6.0 : sin(x) / x;
}
VM_RARE double vm_spherical_j0_slope_f64(double x) {
    if (isinf(x)) return 0.0;
    double a = x * x;
    if (a < 0.25)
        return -x / 3.0 * (1.0 - a / 10.0 * (1.0 - a / 28.0 * (1.0 - a / 54.0 * (1.0 - a / 88.0 * (1.0 - a / 130.0)))));
    return (cos(x) - sin(x) / x) / x;
}

VM_ROUNDED(i0)
VM_ROUNDED(i0e)
VM_ROUNDED(i1)
VM_ROUNDED(i1e)
VM_ROUNDED(k0)
VM_ROUNDED(k0e)
VM_ROUNDED(k1)
VM_ROUNDED(k1e)
VM_ROUNDED(bessel_j0)
VM_ROUNDED(bessel_j1)
VM_ROUNDED(bessel_y0)
VM_ROUNDED(bessel_y1)
VM_ROUNDED(spherical_j0)
VM_ROUNDED(spherical_j0_slope)

#endif
