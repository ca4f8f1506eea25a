/* fake_quantize: (self, scale, zero_point, axis, quant_min, quant_max), one scale and zero point, or one for each index along axis.
 * Products are rounded to float32, as PyTorch's are, unless self is of float64; a whole zero point is added after rounding and another
 * one before it.
 *
 * Rejected: a pointwise loop for each dtype and instruction set, which took 3 KB of the wheel and is bound by memory no less. */
#include "casts.h"
#include "channels.h"
#include "tgx.h"
#pragma GCC optimize("O2", "no-tree-vectorize") /* of the loops below those that are worth vectors say so */

enum { SELF, SCALE, ZERO, AXIS, LEAST, MOST };
enum { PIECE = 256 };
static const double TO_WHOLE = 0x1.8p52;    /* added and taken away it rounds what is less than 2^51 */

static int fake_quantize_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, SELF);
    if (!tgx_is_native_float(x->dtype) && !tgx_is_half(x->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"fake_quantize\" not implemented for '%s': convert self with .float()",
                        tgx_dtype_title(x->dtype));
    if (tgx_wrap_arg(c, AXIS, x->rank)) return TGX_FAILED;
    for (int a = SCALE; a <= ZERO; a++) {
        const tgx_tensor *t = tgx_in(c, a);
        if (t->count != 1 && (t->rank != 1 || !x->rank || t->count != x->sizes[tgx_int(c, AXIS)]))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "_fake_quantize: expected a scale and a zero point, or one for each index along axis "
                            "%lld of %s, got %s and %s", (long long)tgx_int(c, AXIS), tgx_shape_text(x),
                            tgx_shape_text(tgx_in(c, SCALE)), tgx_shape_text(tgx_in(c, ZERO)));
        if (t->dtype == TGX_BOOL || tgx_is_complex(t->dtype))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "_fake_quantize: scales and zero points must be real numbers, got %s",
                            tgx_dtype_title(t->dtype));
    }
    c->notes[0] = tgx_is_integer(tgx_in(c, ZERO)->dtype), c->notes[1] = 1;
    for (int i = (int)tgx_int(c, AXIS) + 1; i < x->rank; i++) c->notes[1] *= x->sizes[i];
    tgx_need_dense(c, SELF), tgx_need(c, SCALE, TGX_F32), tgx_need(c, ZERO, TGX_F32);
    if (tgx_like_order(c, 0, x, x->dtype)->strides) c->scratch_bytes = tgx_rows_room(x->count, x->dtype);
    return 0;
}

static int pieces(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    tgx_call *c = given;
    const tgx_tensor *x = tgx_in(c, SELF), *scale = tgx_in(c, SCALE), *zero = tgx_in(c, ZERO);
    const int64_t size = tgx_itemsize[x->dtype], inner = c->notes[1], many = scale->count > zero->count ? scale->count : zero->count;
    const double least = (double)tgx_int(c, LEAST), most = (double)tgx_int(c, MOST);
    const double late = (double)c->notes[0], early = 1 - late;  /* when the zero point is added */
    const int single = x->dtype != TGX_F64;
    const tgx_loop load = tgx_cast_loop(x->dtype, TGX_F64), store = tgx_cast_loop(TGX_F64, x->dtype);
    double v[PIECE] = {0}, z[PIECE];
    float s[PIECE], inverse[PIECE];
    for (ptrdiff_t p = lo; p < hi; p++) {
        const int64_t at = p * PIECE, m = x->count - at < PIECE ? x->count - at : PIECE;
        int64_t k = at / inner % many, left = inner - at % inner;
        for (int64_t i = 0; i < PIECE && (many > 1 || p == lo); left = inner, k = k + 1 == many ? 0 : k + 1) {
            const float own = ((const float *)scale->data)[scale->count > 1 ? k : 0], once = 1 / own;
            const double from = ((const float *)zero->data)[zero->count > 1 ? k : 0];
            for (; left && i < PIECE; left--, i++) s[i] = own, inverse[i] = once, z[i] = from;
        }
        load((char *[]){(char *)v, x->data + at * size}, (const ptrdiff_t[]){sizeof *v, size}, m, NULL);
        for (int64_t i = 0; i < m; i++) v[i] = single ? (float)v[i] * inverse[i] : v[i] * inverse[i];
        _Pragma("omp simd") for (int i = 0; i < PIECE; i++) {
            double t = v[i] + early * z[i];
            t = t > -0x1p50 ? t : -0x1p50, t = t < 0x1p50 ? t : 0x1p50;
            t = (t + TO_WHOLE) - TO_WHOLE + late * z[i];
            t = t > least ? t : least, t = t < most ? t : most;
            v[i] = single ? (float)(t - z[i]) * s[i] : (t - z[i]) * s[i];
        }
        store((char *[]){tgx_out(c, 0)->data + at * size, (char *)v}, (const ptrdiff_t[]){size, sizeof *v}, m, NULL);
    }
    return 0;
}

static int fake_quantize_rows(tgx_call *c) {
    return tgx_range(c, pieces, c, (tgx_in(c, SELF)->count + PIECE - 1) / PIECE, 1 + TGX_SMALL / PIECE);
}
static int fake_quantize_run(tgx_call *c) { return tgx_run_rows(c, fake_quantize_rows); }
TGX_KERNEL(fake_quantize, fake_quantize_shape, fake_quantize_run, 0)
