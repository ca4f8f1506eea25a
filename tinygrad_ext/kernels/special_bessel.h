/* Bessel functions, by fits near zero and far from it: I and K scaled by e^-x and e^x, J and Y far from zero by the
 * amplitude and phase of their sum J + i Y (DLMF 10.17), beyond 2^20 the C library's.
 *
 * Largest errors: tests/ops/test_special_functions.py, which compares with 30-digit values. */
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

/* J0(x) on 0 <= x <= 8, t = x^2 / 32 - 1. */
static const double vm_c_j0_near[] = {
    0x1.4306e1f9314dbp-3, -0x1.1dd989ce98ea2p-7, 0x1.0f8afb7d3a552p-2, -0x1.7afa2e9c62a9ep-2,
    0x1.43b8af58b7ffap-3, -0x1.1dd989ce98ea2p-5, 0x1.3bd46ccab9dap-8, -0x1.e300651cd3ae3p-12,
    0x1.104c067d74d17p-15, -0x1.d8f811cd3e853p-20, 0x1.46c4a4b32aa3bp-24, -0x1.703bda6758f6fp-29,
    0x1.593076e904d04p-34, -0x1.1192067e71726p-39, 0x1.73936aa3d0207p-45, -0x1.b5729d242acaep-51,
    0x1.c2c89ea282aaap-57
};
/* J1(x) / x on 0 <= x <= 8. */
static const double vm_c_j1_near[] = {
    0x1.4bf5ae47a615p-4, -0x1.3119e17fdbffdp-3, 0x1.49b9fb3408e33p-3, -0x1.52a8c7827daa8p-4,
    0x1.6bf2c1f5f71e1p-6, -0x1.de030538b55bp-9, 0x1.a8b56cedfe58p-12, -0x1.11188227a5012p-15,
    0x1.0a8a3a628fc7bp-19, -0x1.98f754605f635p-24, 0x1.fac17c7273311p-29, -0x1.030d00d42d6f4p-33,
    0x1.bcc0916376113p-39, -0x1.453d2b4e985cbp-44, 0x1.9a36afedba862p-50, -0x1.c2dff424052f8p-56
};
/* Y0(x) - (2 / pi) log(x / 2) J0(x) on 0 < x <= 8. */
static const double vm_c_y0_near[] = {
    0x1.2aa30b02c96c3p-5, -0x1.1d00e3f66d8abp-2, 0x1.2f27bb1f1965cp-2, 0x1.9273ec4cc2256p-4,
    -0x1.b887fa1efddf1p-4, 0x1.047f7de78a6p-5, -0x1.5241dfc56884bp-8, 0x1.2047f52400bf2p-11,
    -0x1.604bd5a6f34eep-15, 0x1.46050b95b78e9p-19, -0x1.da97b3e7182b1p-24, 0x1.1772ee181831bp-28,
    -0x1.101c43f522727p-33, 0x1.bdefdb7b2a42p-39, -0x1.37f65d9f56957p-44, 0x1.792fea1881d6ep-50,
    -0x1.8e31f4edecff1p-56
};
/* (Y1(x) - (2 / pi) (log(x / 2) J1(x) - 1 / x)) / x on 0 < x <= 8. */
static const double vm_c_y1_near[] = {
    0x1.39c2893db065bp-5, -0x1.4f28600a6e8d9p-4, -0x1.976eb9baef98ap-6, 0x1.88f30a1b0e1e6p-5,
    -0x1.2f873106a454bp-6, 0x1.e26cb34c165e5p-9, -0x1.e533e7c658954p-12, 0x1.555db4928876dp-15,
    -0x1.6541b43c631bcp-19, 0x1.220a2b0de72e5p-23, -0x1.78d32d23d639fp-28, 0x1.9136b53741514p-33,
    -0x1.64d1026e9c5f1p-38, 0x1.0d3a959af1a85p-43, -0x1.5d36ea343b2b2p-49, 0x1.89aa49b715ecdp-55
};
/* The real part of sqrt(pi x / 2) (J0(x) + i Y0(x)) e^(-i (x - pi / 4)) from 8 on, t = 128 / x^2 - 1. */
static const double vm_c_hankel_p0[] = {
    0x1.ffb944543151ep-1, -0x1.194ac5283c04ap-11, 0x1.9cbe8b7395851p-19, -0x1.bc26938a82ce2p-25,
    0x1.c03a8b38ca73cp-30, -0x1.59ddcc28538a8p-34, 0x1.6baf23642c655p-38, -0x1.e4a709e74825bp-42,
    0x1.85b481672b1eep-45, -0x1.6d432cb7153fep-48, 0x1.84fff80b613c2p-51, -0x1.cdb3179595bbdp-54,
    0x1.2cca86c6338d9p-56
};
/* x / 8 times its imaginary part. */
static const double vm_c_hankel_q0[] = {
    -0x1.fdbbf76547cafp-7, 0x1.1ed40c7bf4761p-14, -0x1.8e1017183d06p-21, 0x1.34c3b3f0f3e19p-26,
    -0x1.8fc71e52a528p-31, 0x1.7334b27ad2886p-35, -0x1.c34f407df8ba4p-39, 0x1.52763be90a889p-42,
    -0x1.2c827d7f6e2d5p-45, 0x1.329f0c1b6c666p-48, -0x1.5fa3147b301c9p-51, 0x1.bd9648f62c6b8p-54,
    -0x1.33cdb710c05d6p-56, 0x1.cab223df72976p-59, -0x1.6d757f20d1676p-61
};
/* The same of J1 and Y1 with 3 pi / 4. */
static const double vm_c_hankel_p1[] = {
    0x1.003b2e82f5f12p+0, 0x1.d7545f75d7da9p-11, -0x1.0b9505ce79bbap-18, 0x1.0953cdc0829efp-24,
    -0x1.01454cf5d6acp-29, 0x1.83c5742be2cc3p-34, -0x1.9171afe32fc02p-38, 0x1.088a8b6783e5p-41,
    -0x1.a5ead8bea617fp-45, 0x1.88e8192bcb004p-48, -0x1.a045d1e6aa4e8p-51, 0x1.ebf5d803cd896p-54,
    -0x1.3f5b1671b84fbp-56
};
/* x / 8 times its imaginary part. */
static const double vm_c_hankel_q1[] = {
    0x1.7f34213492af6p-5, -0x1.93d0e4fa70662p-14, 0x1.eaa02bf61504bp-21, -0x1.681617e8645adp-26,
    0x1.c467999a69933p-31, -0x1.9c37875f5ebcp-35, 0x1.eeb91abca8164p-39, -0x1.6f877e53fb185p-42,
    0x1.43f8057a1761fp-45, -0x1.48ac416e30219p-48, 0x1.772d4dd737bf2p-51, -0x1.d994b1fddb9fp-54,
    0x1.46123a8bbc898p-56, -0x1.e48d4f144b8b2p-59, 0x1.811d207bb2e69p-61
};
/* e^-x I0(x) on 0 <= x <= 8 for float32, powers of t = x / 4 - 1. */
static const double vm_c_i0_near_single[] = {
    0x1.a7f09f8eedf97p-3, -0x1.cedda004811a3p-4, 0x1.8322d1d899c31p-4, -0x1.6cb8d0cb1e50dp-4, 0x1.65c235c216ed3p-4,
    -0x1.5c028fa7e4f24p-4, 0x1.44b6193adfc13p-4, -0x1.1cd73e05052eap-4, 0x1.d11e15302d655p-5, -0x1.6023dad2bc056p-5,
    0x1.ee6f1d2fcb54ap-6, -0x1.427d25e859c07p-6, 0x1.87ea56195339p-7, -0x1.bd0a8e3b89351p-8, 0x1.da0448a9e9dffp-9,
    -0x1.dbe11a456a353p-10, 0x1.c1a4da4013dp-11, -0x1.8c4827b624697p-12, 0x1.50e338f379cfap-13,
    -0x1.26b7c46eb54afp-14, 0x1.c16685baefc96p-16, -0x1.ad23a4de51d7ep-18, 0x1.39376527e6d0ep-19,
    -0x1.1164c62ee1afp-19, 0x1.59b464b262627p-21
};
/* sqrt(x) e^-x I0(x) from 8 on for float32, powers of t = 16 / x - 1. */
static const double vm_c_i0_far_single[] = {
    0x1.9bd428ad24b8cp-2, 0x1.b87969ba0c9f4p-9, 0x1.1daa724934624p-13, 0x1.75e62964a2c0dp-17, 0x1.8e5557fcb129ep-20,
    0x1.3ef668b267d6cp-22, 0x1.7b13b4f9bc2b8p-24, 0x1.5f05aa120317ap-25, 0x1.920679af1af36p-26, 0x1.d33e53dbe30c2p-29,
    -0x1.80126988db2d2p-27, -0x1.deb42d820efb7p-28, 0x1.94347fa268cecp-30, 0x1.b1c8c6b83c073p-30
};
/* e^-x I1(x) / x on 0 <= x <= 8 for float32, powers of t = x / 4 - 1. */
static const double vm_c_i1_near_single[] = {
    0x1.6e14eb8e5cee7p-5, -0x1.f4bb071a765eep-5, 0x1.16c390ddd6299p-4, -0x1.188137a02cbcdp-4, 0x1.0530f81106864p-4,
    -0x1.c4daa5076c39ap-5, 0x1.6df95f8eec96p-5, -0x1.13d5f400e5f13p-5, 0x1.841247a71f1b3p-6, -0x1.fe3d8718c7a98p-7,
    0x1.3a0cf51246596p-7, -0x1.6ab770d99677ep-8, 0x1.89ec6cc4dbc69p-9, -0x1.935de1b71395dp-10, 0x1.86c95ea12e4fap-11,
    -0x1.66177fae7e0c5p-12, 0x1.3479dca2965fdp-13, -0x1.ff4d941748841p-15, 0x1.ad46ea3087e66p-16,
    -0x1.41a8dad9ffc4cp-17, 0x1.46c8001f2d7d3p-19, -0x1.d006135ce6d73p-21, 0x1.6af784779d955p-21,
    -0x1.c628e1c8f0b3bp-23
};
/* sqrt(x) e^-x I1(x) from 8 on for float32, powers of t = 16 / x - 1. */
static const double vm_c_i1_far_single[] = {
    0x1.8ebe783a83dd1p-2, -0x1.3f7961988a128p-7, -0x1.cbc54d6d3ead5p-13, -0x1.f89c5f7068c14p-17,
    -0x1.ec92fbeb37a85p-20, -0x1.75be4f7951d0fp-22, -0x1.ab3c8265a3d1fp-24, -0x1.7ff85b1382e0bp-25,
    -0x1.b5d6451603705p-26, -0x1.20ab63499bc94p-28, 0x1.9078415662675p-27, 0x1.026713f6ffbdbp-27,
    -0x1.953e1076ab493p-30, -0x1.cbc458e73e255p-30
};

