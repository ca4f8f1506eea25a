/* The exclusive or of the bits of the elements of rows: floating ones as float64, others as int64. (self) -> uint64, without the
 * last dimension. */
#include "tgx.h"

enum { LANES = 8, GRAIN = 65536 };

static int hash_rows_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (tgx_is_complex(x->dtype) || !(tgx_is_integral(x->dtype) || tgx_is_native_float(x->dtype)))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"hash_tensor\" not implemented for '%s': hash view_as_real(self) of complex numbers",
                        tgx_dtype_title(x->dtype));
    if (x->rank == 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "_hash_rows: expected at least one dimension");
    tgx_need_dense(c, 0);
    tgx_output *o = tgx_fresh(c, 0, x->rank - 1, TGX_U64);
    for (int i = 0; i < x->rank - 1; i++) o->dims[i] = x->sizes[i];
    c->work = x->count;
    return 0;
}

static inline uint64_t of_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline uint64_t of_integer(int64_t x) { return (uint64_t)x; }

/* Lanes, so that what is converted and combined fills vectors. */
#define HASH(T, name, BITS)                                                                   \
    static uint64_t hash_##name(const void *data, int64_t from, int64_t to) {                 \
        const T *x = data;                                                                    \
        uint64_t lanes[LANES] = {0}, all = 0;                                                 \
        for (; from + LANES <= to; from += LANES)                                             \
            for (int k = 0; k < LANES; k++) lanes[k] ^= BITS(x[from + k]);                    \
        for (; from < to; from++) all ^= BITS(x[from]);                                       \
        for (int k = 0; k < LANES; k++) all ^= lanes[k];                                      \
        return all;                                                                           \
    }
HASH(uint8_t, u8, of_integer)
HASH(int8_t, i8, of_integer)
HASH(int16_t, i16, of_integer)
HASH(int32_t, i32, of_integer)
HASH(int64_t, i64, of_integer)
HASH(float, f32, of_double)
HASH(double, f64, of_double)

static uint64_t hashed(const tgx_tensor *x, int64_t from, int64_t to) {
    switch (x->dtype) {
    case TGX_BOOL:
    case TGX_U8: return hash_u8(x->data, from, to);
    case TGX_I8: return hash_i8(x->data, from, to);
    case TGX_I16: return hash_i16(x->data, from, to);
    case TGX_I32: return hash_i32(x->data, from, to);
    case TGX_F32: return hash_f32(x->data, from, to);
    case TGX_F64: return hash_f64(x->data, from, to);
    default: return hash_i64(x->data, from, to);
    }
}

static int hash_range(void *context, ptrdiff_t from, ptrdiff_t to) {
    tgx_call *c = context;
    const tgx_tensor *x = tgx_in(c, 0);
    const int64_t n = x->sizes[x->rank - 1];
    for (ptrdiff_t r = from; r < to; r++) ((uint64_t *)tgx_out(c, 0)->data)[r] = hashed(x, r * n, (r + 1) * n);
    return 0;
}

static int hash_rows_run(tgx_call *c) {
    return tgx_range(c, hash_range, c, tgx_out(c, 0)->count, GRAIN / (tgx_in(c, 0)->sizes[tgx_in(c, 0)->rank - 1] + 1) + 1);
}
TGX_KERNEL(hash_rows, hash_rows_shape, hash_rows_run, 0)
