/* Conversion loops between all pairs of dtypes.
 * A real number turned complex gets a zero imaginary part; a complex one turned real loses it.
 * Floats outside of a range become its least number, as x86 hardware does, so that no value is undefined: outside of int32 for
 * int32, int16, uint16 and int8, which are the low bits of that; outside of int64 for int64, uint8 and uint32. For uint64 those
 * above int64 keep their value, and those above uint64 become 0. PyTorch does the same, but for rows of uint32. */
#include "backward.h"
#include "casts.h"

static inline int64_t to_i64(double v) { return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN; }

/* The instruction gives INT32_MIN itself where this processor has it. */
#ifdef __x86_64__
#define TO_I32(v) ((int32_t)(v))
#else
#define TO_I32(v) ((v) >= -0x1p31f && (v) < 0x1p31f ? (int32_t)(v) : INT32_MIN)
#endif

static inline uint64_t to_u64(double v) { return v < 9223372036854775808.0 || v != v ? (uint64_t)to_i64(v) : v < 18446744073709551616.0 ? (uint64_t)v : 0; }

typedef uint8_t b8; typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64; typedef int8_t i8; typedef int16_t i16; typedef int32_t i32; typedef int64_t i64;
typedef uint16_t f16; typedef uint16_t bf16; typedef float f32; typedef double f64; typedef tgx_c64 c64; typedef tgx_c128 c128;

/* The half conversions of types.h with every case computed and one selected, so that the loops below vectorise. */
static inline uint32_t bits_of(float f) { uint32_t b; memcpy(&b, &f, 4); return b; }
static inline float float_of(uint32_t b) { float f; memcpy(&f, &b, 4); return f; }

static inline float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    uint32_t finite = bits_of(float_of(rest) * 0x1p112f); /* exact, subnormals included */
    return float_of(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : finite));
}

static inline uint16_t float_to_half(float f) {
    uint32_t bits = bits_of(f), sign = (bits >> 16) & 0x8000, rest = bits & 0x7fffffffu;
    uint32_t small = bits_of(float_of(rest) + 0.5f) - 0x3f000000u; /* the float adder rounds at a subnormal half's last bit */
    uint32_t normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1)) >> 13;
    uint32_t out = rest < 0x38800000u ? small : normal;
    out = rest >= 0x477ff000u ? 0x7c00u : out; /* 65520 and above round to infinity */
    out = rest > 0x7f800000u ? 0x7e00u : out;
    return (uint16_t)(sign | out);
}

