/* roi_align and its backward, each the transpose of the other: so each is the other's derivative, of any order.
 *
 * The boxes get no gradient: the node has one edge, to the input, of which it keeps the sizes alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tgx.h>

static const double TOO_MANY = 1e9;    /* taps of one region: many gigabytes */
static const double FAR = 4e18;        /* samples behind this one are not looked at; an integer can still count to it */

typedef struct {
    int64_t *first;            /* bin b has the taps first[b] to first[b + 1] - 1 */
    int64_t *low, *high;       /* neighbours, low nearer to the origin */
    double grid;               /* samples of a bin, those outside included */
} taps;

typedef struct {
    double scale;
    int64_t bins_y, bins_x, samples, batch, channels, height, width;
} sizes;

static void free_taps(taps *t) {
    free(t->first);
    free(t->low);
    free(t->high);
}

/* value in [0, most]; 0 for NaN. */
static double clamped(double value, double most) {
    if (!(value > 0)) return 0;
    return value < most ? value : most;
}

#define REAL float
#define NAME(x) x##_f32
#include "align_loops.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(x) x##_f64
#include "align_loops.h"

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static const char *name_of(tgx_dtype d) {
    switch (d) {
    case TGX_BOOL8: return "torch.bool";
    case TGX_UINT8: return "torch.uint8";
    case TGX_INT8: return "torch.int8";
    case TGX_INT16: return "torch.int16";
    case TGX_INT32: return "torch.int32";
    case TGX_INT64: return "torch.int64";
    case TGX_FLOAT16: return "torch.float16";
    case TGX_BFLOAT16: return "torch.bfloat16";
    case TGX_FLOAT32: return "torch.float32";
    case TGX_FLOAT64: return "torch.float64";
    case TGX_COMPLEX64: return "torch.complex64";
    default: return "torch.complex128";
    }
}

/* "[2, 3]" */
static const char *shape_of(const tgx_view *v) {
    static _Thread_local char text[256];
    int at = snprintf(text, sizeof text, "[");
    for (int32_t i = 0; i < v->ndim && at < 200; i++)
        at += snprintf(text + at, sizeof text - at, "%s%lld", i ? ", " : "", (long long)v->shape[i]);
    snprintf(text + at, sizeof text - at, "]");
    return text;
}

static int is_float(tgx_dtype d) { return d == TGX_FLOAT32 || d == TGX_FLOAT64; }

static int check_types(tgx_ctx *c, const char *op, const char *name, const tgx_view *a, const tgx_view *rois) {
    const tgx_view *wrong = !is_float(a->dtype) ? a : rois;
    if (!is_float(wrong->dtype))
        return tgx->fail(c, "NotImplementedError", "\"vision::%s\" not implemented for '%s': argument '%s' must be float32 or "
                         "float64; convert it with .float()", op, name_of(wrong->dtype), wrong == a ? name : "rois");
    if (a->dtype != rois->dtype)
        return tgx->fail(c, "RuntimeError", "rois is %s and %s is %s; they must be of one dtype, for example rois.to(%s.dtype)",
                         name_of(rois->dtype), name, name_of(a->dtype), name);
    return 0;
}

