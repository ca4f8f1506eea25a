/* Windows that do not overlap and need no padding (single elements, patches, one window as large as the image): each element is in
 * one window at most, so those of an image, brought into the order of windows, are a matrix (elements of a window, windows), and
 * the three maps are products with the weights (outputs, elements of a window). Of all single elements, and of one window, the
 * order is there already. One window an image: the images are the rows of one product.
 *
 * Images of few single elements, or of few windows, share products: each would lay out the weights anew. What else is brought into order
 * forward is laid out window by window, as it is read, and multiplied while it is near.
 *
 * Only where a library computes products: the plain loops of gemm.h are slower than those of conv_loops.h, which take 1.1 to 1.4
 * times as long as OpenBLAS, and 8 times where a window is the image. */
#include "conv_products.h"
#include "isa.h"
#include "lapack.h"
#include "product_blocks.h"

enum {
    LEAST_WORK = 1 << 18,       /* multiplications; below, a call of the library costs more than it spares */
    JOINED = 784,               /* positions of several images in one product, */
    FEW_WINDOWS = 256,          /* where an image has fewer: it would lay the weights out again, */
    LARGE_BYTES = 1 << 18,      /* which are so large */
    SHORT = 32,                 /* windows of an image, of several elements, of which too few fill the tiles of other loops */
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

static int64_t at_most_images(const tgx_conv_sizes *g) {
    const int64_t most = JOINED / windows(g);
    return most < g->n ? most : g->n;
}

/* How many images become one product by single elements, 1: each by itself. */
static int64_t joined(const tgx_conv_sizes *g, int dtype) {
    const int64_t n = windows(g), bytes = g->outputs * g->channels * tgx_itemsize[dtype];
    if (tgx_conv_count(g->kernel) > 1 || n < 2 || n >= FEW_WINDOWS || bytes < LARGE_BYTES) return 1;
    return at_most_images(g);
}

/* The same of windows that are laid out behind each other. */
static int64_t joined_windows(const tgx_conv_sizes *g) {
    return turns(g) && g->kernel[2] > 1 && windows(g) > 1 && windows(g) < SHORT ? at_most_images(g) : 1;
}

static int64_t laid_bytes(const tgx_conv_sizes *g, int dtype) {
    const int64_t size = tgx_itemsize[dtype], together = joined(g, dtype);
    const int64_t turned = turns(g) ? tgx_round64(g->n * depth(g) * windows(g) * size) : 0;
    const int64_t both = together > 1 ? tgx_round64(together * windows(g) * g->channels * size) + tgx_round64(together * windows(g) * g->outputs * size) : 0;
    const int64_t sums = joined_windows(g) > 1 ? tgx_round64(joined_windows(g) * windows(g) * g->outputs * size) : 0;
    return at_least(turned + sums, both);
}

int tgx_conv_is_product(const tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    if ((dtype != TGX_F32 && dtype != TGX_F64) || g->groups != 1 || g->n == 0 || !apart(g, 0) || !apart(g, 1) || !apart(g, 2)) return 0;
    if ((double)g->n * (double)windows(g) * (double)depth(g) * (double)g->outputs < LEAST_WORK) return 0;
    const tgx_blas *blas = c->services->blas();
    return blas && blas->routine(TGX_GETRI, dtype) != NULL;
}

/* The loops of conv_laid.h read windows where they lie, in 0.5 to 0.85 of the time of laying them out and a product, unless the latter is
 * that of product_blocks.c or vectors are shorter. */
int tgx_conv_is_forward_product(const tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    if (!tgx_conv_is_product(c, g, dtype)) return 0;
    if (!turns(g) || windows(g) < SHORT || g->kernel[2] == 1 || tgx_cpu_level() < 2) return 1;
    return tgx_is_block_product(dtype, g->outputs, windows(g), depth(g));
}

void tgx_conv_product_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    const int64_t most = at_least(at_least(g->n, g->outputs), at_least(depth(g), windows(g) * at_least(joined(g, dtype), joined_windows(g))));
    c->scratch_bytes = laid_bytes(g, dtype) + tgx_block_product_room(dtype, most, most, most);
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
    if (c->scratch_bytes > laid_bytes(g, dtype)) p.room = (char *)c->scratch + laid_bytes(g, dtype);
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

/* Planes of an image's channels, or of its outputs, lo to hi: to or from rows of all images of a product. */
typedef struct { const tgx_conv_sizes *g; char *planes, *rows; int64_t size, count, images; int sparse, back; } join_t;

static int move_planes(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const join_t *t = given;
    const tgx_conv_sizes *g = t->g;
    const int64_t n = windows(g), size = t->size, step = g->stride[2], plane = t->sparse ? tgx_conv_count(g->size) : n;
    for (ptrdiff_t i = lo; i < hi; i++) {
        char *row = t->rows + (i % t->count * t->images + i / t->count) * n * size, *from = t->planes + i * plane * size;
        if (!t->sparse) {
            memcpy(t->back ? from : row, t->back ? row : from, (size_t)(n * size));
            continue;
        }
#define LINE(T) for (int64_t x = 0; x < g->out[2]; x++) { \
            if (t->back) ((T *)line)[x * step] = ((T *)row)[x]; \
            else ((T *)row)[x] = ((T *)line)[x * step]; \
        }
        for (int64_t z = 0; z < g->out[0]; z++)
            for (int64_t y = 0; y < g->out[1]; y++, row += g->out[2] * size) {
                char *line = from + (z * g->stride[0] * g->size[1] + y * g->stride[1]) * g->size[2] * size;
                if (size == 4) LINE(uint32_t) else LINE(uint64_t)
            }
    }
    return 0;
}