VM_INLINE double vm_i0e_of(double x, _Bool single)
{
    double a = fabs(x);
    _Bool near = a <= 8.0;
    double t = near ? 0.25 * a - 1.0 : 16.0 / a - 1.0;
    double sum = single ? vm_horner_of_two(near, vm_c_i0_near_single, 25, vm_c_i0_far_single, 14, t)
                        : vm_sum_of_two(near, vm_c_i0_near, 29, vm_c_i0_far, 25, t);
    return near ? sum : sum / sqrt(a);
}
VM_INLINE double vm_i1e_of(double x, _Bool single)
{
    double a = fabs(x);
    _Bool near = a <= 8.0;
    double t = near ? 0.25 * a - 1.0 : 16.0 / a - 1.0;
    double sum = single ? vm_horner_of_two(near, vm_c_i1_near_single, 24, vm_c_i1_far_single, 14, t)
                        : vm_sum_of_two(near, vm_c_i1_near, 28, vm_c_i1_far, 25, t);
    return near ? x * sum : copysign(sum / sqrt(a), x);
}

/* e^(a/2) twice where e^a overflows before the product does. */
VM_INLINE double vm_grown(double scaled, double a)
{
    _Bool large = a > 700.0;
    double e = vm_exp_f64(large ? 0.5 * a : a), r = scaled * e;
    r = large ? r * e : r;
    return a > 1420.0 ? copysign((double)INFINITY, scaled) : r;
}
VM_INLINE double vm_i0_of(double x, _Bool single) { return vm_grown(vm_i0e_of(x, single), fabs(x)); }
VM_INLINE double vm_i1_of(double x, _Bool single) { return vm_grown(vm_i1e_of(x, single), fabs(x)); }

