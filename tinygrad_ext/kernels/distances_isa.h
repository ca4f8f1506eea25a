/* See distances.h. A vector holds distances of one row of x1 to neighbouring rows of x2, so that each is summed up in the
 * order of its coordinates, whatever the width of a vector. */
#include <math.h>
#include <string.h>
#include "distances.h"
#include "vecmath.h"

/* NAME: of the loops; MANY: whether rows of x1 share what is loaded; TAKE(sum, d): a sum with the difference of a coordinate;
 * ROOT(sum): the distance. Each is there once for all lanes, the last ones included, for a power takes a kilobyte and more; and
 * roots apart, because GCC takes them one by one where it knows how many there are. */
#define DISTANCE(NAME, T, MANY, TAKE, ROOT) \
    static __attribute__((noinline)) void root_##NAME##_##T(T *sum, ptrdiff_t rows, T p) { \
        (void)p; \
        for (ptrdiff_t j = 0; j < rows * (64 / (ptrdiff_t)sizeof(T)); j++) sum[j] = ROOT(sum[j]); \
    } \
    static inline __attribute__((always_inline)) void strip_##NAME##_##T(const int rows, const T *x, const T *turned, T *out, \
                                                                ptrdiff_t lanes, const tgx_distance_job *job) { \
        const T p = (T)job->p; \
        (void)p; \
        enum { LANES = 64 / (int)sizeof(T) }; \
        T sum[TGX_DISTANCE_ROWS][LANES] = {{0}}; \
        for (ptrdiff_t k = 0; k < job->depth; k++) \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) { \
                const T own = x[r * job->depth + k]; \
                _Pragma("omp simd") for (int j = 0; j < LANES; j++) { \
                    T d = turned[k * LANES + j] - own; /* of which the sign says nothing */ \
                    sum[r][j] = TAKE(sum[r][j], d); \
                } \
            } \
        root_##NAME##_##T(sum[0], rows, p); \
        for (int r = 0; r < rows; r++) { \
            if (lanes == LANES) memcpy(out + r * job->columns, sum[r], sizeof sum[r]); \
            else memcpy(out + r * job->columns, sum[r], (size_t)lanes * sizeof(T)); \
        } \
    } \
    static int NAME##_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
        const tgx_distance_job *job = given; \
        const ptrdiff_t columns = job->columns, depth = job->depth, lanes = 64 / (ptrdiff_t)sizeof(T); \
        const ptrdiff_t groups = (job->rows + TGX_DISTANCE_ROWS - 1) / TGX_DISTANCE_ROWS; \
        for (ptrdiff_t g = lo; g < hi; g++) { \
            const ptrdiff_t b = g / groups, row = g % groups * TGX_DISTANCE_ROWS; \
            const T *x = (const T *)job->x1 + (b * job->rows + row) * depth; \
            const T *turned = (const T *)job->turned + b * depth * job->whole; \
            T *out = (T *)job->out + (b * job->rows + row) * columns; \
            const ptrdiff_t left = job->rows - row < TGX_DISTANCE_ROWS ? job->rows - row : TGX_DISTANCE_ROWS; \
            for (ptrdiff_t j = 0; j < columns; j += lanes) { \
                const ptrdiff_t m = columns - j < lanes ? columns - j : lanes; \
                if (MANY && left == TGX_DISTANCE_ROWS) strip_##NAME##_##T(TGX_DISTANCE_ROWS, x, turned + j * depth, out + j, m, job); \
                else \
                    for (ptrdiff_t r = 0; r < left; r++) \
                        strip_##NAME##_##T(1, x + r * depth, turned + j * depth, out + r * columns + j, m, job); \
            } \
        } \
        return 0; \
    }
