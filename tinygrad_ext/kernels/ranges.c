/* Arithmetic sequences. The position is counted in int32 within a block, since every instruction set converts that
 * to double in vectors, and int64 only the newest; block + j is exact, so the values are those of the plain loop. */
#include "ranges.h"

enum { BLOCK = 4096 };

#define RANGE(NAME, T) \
    void NAME(T *out, int64_t n, double start, double step) { \
        for (int64_t block = 0; block < n; block += BLOCK) { \
            int32_t count = n - block < BLOCK ? (int32_t)(n - block) : BLOCK; \
            for (int32_t j = 0; j < count; j++) out[block + j] = (T)(start + step * ((double)block + (double)j)); \
        } \
    }
RANGE(tgx_range_f32, float)
RANGE(tgx_range_f64, double)
