/* Kernels of variance, standard deviation and vector norms, over the reducers of reduce_moment.h and others. */
#include <math.h>
#include "complex_part.h"
#include "reductions.h"

/* ---- variance ---------------------------------------------------------------------------------------------------- */

enum { STD = 1, MEAN = 2 };

/* var, std, (var, mean) or (std, mean). Notes 2 and 3: whether it is a deviation, the bits of the correction. */
static int any_var_shape(tgx_call *c, int want, int dim, double correction, int keepdim) {
    const tgx_tensor *t = tgx_in(c, 0);
    uint64_t mask = TGX_ALL_DIMS;
    int64_t outputs = 1;
    if (tgx_is_integral(t->dtype))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): std and var only support floating point and complex dtypes, got %s: convert the "
                        "tensor with .float()", c->title, tgx_dtype_title(t->dtype));
    if (dim >= 0 && tgx_dim_mask(c, dim, &mask)) return TGX_FAILED;
    tgx_output *o = tgx_reduced(c, 0, t, mask, keepdim >= 0 && tgx_int(c, keepdim), tgx_part(t->dtype));
    for (int i = 0; i < o->rank; i++) outputs *= o->dims[i];
    if (want & MEAN) tgx_reduced(c, 1, t, mask, keepdim >= 0 && tgx_int(c, keepdim), t->dtype);
    if (outputs && (double)(t->count / outputs) <= correction)
        tgx_warn(c, "%s(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
                 "divided by output numel); the result is NaN or infinite.", c->title);
    c->notes[2] = want & STD;
    memcpy(&c->notes[3], &correction, sizeof correction);
    return tgx_reduction_shape(c, TGX_VAR, t->dtype, mask);
}

static int var_run(tgx_call *c) {
    tgx_scalar aux[2];
    memcpy(&aux[0].f, &c->notes[3], sizeof aux[0].f);
    aux[1].i = c->notes[2];
    return tgx_reduction_run(c, aux, tgx_out(c, 0), c->noutputs == 2 ? tgx_out(c, 1) : NULL);
}

/* (self, unbiased), (self, dim, unbiased, keepdim) and (self, dim, correction, keepdim). */
static int whole_shape(tgx_call *c, int want) { return any_var_shape(c, want, -1, tgx_int(c, 1) ? 1 : 0, -1); }
static int dim_shape(tgx_call *c, int want) { return any_var_shape(c, want, 1, tgx_int(c, 2) ? 1 : 0, 3); }
static int correction_shape(tgx_call *c, int want) {
    if (tgx_given(c, 2) && c->args[2].kind == TGX_IS_COMPLEX)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): the correction is taken off a count and must be real, got %s", c->title,
                        tgx_number_text(&c->args[2]));
    return any_var_shape(c, want, 1, tgx_given(c, 2) ? c->args[2].number->f : 1, 3);
}

