/* Windows that do not overlap and need no padding (single elements, patches, one window as large as the image): each element is in
 * one window at most, so those of an image, brought into the order of windows, are a matrix (elements of a window, windows), and
 * the three maps are products with the weights (outputs, elements of a window). Of all single elements, and of one window, the
 * order is there already. One window an image: the images are the rows of one product.
 *
 * Only where a library computes products: the plain loops of gemm.h are slower than those of conv_loops.h, which take 1.1 to 1.4
 * times as long as OpenBLAS, and 8 times where a window is the image. */
#include "conv_products.h"
#include "lapack.h"
#include "product_blocks.h"

enum {
    LEAST_WORK = 1 << 18,       /* multiplications; below, a call of the library costs more than it spares */
    TOGETHER_BYTES = 1 << 19,   /* of windows that are laid out and then multiplied, while the second cache has them */
};

static int apart(const tgx_conv_sizes *g, int d) {
    return g->pad[d] == 0 && g->out[d] > 0 && (g->out[d] == 1 || g->kernel[d] <= g->stride[d]) && (g->dilation[d] == 1 || g->kernel[d] == 1);
}

static int64_t windows(const tgx_conv_sizes *g) { return tgx_conv_count(g->out); }
static int64_t depth(const tgx_conv_sizes *g) { return g->channels * tgx_conv_count(g->kernel); }
/* Whether each element is in a window. */
static int whole(const tgx_conv_sizes *g) { return depth(g) * windows(g) == g->channels * tgx_conv_count(g->size); }
static int turns(const tgx_conv_sizes *g) { return !whole(g) || (windows(g) > 1 && tgx_conv_count(g->kernel) > 1); }
static int64_t at_least(int64_t n, int64_t limit) { return n > limit ? n : limit; }

static int64_t turned_bytes(const tgx_conv_sizes *g, int dtype) {
    return turns(g) ? tgx_round64(g->n * depth(g) * windows(g) * tgx_itemsize[dtype]) : 0;
}

int tgx_conv_is_product(const tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    if ((dtype != TGX_F32 && dtype != TGX_F64) || g->groups != 1 || g->n == 0 || !apart(g, 0) || !apart(g, 1) || !apart(g, 2)) return 0;
    if ((double)g->n * (double)windows(g) * (double)depth(g) * (double)g->outputs < LEAST_WORK) return 0;
    const tgx_blas *blas = c->services->blas();
    return blas && blas->routine(TGX_GETRI, dtype) != NULL;
}

void tgx_conv_product_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    const int64_t most = at_least(at_least(g->n, g->outputs), at_least(depth(g), windows(g)));
    c->scratch_bytes = turned_bytes(g, dtype) + tgx_block_product_room(dtype, most, most, most);
}

/* ---- the order of windows ---------------------------------------------------------------------------------------- */

typedef struct { const tgx_conv_sizes *g; char *image, *turned; int64_t size; int back; } turn_t;

/* Rows of windows, lo to hi, to or from their order; a row of a plane for each of their own. */
static int turn_rows(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const turn_t *t = given;
    const tgx_conv_sizes *g = t->g;
    const int64_t kd = g->kernel[0], kh = g->kernel[1], kw = g->kernel[2], od = g->out[0], oh = g->out[1], ow = g->out[2];
    const int64_t step = g->stride[2], all = windows(g);
#define TURN(T) for (int64_t u = 0; u < kw; u++) { \
        T *x = (T *)t->image + from + u, *y = (T *)t->turned + to + u * all; \
        if (t->back) for (int64_t k = 0; k < ow; k++) x[k * step] = y[k]; \
        else for (int64_t k = 0; k < ow; k++) y[k] = x[k * step]; \
    }
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t deep = i / (oh * kh), volume = deep / (od * kd), z = deep / kd % od, f = deep % kd, row = i / kh % oh, v = i % kh;
        const int64_t to = ((volume * kd + f) * kh + v) * kw * all + (z * oh + row) * ow;
        const int64_t from = ((volume * g->size[0] + z * g->stride[0] + f) * g->size[1] + row * g->stride[1] + v) * g->size[2];
        if (t->size == 4) TURN(uint32_t) else TURN(uint64_t)
    }
    return 0;
}

static int turn(tgx_call *c, const tgx_conv_sizes *g, char *image, int64_t size, int back) {
    turn_t t = {g, image, c->scratch, size, back};
    if (back && !whole(g)) memset(image, 0, (size_t)(g->n * g->channels * tgx_conv_count(g->size) * size));
    const int64_t rows = g->n * g->channels * g->kernel[0] * g->out[0] * g->kernel[1] * g->out[1];
    return tgx_range(c, turn_rows, &t, rows, 1 + TGX_SMALL / (g->kernel[2] * g->out[2]));
}

/* ---- windows behind each other ----------------------------------------------------------------------------------- */

/* Rows of windows, lo to hi, of the images from one on: each window's elements behind each other, as they are read. */
static int lay_windows(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const turn_t *t = given;
    const tgx_conv_sizes *g = t->g;
    const int64_t kd = g->kernel[0], kh = g->kernel[1], kw = g->kernel[2], od = g->out[0], oh = g->out[1], ow = g->out[2];
    const int64_t size = t->size, step = g->stride[2] * size, each = depth(g) * size, bytes = kw * size;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t image = i / oh / od, z = i / oh % od, row = i % oh;
        char *to = t->turned + i * ow * each;
        for (int64_t c = 0; c < g->channels; c++)
            for (int64_t f = 0; f < kd; f++)
                for (int64_t v = 0; v < kh; v++, to += bytes) {
                    const int64_t plane = (image * g->channels + c) * g->size[0] + z * g->stride[0] + f;
                    const char *from = t->image + (plane * g->size[1] + row * g->stride[1] + v) * g->size[2] * size;
#define CHUNKS(BYTES) for (int64_t k = 0; k < ow; k++) memcpy(to + k * each, from + k * step, BYTES)
                    if (bytes == 8) CHUNKS(8);
                    else if (bytes == 16) CHUNKS(16);
                    else if (bytes == 32) CHUNKS(32);
                    else if (bytes == 64) CHUNKS(64);
                    else CHUNKS((size_t)bytes);
                }
    }
    return 0;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* C = A B, or C + A B, for each image where `batches` is not 1; what is the same for all has a step of 0. */
