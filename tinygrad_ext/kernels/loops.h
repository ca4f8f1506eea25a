/* Templates of pointwise loops, filled in by the generated rows: one loop for each op and dtype.
 *
 * LOOP1/2/3(name, out, in..., T, CONSTANTS, expression): `out` and `in` are storage tags (b8 u8 i8 i16 i32 i64 f16
 * bf16 f32 f64 c64 c128), T is the computing type, x y z the operands as T, CONSTANTS declares the op's scalar
 * arguments from aux. Rows of contiguous operands, and of one operand repeated, get loops of their own that the
 * compiler vectorises; all of them evaluate the same expression, so an element's value does not depend on where
 * it lies. An expression that can fail calls FAIL(code), which gives 0 and marks the loop failed. */
#ifndef TGX_LOOPS_H
#define TGX_LOOPS_H
#include <math.h>
#include "types.h"
#include "vecmath.h"

typedef uint8_t S_b8; typedef uint8_t S_u8; typedef int8_t S_i8; typedef int16_t S_i16; typedef int32_t S_i32;
typedef int64_t S_i64; typedef uint16_t S_f16; typedef uint16_t S_bf16; typedef float S_f32; typedef double S_f64;
typedef tgx_c64 S_c64; typedef tgx_c128 S_c128;

#define GET_b8(p) ((p) != 0)
#define GET_u8(p) (p)
#define GET_i8(p) (p)
#define GET_i16(p) (p)
#define GET_i32(p) (p)
#define GET_i64(p) (p)
#define GET_f16(p) tgx_f16_to_f32(p)
#define GET_bf16(p) tgx_bf16_to_f32(p)
#define GET_f32(p) (p)
#define GET_f64(p) (p)
#define GET_c64(p) (p)
#define GET_c128(p) (p)
#define PUT_b8(v) ((v) != 0)
#define PUT_u8(v) ((uint8_t)(v))
#define PUT_i8(v) ((int8_t)(v))
#define PUT_i16(v) ((int16_t)(v))
#define PUT_i32(v) ((int32_t)(v))
#define PUT_i64(v) ((int64_t)(v))
#define PUT_f16(v) tgx_f32_to_f16(v)
#define PUT_bf16(v) tgx_f32_to_bf16(v)
#define PUT_f32(v) (v)
#define PUT_f64(v) (v)
#define PUT_c64(v) (v)
#define PUT_c128(v) (v)

#define FAIL(code) (status = (code), 0)
#define SIMD _Pragma("omp simd")
#define HEAD(NAME) static int NAME(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux)