/* Single elements of so many images at a time: those of `from` times the weights, or with `back` times what they are turned. */
static int multiply_joined(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *from, const tgx_tensor *w, int back, int add) {
    const tgx_tensor *out = tgx_out(c, 0);
    const int64_t size = tgx_itemsize[from->dtype], n = windows(g), most = joined(g, from->dtype), in = back ? g->outputs : g->channels;
    const int64_t made = back ? g->channels : g->outputs, whole_size = tgx_conv_count(g->size), grain = 1 + TGX_SMALL / n;
    char *rows = c->scratch, *sums = rows + tgx_round64(most * n * in * size);
    const int sparse = !whole(g);
    int code = 0;
    if (back && sparse) memset(out->data, 0, (size_t)(out->count * size));
    for (int64_t at = 0, m; at < g->n && !code; at += m) {
        m = most < g->n - at ? most : g->n - at;
        join_t take = {g, from->data + at * in * (back || !sparse ? n : whole_size) * size, rows, size, in, m, !back && sparse, 0};
        join_t give = {g, out->data + at * made * (back && sparse ? whole_size : n) * size, sums, size, made, m, back && sparse, 1};
        const ptrdiff_t all = m * n, o = g->outputs, k = g->channels;
        code = tgx_range(c, move_planes, &take, m * in, grain);
        if (!code && add) {
            give.back = 0;
            code = tgx_range(c, move_planes, &give, m * made, grain);
            give.back = 1;
        }
        const tgx_shape forth = {o, all, k, k, 1, all, 1, all, 1}, turned = {k, all, o, 1, k, all, 1, all, 1};
        if (!code) code = multiply(c, g, from->dtype, back ? turned : forth, w->data, rows, sums, add, 1, (int64_t[]){0, 0, 0});
        if (!code) code = tgx_range(c, move_planes, &give, m * made, grain);
    }
    return code;
}