static inline uint16_t float_to_bf16(float f) {
    uint32_t bits = bits_of(f), rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

/* Every source is read as one of the wide kinds: SMALL int32, INT int64 (UINT: uint64), W_f double (or float where exact), W_c complex. */
#define READ_b8(v) ((int32_t)((v) != 0))
#define READ_u8(v) ((int32_t)(v))
#define READ_u16(v) ((int32_t)(v))
#define READ_u32(v) ((int64_t)(v))
#define READ_u64(v) (v)
#define READ_i8(v) ((int32_t)(v))
#define READ_i16(v) ((int32_t)(v))
#define READ_i32(v) ((int32_t)(v))
#define READ_i64(v) ((int64_t)(v))
#define READ_f16(v) (half_to_float(v))
#define READ_bf16(v) (tgx_bf16_to_f32(v))
#define READ_f32(v) (v)
#define READ_f64(v) (v)
#define READ_c64(v) (v)
#define READ_c128(v) (v)

#define INT_WRITES(T) \
    static inline T WRITE_SMALL_##T(int32_t w) { return (T)w; } \
    static inline T WRITE_INT_##T(int64_t w) { return (T)w; } \
    static inline T WRITE_UINT_##T(uint64_t w) { return (T)w; }
#define REAL_WRITES(T) \
    static inline T WRITE_FLOAT_##T(double w) { return (T)to_i64(w); } \
    static inline T WRITE_COMPLEX_##T(tgx_c128 w) { return (T)to_i64(creal(w)); }
INT_WRITES(u8) INT_WRITES(u16) INT_WRITES(u32) INT_WRITES(i64) REAL_WRITES(u8) REAL_WRITES(u32) REAL_WRITES(i64)
static inline u64 WRITE_SMALL_u64(int32_t w) { return (u64)w; }
static inline u64 WRITE_INT_u64(int64_t w) { return (u64)w; }
static inline u64 WRITE_UINT_u64(uint64_t w) { return w; }
static inline u64 WRITE_FLOAT_u64(double w) { return to_u64(w); }
static inline u64 WRITE_COMPLEX_u64(tgx_c128 w) { return to_u64(creal(w)); }
static inline b8 WRITE_SMALL_b8(int32_t w) { return w != 0; }
static inline b8 WRITE_INT_b8(int64_t w) { return w != 0; }
static inline b8 WRITE_UINT_b8(uint64_t w) { return w != 0; }
static inline b8 WRITE_FLOAT_b8(double w) { return w != 0; }
static inline b8 WRITE_COMPLEX_b8(tgx_c128 w) { return w != 0; }
#define FLOAT_WRITES(T, STORE) \
    static inline T WRITE_SMALL_##T(int32_t w) { return STORE(w); } \
    static inline T WRITE_INT_##T(int64_t w) { return STORE(w); } \
    static inline T WRITE_UINT_##T(uint64_t w) { return STORE(w); } \
    static inline T WRITE_FLOAT_##T(double w) { return STORE(w); } \
    static inline T WRITE_COMPLEX_##T(tgx_c128 w) { return STORE(creal(w)); }
#define STORE_F16(w) float_to_half((float)(w))
#define STORE_BF16(w) float_to_bf16((float)(w))
#define STORE_F32(w) ((float)(w))
#define STORE_F64(w) ((double)(w))
FLOAT_WRITES(f16, STORE_F16) FLOAT_WRITES(bf16, STORE_BF16) FLOAT_WRITES(f32, STORE_F32) FLOAT_WRITES(f64, STORE_F64)
static inline c64 WRITE_SMALL_c64(int32_t w) { return (float)w; }
static inline c64 WRITE_INT_c64(int64_t w) { return (float)w; }
static inline c64 WRITE_UINT_c64(uint64_t w) { return (float)w; }
static inline c64 WRITE_FLOAT_c64(double w) { return (float)w; }
static inline c64 WRITE_COMPLEX_c64(tgx_c128 w) { return (tgx_c64)w; }
static inline c128 WRITE_SMALL_c128(int32_t w) { return (double)w; }
static inline c128 WRITE_INT_c128(int64_t w) { return (double)w; }
static inline c128 WRITE_UINT_c128(uint64_t w) { return (double)w; }
static inline c128 WRITE_FLOAT_c128(double w) { return w; }
static inline c128 WRITE_COMPLEX_c128(tgx_c128 w) { return w; }

#define CAST(FROM, TO, KIND) \
    static int cast_##FROM##_##TO(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) { \
        char *o = data[0]; const char *a = data[1]; \
        (void)aux; \
        if (s[0] == sizeof(TO) && s[1] == sizeof(FROM)) { \
            TO *op = (TO *)o; const FROM *ap = (const FROM *)a; \
            _Pragma("omp simd") \
            for (ptrdiff_t i = 0; i < n; i++) op[i] = WRITE_##KIND##_##TO(READ_##FROM(ap[i])); \
        } else { \
            for (ptrdiff_t i = 0; i < n; i++, o += s[0], a += s[1]) \
                *(TO *)o = WRITE_##KIND##_##TO(READ_##FROM(*(const FROM *)a)); \
        } \
        return 0; \
    }
/* Integers of up to 32 bits are the low bits of the wide kind, whether their own first bit is a sign or not. */
#define CAST_TO_ALL(FROM, KIND) CAST(FROM, u16, KIND) CAST_TO_OTHERS(FROM, KIND)
#define CAST_TO_OTHERS(FROM, KIND) \
    CAST(FROM, b8, KIND) CAST(FROM, u8, KIND) CAST(FROM, u32, KIND) CAST(FROM, u64, KIND) \
    CAST(FROM, i64, KIND) CAST(FROM, f16, KIND) CAST(FROM, bf16, KIND) CAST(FROM, f32, KIND) CAST(FROM, f64, KIND) \
    CAST(FROM, c64, KIND) CAST(FROM, c128, KIND)
CAST_TO_ALL(b8, SMALL) CAST_TO_ALL(u8, SMALL) CAST_TO_ALL(i8, SMALL) CAST_TO_ALL(i16, SMALL) CAST_TO_ALL(i32, SMALL) CAST_TO_ALL(i64, INT)
CAST_TO_ALL(u16, SMALL) CAST_TO_ALL(u32, INT) CAST_TO_ALL(u64, UINT)
CAST_TO_OTHERS(f16, FLOAT) CAST_TO_OTHERS(bf16, FLOAT) CAST_TO_OTHERS(f32, FLOAT) CAST_TO_OTHERS(f64, FLOAT)
CAST_TO_OTHERS(c64, COMPLEX) CAST_TO_OTHERS(c128, COMPLEX)

