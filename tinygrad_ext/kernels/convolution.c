/* Kernels of convolution in one, two and three dimensions: they read and check the arguments for the maps of conv_maps.h and
 * conv_sums.h, once for shape and once for run. */
#include "channels.h"
#include "conv_maps.h"
#include "conv_complex.h"
#include "conv_sums.h"

/* A result of images, with or without a batch dimension, of one to three dimensions. */
static int images(tgx_call *c, const tgx_conv_sizes *g, int64_t channels, const int64_t *image, int dtype) {
    tgx_output *o = tgx_fresh(c, 0, g->dims + 1 + g->batched, dtype);
    int64_t *at = o->dims;
    if (g->batched) *at++ = g->n;
    *at++ = channels;
    for (int d = 3 - g->dims; d < 3; d++) *at++ = image[d];
    return 0;
}

/* Images have their channels inside where the input or the weight has; volumes of doubles are row-major, as PyTorch's. */
static int keep_channels(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *w = tgx_in(c, 1);
    if (w->rank == 5 && x->dtype == TGX_F64) return 0;
    return tgx_keep_channels_by_copy(c, tgx_channels_inside(x) ? x : w);
}

/* The first time a BLAS is looked for Python runs, which may change any tensor: so it is done before a size is read for good. */
static int look_for_blas(const tgx_call *c) { return c->meta || c->services->blas() ? 0 : TGX_FAILED; }

/* ---- forward: (input, weight, bias, stride, padding, dilation, groups) ------------------------------------------- */

static int read_conv(tgx_call *c, tgx_conv_sizes *g, int dims) {
    const tgx_tensor *x = tgx_in(c, 0), *w = tgx_in(c, 1), *bias = tgx_given(c, 2) ? tgx_in(c, 2) : NULL;
    if (tgx_conv_check_operands(c, x, w, bias, dims) || tgx_conv_operands(c, g, x, w, 3, 5, 6) || tgx_conv_check_sizes(c, g, x, w, bias))
        return TGX_FAILED;
    return tgx_conv_padding(c, g, 4);
}

static int conv_shape(tgx_call *c, int dims) {
    int own = tgx_in(c, 0)->dtype, dtype = tgx_is_inexact(own) ? own : TGX_I64;
    tgx_conv_sizes g;
    if (look_for_blas(c) || read_conv(c, &g, dims)) return TGX_FAILED;
    images(c, &g, g.outputs, g.out, own);
    if (dtype != own) c->outputs[0].via = TGX_I64;
    for (int i = 0; i < 3; i++)
        if (tgx_given(c, i)) tgx_need(c, i, dtype);
    if (tgx_conv_forward_room(c, &g, tgx_part(dtype)) || tgx_conv_complex_room(c, tgx_in(c, 0), tgx_in(c, 1))) return TGX_FAILED;
    return keep_channels(c);
}

static int forward(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w) {
    return tgx_conv_forward(c, g, x, w, NULL);
}

static int conv_run(tgx_call *c, int dims) {
    tgx_conv_sizes g;
    if (read_conv(c, &g, dims)) return TGX_FAILED;
    if (tgx_is_complex(tgx_in(c, 0)->dtype)) return tgx_conv_complex(c, &g, forward, tgx_given(c, 2) ? tgx_in(c, 2) : NULL);
    return tgx_conv_forward(c, &g, tgx_in(c, 0), tgx_in(c, 1), tgx_given(c, 2) ? tgx_in(c, 2) : NULL);
}

static int conv1_shape(tgx_call *c) { return conv_shape(c, 1); }
static int conv2_shape(tgx_call *c) { return conv_shape(c, 2); }
static int conv1_run(tgx_call *c) { return conv_run(c, 1); }
static int conv2_rows(tgx_call *c) { return conv_run(c, 2); }
static int conv2_run(tgx_call *c) { return tgx_run_rows(c, conv2_rows); }
static int conv3_shape(tgx_call *c) { return conv_shape(c, 3); }
static int conv3_rows(tgx_call *c) { return conv_run(c, 3); }
static int conv3_run(tgx_call *c) { return tgx_run_rows(c, conv3_rows); }
TGX_KERNEL(conv1d, conv1_shape, conv1_run, 0)
TGX_KERNEL(conv2d, conv2_shape, conv2_run, 0)
TGX_KERNEL(conv3d, conv3_shape, conv3_run, 0)