#define SQUARES_f(s, d) vm_mad_f32(d, d, s)
#define SQUARES_d(s, d) vm_mad_f64(d, d, s)
#define SIZES_f(s, d) ((s) + __builtin_fabsf(d))
#define SIZES_d(s, d) ((s) + __builtin_fabs(d))
#define MOST_f(s, d) (__builtin_fabsf(d) > (s) || (d) != (d) ? __builtin_fabsf(d) : (s))    /* a nan stays */
#define MOST_d(s, d) (__builtin_fabs(d) > (s) || (d) != (d) ? __builtin_fabs(d) : (s))
#define ITSELF(s) (s)
#define POWERS_f(s, d) ((s) + vm_pow_f32(__builtin_fabsf(d), p))
#define POWERS_d(s, d) ((s) + vm_pow_f64(__builtin_fabs(d), p))
#define ROOT_f(s) vm_pow_f32(s, 1 / p)
#define ROOT_d(s) vm_pow_f64(s, 1 / p)
DISTANCE(euclid, float, 1, SQUARES_f, __builtin_sqrtf) DISTANCE(euclid, double, 1, SQUARES_d, __builtin_sqrt)
DISTANCE(city, float, 1, SIZES_f, ITSELF) DISTANCE(city, double, 1, SIZES_d, ITSELF)
DISTANCE(most, float, 1, MOST_f, ITSELF) DISTANCE(most, double, 1, MOST_d, ITSELF)
DISTANCE(powers, float, 0, POWERS_f, ROOT_f) DISTANCE(powers, double, 0, POWERS_d, ROOT_d)

/* Slopes of the distances of TGX_DISTANCE_ROWS rows: for each of their coordinates, the sum over the rows of x2 of
 * TAKE(difference, weight, distance). A vector holds neighbouring rows of x2, and always the same ones: 64 bytes, folded after
 * TGX_DISTANCE_CHUNK of them. FAR: whether distances are asked for. */
enum { COORDINATES = 32 }; /* whose sums lie at hand */
#ifdef __AVX512F__
enum { VECTORS = 4, TOGETHER = 1 }; /* of weights, as many as registers hold for TGX_DISTANCE_ROWS rows; and whether rows share them */
#else
enum { VECTORS = 1, TOGETHER = 0 }; /* less code for processors with fewer registers */
#endif

/* Numbers of some rows from a column on, which are the rows of a transposed matrix where step is not 1. */
#define GATHER(T) \
    static __attribute__((noinline)) void gather_##T(T (*to)[TGX_DISTANCE_CHUNK], const T *from, ptrdiff_t row, ptrdiff_t step, \
                                                     ptrdiff_t rows, ptrdiff_t m) { \
        const ptrdiff_t lanes = 64 / (ptrdiff_t)sizeof(T), room = (m + lanes - 1) / lanes * lanes; \
        for (ptrdiff_t r = 0; r < rows; r++) { \
            if (step == 1) memcpy(to[r], from + r * row, (size_t)m * sizeof(T)); \
            for (ptrdiff_t j = m; j < room; j++) to[r][j] = 0; \
        } \
        for (ptrdiff_t j = 0; step != 1 && j < m; j++, from += step) \
            for (ptrdiff_t r = 0; r < rows; r++) to[r][j] = from[r * row]; \
    }
GATHER(float) GATHER(double)

