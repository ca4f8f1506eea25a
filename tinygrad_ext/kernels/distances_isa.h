/* See distances.h. A vector holds distances of one row of x1 to neighbouring rows of x2, so that each is summed up in the
 * order of its coordinates, whatever the width of a vector. */
#include <math.h>
#include "distances.h"

#define EUCLID(T, SQRT) \
    static inline __attribute__((always_inline)) void strip_##T(const int rows, const T *x, const T *turned, T *out, \
                                                                ptrdiff_t lanes, ptrdiff_t columns, ptrdiff_t depth) { \
        enum { LANES = 64 / (int)sizeof(T) }; \
        T sum[TGX_DISTANCE_ROWS][LANES] = {{0}}; \
        if (lanes == LANES) { \
            for (ptrdiff_t k = 0; k < depth; k++) \
                for (int r = 0; r < rows; r++) { \
                    const T own = x[r * depth + k]; \
                    _Pragma("omp simd") for (int j = 0; j < LANES; j++) { \
                        T d = own - turned[k * columns + j]; \
                        sum[r][j] += d * d; \
                    } \
                } \
        } else { \
            for (ptrdiff_t k = 0; k < depth; k++) \
                for (int r = 0; r < rows; r++) \
                    for (ptrdiff_t j = 0; j < lanes; j++) { \
                        T d = x[r * depth + k] - turned[k * columns + j]; \
                        sum[r][j] += d * d; \
                    } \
        } \
        for (int r = 0; r < rows; r++) \
            for (ptrdiff_t j = 0; j < lanes; j++) out[r * columns + j] = SQRT(sum[r][j]); \
    } \
    static int euclid_##T(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
        const tgx_distance_job *job = given; \
        const ptrdiff_t columns = job->columns, depth = job->depth, lanes = 64 / (ptrdiff_t)sizeof(T); \
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
                    strip_##T(TGX_DISTANCE_ROWS, x, turned + j, out + j, m, columns, depth); \
                else \
                    for (ptrdiff_t r = 0; r < left; r++) \
                        strip_##T(1, x + r * depth, turned + j, out + r * columns + j, m, columns, depth); \
            } \
        } \
        return 0; \
    }
EUCLID(float, __builtin_sqrtf)
EUCLID(double, __builtin_sqrt)

const tgx_distance_table ISA(tgx_distance) = {{euclid_float, euclid_double}};