/* ---- maps that get the padding in front and the output's size ---------------------------------------------------- */

static int given_out(tgx_call *c, tgx_conv_sizes *g, int padding, const int64_t *image) {
    tgx_conv_spread(g, image, g->out);
    return tgx_conv_numbers(c, padding, g->dims, "padding", g->pad);
}

/* Sizes in argument number `arg`. */
static int check_list(tgx_call *c, int arg) {
    const tgx_value *v = &c->args[arg];
    for (int i = 0; i < v->n; i++)
        if (v->ints[i] < 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): trying to create tensor with negative dimension %lld: %s", c->title,
                            (long long)v->ints[i], tgx_sizes_text(v->ints, v->n));
    return 0;
}

/* The gradient must be images of these sizes: the loops trust them. */
static int expect_grad(tgx_call *c, const tgx_tensor *t, const tgx_conv_sizes *g) {
    int fits = t->rank == g->dims + 1 + g->batched && t->sizes[t->rank - g->dims - 1] == g->outputs && (!g->batched || t->sizes[0] == g->n);
    for (int d = 3 - g->dims; fits && d < 3; d++) fits = t->sizes[t->rank - 3 + d] == g->out[d];
    if (fits) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "grad of size %s does not fit this convolution: expected %lld channels and planes of %s",
                    tgx_shape_text(t), (long long)g->outputs, tgx_conv_text(g, g->out));
}

static int expect_float(tgx_call *c, const tgx_tensor *t) {
    if (tgx_is_half(t->dtype) || tgx_is_native_float(t->dtype) || tgx_is_complex(t->dtype)) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"convolution_backward\" not implemented for '%s': use float32 or float64",
                    tgx_dtype_title(t->dtype));
}

static void need_both(tgx_call *c) {
    tgx_need_dense(c, 0);
    tgx_need_dense(c, 1);
}

/* (input, weight, stride, padding, dilation, groups, size): the output's planes have `size` */
static int read_windows(tgx_call *c, tgx_conv_sizes *g) {
    const tgx_tensor *x = tgx_in(c, 0), *w = tgx_in(c, 1);
    if (w->rank < 3 || w->rank > 5)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "weight must have 3 to 5 dimensions, got size %s", tgx_shape_text(w));
    if (tgx_conv_check_operands(c, x, w, NULL, w->rank - 2) || tgx_conv_operands(c, g, x, w, 2, 4, 5) || expect_float(c, x)
        || tgx_conv_check_sizes(c, g, x, w, NULL)) return TGX_FAILED;
    if (c->args[6].n != g->dims)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_conv_window(): size must have %d numbers, one for each dimension of the planes", g->dims);
    return check_list(c, 6) ? TGX_FAILED : given_out(c, g, 3, c->args[6].ints);
}

static int window_shape(tgx_call *c) {
    tgx_conv_sizes g;
    if (look_for_blas(c) || read_windows(c, &g)) return TGX_FAILED;
    images(c, &g, g.outputs, g.out, tgx_in(c, 0)->dtype);
    need_both(c);
    if (tgx_conv_forward_room(c, &g, tgx_part(tgx_in(c, 0)->dtype)) || tgx_conv_complex_room(c, tgx_in(c, 0), tgx_in(c, 1)))
        return TGX_FAILED;
    return keep_channels(c);
}

static int window_rows(tgx_call *c) {
    tgx_conv_sizes g;
    return read_windows(c, &g) ? TGX_FAILED : tgx_conv_parts(c, &g, forward);
}
static int window_run(tgx_call *c) { return tgx_run_rows(c, window_rows); }
TGX_KERNEL(conv_window, window_shape, window_run, 0)