/* MANY: 0: one row at a time; 1: rows together; 2: several vectors too. */
#define SLOPES(NAME, T, MANY, FAR, TAKE) \
    /* What some vectors of weights give to the sums of some coordinates. Words unroll what has no vectors of its own. */ \
    static inline __attribute__((always_inline)) void tile_##NAME##_##T(const int rows, const int vectors, const T *restrict x, \
            ptrdiff_t depth, const T *restrict turned, ptrdiff_t left, const T (*restrict w)[TGX_DISTANCE_CHUNK], \
            const T (*restrict f)[TGX_DISTANCE_CHUNK], const T p, ptrdiff_t n, T (*restrict sum)[COORDINATES][64 / sizeof(T)]) { \
        (void)p; \
        enum { LANES = 64 / (int)sizeof(T) }; \
        for (ptrdiff_t k = 0; k < n; k++) \
            _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) { \
                T own = x[r * depth + k], s[LANES]; \
                memcpy(s, sum[r][k], sizeof s); \
                _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) \
                    _Pragma("omp simd") for (int l = 0; l < LANES; l++) { \
                        T more = TAKE(s[l], own - turned[(v * depth + k) * LANES + l], w[r][v * LANES + l], f[r][v * LANES + l]); \
                        s[l] = left == LANES || l < left ? more : s[l]; \
                    } \
                memcpy(sum[r][k], s, sizeof s); \
            } \
    } \
    /* The same of all rows of a chunk; what stands behind its last one is none of them, and no zero times an infinity. */ \
    static inline __attribute__((always_inline)) void rows_##NAME##_##T(const int rows, const T *x, ptrdiff_t depth, const T *turned, \
            ptrdiff_t m, const T (*w)[TGX_DISTANCE_CHUNK], const T (*f)[TGX_DISTANCE_CHUNK], const T p, ptrdiff_t n, T *out) { \
        enum { LANES = 64 / (int)sizeof(T) }; \
        T sum[TGX_DISTANCE_ROWS][COORDINATES][LANES]; \
        memset(sum, 0, sizeof sum); \
        ptrdiff_t j = 0; \
        for (; VECTORS > 1 && rows > 1 && MANY > 1 && j + VECTORS * LANES <= m; j += VECTORS * LANES) \
            tile_##NAME##_##T(rows, VECTORS, x, depth, turned + j * depth, LANES, (void *)(w[0] + j), (void *)(f[0] + j), p, n, sum); \
        for (; j < m; j += LANES) /* once for whole vectors and for the last one: a power takes kilobytes */ \
            tile_##NAME##_##T(rows, 1, x, depth, turned + j * depth, m - j < LANES ? m - j : LANES, (void *)(w[0] + j), \
                              (void *)(f[0] + j), p, n, sum); \
        for (int r = 0; r < rows; r++) \
            for (ptrdiff_t k = 0; k < n; k++) { \
                _Pragma("GCC unroll 4") for (int half = LANES / 2; half; half /= 2) \
                    for (int l = 0; l < half; l++) sum[r][k][l] += sum[r][k][l + half]; \
                out[r * depth + k] += sum[r][k][0]; \
            } \
    } \
    static int back_##NAME##_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
        const tgx_distance_job *job = given; \
        enum { LANES = 64 / (int)sizeof(T) }; \
        const ptrdiff_t columns = job->columns, depth = job->depth, groups = (job->rows + TGX_DISTANCE_ROWS - 1) / TGX_DISTANCE_ROWS; \
        const T p = (T)job->p; \
        T w[TGX_DISTANCE_ROWS][TGX_DISTANCE_CHUNK], far[FAR ? TGX_DISTANCE_ROWS : 1][TGX_DISTANCE_CHUNK], (*f)[TGX_DISTANCE_CHUNK]; \
        f = FAR ? far : w; \
        for (ptrdiff_t g = lo; g < hi; g++) { \
            const ptrdiff_t b = g / groups, row = g % groups * TGX_DISTANCE_ROWS, all = b * job->rows * columns; \
            const ptrdiff_t left = job->rows - row < TGX_DISTANCE_ROWS ? job->rows - row : TGX_DISTANCE_ROWS; \
            const T *x = (const T *)job->x1 + (b * job->rows + row) * depth; \
            T *out = (T *)job->out + (b * job->rows + row) * depth; \
            memset(out, 0, (size_t)(left * depth) * sizeof(T)); \
            for (ptrdiff_t j = 0; j < columns; j += TGX_DISTANCE_CHUNK) { \
                const ptrdiff_t m = columns - j < TGX_DISTANCE_CHUNK ? columns - j : TGX_DISTANCE_CHUNK; \
                const T *turned = (const T *)job->turned + (b * job->whole + j) * depth; \
                for (int k = 0; k < 1 + FAR; k++) { \
                    const ptrdiff_t step = job->step[k], other = step == 1 ? columns : 1; \
                    gather_##T(k ? far : w, (const T *)(k ? job->distances : job->weight) + all + row * other + j * step, other, \
                               step, left, m); \
                } \
                for (ptrdiff_t k = 0; k < depth; k += COORDINATES) { \
                    const ptrdiff_t n = depth - k < COORDINATES ? depth - k : COORDINATES; \
                    if (TOGETHER && MANY && left == TGX_DISTANCE_ROWS) \
                        rows_##NAME##_##T(TGX_DISTANCE_ROWS, x + k, depth, turned + k * LANES, m, w, f, p, n, out + k); \
                    else \
                        for (ptrdiff_t r = 0; r < left; r++) \
                            rows_##NAME##_##T(1, x + r * depth + k, depth, turned + k * LANES, m, w + r, f + r, p, n, \
                                              out + r * depth + k); \
                } \
            } \
        } \
        return 0; \
    }
