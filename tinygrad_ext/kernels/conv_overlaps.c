/* The gradient of a convolution with a step by its input, which is a transposed convolution: what each output gives to the elements
 * of its window is a product of the weights with the gradient, a column for each output, and the columns are added up in the
 * order of the window's elements. Of small images several go into one product.
 *
 * The loops of conv_laid.h, for the positions of each residue, take 0.75 to 1.0 of the time where a batch has more than a few
 * positions; below, packing the weights of each residue takes as long as the products, and shorter vectors take 1.3 to 1.6 times as
 * long. Without a step the columns cost more than they spare. */
#include "conv.h"
#include "conv_overlaps.h"
#include "lapack.h"
#include "product_blocks.h"

enum {
    LEAST_WORK = 1 << 20,      /* multiplications */
    LEAST_DEPTH = 32,          /* channels that a product sums over, and that it makes: fewer columns an addition pay */
    LEAST_CHANNELS = 16,
    POSITIONS = 128,           /* columns of a product at least, where the batch has them */
    MOST_COLUMNS = 1 << 22,    /* numbers */
    FEW_POSITIONS = 160
};

static int64_t rows(const tgx_conv_sizes *g) { return g->channels * g->kernel[1] * g->kernel[2]; }
static int64_t positions(const tgx_conv_sizes *g) { return g->out[1] * g->out[2]; }

int tgx_conv_is_overlaps(const tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    if ((dtype != TGX_F32 && dtype != TGX_F64) || g->dims == 3 || g->groups != 1 || g->stride[1] * g->stride[2] == 1) return 0;
    if (g->outputs < LEAST_DEPTH || g->channels < LEAST_CHANNELS || g->kernel[1] * g->kernel[2] <= g->stride[1] * g->stride[2]) return 0;
    if ((double)g->n * (double)positions(g) > FEW_POSITIONS && tgx_conv_pick()->f32.load_laid) return 0;
    const double columns = (double)rows(g) * (double)positions(g);
    if (columns * (double)g->outputs < LEAST_WORK || columns > MOST_COLUMNS || g->n == 0) return 0;
    const tgx_blas *blas = c->services->blas();
    return blas && blas->routine(TGX_GETRI, dtype) != NULL;
}

static int64_t together(const tgx_conv_sizes *g) {
    const int64_t most = (POSITIONS + positions(g) - 1) / positions(g);
    return g->n < most ? g->n : most;
}

static int64_t columns_bytes(const tgx_conv_sizes *g, int dtype) {
    const int64_t images = together(g);
    return tgx_round64(images * positions(g) * (rows(g) + (images > 1 ? g->outputs : 0)) * tgx_itemsize[dtype]);
}

void tgx_conv_overlaps_room(tgx_call *c, const tgx_conv_sizes *g, int dtype) {
    const int64_t images = together(g);
    c->scratch_bytes = columns_bytes(g, dtype) + tgx_block_product_room(dtype, rows(g), images * positions(g), g->outputs);
}

typedef struct { const tgx_conv_sizes *g; const char *columns; char *to; int64_t images; } add_t;

static int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }

/* Outputs along dimension d whose tap `v` lies in the image: [*lo, *hi), and where that of output 0 lies. */
static int64_t reach(const tgx_conv_sizes *g, int d, int64_t v, int64_t *lo, int64_t *hi) {
    const int64_t at = v * g->dilation[d] - g->pad[d], step = g->stride[d];
    *lo = at < 0 ? (-at + step - 1) / step : 0;
    *hi = at >= g->size[d] ? 0 : at_most(g->out[d], (g->size[d] - 1 - at) / step + 1);
    return at;
}

/* Planes of the images of one product, channel by channel. */
#define ADD(T) \
static int add_##T(void *given, ptrdiff_t first, ptrdiff_t last) { \
    const add_t *a = given; \
    const tgx_conv_sizes *g = a->g; \
    const int64_t plane = g->size[1] * g->size[2], row = a->images * positions(g), sx = g->stride[2]; \
    for (ptrdiff_t i = first; i < last; i++) { \
        const int64_t image = i / g->channels, channel = i % g->channels; \
        T *to = (T *)a->to + (image * g->channels + channel) * plane; \
        const T *from = (const T *)a->columns + channel * g->kernel[1] * g->kernel[2] * row + image * positions(g); \
        memset(to, 0, (size_t)plane * sizeof(T)); \
        for (int64_t v = 0; v < g->kernel[1]; v++) \
            for (int64_t u = 0; u < g->kernel[2]; u++, from += row) { \
                int64_t top, bottom, left, right; \
                const int64_t y = reach(g, 1, v, &top, &bottom), x = reach(g, 2, u, &left, &right); \
                for (int64_t o = top; o < bottom; o++) { \
                    T *line = to + (y + o * g->stride[1]) * g->size[2] + x; \
                    const T *part = from + o * g->out[2]; \
                    if (sx == 2) for (int64_t k = left; k < right; k++) line[2 * k] += part[k]; \
                    else for (int64_t k = left; k < right; k++) line[sx * k] += part[k]; \
                } \
            } \
    } \
    return 0; \
}
ADD(float)
ADD(double)

int tgx_conv_overlaps(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *grad, const tgx_tensor *w) {
    const int64_t k = rows(g), o = g->outputs, n = positions(g), size = tgx_itemsize[grad->dtype], plane = g->channels * g->size[1] * g->size[2];
    char *columns = c->scratch, *turned = columns + together(g) * n * k * size;
    int code = 0;
    for (int64_t image = 0, images; image < g->n && !code; image += images) {
        images = at_most(together(g), g->n - image);
        const char *from = grad->data + image * o * n * size;
        for (int64_t i = 0; images > 1 && i < images * o; i++)
            memcpy(turned + (i % o * images + i / o) * n * size, from + i * n * size, (size_t)(n * size));
        tgx_product p = {.s = {k, images * n, o, 1, k, images * n, 1, images * n, 1}, .dtype = grad->dtype, .a = w->data,
                         .b = images > 1 ? turned : (char *)from, .c = columns, .batches = 1};
        p.alpha.f = 1, p.alpha.i = 1;
        if (c->scratch_bytes > columns_bytes(g, grad->dtype)) p.room = (char *)c->scratch + columns_bytes(g, grad->dtype);
        if ((code = tgx_product_run(c, &p))) return code;
        add_t add = {g, columns, tgx_out(c, 0)->data + image * plane * size, images};
        code = tgx_range(c, size == 4 ? add_float : add_double, &add, images * g->channels, 1 + TGX_SMALL / (n * g->kernel[1] * g->kernel[2]));
    }
    return code;
}
