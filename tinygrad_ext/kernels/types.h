/* Types shared by kernels and core: what table_gen.h numbers, the scalar that travels to a loop, the loops' signature.
 *
 * Every pointwise loop has the signature tgx_loop: data[0] is the output, data[1..] the inputs, strides are in
 * bytes, the result is 0 or an error code. Nothing here knows Python. */
#ifndef TGX_TYPES_H
#define TGX_TYPES_H
#include <complex.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "table_gen.h"

enum tgx_error { TGX_OK = 0, TGX_ZERO_DIVISION = 1, TGX_NEGATIVE_POWER = 2, TGX_INDEX = 3, TGX_INTERRUPTED = 4,
                 TGX_NO_MEMORY = 5, TGX_BAD_VALUE = 6 };

#define TGX_MAX_DIMS 64
#define TGX_MAX_OPERANDS 6

/* A Python number on its way into a loop; the loop reads the member that fits its type. given is 0 for None, and TGX_ABOVE for
 * one that uint64 alone holds: i is then its bits. */
enum { TGX_ABOVE = 2 };
typedef struct { double f; double im; int64_t i; int64_t given; } tgx_scalar;

typedef int (*tgx_loop)(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux);

/* The loops of one op by dtype number; NULL where it is not defined. */
typedef struct { const char *name; tgx_loop loops[TGX_NTYPES]; } tgx_loop_row;

typedef float _Complex tgx_c64;
typedef double _Complex tgx_c128;

static inline float tgx_bf16_to_f32(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Round to nearest even; a NaN stays a (quiet) NaN. */
static inline uint16_t tgx_f32_to_bf16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

static inline float tgx_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff, bits;
    if (rest >= 0x7c00) bits = sign | 0x7f800000u | ((rest & 0x3ff) << 13);
    else if (rest >= 0x0400) bits = sign | ((rest << 13) + 0x38000000u);
    else { /* zero or subnormal: value = rest * 2^-24 exactly */
        float f = (float)rest * 5.9604644775390625e-8f;
        memcpy(&bits, &f, 4);
        bits |= sign;
    }
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

static inline uint16_t tgx_f32_to_f16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = (bits >> 16) & 0x8000, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00); /* 65520 and above round to infinity */
    if (rest < 0x38800000u) { /* subnormal half: let the float adder round at the right bit */
        float magic = 0.5f, mag;
        memcpy(&mag, &rest, 4);
        mag += magic;
        memcpy(&bits, &mag, 4);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    return (uint16_t)(sign | ((rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1)) >> 13));
}
#endif