static int var_shape(tgx_call *c) { return whole_shape(c, 0); }
static int var_dim_shape(tgx_call *c) { return dim_shape(c, 0); }
static int var_correction_shape(tgx_call *c) { return correction_shape(c, 0); }
static int std_shape(tgx_call *c) { return whole_shape(c, STD); }
static int std_dim_shape(tgx_call *c) { return dim_shape(c, STD); }
static int std_correction_shape(tgx_call *c) { return correction_shape(c, STD); }
static int var_mean_shape(tgx_call *c) { return whole_shape(c, MEAN); }
static int var_mean_dim_shape(tgx_call *c) { return dim_shape(c, MEAN); }
static int var_mean_correction_shape(tgx_call *c) { return correction_shape(c, MEAN); }
static int std_mean_shape(tgx_call *c) { return whole_shape(c, STD | MEAN); }
static int std_mean_dim_shape(tgx_call *c) { return dim_shape(c, STD | MEAN); }
static int std_mean_correction_shape(tgx_call *c) { return correction_shape(c, STD | MEAN); }
TGX_KERNEL(var, var_shape, var_run, TGX_NATURAL)
TGX_KERNEL(var_dim, var_dim_shape, var_run, TGX_NATURAL)
TGX_KERNEL(var_correction, var_correction_shape, var_run, TGX_NATURAL)
TGX_KERNEL(std, std_shape, var_run, TGX_NATURAL)
TGX_KERNEL(std_dim, std_dim_shape, var_run, TGX_NATURAL)
TGX_KERNEL(std_correction, std_correction_shape, var_run, TGX_NATURAL)
TGX_KERNEL(var_mean, var_mean_shape, var_run, TGX_NATURAL)
TGX_KERNEL(var_mean_dim, var_mean_dim_shape, var_run, TGX_NATURAL)
TGX_KERNEL(var_mean_correction, var_mean_correction_shape, var_run, TGX_NATURAL)
TGX_KERNEL(std_mean, std_mean_shape, var_run, TGX_NATURAL)
TGX_KERNEL(std_mean_dim, std_mean_dim_shape, var_run, TGX_NATURAL)
TGX_KERNEL(std_mean_correction, std_mean_correction_shape, var_run, TGX_NATURAL)

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static int norm_op(double p) {
    if (p == 2) return TGX_NORM2;
    if (p == 1) return TGX_NORM1;
    if (p == 0) return TGX_NORM0;
    if (p == INFINITY) return TGX_ABSMAX;
    return p == -INFINITY ? TGX_ABSMIN : TGX_NORMP;
}

static int reduces_nothing(const tgx_tensor *t, uint64_t mask) {
    for (int i = 0; i < t->rank; i++)
        if (mask >> i & 1 && t->sizes[i] == 0) return 1;
    return 0;
}

/* Whether a dtype asked for is of the kind of the tensor's own and can hold it. */
static int check_norm_dtype(tgx_call *c, int own, int wanted) {
    const char *title = tgx_dtype_title(wanted), *kind = tgx_is_complex(own) ? "complex" : "real";
    if (tgx_is_integral(wanted))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linalg.vector_norm: dtype should be floating point or complex, but got %s", title);
    if (tgx_is_complex(own) != tgx_is_complex(wanted))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linalg.vector_norm: dtype should be %s for %s inputs, but got %s", kind, kind, title);
    if (tgx_promote(own, wanted) != wanted)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linalg.vector_norm: the dtype of the input (%s) should be convertible without narrowing "
                        "to the specified dtype (%s): convert the result instead", tgx_dtype_title(own), title);
    return 0;
}

/* linalg.vector_norm(self, ord, dim, keepdim, dtype) */
static int vector_norm_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    double p = c->args[1].number->f;
    int dtype = t->dtype;
    uint64_t mask;
    if (c->args[1].kind == TGX_IS_COMPLEX)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linalg.vector_norm: Expected a non-complex scalar as the order of norm, got %s",
                        tgx_number_text(&c->args[1]));
    if (tgx_is_integral(dtype))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s: "
                        "convert it with .float()", tgx_dtype_title(dtype));
    if (tgx_given(c, 4)) {
        dtype = (int)tgx_int(c, 4);
        if (check_norm_dtype(c, t->dtype, dtype)) return TGX_FAILED;
    }
    if (tgx_dim_mask(c, 2, &mask)) return TGX_FAILED;
    if ((p < 0 || p == INFINITY) && reduces_nothing(t, mask))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linalg.vector_norm cannot compute the %g norm on an empty tensor because the operation "
                        "does not have an identity: self has shape %s", p, tgx_shape_text(t));
    tgx_reduced(c, 0, t, mask, (int)tgx_int(c, 3), tgx_part(dtype));
    return tgx_reduction_shape(c, norm_op(p), dtype, mask);
}

static int vector_norm_run(tgx_call *c) {
    tgx_scalar aux = {.f = c->args[1].number->f};
    return tgx_reduction_run(c, &aux, tgx_out(c, 0), NULL);
}
TGX_KERNEL(vector_norm, vector_norm_shape, vector_norm_run, 0)
