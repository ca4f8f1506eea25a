/* Sums of up to sixteen rows: one element a lane, folded on the spot. Where their number is odd, one of zeros is the last. What is
 * added to zero at the end has the bits of what began there. */

/* Numbers at a time: as many doubles as fit a vector. Floats are widened by name, since the compiler would take out halves of more. */
#if defined(__AVX512F__)
enum { FEW = 8 };
#define SOME_float(x) ((few_double)_mm512_cvtps_pd(_mm256_loadu_ps((x) + k)))
#elif defined(__AVX2__)
enum { FEW = 4 };
#define SOME_float(x) ((few_double)_mm256_cvtps_pd(_mm_loadu_ps((x) + k)))
#else
enum { FEW = 2 };
#define SOME_float(x) ((few_double){(x)[k], (x)[k + 1]})
#endif
typedef double few_double __attribute__((vector_size(FEW * sizeof(double)), aligned(sizeof(double)), may_alias));
#define SOME_double(x) (*(const few_double *)((x) + k))
#define FEW_ROWS(T) \
static inline __attribute__((always_inline)) void fold_some_##T(const T *const *at, const int n, int k, double *sum) { \
    few_double lane[LANES]; \
    _Pragma("GCC unroll 16") for (int l = 0; l < n; l++) lane[l] = SOME_##T(at[l]); \
    _Pragma("GCC unroll 8") for (int l = 0; l < 8; l++) if (l + 8 < n) lane[l] = lane[l] + lane[l + 8]; \
    _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) if (l + 4 < n) lane[l] = lane[l] + lane[l + 4]; \
    _Pragma("GCC unroll 2") for (int l = 0; l < 2; l++) if (l + 2 < n) lane[l] = lane[l] + lane[l + 2]; \
    *(few_double *)(sum + k) = 0.0 + (lane[0] + lane[1]); \
} \
/* The last columns once more with those before, where they do not fill a vector. */ \
static inline __attribute__((always_inline)) void fold_rows_##T(const T *const *at, const int n, int w, double *sum) { \
    for (int k = 0; k < w; k += FEW) fold_some_##T(at, n, k + FEW <= w ? k : w - FEW, sum); \
} \
static void fold_narrow_##T(const T *const *at, int n, int w, double *sum) { \
    for (int k = 0; k < w; k++) { \
        double lane[LANES]; \
        for (int l = 0; l < n; l++) lane[l] = at[l][k]; \
        for (int h = LANES / 2; h; h /= 2) \
            for (int l = 0; l < h && l + h < n; l++) lane[l] = lane[l] + lane[l + h]; \
        sum[k] = 0.0 + lane[0]; \
    } \
} \
static void few_rows_##T(const char *const *rows, int n, int w, double *sum) { \
    static const T zeros[2 * TGX_TILE]; \
    const T *at[LANES]; \
    for (int l = 0; l < n; l++) at[l] = (const T *)rows[l]; \
    if (n % 2) at[n] = zeros; \
    if (w < FEW) fold_narrow_##T(at, n, w, sum); \
    else switch ((n + 1) / 2) { \
    case 1: fold_rows_##T(at, 2, w, sum); return; \
    case 2: fold_rows_##T(at, 4, w, sum); return; \
    case 3: fold_rows_##T(at, 6, w, sum); return; \
    case 4: fold_rows_##T(at, 8, w, sum); return; \
    case 5: fold_rows_##T(at, 10, w, sum); return; \
    case 6: fold_rows_##T(at, 12, w, sum); return; \
    case 7: fold_rows_##T(at, 14, w, sum); return; \
    default: fold_rows_##T(at, 16, w, sum); \
    } \
}
FEW_ROWS(float) FEW_ROWS(double)
