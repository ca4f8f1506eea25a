/* Factors of dropout: 0 or 1 / (1 - p) for each element, or for each channel. The product is an op of its own: its derivative
 * multiplies by the same factors, which a kernel for both would have to return beside it. */
#include "random.h"
#include "tgx.h"

/* (self, p, channels, generator): zero with probability p, else 1 / (1 - p); one for each element, or each channel of each
 * example. Drawn in the order of memory. */
static int dropout_noise_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    double keep = 1 - tgx_float(c, 1);
    int half = tgx_is_half(t->dtype);
    if (!half && t->dtype != TGX_F32 && t->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"dropout\" not implemented for '%s': convert the input to a floating dtype first",
                        tgx_dtype_title(t->dtype));
    if (!(keep >= 0 && keep <= 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "bernoulli_ expects p to be in [0, 1], but got p=%g: pass a probability", keep);
    if (!tgx_int(c, 2)) {
        tgx_like_order(c, 0, t, t->dtype)->via = half ? TGX_F32 : -1;
        return 0;
    }
    tgx_output *o = tgx_fresh(c, 0, t->rank, t->dtype);
    for (int i = 0; i < t->rank; i++) o->dims[i] = i < 2 ? t->sizes[i] : 1;
    if (half) o->via = TGX_F32; /* the draws are those of float32, the factor is rounded */
    return 0;
}

static int dropout_noise_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0);
    double keep = 1 - tgx_float(c, 1);
    const double factor = keep == 0 ? 0 : out->dtype == TGX_F32 ? 1 / (float)keep : 1 / keep;
    tgx_random_choice(c->args[3].pointer, out->dtype, out->data, out->count, keep, factor);
    return 0;
}
TGX_KERNEL(dropout_noise, dropout_noise_shape, dropout_noise_run, TGX_SERIAL)
