/* Reads stride, padding, dilation and groups, and refuses what does not fit, for a convolution and its derivatives alike.
 * See conv_geometry.h. */
#include "conv_geometry.h"
#include <stdio.h>

static long long ll(int64_t n) { return (long long)n; }

/* ---- windows ----------------------------------------------------------------------------------------------------- */

int tgx_conv_numbers(tgx_call *c, int arg, int dims, const char *name, int64_t *into) {
    const int64_t most = (int64_t)1 << 31;
    const tgx_value *v = &c->args[arg];
    if (v->n != dims && v->n != 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "expected %s to be a single integer value or a list of %d values to match the convolution "
                        "dimensions, but got %s=%s", name, dims, name, tgx_sizes_text(v->ints, v->n));
    for (int i = 0; i < v->n; i++)
        if (v->ints[i] < -most || v->ints[i] > most)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s=%lld is out of range: it must lie between -2**31 and 2**31", name, ll(v->ints[i]));
    for (int d = 0; d < 3; d++) into[d] = d < 3 - dims ? strcmp(name, "padding") != 0 : v->ints[v->n == 1 ? 0 : d - 3 + dims];
    return 0;
}

static int any_below(const int64_t *numbers, int64_t least) { return numbers[0] < least || numbers[1] < least || numbers[2] < least; }

