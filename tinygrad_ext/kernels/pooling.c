/* Windows of a pooling, read and refused in PyTorch's words, once for all poolings and their derivatives. See pooling.h. */
#include "pooling.h"
#include <stdio.h>

static const int64_t LIMIT = (int64_t)1 << 31;

static const char *shown(const int64_t *sizes, int dims) { return tgx_sizes_text(sizes + 3 - dims, dims); }

/* One number, or one for each dimension; missing dimensions get `neutral` in front. */
static int read_each(tgx_call *c, const tgx_window *w, int arg, const char *name, int64_t *into, int64_t neutral) {
    static const char *const counts[] = {"one int", "two ints", "three ints"};
    const tgx_value *v = &c->args[arg];
    if (v->n != 1 && v->n != w->dims)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s must either be a single int, or a tuple of %s: got %d numbers", w->op, name,
                        counts[w->dims - 1], v->n);
    for (int i = 0; i < v->n; i++)
        if (v->ints[i] > LIMIT || v->ints[i] < -LIMIT)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s=%lld is out of range: it must be below 2**31", w->op, name,
                            (long long)v->ints[i]);
    for (int i = 0; i < 3; i++) into[i] = i < 3 - w->dims ? neutral : v->ints[v->n == 1 ? 0 : i - (3 - w->dims)];
    return 0;
}

int tgx_window_read(tgx_call *c, tgx_window *w, int dims, const char *op, int first) {
    int stride = tgx_given(c, first + 1) && c->args[first + 1].n ? first + 1 : first;
    w->dims = dims, w->op = op, w->dilation[0] = w->dilation[1] = w->dilation[2] = 1;
    if (read_each(c, w, first, "kernel_size", w->kernel, 1) || read_each(c, w, stride, "stride", w->stride, 1)) return TGX_FAILED;
    return read_each(c, w, first + 2, "padding", w->pad, 0);
}

int tgx_window_dilation(tgx_call *c, tgx_window *w, int arg) { return read_each(c, w, arg, "dilation", w->dilation, 1); }

static void take_size(tgx_window *w, const tgx_tensor *x) {
    for (int i = 0; i < 3; i++) w->size[i] = i < 3 - w->dims ? 1 : x->sizes[x->rank - 3 + i];
}

static int refuse_rank(tgx_call *c, const tgx_window *w, const tgx_tensor *x) {
    if (w->dims > 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "non-empty %dD or %dD (batch mode) tensor expected for input: %s() got shape %s",
                        w->dims + 1, w->dims + 2, w->op, tgx_shape_text(x));
    if (!strncmp(w->op, "max", 3))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
                        "input, but got:%s", tgx_shape_text(x));
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 'self' (while "
                    "checking arguments for %s)", x->rank, w->op);
}

int tgx_window_input(tgx_call *c, tgx_window *w, const tgx_tensor *x) {
    if (x->rank != w->dims + 1 && x->rank != w->dims + 2) return refuse_rank(c, w, x);
    for (int i = x->rank - w->dims - 1; i < x->rank; i++)
        if (x->sizes[i] == 0 && w->dims == 3)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): Expected input's non-batch dimensions to have positive length, but input has a "
                            "shape of %s and dimension %d is empty", w->op, tgx_shape_text(x), i);
        else if (x->sizes[i] == 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, "
                            "but got:%s: %s() needs at least one channel and one position", w->dims + 1, w->dims + 2,
                            tgx_shape_text(x), w->op);
    take_size(w, x);
    return 0;
}

int tgx_window_check(tgx_call *c, const tgx_window *w) {
    if (!w->stride[0] || !w->stride[1] || !w->stride[2])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "stride should not be zero: %s() got stride %s", w->op, shown(w->stride, w->dims));
    if (w->kernel[0] <= 0 || w->kernel[1] <= 0 || w->kernel[2] <= 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "kernel size should be greater than zero: %s() kernel_size must be greater than zero, but "
                        "got %s", w->op, shown(w->kernel, w->dims));
    if (w->stride[0] < 0 || w->stride[1] < 0 || w->stride[2] < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "stride should be greater than zero: %s() stride must be greater than zero, but got %s",
                        w->op, shown(w->stride, w->dims));
    for (int i = 0; i < 3; i++) {
        if (w->dilation[i] <= 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "dilation should be greater than zero, but got %s", shown(w->dilation, w->dims));
        if (w->pad[i] < 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "pad must be non-negative, but got pad: %lld", (long long)w->pad[i]);
        if (2 * w->pad[i] > w->kernel[i]) /* PyTorch leaves the dilation out, whatever its message says */
            return tgx_fail(c, TGX_RUNTIME_ERROR, "pad should be at most half of effective kernel size, but got pad=%lld, "
                            "kernel_size=%lld and dilation=%lld: %s() padding should be at most half of kernel size, but got "
                            "padding=%lld and kernel_size=%lld", (long long)w->pad[i], (long long)w->kernel[i],
                            (long long)w->dilation[i], w->op, (long long)w->pad[i], (long long)w->kernel[i]);
    }
    return 0;
}

