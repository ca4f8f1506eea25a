/* Each number as a mantissa from 1/2 to 1 times a power of two, by its bits; 0, infinities and NaN as they are, with power 0. */
#include "tgx.h"
#include <float.h>

static int frexp_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (x->dtype != TGX_F32 && x->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"frexp\" not implemented for '%s': convert the tensor with .float()", tgx_dtype_title(x->dtype));
    tgx_need_dense(c, 0);
    tgx_like(c, 0, x, x->dtype);
    tgx_like(c, 1, x, TGX_I32);
    return 0;
}

typedef struct { const char *x; char *mantissa; int32_t *power; } job_t;

#define PARTS(NAME, T, U, BITS, SPECIAL, LEAST) \
static int parts_##NAME(void *given, ptrdiff_t lo, ptrdiff_t hi) { \
    const job_t *job = given; \
    const T *x = (const T *)job->x; \
    U *mantissa = (U *)job->mantissa; \
    _Pragma("omp simd") for (ptrdiff_t i = lo; i < hi; i++) { \
        const T v = x[i], size = v < 0 ? -v : v, up = v * (T)((U)1 << BITS), normal = size < LEAST ? up : v; \
        U given, bits; \
        memcpy(&given, &v, sizeof v); \
        memcpy(&bits, &normal, sizeof v); \
        const U field = bits >> BITS & SPECIAL; \
        const int32_t power = (int32_t)field - (SPECIAL / 2 - 1) - (size < LEAST ? BITS : 0); \
        const int plain = (v != 0) & (field != SPECIAL); \
        const U half = (bits & ~((U)SPECIAL << BITS)) | (U)(SPECIAL / 2 - 1) << BITS; \
        mantissa[i] = plain ? half : given; \
        job->power[i] = plain ? power : 0; \
    } \
    return 0; \
}
PARTS(f32, float, uint32_t, 23, 255, FLT_MIN)
PARTS(f64, double, uint64_t, 52, 2047, DBL_MIN)

static int frexp_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    job_t job = {x->data, tgx_out(c, 0)->data, (int32_t *)tgx_out(c, 1)->data};
    return tgx_range(c, x->dtype == TGX_F32 ? parts_f32 : parts_f64, &job, x->count, TGX_SMALL);
}
TGX_KERNEL(frexp, frexp_shape, frexp_run, 0)