/* (grad, weight, input_size, stride, padding, dilation, groups) */
static int read_input_grad(tgx_call *c, tgx_conv_sizes *g) {
    const tgx_tensor *grad = tgx_in(c, 0), *w = tgx_in(c, 1);
    const tgx_value *v = &c->args[2];
    if (w->rank < 3 || w->rank > 5 || v->n < w->rank - 1 || v->n > w->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "weight of size %s does not fit an input of %d dimensions", tgx_shape_text(w), (int)v->n);
    if (tgx_conv_check_operands(c, grad, w, NULL, w->rank - 2) || expect_float(c, grad) || tgx_conv_operands(c, g, grad, w, 3, 5, 6)
        || check_list(c, 2)) return TGX_FAILED;
    tgx_conv_planes(g, v->ints, v->n);
    if (g->outputs % g->groups || g->channels != w->sizes[1] * g->groups)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "weight of size %s does not fit %lld channels in %lld groups", tgx_shape_text(w),
                        (long long)g->channels, (long long)g->groups);
    return given_out(c, g, 4, grad->sizes + grad->rank - g->dims) ? TGX_FAILED : expect_grad(c, grad, g);
}

static int input_grad_shape(tgx_call *c) {
    tgx_conv_sizes g;
    if (look_for_blas(c) || read_input_grad(c, &g)) return TGX_FAILED;
    images(c, &g, g.channels, g.size, tgx_in(c, 0)->dtype);
    need_both(c);
    if (tgx_conv_input_grad_room(c, &g, tgx_part(tgx_in(c, 0)->dtype)) || tgx_conv_complex_room(c, tgx_in(c, 0), tgx_in(c, 1)))
        return TGX_FAILED;
    return keep_channels(c);
}

static int input_grad_rows(tgx_call *c) {
    tgx_conv_sizes g;
    return read_input_grad(c, &g) ? TGX_FAILED : tgx_conv_parts(c, &g, tgx_conv_input_grad);
}
static int input_grad_run(tgx_call *c) { return tgx_run_rows(c, input_grad_rows); }
TGX_KERNEL(conv_input_grad, input_grad_shape, input_grad_run, 0)

/* (grad, input, weight_size, stride, padding, dilation, groups) */
static int read_weight_grad(tgx_call *c, tgx_conv_sizes *g) {
    const tgx_tensor *grad = tgx_in(c, 0), *x = tgx_in(c, 1);
    const tgx_value *v = &c->args[2];
    g->dims = v->n - 2;
    if (v->n < 3 || v->n > 5 || x->rank < v->n - 1 || x->rank > v->n || grad->rank < g->dims || x->dtype != grad->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "input of size %s and %s does not fit a weight of %d dimensions and grad of %s",
                        tgx_shape_text(x), tgx_dtype_title(x->dtype), (int)v->n, tgx_dtype_title(grad->dtype));
    if (expect_float(c, grad) || tgx_conv_window(c, g, 3, 5, 6) || check_list(c, 2)) return TGX_FAILED;
    tgx_conv_planes(g, x->sizes, x->rank);
    g->outputs = v->ints[0];
    tgx_conv_spread(g, v->ints + 2, g->kernel);
    if (g->outputs % g->groups || g->channels != v->ints[1] * g->groups)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "weight of size %s does not fit %lld channels in %lld groups", tgx_sizes_text(v->ints, v->n),
                        (long long)g->channels, (long long)g->groups);
    return given_out(c, g, 4, grad->sizes + grad->rank - g->dims) ? TGX_FAILED : expect_grad(c, grad, g);
}

static int weight_grad_shape(tgx_call *c) {
    tgx_conv_sizes g;
    if (look_for_blas(c) || read_weight_grad(c, &g) || tgx_sized(c, 0, 2, tgx_in(c, 0)->dtype)) return TGX_FAILED;
    need_both(c);
    if (tgx_conv_weight_grad_room(c, &g, tgx_part(tgx_in(c, 0)->dtype))) return TGX_FAILED;
    return tgx_conv_complex_room(c, tgx_in(c, 0), tgx_in(c, 1));
}

static int weight_grad_run(tgx_call *c) {
    tgx_conv_sizes g;
    return read_weight_grad(c, &g) ? TGX_FAILED : tgx_conv_parts(c, &g, tgx_conv_weight_grad);
}
TGX_KERNEL(conv_weight_grad, weight_grad_shape, weight_grad_run, 0)