static int multiply(tgx_call *c, const tgx_conv_sizes *g, int dtype, tgx_shape s, char *a, char *b, char *to, int add, int64_t batches, const int64_t step[3]) {
    tgx_product p = {.s = s, .dtype = dtype, .a = a, .b = b, .c = to, .rank = batches > 1, .batches = batches};
    if (c->scratch_bytes > turned_bytes(g, dtype)) p.room = (char *)c->scratch + turned_bytes(g, dtype);
    p.alpha.f = 1, p.alpha.i = 1, p.beta.f = add, p.beta.i = add;
    p.sizes[0] = batches, p.a_step[0] = step[0] * tgx_itemsize[dtype], p.b_step[0] = step[1] * tgx_itemsize[dtype];
    p.c_step[0] = step[2] * tgx_itemsize[dtype];
    return tgx_product_run(c, &p);
}

#define SPREAD(T) for (int64_t i = 0; i < out->count / each; i++) \
    for (int64_t k = 0; k < each; k++) ((T *)out->data)[i * each + k] = ((const T *)bias->data)[i % bias->count]
static void start_with(const tgx_tensor *out, const tgx_tensor *bias, int64_t each) {
    if (out->dtype == TGX_F32) SPREAD(float);
    else SPREAD(double);
}

int tgx_conv_product(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    const tgx_tensor *out = tgx_out(c, 0);
    const ptrdiff_t o = g->outputs, k = depth(g), n = windows(g);
    const int64_t size = tgx_itemsize[x->dtype], image = g->channels * tgx_conv_count(g->size), fit = TOGETHER_BYTES / (k * n * size);
    const int64_t most = at_least(fit < g->n ? fit : g->n, 1);
    char *columns = x->data;
    int code = 0;
    if (bias) start_with(out, bias, n);
    if (turns(g) && (n == 1 || g->kernel[2] == 1)) {
        columns = c->scratch;
        if ((code = turn(c, g, x->data, size, 0))) return code;
    }
    if (n == 1) return multiply(c, g, x->dtype, (tgx_shape){g->n, o, k, k, 1, 1, k, o, 1}, columns, w->data, out->data, bias != NULL, 1, (int64_t[]){0, 0, 0});
    if (!turns(g) || g->kernel[2] == 1)
        return multiply(c, g, x->dtype, (tgx_shape){o, n, k, k, 1, n, 1, n, 1}, w->data, columns, out->data, bias != NULL, g->n,
                        (int64_t[]){0, k * n, o * n});
    for (int64_t at = 0, m; at < g->n && !code; at += m) {
        m = most < g->n - at ? most : g->n - at;
        turn_t t = {g, x->data + at * image * size, c->scratch, size, 0};
        code = tgx_range(c, lay_windows, &t, m * g->out[0] * g->out[1], 1 + TGX_SMALL / (k * g->out[2]));
        if (!code)
            code = multiply(c, g, x->dtype, (tgx_shape){o, n, k, k, 1, 1, k, n, 1}, w->data, c->scratch, out->data + at * o * n * size, bias != NULL, m,
                            (int64_t[]){0, k * n, o * n});
    }
    return code;
}

int tgx_conv_product_input_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w) {
    const tgx_tensor *out = tgx_out(c, 0);
    const ptrdiff_t o = g->outputs, k = depth(g), n = windows(g);
    char *columns = turns(g) ? c->scratch : out->data;
    if (n == 1) return multiply(c, g, grad->dtype, (tgx_shape){g->n, k, o, o, 1, k, 1, k, 1}, grad->data, w->data, columns, 0, 1, (int64_t[]){0, 0, 0});
    int code = multiply(c, g, grad->dtype, (tgx_shape){k, n, o, 1, k, n, 1, n, 1}, w->data, grad->data, columns, 0, g->n, (int64_t[]){0, o * n, k * n});
    return code || !turns(g) ? code : turn(c, g, out->data, tgx_itemsize[out->dtype], 1);
}

/* A sum over images, one after the other. */
int tgx_conv_product_weight_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x) {
    const ptrdiff_t o = g->outputs, k = depth(g), n = windows(g), size = tgx_itemsize[x->dtype];
    char *columns = x->data, *to = tgx_out(c, 0)->data;
    int code = 0;
    if (turns(g)) {
        columns = c->scratch;
        if ((code = turn(c, g, x->data, size, 0))) return code;
    }
    if (n == 1) return multiply(c, g, x->dtype, (tgx_shape){o, k, g->n, 1, o, k, 1, k, 1}, grad->data, columns, to, 0, 1, (int64_t[]){0, 0, 0});
    for (int64_t i = 0; i < g->n && !code; i++)
        code = multiply(c, g, x->dtype, (tgx_shape){o, k, n, n, 1, 1, n, k, 1}, grad->data + i * o * n * size, columns + i * k * n * size, to, i > 0, 1,
                        (int64_t[]){0, 0, 0});
    return code;
}