/* "3x5x5": channels and a plane. */
static void planes_text(char *to, size_t room, int64_t channels, const int64_t *sizes, int dims) {
    size_t used = (size_t)snprintf(to, room, "%lld", (long long)channels);
    for (int i = 3 - dims; i < 3; i++) used += (size_t)snprintf(to + used, room - used, "x%lld", (long long)sizes[i]);
}

int tgx_window_outputs(tgx_call *c, tgx_window *w, int ceil_mode, const tgx_tensor *x) {
    char from[96], to[96];
    for (int i = 0; i < 3; i++) {
        int64_t room = w->size[i] + 2 * w->pad[i] - w->dilation[i] * (w->kernel[i] - 1) - 1;
        if (ceil_mode) room += w->stride[i] - 1;
        w->out[i] = room >= 0 ? room / w->stride[i] + 1 : 0;
        /* the last window would start behind the input */
        if (ceil_mode && w->out[i] > 0 && (w->out[i] - 1) * w->stride[i] >= w->size[i] + w->pad[i]) w->out[i]--;
    }
    if (w->out[0] >= 1 && w->out[1] >= 1 && w->out[2] >= 1) return 0;
    planes_text(from, sizeof from, x->sizes[x->rank - w->dims - 1], w->size, w->dims);
    planes_text(to, sizeof to, x->sizes[x->rank - w->dims - 1], w->out, w->dims);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Given input size: (%s). Calculated output size: (%s). Output size is too small: %s() Invalid "
                    "computed output size", from, to, w->op);
}

int tgx_window_adaptive(tgx_call *c, tgx_window *w, int dims, const char *op, int arg) {
    const tgx_tensor *x = tgx_in(c, 0);
    const tgx_value *v = &c->args[arg];
    w->dims = dims, w->op = op, w->dilation[0] = w->dilation[1] = w->dilation[2] = 1, w->out[0] = w->out[1] = 1;
    if (x->rank < dims + 1 || x->rank > dims + 2) {
        if (x->rank <= dims && v->tag == TGX_INTS && dims > 1)
            return tgx_fail(c, TGX_VALUE_ERROR, "Input dimension should be at least %d, got %d: %s() takes an input of shape (N, C, ...) "
                            "or (C, ...), this one is %s", dims + 1, x->rank, op, tgx_shape_text(x));
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected %d to %d dimensions, but got %d-dimensional tensor for argument #1 'self' (while "
                        "checking arguments for %s)", dims + 1, dims + 2, x->rank, op);
    }
    take_size(w, x);
    if (v->tag == TGX_INTS && v->n != dims)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: output_size must be %d: one number, or %d numbers, got %d", op, dims, dims, v->n);
    for (int i = 3 - dims; i < 3; i++) {
        int64_t n = v->tag == TGX_INTS ? v->ints[i - (3 - dims)] : v->i;
        if (n > LIMIT)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: output_size=%lld is out of range: it must be below 2**31", op, (long long)n);
        w->out[i] = n == TGX_NO_NUMBER ? w->size[i] : n;
    }
    if (w->out[0] < 0 || w->out[1] < 0 || w->out[2] < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: elements of output_size must be greater than or equal to 0 but received %s; a result "
                        "would have a negative dimension", op, shown(w->out, dims));
    for (int i = 1; i < x->rank; i++)                  /* the first is the batch, or channels of which there are none */
        if (x->sizes[i] == 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                            "%s with dimension %d being empty", op, tgx_shape_text(x), i);
    return 0;
}