/* Floats to what is the low bits of int32: one vector instruction. */
#define REAL_f16(v) half_to_float(v)
#define REAL_bf16(v) tgx_bf16_to_f32(v)
#define REAL_f32(v) (v)
#define REAL_f64(v) (v)
#define REAL_c64(v) crealf(v)
#define REAL_c128(v) creal(v)
#define WRITE_NEAR(FROM, TO, v) ((TO)TO_I32(REAL_##FROM(v)))
#define NEAR(FROM, TO) \
    static int near_##FROM##_##TO(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) { \
        char *o = data[0]; const char *a = data[1]; \
        (void)aux; \
        if (s[0] == sizeof(TO) && s[1] == sizeof(FROM)) { \
            TO *op = (TO *)o; const FROM *ap = (const FROM *)a; \
            _Pragma("omp simd") \
            for (ptrdiff_t i = 0; i < n; i++) op[i] = WRITE_NEAR(FROM, TO, ap[i]); \
        } else { \
            for (ptrdiff_t i = 0; i < n; i++, o += s[0], a += s[1]) *(TO *)o = WRITE_NEAR(FROM, TO, *(const FROM *)a); \
        } \
        return 0; \
    }
#define NEAR_TO_ALL(FROM) NEAR(FROM, i8) NEAR(FROM, i16) NEAR(FROM, i32)
NEAR_TO_ALL(f16) NEAR_TO_ALL(bf16) NEAR_TO_ALL(f32) NEAR_TO_ALL(f64) NEAR_TO_ALL(c64) NEAR_TO_ALL(c128)

/* Floats to uint8 and uint32. Only a float inside int32 converts by that instruction to what the way over int64 gives, so a
 * block that held another, or NaN, goes the other way afterwards. */
#ifdef __x86_64__
#define IS_NEAR(v, made) ((made) != INT32_MIN)
#else
#define IS_NEAR(v, made) (((v) >= -0x1p31f) & ((v) < 0x1p31f))
#endif
#define NARROW(FROM, TO) \
    static int narrow_##FROM##_##TO(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) { \
        if (s[0] != sizeof(TO) || s[1] != sizeof(FROM)) return cast_##FROM##_##TO(data, s, n, aux); \
        for (ptrdiff_t at = 0; at < n; at += 512) { \
            const ptrdiff_t m = n - at < 512 ? n - at : 512; \
            TO *o = (TO *)data[0] + at; const FROM *a = (const FROM *)data[1] + at; \
            int far = 0; \
            _Pragma("omp simd reduction(|:far)") \
            for (ptrdiff_t i = 0; i < m; i++) { \
                const int32_t made = TO_I32(READ_##FROM(a[i])); \
                far |= !IS_NEAR(READ_##FROM(a[i]), made); \
                o[i] = (TO)made; \
            } \
            if (far) { \
                char *block[] = {(char *)o, (char *)(void *)a}; \
                cast_##FROM##_##TO(block, s, m, aux); \
            } \
        } \
        return 0; \
    }
#define NARROW_TO_ALL(FROM) NARROW(FROM, u8) NARROW(FROM, u32)
NARROW_TO_ALL(bf16) NARROW_TO_ALL(f32) NARROW_TO_ALL(f64)
#define cast_bf16_u8 narrow_bf16_u8
#define cast_bf16_u32 narrow_bf16_u32
#define cast_f32_u8 narrow_f32_u8
#define cast_f32_u32 narrow_f32_u32
#define cast_f64_u8 narrow_f64_u8
#define cast_f64_u32 narrow_f64_u32

/* The processor's own conversions of halves; they differ from the above in the payload of a NaN only. */
#ifdef __AVX2__
#include <immintrin.h>
#pragma GCC target("f16c")
static int widen_halves(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) {
    const ptrdiff_t os = s[0], as = s[1];
    char *o = data[0]; const char *a = data[1];
    ptrdiff_t i = 0;
    (void)aux;
    if (os == sizeof(f32) && as == sizeof(f16))
        for (; i + 8 <= n; i += 8)
            _mm256_storeu_ps((float *)o + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(a + i * as))));
    for (; i < n; i++) *(f32 *)(o + i * os) = _cvtsh_ss(*(const f16 *)(a + i * as));
    return 0;
}

