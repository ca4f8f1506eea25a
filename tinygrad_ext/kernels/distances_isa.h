/* See distances.h. A vector holds distances of one row of x1 to neighbouring rows of x2, so that each is summed up in the
 * order of its coordinates, whatever the width of a vector. */
#include <math.h>
#include "distances.h"
#include "vecmath.h"

/* NAME: of the loops; TAKE(sum, d): a sum with the difference of a coordinate; ROOT(sum): the distance. */
#define DISTANCE(NAME, T, TAKE, ROOT) \
    static inline __attribute__((always_inline)) void strip_##NAME##_##T(const int rows, const T *x, const T *turned, T *out, \
                                                                ptrdiff_t lanes, ptrdiff_t columns, ptrdiff_t depth, T p) { \
        (void)p; \
        enum { LANES = 64 / (int)sizeof(T) }; \
        T sum[TGX_DISTANCE_ROWS][LANES] = {{0}}; \
        if (lanes == LANES) { \
            for (ptrdiff_t k = 0; k < depth; k++) \
                for (int r = 0; r < rows; r++) { \
                    const T own = x[r * depth + k]; \
                    _Pragma("omp simd") for (int j = 0; j < LANES; j++) { \
                        T d = turned[k * columns + j] - own; /* of which the sign says nothing */ \
                        sum[r][j] = TAKE(sum[r][j], d); \
                    } \
                } \
        } else { \
            for (ptrdiff_t k = 0; k < depth; k++) \
                for (int r = 0; r < rows; r++) \
                    for (ptrdiff_t j = 0; j < lanes; j++) { \
                        T d = turned[k * columns + j] - x[r * depth + k]; \
                        sum[r][j] = TAKE(sum[r][j], d); \
                    } \
        } \
        for (int r = 0; r < rows; r++) \
            for (ptrdiff_t j = 0; j < lanes; j++) out[r * columns + j] = ROOT(sum[r][j]); \
    } \
    static int NAME##_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
        const tgx_distance_job *job = given; \
        const ptrdiff_t columns = job->columns, depth = job->depth, lanes = 64 / (ptrdiff_t)sizeof(T); \
        const T p = (T)job->p; \
        const ptrdiff_t groups = (job->rows + TGX_DISTANCE_ROWS - 1) / TGX_DISTANCE_ROWS; \
        for (ptrdiff_t g = lo; g < hi; g++) { \
            const ptrdiff_t b = g / groups, row = g % groups * TGX_DISTANCE_ROWS; \
            const T *x = (const T *)job->x1 + (b * job->rows + row) * depth; \
            const T *turned = (const T *)job->turned + b * depth * columns; \
            T *out = (T *)job->out + (b * job->rows + row) * columns; \
            const ptrdiff_t left = job->rows - row; \
            for (ptrdiff_t j = 0; j < columns; j += lanes) { \
                const ptrdiff_t m = columns - j < lanes ? columns - j : lanes; \
                if (left >= TGX_DISTANCE_ROWS) \
                    strip_##NAME##_##T(TGX_DISTANCE_ROWS, x, turned + j, out + j, m, columns, depth, p); \
                else \
                    for (ptrdiff_t r = 0; r < left; r++) \
                        strip_##NAME##_##T(1, x + r * depth, turned + j, out + r * columns + j, m, columns, depth, p); \
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
DISTANCE(euclid, float, SQUARES_f, __builtin_sqrtf) DISTANCE(euclid, double, SQUARES_d, __builtin_sqrt)
DISTANCE(city, float, SIZES_f, ITSELF) DISTANCE(city, double, SIZES_d, ITSELF)
DISTANCE(most, float, MOST_f, ITSELF) DISTANCE(most, double, MOST_d, ITSELF)
DISTANCE(powers, float, POWERS_f, ROOT_f) DISTANCE(powers, double, POWERS_d, ROOT_d)

const tgx_distance_table ISA(tgx_distance) = {{euclid_float, euclid_double}, {city_float, city_double}, {most_float, most_double},
                                                 {powers_float, powers_double}};