/* The numbers of a call from argument 2 on, checked; backward: with those of the image. */
static int read_sizes(tgx_ctx *c, const tgx_value *in, const tgx_view *rois, int backward, sizes *s) {
    s->scale = in[2].u.f, s->bins_y = in[3].u.i, s->bins_x = in[4].u.i, s->samples = in[5].u.i;
    if (rois->ndim != 2 || rois->shape[1] != 5)
        return tgx->fail(c, "RuntimeError", "rois must have the shape (regions, 5), but has %s", shape_of(rois));
    if (s->bins_y <= 0 || s->bins_x <= 0)
        return tgx->fail(c, "ValueError", "%s must be positive, not %lld", s->bins_y <= 0 ? "pooled_height" : "pooled_width",
                         (long long)(s->bins_y <= 0 ? s->bins_y : s->bins_x));
    if (!isfinite(s->scale)) return tgx->fail(c, "ValueError", "spatial_scale must be finite, not %g", s->scale);
    if (backward) s->batch = in[6].u.i, s->channels = in[7].u.i, s->height = in[8].u.i, s->width = in[9].u.i;
    return 0;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static int check_input(tgx_ctx *c, const tgx_value *in, tgx_view *input, tgx_view *rois, sizes *s) {
    if (tgx->geometry(c, in[0].u.t, input) || tgx->geometry(c, in[1].u.t, rois)
        || check_types(c, "roi_align", "input", input, rois))
        return -1;
    if (input->ndim != 4)
        return tgx->fail(c, "RuntimeError", "input must have the shape (batch, channels, height, width), but has %s",
                         shape_of(input));
    s->batch = input->shape[0], s->channels = input->shape[1], s->height = input->shape[2], s->width = input->shape[3];
    return read_sizes(c, in, rois, 0, s);
}

static int align_shape(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_geometry *out, int32_t m) {
    tgx_view input, rois;
    sizes s;
    (void)self, (void)n, (void)m;
    if (check_input(c, in, &input, &rois, &s)) return -1;
    out->ndim = 4, out->dtype = input.dtype;
    out->sizes[0] = rois.shape[0], out->sizes[1] = s.channels, out->sizes[2] = s.bins_y, out->sizes[3] = s.bins_x;
    return 0;
}

/* Either direction between an image and its bins; memory of the image that has no pixels is not looked at. */
static int run(tgx_ctx *c, tgx_view *image, tgx_view *pooled, const tgx_view *rois, int backward, const sizes *s) {
    int64_t regions = rois->shape[0];
    int made = 1, wide = rois->dtype == TGX_FLOAT64;
    if (wide ? check_rois_f64(c, (const double *)rois->data, regions, s->scale, s->batch)
             : check_rois_f32(c, (const float *)rois->data, regions, s->scale, s->batch))
        return -1;
    tgx_view *out = backward ? image : pooled;
    if (tgx_count(out) && (backward || tgx_count(image) == 0)) memset(out->data, 0, tgx_count(out) * (wide ? 8 : 4));
    if (tgx_count(image) && tgx_count(pooled))
        made = wide ? align_f64((double *)image->data, (double *)pooled->data, (const double *)rois->data, backward, regions, s)
                    : align_f32((float *)image->data, (float *)pooled->data, (const float *)rois->data, backward, regions, s);
    return made ? 0 : tgx->fail(c, "MemoryError", "no memory for the samples of a region");
}

static int align(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_view input, rois, pooled;
    sizes s;
    (void)self, (void)n, (void)m;
    if (check_input(c, in, &input, &rois, &s) || tgx->view(c, in[0].u.t, &input) || tgx->view(c, in[1].u.t, &rois)
        || tgx->view_mut(c, out[0].u.t, &pooled))
        return -1;
    return run(c, &input, &pooled, &rois, 0, &s);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

static int check_grad(tgx_ctx *c, const tgx_value *in, tgx_view *grad, tgx_view *rois, sizes *s) {
    if (tgx->geometry(c, in[0].u.t, grad) || tgx->geometry(c, in[1].u.t, rois)
        || check_types(c, "roi_align_backward", "grad", grad, rois) || read_sizes(c, in, rois, 1, s))
        return -1;
    if (s->batch < 0 || s->channels < 0 || s->height < 0 || s->width < 0)
        return tgx->fail(c, "ValueError", "batch, channels, height and width must not be negative");
    int64_t wanted[4] = {rois->shape[0], s->channels, s->bins_y, s->bins_x};
    if (grad->ndim != 4 || memcmp(wanted, grad->shape, sizeof wanted))
        return tgx->fail(c, "RuntimeError", "grad must have the shape (%lld, %lld, %lld, %lld), but has %s", (long long)wanted[0],
                         (long long)wanted[1], (long long)wanted[2], (long long)wanted[3], shape_of(grad));
    return 0;
}

static int back_shape(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_geometry *out, int32_t m) {
    tgx_view grad, rois;
    sizes s;
    (void)self, (void)n, (void)m;
    if (check_grad(c, in, &grad, &rois, &s)) return -1;
    out->ndim = 4, out->dtype = grad.dtype;
    out->sizes[0] = s.batch, out->sizes[1] = s.channels, out->sizes[2] = s.height, out->sizes[3] = s.width;
    return 0;
}

static int back(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_view grad, rois, image;
    sizes s;
    (void)self, (void)n, (void)m;
    if (check_grad(c, in, &grad, &rois, &s) || tgx->view(c, in[0].u.t, &grad) || tgx->view(c, in[1].u.t, &rois)
        || tgx->view_mut(c, out[0].u.t, &image))
        return -1;
    return run(c, &image, &grad, &rois, 1, &s);
}

/* ---- derivatives ------------------------------------------------------------------------------------------------- */

static tgx_op *align_op, *back_op;

static int keep(tgx_ctx *c, void *self, tgx_node *node, void *state, const tgx_value *in, int32_t n, const tgx_value *out,
                int32_t m) {
    sizes *s = (sizes *)state;
    tgx_view image;
    (void)self, (void)m;
    if (tgx->geometry(c, n == 6 ? in[0].u.t : out[0].u.t, &image)) return -1;
    s->scale = in[2].u.f, s->bins_y = in[3].u.i, s->bins_x = in[4].u.i, s->samples = in[5].u.i;
    s->batch = image.shape[0], s->channels = image.shape[1], s->height = image.shape[2], s->width = image.shape[3];
    return tgx->save(c, node, 0, in[1].u.t);
}

static int call(tgx_ctx *c, tgx_node *node, const sizes *s, tgx_tensor *grad, tgx_op *op, int32_t n, tgx_tensor **out) {
    tgx_tensor *rois = tgx->unpack(c, node, 0);
    if (rois == NULL) return -1;
    tgx_value made = {TGX_NONE, 0, {0}};
    tgx_value args[10] = {tgx_of_tensor(grad), tgx_of_tensor(rois), tgx_of_float(s->scale), tgx_of_int(s->bins_y),
                          tgx_of_int(s->bins_x), tgx_of_int(s->samples), tgx_of_int(s->batch), tgx_of_int(s->channels),
                          tgx_of_int(s->height), tgx_of_int(s->width)};
    int code = tgx->call(c, op, args, n, &made, 1);
    tgx->release(rois);
    *out = made.u.t;
    return code;
}

static int align_grad(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                      int32_t m) {
    (void)n, (void)m;
    return call(c, node, (const sizes *)state, grads[0], back_op, 10, &inputs[0]);
}

static int back_grad(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                     int32_t m) {
    (void)n, (void)m;
    return call(c, node, (const sizes *)state, grads[0], align_op, 6, &inputs[0]);
}

#define GEOMETRY "float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio"

static int init(tgx_ctx *c) {
    uint32_t flags = TGX_FILLS | TGX_DENSE | TGX_UNLOCKED | TGX_DIFFERENTIABLE;
    tgx_op_def forward = TGX_OP(.schema = "vision::roi_align(Tensor input, Tensor rois, " GEOMETRY ") -> Tensor",
                                .kernel = align, .shape = align_shape, .setup = keep, .backward = align_grad,
                                .edges = "input", .saved = 1, .state_size = sizeof(sizes), .flags = flags);
    tgx_op_def backward = TGX_OP(.schema = "vision::roi_align_backward(Tensor grad, Tensor rois, " GEOMETRY ", int batch, "
                                           "int channels, int height, int width) -> Tensor",
                                 .kernel = back, .shape = back_shape, .setup = keep, .backward = back_grad, .edges = "grad",
                                 .saved = 1, .state_size = sizeof(sizes), .flags = flags);
    if (tgx->register_op(c, &forward) || tgx->register_op(c, &backward)) return -1;
    align_op = tgx->resolve(c, "vision::roi_align");
    back_op = tgx->resolve(c, "vision::roi_align_backward");
    return align_op == NULL || back_op == NULL ? -1 : 0;
}

TGX_EXTENSION("vision", "0.1.0", init)