/* I0(x) and I1(x) / x for 0 <= x <= 2 by their power series in z = x^2 / 4. */
VM_INLINE double vm_i0_series(double z)
{
    return VM_POLY11(f64, z, 1.0, 1.0, 1.0 / 4, 1.0 / 36, 1.0 / 576, 1.0 / 14400, 1.0 / 518400, 1.0 / 25401600,
                     1.0 / 1625702400, 1.0 / 131681894400, 1.0 / 13168189440000);
}
VM_INLINE double vm_i1_series(double z)
{
    return VM_POLY11(f64, z, 1.0 / 2, 1.0 / 4, 1.0 / 24, 1.0 / 288, 1.0 / 5760, 1.0 / 172800, 1.0 / 7257600,
                     1.0 / 406425600, 1.0 / 29262643200, 1.0 / 2633637888000, 1.0 / 289700167680000);
}
VM_INLINE double vm_k0_near(double x, double sum) { return sum - vm_log_f64(0.5 * x) * vm_i0_series(0.25 * x * x); }
VM_INLINE double vm_k1_near(double x, double sum)
{
    return sum / x + vm_log_f64(0.5 * x) * (x * vm_i1_series(0.25 * x * x));
}

/* Unscaled, e^(-x/2) twice where e^-x would be subnormal. */
#define VM_BESSEL_K(n, NEAR_TERMS) \
    VM_INLINE double vm_k##n##_scaled(double x, _Bool scaled, _Bool single) \
    { \
        _Bool near = x <= 2.0, small = x > 690.0; \
        double t = near ? 0.5 * x * x - 1.0 : 4.0 / x - 1.0; \
        double sum = vm_sum_of_two(near, vm_c_k##n##_near, single ? NEAR_TERMS : 10, \
                                   vm_c_k##n##_far, single ? 16 : 24, t); \
        double close = vm_k##n##_near(x, sum), distant = sum / sqrt(x); \
        double e = vm_exp_f64(scaled ? x : small ? -0.5 * x : -x); \
        if (scaled) { \
            close *= e; \
        } else { \
            distant *= e; \
            distant = small ? distant * e : distant; \
        } \
        double r = near ? close : distant; \
        r = x == 0.0 ? (double)INFINITY : r; \
        return x < 0.0 ? (double)NAN : r; \
    } \
    VM_INLINE double vm_k##n##_of(double x, _Bool single) { return vm_k##n##_scaled(x, 0, single); } \
    VM_INLINE double vm_k##n##e_of(double x, _Bool single) { return vm_k##n##_scaled(x, 1, single); }
VM_BESSEL_K(0, 8)
VM_BESSEL_K(1, 9)
#undef VM_BESSEL_K

/* P and Q of order n for a = |x|: `sum` is the near series or P, t its argument. */
#define VM_BESSEL_PARTS(n, letter, J_TERMS, P_TERMS, Q_TERMS) \
    double a = fabs(x); \
    _Bool near = a <= 8.0; \
    double eighth = 8.0 / a, t = near ? a * a / 32.0 - 1.0 : 2.0 * eighth * eighth - 1.0; \
    double sum = vm_sum_of_two(near, vm_c_##letter##n##_near, J_TERMS, vm_c_hankel_p##n, P_TERMS, t); \
    double p = sum, q = vm_sum(vm_c_hankel_q##n, Q_TERMS, t) * eighth; \
    double sine = vm_sin_near_f64(a), cosine = vm_cos_near_f64(a), size = 0x1.20dd750429b6dp-1 / sqrt(a);

/* cos(x - pi/4) = (cos x + sin x) / sqrt(2); 0x1.20dd750429b6dp-1 is 1 / sqrt(pi). */
VM_INLINE double vm_bessel_j0_of(double x, _Bool single)
{
    VM_BESSEL_PARTS(0, j, single ? 14 : 17, single ? 8 : 13, single ? 10 : 15)
    return near ? sum : size * (p * (cosine + sine) - q * (sine - cosine));
}
VM_INLINE double vm_bessel_j1_of(double x, _Bool single)
{
    VM_BESSEL_PARTS(1, j, single ? 14 : 16, single ? 8 : 13, single ? 9 : 15)
    double r = size * (p * (sine - cosine) + q * (cosine + sine));
    return near ? x * sum : copysign(1.0, x) * r;
}
VM_INLINE double vm_bessel_y0_of(double x, _Bool single)
{
    VM_BESSEL_PARTS(0, y, single ? 15 : 17, single ? 8 : 13, single ? 10 : 15)
    double j = vm_sum(vm_c_j0_near, single ? 14 : 17, t);
    double close = 0x1.45f306dc9c883p-1 * vm_log_f64(0.5 * x) * j + sum;
    double r = near ? close : size * (p * (sine - cosine) + q * (cosine + sine));
    return x < 0.0 ? (double)NAN : r;
}
VM_INLINE double vm_bessel_y1_of(double x, _Bool single)
{
    VM_BESSEL_PARTS(1, y, single ? 14 : 16, single ? 8 : 13, single ? 9 : 15)
    double j = x * vm_sum(vm_c_j1_near, single ? 14 : 16, t);
    double close = 0x1.45f306dc9c883p-1 * (vm_log_f64(0.5 * x) * j - 1.0 / x) + x * sum;
    double r = near ? close : size * (q * (sine - cosine) - p * (cosine + sine));
    r = x == 0.0 ? -(double)INFINITY : r;
    return x < 0.0 ? (double)NAN : r;
}

/* sin(x) / x and its slope; the slope by its series where the two terms cancel. */
VM_INLINE double vm_spherical_j0_of(double x, _Bool single)
{
    (void)single;
    double square = x * x, close = 1.0 - square / 6.0;
    return square < 1e-8 ? close : vm_sin_near_f64(x) / x;
}
VM_INLINE double vm_spherical_j0_slope_of(double x, _Bool single)
{
    (void)single;
    double square = x * x;
    double series = VM_POLY6(f64, square, -1.0 / 3, 1.0 / 30, -1.0 / 840, 1.0 / 45360, -1.0 / 3991680, 1.0 / 518918400);
    return square < 0.25 ? x * series : (vm_cos_near_f64(x) - vm_sin_near_f64(x) / x) / x;
}

/* Up to 2^20 in vectors, see VM_NEAR_LOOP; `libm` is for what lies beyond. */
#define VM_OSCILLATING(name, libm) \
    VM_INLINE double vm_##name##_near_f64(double x) { return vm_##name##_of(x, 0); } \
    VM_INLINE float vm_##name##_near_f32(float x) { return (float)vm_##name##_of(x, 1); } \
    VM_INLINE double vm_##name##_f64(double x) { return vm_trig_far_f64(x) ? libm : vm_##name##_of(x, 0); } \
    VM_INLINE float vm_##name##_f32(float element) \
    { \
        double x = element; \
        return (float)(vm_trig_far_f32(element) ? libm : vm_##name##_of(x, 1)); \
    }
VM_OSCILLATING(bessel_j0, j0(x))
VM_OSCILLATING(bessel_j1, j1(x))
VM_OSCILLATING(bessel_y0, x < 0.0 ? (double)NAN : y0(x))
VM_OSCILLATING(bessel_y1, x < 0.0 ? (double)NAN : y1(x))
VM_OSCILLATING(spherical_j0, isinf(x) ? 0.0 : sin(x) / x)
VM_OSCILLATING(spherical_j0_slope, isinf(x) ? 0.0 : (cos(x) - sin(x) / x) / x)
#undef VM_OSCILLATING

VM_BOTH(i0)
VM_BOTH(i0e)
VM_BOTH(i1)
VM_BOTH(i1e)
VM_BOTH(k0)
VM_BOTH(k0e)
VM_BOTH(k1)
VM_BOTH(k1e)

#endif
