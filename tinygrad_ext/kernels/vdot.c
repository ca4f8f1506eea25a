/* The sum of the products of complex numbers and the conjugates of others. Products of real numbers, which BLAS has, are dot's. */
#include "matmul_sizes.h"
#include "product_complex.h"

static int _vdot_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1);
    if (!tgx_is_complex(a->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"_vdot\" not implemented for '%s': vdot() takes real numbers too",
                        tgx_dtype_title(a->dtype));
    if (a->rank != 1 || b->rank != 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "1D tensors expected, but got %dD and %dD tensors: vdot() takes two vectors", a->rank, b->rank);
    c->work = a->count;
    return tgx_product_sizes(c, a, b, NULL);
}

static int _vdot_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1), *out = tgx_out(c, 0);
    double sum[2];
    tgx_complex(a->dtype)->dot(a->count, a->data, a->strides[0], b->data, b->strides[0], 1, sum);
    for (int i = 0; i < 2; i++) {
        if (a->dtype == TGX_C128) ((double *)out->data)[i] = sum[i];
        else ((float *)out->data)[i] = (float)sum[i];
    }
    return 0;
}
TGX_KERNEL(_vdot, _vdot_shape, _vdot_run, TGX_ANY_LAYOUT)
