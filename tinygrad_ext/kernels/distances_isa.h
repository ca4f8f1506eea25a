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
            for (int r = 0; r < rows; r++) { \
                const T own = x[r * job->depth + k]; \
                _Pragma("omp simd") for (int j = 0; j < LANES; j++) { \
                    T d = turned[k * job->whole + j] - own; /* of which the sign says nothing */ \
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
                if (MANY && left == TGX_DISTANCE_ROWS) strip_##NAME##_##T(TGX_DISTANCE_ROWS, x, turned + j, out + j, m, job); \
                else \
                    for (ptrdiff_t r = 0; r < left; r++) \
                        strip_##NAME##_##T(1, x + r * depth, turned + j, out + r * columns + j, m, job); \
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

/* Slopes of the distances of one row: for each of its coordinates, the sum over the rows of x2 of TAKE(difference, weight, distance).
 * A vector holds neighbouring rows of x2, and always the same ones: 64 bytes, folded at the end. */
#define SLOPES(NAME, T, TAKE) \
    static int back_##NAME##_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
        const tgx_distance_job *job = given; \
        enum { LANES = 64 / (int)sizeof(T) }; \
        const ptrdiff_t columns = job->columns, depth = job->depth, whole = job->whole; \
        const T p = (T)job->p; \
        (void)p; \
        for (ptrdiff_t g = lo; g < hi; g++) { \
            const T *x = (const T *)job->x1 + g * depth, *turned = (const T *)job->turned + g / job->rows * depth * whole; \
            const T *weight = (const T *)job->weight + g * columns, *far = (const T *)job->distances + g * columns; \
            T last[2][LANES] = {{0}}; \
            for (ptrdiff_t j = whole - LANES, l = 0; j >= 0 && j + l < columns; l++) \
                last[0][l] = weight[j + l], last[1][l] = far[j + l]; \
            for (ptrdiff_t k = 0; k < depth; k++, turned += whole) { \
                const T own = x[k]; \
                T sum[LANES] = {0}; \
                for (ptrdiff_t j = 0; j < whole; j += LANES) { \
                    const T *w = j + LANES < whole ? weight + j : last[0], *f = j + LANES < whole ? far + j : last[1]; \
                    (void)f; \
                    _Pragma("omp simd") for (int l = 0; l < LANES; l++) sum[l] += TAKE(own - turned[j + l], w[l], f[l]); \
                } \
                for (int half = LANES / 2; half; half /= 2) \
                    for (int l = 0; l < half; l++) sum[l] += sum[l + half]; \
                ((T *)job->out)[g * depth + k] = sum[0]; \
            } \
        } \
        return 0; \
    }
/* A difference that is no number has no slope that is one. */
#define CITY(d, g, far) ((d) > 0 ? (g) : (d) < 0 ? -(g) : (d) == 0 ? 0 : (d))
#define FARTHEST_f(d, g, far) (__builtin_fabsf(d) == (far) ? CITY(d, g, far) : (d) != (d) || (far) != (far) ? __builtin_nanf("") : 0)
#define FARTHEST_d(d, g, far) (__builtin_fabs(d) == (far) ? CITY(d, g, far) : (d) != (d) || (far) != (far) ? __builtin_nan("") : 0)
/* What would be 0 / 0 or 0 to a negative power is 0. */
#define STEEP_f(d, g, far) \
    ((d) == 0 || (far) == 0 ? 0 : ((d) < 0 ? -(g) : (g)) * vm_pow_f32(__builtin_fabsf(d) / (far), p - 1))
#define STEEP_d(d, g, far) \
    ((d) == 0 || (far) == 0 ? 0 : ((d) < 0 ? -(g) : (g)) * vm_pow_f64(__builtin_fabs(d) / (far), p - 1))
SLOPES(city, float, CITY) SLOPES(city, double, CITY)
SLOPES(most, float, FARTHEST_f) SLOPES(most, double, FARTHEST_d)
SLOPES(powers, float, STEEP_f) SLOPES(powers, double, STEEP_d)

const tgx_distance_table ISA(tgx_distance) = {{euclid_float, euclid_double}, {city_float, city_double}, {most_float, most_double},
                                                 {powers_float, powers_double}, {back_city_float, back_city_double},
                                                 {back_most_float, back_most_double}, {back_powers_float, back_powers_double}};