/* The weight with the sign of the difference; what is no number has no slope that is one. */
#define SIGNED_f(d, g) (__builtin_islessgreater(d, 0) ? vm_from_bits_f32(vm_bits_f32(g) ^ (vm_bits_f32(d) & 0x80000000u)) : (d))
#define SIGNED_d(d, g) (__builtin_islessgreater(d, 0) ? vm_from_bits_f64(vm_bits_f64(g) ^ (vm_bits_f64(d) & 1ull << 63)) : (d))
#define CITY_f(s, d, g, far) ((s) + SIGNED_f(d, g))
#define CITY_d(s, d, g, far) ((s) + SIGNED_d(d, g))
#define FARTHEST_f(s, d, g, far) \
    ((s) + (__builtin_fabsf(d) == (far) ? SIGNED_f(d, g) : __builtin_isunordered(d, far) ? __builtin_nanf("") : 0))
#define FARTHEST_d(s, d, g, far) \
    ((s) + (__builtin_fabs(d) == (far) ? SIGNED_d(d, g) : __builtin_isunordered(d, far) ? __builtin_nan("") : 0))
/* What would be 0 / 0 or 0 to a negative power is 0. */
#define STEEP_f(s, d, g, far) \
    ((s) + ((d) == 0 || (far) == 0 ? 0 : ((d) < 0 ? -(g) : (g)) * vm_pow_f32(__builtin_fabsf(d) / (far), p - 1)))
#define STEEP_d(s, d, g, far) \
    ((s) + ((d) == 0 || (far) == 0 ? 0 : ((d) < 0 ? -(g) : (g)) * vm_pow_f64(__builtin_fabs(d) / (far), p - 1)))
#define WEIGHED_f(s, d, g, far) vm_mad_f32(d, g, s)
#define WEIGHED_d(s, d, g, far) vm_mad_f64(d, g, s)
SLOPES(sums, float, 2, 0, WEIGHED_f) SLOPES(sums, double, 2, 0, WEIGHED_d)
SLOPES(city, float, 1, 0, CITY_f) SLOPES(city, double, 1, 0, CITY_d)
SLOPES(most, float, 1, 1, FARTHEST_f) SLOPES(most, double, 1, 1, FARTHEST_d)
SLOPES(powers, float, 0, 1, STEEP_f) SLOPES(powers, double, 0, 1, STEEP_d)

/* Products of differences: of each row of x1 and each of x2, added up over coordinates, that of them times that of others. */
#define DOTS(T) \
    static int dots_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
        const tgx_distance_job *job = given; \
        enum { LANES = 64 / (int)sizeof(T) }; \
        const ptrdiff_t columns = job->columns, depth = job->depth; \
        for (ptrdiff_t g = lo; g < hi; g++) { \
            const T *x = (const T *)job->x1 + g * depth, *y = (const T *)job->other + g * depth; \
            for (ptrdiff_t j = 0; j < columns; j += LANES) { \
                const T *s = (const T *)job->turned + (g / job->rows * job->whole + j) * depth, *t = s + job->apart; \
                T sum[LANES] = {0}; \
                for (ptrdiff_t k = 0; k < depth; k++, s += LANES, t += LANES) \
                    _Pragma("omp simd") for (int l = 0; l < LANES; l++) sum[l] += (x[k] - s[l]) * (y[k] - t[l]); \
                memcpy((T *)job->out + g * columns + j, sum, (size_t)(columns - j < LANES ? columns - j : LANES) * sizeof(T)); \
            } \
        } \
        return 0; \
    }
DOTS(float) DOTS(double)

const tgx_distance_table ISA(tgx_distance) = {
    {euclid_float, euclid_double}, {city_float, city_double}, {most_float, most_double}, {powers_float, powers_double},
    {back_sums_float, back_sums_double}, {back_city_float, back_city_double}, {back_most_float, back_most_double},
    {back_powers_float, back_powers_double}, {dots_float, dots_double}};