#define LOOP1(NAME, O, A, T, CONSTANTS, ...) HEAD(NAME) { \
    int status = 0; CONSTANTS \
    if (s[0] == sizeof(S_##O) && s[1] == sizeof(S_##A)) { \
        S_##O *o = (S_##O *)data[0]; const S_##A *a = (const S_##A *)data[1]; \
        SIMD for (ptrdiff_t i = 0; i < n; i++) { const T x = GET_##A(a[i]); o[i] = PUT_##O(__VA_ARGS__); } \
    } else { \
        char *o = data[0]; const char *a = data[1]; \
        for (ptrdiff_t i = 0; i < n; i++, o += s[0], a += s[1]) { \
            const T x = GET_##A(*(const S_##A *)a); *(S_##O *)o = PUT_##O(__VA_ARGS__); } \
    } \
    return status; }

#define LOOP2(NAME, O, A, B, T, CONSTANTS, ...) HEAD(NAME) { \
    int status = 0; CONSTANTS \
    S_##O *o = (S_##O *)data[0]; const S_##A *a = (const S_##A *)data[1]; const S_##B *b = (const S_##B *)data[2]; \
    if (s[0] == sizeof(S_##O) && s[1] == sizeof(S_##A) && s[2] == sizeof(S_##B)) { \
        SIMD for (ptrdiff_t i = 0; i < n; i++) { \
            const T x = GET_##A(a[i]); const T y = GET_##B(b[i]); o[i] = PUT_##O(__VA_ARGS__); } \
    } else if (s[0] == sizeof(S_##O) && s[1] == sizeof(S_##A) && s[2] == 0) { \
        const T y = GET_##B(b[0]); \
        SIMD for (ptrdiff_t i = 0; i < n; i++) { const T x = GET_##A(a[i]); o[i] = PUT_##O(__VA_ARGS__); } \
    } else if (s[0] == sizeof(S_##O) && s[1] == 0 && s[2] == sizeof(S_##B)) { \
        const T x = GET_##A(a[0]); \
        SIMD for (ptrdiff_t i = 0; i < n; i++) { const T y = GET_##B(b[i]); o[i] = PUT_##O(__VA_ARGS__); } \
    } else { \
        char *op = data[0]; const char *ap = data[1], *bp = data[2]; \
        for (ptrdiff_t i = 0; i < n; i++, op += s[0], ap += s[1], bp += s[2]) { \
            const T x = GET_##A(*(const S_##A *)ap); const T y = GET_##B(*(const S_##B *)bp); \
            *(S_##O *)op = PUT_##O(__VA_ARGS__); } \
    } \
    return status; }

#define LOOP3(NAME, O, A, B, C, T, CONSTANTS, ...) HEAD(NAME) { \
    int status = 0; CONSTANTS \
    if (s[0] == sizeof(S_##O) && s[1] == sizeof(S_##A) && s[2] == sizeof(S_##B) && s[3] == sizeof(S_##C)) { \
        S_##O *o = (S_##O *)data[0]; const S_##A *a = (const S_##A *)data[1]; const S_##B *b = (const S_##B *)data[2]; \
        const S_##C *c = (const S_##C *)data[3]; \
        SIMD for (ptrdiff_t i = 0; i < n; i++) { \
            const T x = GET_##A(a[i]); const T y = GET_##B(b[i]); const T z = GET_##C(c[i]); o[i] = PUT_##O(__VA_ARGS__); } \
    } else { \
        char *op = data[0]; const char *ap = data[1], *bp = data[2], *cp = data[3]; \
        for (ptrdiff_t i = 0; i < n; i++, op += s[0], ap += s[1], bp += s[2], cp += s[3]) { \
            const T x = GET_##A(*(const S_##A *)ap); const T y = GET_##B(*(const S_##B *)bp); \
            const T z = GET_##C(*(const S_##C *)cp); *(S_##O *)op = PUT_##O(__VA_ARGS__); } \
    } \
    return status; }

typedef struct { const char *name; tgx_loop loops[TGX_NTYPES]; } tgx_loop_row;

/* Integer helpers of the expressions. */
#define FLOOR_DIV(x, y) ((y) == 0 ? FAIL(TGX_ZERO_DIVISION) : ((y) == -1 ? NEGATE(x) : (x) / (y) - (((x) % (y) != 0) && (((x) < 0) != ((y) < 0)))))
#define TRUNC_DIV(x, y) ((y) == 0 ? FAIL(TGX_ZERO_DIVISION) : ((y) == -1 ? NEGATE(x) : (x) / (y)))
#define FLOOR_MOD(x, y) ((y) == 0 ? FAIL(TGX_ZERO_DIVISION) : ((y) == -1 ? 0 : (x) % (y) + ((((x) % (y)) != 0 && (((x) % (y)) < 0) != ((y) < 0)) ? (y) : 0)))
#define TRUNC_MOD(x, y) ((y) == 0 ? FAIL(TGX_ZERO_DIVISION) : ((y) == -1 ? 0 : (x) % (y)))
#define NEGATE(x) ((int64_t)(0 - (uint64_t)(x)))     /* INT_MIN stays what it is instead of trapping */

static inline int64_t vm_ipow(int64_t base, int64_t exponent) {
    uint64_t result = 1, b = (uint64_t)base;
    for (; exponent > 0; exponent >>= 1, b *= b)
        if (exponent & 1) result *= b;
    return (int64_t)result;
}
#endif