int tgx_conv_window(tgx_call *c, tgx_conv_sizes *g, int stride, int dilation, int groups) {
    if (tgx_conv_numbers(c, stride, g->dims, "stride", g->stride) || tgx_conv_numbers(c, dilation, g->dims, "dilation", g->dilation))
        return TGX_FAILED;
    g->groups = tgx_int(c, groups);
    if (g->groups <= 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "non-positive groups is not supported: got groups=%lld", ll(g->groups));
    if (any_below(g->stride, 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "non-positive stride is not supported: got stride=%s", tgx_conv_text(g, g->stride));
    if (any_below(g->dilation, 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "dilation should be greater than zero, but got %s", tgx_conv_text(g, g->dilation));
    return 0;
}

void tgx_conv_planes(tgx_conv_sizes *g, const int64_t *sizes, int rank) {
    g->batched = rank == g->dims + 2;
    g->n = g->batched ? sizes[0] : 1;
    g->channels = sizes[rank - g->dims - 1];
    tgx_conv_spread(g, sizes + rank - g->dims, g->size);
}

int tgx_conv_operands(tgx_call *c, tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, int stride, int dilation, int groups) {
    g->dims = w->rank - 2;
    if (tgx_conv_window(c, g, stride, dilation, groups)) return TGX_FAILED;
    tgx_conv_planes(g, x->sizes, x->rank);
    g->outputs = w->sizes[0];
    tgx_conv_spread(g, w->sizes + 2, g->kernel);
    return 0;
}

/* "5 x 6", for each dimension there is. */
static const char *crossed(const tgx_conv_sizes *g, const int64_t *numbers, char *text, size_t n) {
    const int64_t *last = numbers + 3 - g->dims;
    if (g->dims == 3) snprintf(text, n, "%lld x %lld x %lld", ll(last[0]), ll(last[1]), ll(last[2]));
    else if (g->dims == 2) snprintf(text, n, "%lld x %lld", ll(last[0]), ll(last[1]));
    else snprintf(text, n, "%lld", ll(last[0]));
    return text;
}

int tgx_conv_padding(tgx_call *c, tgx_conv_sizes *g, int arg) {
    const tgx_value *v = &c->args[arg];
    int named = v->tag == TGX_STRING, same = named && !strcmp(v->text, "same");
    int64_t padded[3], reach[3];
    char seen[96], wide[96];
    g->pad[0] = g->pad[1] = g->pad[2] = 0;
    if (named && !same && strcmp(v->text, "valid"))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Invalid padding string: '%s': it must be 'same', 'valid', or numbers", v->text);
    if (!named && tgx_conv_numbers(c, arg, g->dims, "padding", g->pad)) return TGX_FAILED;
    if (any_below(g->pad, 0))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "negative padding is not supported: got padding=%s", tgx_conv_text(g, g->pad));
    if (same && (g->stride[0] != 1 || g->stride[1] != 1 || g->stride[2] != 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "padding='same' is not supported for strided convolutions: got stride=%s",
                        tgx_conv_text(g, g->stride));
    for (int i = 0; i < 3; i++) {
        reach[i] = g->dilation[i] * (g->kernel[i] - 1) + 1, padded[i] = g->size[i] + 2 * g->pad[i];
        if (same) g->pad[i] = (reach[i] - 1) / 2;
        g->out[i] = same ? g->size[i] : (padded[i] - reach[i]) / g->stride[i] + 1;
    }
    if (same || (padded[0] >= reach[0] && padded[1] >= reach[1] && padded[2] >= reach[2])) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be greater "
                    "than actual input size", crossed(g, padded, seen, sizeof seen), crossed(g, reach, wide, sizeof wide));
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

int tgx_conv_check_operands(tgx_call *c, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias, int dims) {
    const char *title = tgx_dtype_title(x->dtype);
    if (x->rank != dims + 1 && x->rank != dims + 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected %dD (unbatched) or %dD (batched) input to conv%dd, but got input of size: %s",
                        dims + 1, dims + 2, dims, tgx_shape_text(x));
    if (w->rank != dims + 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "conv%dd(): weight must have %d dimensions (out_channels, in_channels / groups, kernel...), "
                        "got size %s", dims, dims + 2, tgx_shape_text(w));
    if (x->dtype != w->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "expected scalar type %s but found %s: conv%dd() needs input and weight of one dtype; convert "
                        "one, for example with .to(input.dtype)", title, tgx_dtype_title(w->dtype), dims);
    if (bias && bias->dtype != x->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Input type (%s) and bias type (%s) should be the same", title, tgx_dtype_title(bias->dtype));
    if (tgx_is_half(x->dtype) || tgx_is_native_float(x->dtype) || tgx_is_complex(x->dtype) || tgx_is_integer(x->dtype)
        || (x->dtype == TGX_BOOL && x->count == 0)) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"conv%dd\" not implemented for '%s': convert the input and the weight, for example with "
                    ".float()", dims, title);
}

int tgx_conv_check_sizes(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    if (g->outputs < g->groups)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size "
                        "%s instead", ll(g->groups), ll(g->groups), tgx_shape_text(w));
    if (g->outputs % g->groups)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of "
                        "size [%s] instead", ll(g->groups), ll(g->groups), tgx_shape_text(w));
    if (g->channels != w->sizes[1] * g->groups)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Given groups=%lld, weight of size %s, expected input%s to have %lld channels, but got %lld "
                        "channels instead", ll(g->groups), tgx_shape_text(w), tgx_shape_text(x), ll(w->sizes[1] * g->groups), ll(g->channels));
    if (bias && (bias->rank != 1 || bias->sizes[0] != g->outputs))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Given weight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of "
                        "size %s instead", tgx_shape_text(w), ll(g->outputs), tgx_shape_text(bias));
    if (tgx_conv_count(g->size) == 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Only zero batch or zero channel inputs are supported, but got input shape: %s",
                        tgx_shape_text(x));
    if (tgx_conv_count(g->kernel) == 0 && g->dims == 3)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "kernel size should be greater than zero, but got: %lld x %lld x %lld (TxHxW)",
                        ll(g->kernel[0]), ll(g->kernel[1]), ll(g->kernel[2]));
    if (tgx_conv_count(g->kernel) == 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "kernel size should be greater than zero, but got kernel_height: %lld kernel_width: %lld",
                        ll(g->kernel[1]), ll(g->kernel[2]));
    return 0;
}