int tgx_conv_product(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    const tgx_tensor *out = tgx_out(c, 0);
    const ptrdiff_t o = g->outputs, k = depth(g), n = windows(g);
    const int64_t size = tgx_itemsize[x->dtype], image = g->channels * tgx_conv_count(g->size), fit = TOGETHER_BYTES / (k * n * size);
    const int64_t shared = joined_windows(g), most = shared > 1 ? shared : at_least(fit < g->n ? fit : g->n, 1);
    char *columns = x->data, *sums = (char *)c->scratch + tgx_round64(g->n * k * n * size);
    int code = 0;
    if (bias) start_with(out, bias, n);
    if (joined(g, x->dtype) > 1) return multiply_joined(c, g, x, w, 0, bias != NULL);
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
        join_t give = {g, out->data + at * o * n * size, sums, size, o, m, 0, 0};
        code = tgx_range(c, lay_windows, &t, m * g->out[0] * g->out[1], 1 + TGX_SMALL / (k * g->out[2]));
        if (!code && shared > 1) {
            if (bias) code = tgx_range(c, move_planes, &give, m * o, 1 + TGX_SMALL / n);
            if (!code)
                code = multiply(c, g, x->dtype, (tgx_shape){o, m * n, k, k, 1, 1, k, m * n, 1}, w->data, c->scratch, sums, bias != NULL, 1,
                                (int64_t[]){0, 0, 0});
            give.back = 1;
            if (!code) code = tgx_range(c, move_planes, &give, m * o, 1 + TGX_SMALL / n);
        } else if (!code)
            code = multiply(c, g, x->dtype, (tgx_shape){o, n, k, k, 1, 1, k, n, 1}, w->data, c->scratch, out->data + at * o * n * size, bias != NULL, m,
                            (int64_t[]){0, k * n, o * n});
    }
    return code;
}

int tgx_conv_product_input_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w) {
    const tgx_tensor *out = tgx_out(c, 0);
    const ptrdiff_t o = g->outputs, k = depth(g), n = windows(g);
    char *columns = turns(g) ? c->scratch : out->data;
    if (joined(g, grad->dtype) > 1) return multiply_joined(c, g, grad, w, 1, 0);
    int code;
    if (n == 1) code = multiply(c, g, grad->dtype, (tgx_shape){g->n, k, o, o, 1, k, 1, k, 1}, grad->data, w->data, columns, 0, 1, (int64_t[]){0, 0, 0});
    else code = multiply(c, g, grad->dtype, (tgx_shape){k, n, o, 1, k, n, 1, n, 1}, w->data, grad->data, columns, 0, g->n, (int64_t[]){0, o * n, k * n});
    return code || !turns(g) ? code : turn(c, g, out->data, tgx_itemsize[out->dtype], 1);
}

/* A sum over the images of a product, and over products one after the other. */
static int weight_grad_joined(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x) {
    const int64_t size = tgx_itemsize[x->dtype], n = windows(g), most = joined(g, x->dtype), grain = 1 + TGX_SMALL / n;
    const int64_t image = g->channels * tgx_conv_count(g->size);
    char *inputs = c->scratch, *slopes = inputs + tgx_round64(most * n * g->channels * size);
    int code = 0;
    for (int64_t at = 0, m; at < g->n && !code; at += m) {
        m = most < g->n - at ? most : g->n - at;
        join_t of_x = {g, x->data + at * image * size, inputs, size, g->channels, m, !whole(g), 0};
        join_t of_grad = {g, grad->data + at * g->outputs * n * size, slopes, size, g->outputs, m, 0, 0};
        const ptrdiff_t all = m * n, o = g->outputs, k = g->channels;
        code = tgx_range(c, move_planes, &of_x, m * k, grain);
        if (!code) code = tgx_range(c, move_planes, &of_grad, m * o, grain);
        if (!code)
            code = multiply(c, g, x->dtype, (tgx_shape){o, k, all, all, 1, 1, all, k, 1}, slopes, inputs, tgx_out(c, 0)->data, at > 0, 1,
                            (int64_t[]){0, 0, 0});
    }
    return code;
}

/* A sum over images, one after the other. */
int tgx_conv_product_weight_grad(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *x) {
    const ptrdiff_t o = g->outputs, k = depth(g), n = windows(g), size = tgx_itemsize[x->dtype];
    char *columns = x->data, *to = tgx_out(c, 0)->data;
    int code = 0;
    if (joined(g, x->dtype) > 1) return weight_grad_joined(c, g, grad, x);
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