static int narrow_to_halves(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) {
    const ptrdiff_t os = s[0], as = s[1];
    char *o = data[0]; const char *a = data[1];
    ptrdiff_t i = 0;
    (void)aux;
    if (os == sizeof(f16) && as == sizeof(f32))
        for (; i + 8 <= n; i += 8)
            _mm_storeu_si128((__m128i *)(o + i * os),
                             _mm256_cvtps_ph(_mm256_loadu_ps((const float *)a + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++) *(f16 *)(o + i * os) = _cvtss_sh(*(const f32 *)(a + i * as), _MM_FROUND_TO_NEAREST_INT);
    return 0;
}
#define cast_f16_f32 widen_halves
#define cast_f32_f16 narrow_to_halves

static int narrow_doubles(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) {
    float room[512];
    const ptrdiff_t wide[] = {sizeof(f32), s[1]}, narrow[] = {s[0], sizeof(f32)};
    for (ptrdiff_t at = 0; at < n; at += 512) {
        const ptrdiff_t m = n - at < 512 ? n - at : 512;
        char *from[] = {(char *)room, data[1] + at * s[1]}, *to[] = {data[0] + at * s[0], (char *)room};
        cast_f64_f32(from, wide, m, aux);
        narrow_to_halves(to, narrow, m, aux);
    }
    return 0;
}
#define cast_f64_f16 narrow_doubles
#endif

/* Plain copies, and fills from one element. */
#define COPY(SIZE, T) \
    static int copy_##SIZE(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) { \
        const ptrdiff_t os = s[0], as = s[1]; \
        char *o = data[0]; const char *a = data[1]; \
        (void)aux; \
        if (os == sizeof(T) && as == sizeof(T)) { \
            memmove(o, a, (size_t)n * sizeof(T)); \
        } else if (os == sizeof(T) && as == -(ptrdiff_t)sizeof(T)) { \
            tgx_backward_##SIZE(o, a, n); \
        } else if (os == sizeof(T) && as == 0) { \
            const T v = *(const T *)a; T *op = (T *)o; \
            _Pragma("omp simd") \
            for (ptrdiff_t i = 0; i < n; i++) op[i] = v; \
        } else { \
            for (ptrdiff_t i = 0; i < n; i++, o += os, a += as) *(T *)o = *(const T *)a; \
        } \
        return 0; \
    }
COPY(1, uint8_t) COPY(2, uint16_t) COPY(4, uint32_t) COPY(8, uint64_t) COPY(16, c128)
const tgx_loop ISA(tgx_copy_table)[TGX_NTYPES] = {TGX_BY_SIZE(copy_)};

#define BOTH(FROM) [TGX_U8] = cast_##FROM##_u8, [TGX_U32] = cast_##FROM##_u32, [TGX_U64] = cast_##FROM##_u64, [TGX_I64] = cast_##FROM##_i64, \
                   TGX_OF_BOOL(cast_##FROM##_), TGX_OF_HALF(cast_##FROM##_), TGX_OF_FLOAT(cast_##FROM##_), TGX_OF_COMPLEX(cast_##FROM##_)
#define ROW(FROM) {BOTH(FROM), [TGX_I8] = cast_##FROM##_u8, [TGX_I16] = cast_##FROM##_u16, [TGX_I32] = cast_##FROM##_u32, \
                   [TGX_U16] = cast_##FROM##_u16}
#define REALS(FROM) {BOTH(FROM), [TGX_I8] = near_##FROM##_i8, [TGX_I16] = near_##FROM##_i16, [TGX_I32] = near_##FROM##_i32, \
                     [TGX_U16] = near_##FROM##_i16}
const tgx_loop ISA(tgx_cast_table)[TGX_NTYPES][TGX_NTYPES] = {
    [TGX_BOOL] = ROW(b8), [TGX_U8] = ROW(u8), [TGX_U16] = ROW(u16), [TGX_U32] = ROW(u32),
    [TGX_U64] = ROW(u64), [TGX_I8] = ROW(i8), [TGX_I16] = ROW(i16), [TGX_I32] = ROW(i32),
    [TGX_I64] = ROW(i64), [TGX_F16] = REALS(f16), [TGX_BF16] = REALS(bf16), [TGX_F32] = REALS(f32), [TGX_F64] = REALS(f64),
    [TGX_C64] = REALS(c64), [TGX_C128] = REALS(c128)
};
