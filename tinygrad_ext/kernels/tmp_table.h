#ifndef TMP_T
#define TMP_T
static const int tgx_itemsize[TGX_NTYPES] = {[TGX_BOOL] = 1, [TGX_U8] = 1, [TGX_I8] = 1, [TGX_I16] = 2, [TGX_I32] = 4, [TGX_I64] = 8, [TGX_F16] = 2, [TGX_BF16] = 2, [TGX_F32] = 4, [TGX_F64] = 8, [TGX_C64] = 8, [TGX_C128] = 16};

/* Of a dtype's number, which is none of the negative ones that stand for 'not given'. */
static inline int tgx_is_integral(int dtype) { return dtype <= 5; } /* whole numbers, truth values among them */
static inline int tgx_is_integer(int dtype) { return (unsigned)dtype - 1u <= 4u; } /* whole numbers alone */
static inline int tgx_is_half(int dtype) { return (unsigned)dtype - 6u <= 1u; } /* two-byte floats, computed in float32 */
static inline int tgx_is_native_float(int dtype) { return (unsigned)dtype - 8u <= 1u; } /* floats that the processor computes in */
static inline int tgx_is_float(int dtype) { return (unsigned)dtype - 6u <= 3u; } /* real numbers with a fraction */
static inline int tgx_is_complex(int dtype) { return dtype >= 10; } /* real and imaginary part */
static inline int tgx_is_inexact(int dtype) { return dtype >= 6; } /* what is rounded, and so may have a gradient */
static inline int tgx_is_signed(int dtype) { return dtype >= 2; } /* numbers below zero too */
static inline int tgx_is_mask(int dtype) { return dtype <= 1; } /* what chooses elements as an index */

/* Entries of an array by dtype number: for a word of `types=`, and by the bytes of an element. */
#define TGX_OF_BOOL(name) [TGX_BOOL] = name##b8
#define TGX_OF_INT(name) [TGX_U8] = name##u8, [TGX_I8] = name##i8, [TGX_I16] = name##i16, [TGX_I32] = name##i32, [TGX_I64] = name##i64
#define TGX_OF_FLOAT(name) [TGX_F32] = name##f32, [TGX_F64] = name##f64
#define TGX_OF_HALF(name) [TGX_F16] = name##f16, [TGX_BF16] = name##bf16
#define TGX_OF_COMPLEX(name) [TGX_C64] = name##c64, [TGX_C128] = name##c128
#define TGX_BY_SIZE(name) [TGX_BOOL] = name##1, [TGX_U8] = name##1, [TGX_I8] = name##1, [TGX_I16] = name##2, [TGX_I32] = name##4, [TGX_I64] = name##8, [TGX_F16] = name##2, [TGX_BF16] = name##2, [TGX_F32] = name##4, [TGX_F64] = name##8, [TGX_C64] = name##8, [TGX_C128] = name##16

/* The dtype that holds both. */
static inline int tgx_promote(int a, int b) {
    static const int8_t to[TGX_NTYPES][TGX_NTYPES] = {
        [TGX_BOOL] = {TGX_BOOL, TGX_U8, TGX_I8, TGX_I16, TGX_I32, TGX_I64, TGX_F16, TGX_BF16, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_U8] = {TGX_U8, TGX_U8, TGX_I16, TGX_I16, TGX_I32, TGX_I64, TGX_F16, TGX_BF16, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_I8] = {TGX_I8, TGX_I16, TGX_I8, TGX_I16, TGX_I32, TGX_I64, TGX_F16, TGX_BF16, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_I16] = {TGX_I16, TGX_I16, TGX_I16, TGX_I16, TGX_I32, TGX_I64, TGX_F16, TGX_BF16, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_I32] = {TGX_I32, TGX_I32, TGX_I32, TGX_I32, TGX_I32, TGX_I64, TGX_F16, TGX_BF16, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_I64] = {TGX_I64, TGX_I64, TGX_I64, TGX_I64, TGX_I64, TGX_I64, TGX_F16, TGX_BF16, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_F16] = {TGX_F16, TGX_F16, TGX_F16, TGX_F16, TGX_F16, TGX_F16, TGX_F16, TGX_F32, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_BF16] = {TGX_BF16, TGX_BF16, TGX_BF16, TGX_BF16, TGX_BF16, TGX_BF16, TGX_F32, TGX_BF16, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_F32] = {TGX_F32, TGX_F32, TGX_F32, TGX_F32, TGX_F32, TGX_F32, TGX_F32, TGX_F32, TGX_F32, TGX_F64, TGX_C64, TGX_C128},
        [TGX_F64] = {TGX_F64, TGX_F64, TGX_F64, TGX_F64, TGX_F64, TGX_F64, TGX_F64, TGX_F64, TGX_F64, TGX_F64, TGX_C128, TGX_C128},
        [TGX_C64] = {TGX_C64, TGX_C64, TGX_C64, TGX_C64, TGX_C64, TGX_C64, TGX_C64, TGX_C64, TGX_C64, TGX_C128, TGX_C64, TGX_C128},
        [TGX_C128] = {TGX_C128, TGX_C128, TGX_C128, TGX_C128, TGX_C128, TGX_C128, TGX_C128, TGX_C128, TGX_C128, TGX_C128, TGX_C128, TGX_C128},
    };
    return to[a][b];
}

#endif
