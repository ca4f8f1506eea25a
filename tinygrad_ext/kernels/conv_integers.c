/* Convolution of int64: the windows of some positions are laid out, some of their elements at a time, and multiplied by the weights
 * while they are near. Positions of all rows and planes lie behind each other, as in the result. Sums wrap, so their order does not
 * matter, and what is outside of the input is laid out as zeros.
 *
 * Rejected: vectors along the rows of the input where it lies, which left what no vector fills to sums of single windows: 2 to 17 times
 * as long for rows of 7 to 56 positions. */
#include "conv_integers.h"
#include "product.h"

enum {
    POSITIONS = 16,            /* of a panel, two vectors of 64 bytes, or a multiple, where windows are small */
    DEPTH = 128,               /* elements of windows in a panel: half of the first cache */
    SOME_POSITIONS = 256,      /* of an item, while its part of the weights stays in the second cache, */
    SOME_OUTPUTS = 64,         /* and outputs, so many that to lay out takes a fraction of the time */
    FEW_TAPS = 16,             /* of a plane that is left out where it is outside */
};

/* Positions that lie side by side, in the panel too, and where the first tap of the first one is in the input. */
typedef struct { int64_t z, y, x; int count, at; } run_t;

typedef struct {
    const tgx_conv_sizes *g;
    const int64_t *src, *weight, *bias;
    int64_t *out;
    int64_t own, outputs, kernel, depth, places; /* channels and outputs of a group, taps, elements of a window, positions of a plane */
    int64_t position_parts, output_parts, width; /* of a panel */
} job_t;

static int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

static int find_runs(const tgx_conv_sizes *g, int64_t place, int count, run_t *runs) {
    int found = 0;
    for (int at = 0; at < count; found++) {
        const int64_t col = (place + at) % g->out[2], row = (place + at) / g->out[2];
        run_t *r = runs + found;
        r->z = row / g->out[1] * g->stride[0] - g->pad[0], r->y = row % g->out[1] * g->stride[1] - g->pad[1];
        r->x = col * g->stride[2] - g->pad[2], r->at = at, r->count = (int)at_most(count - at, g->out[2] - col);
        at += r->count;
    }
    return found;
}

/* One run for one tap from a line of the input. */
static inline void lay_run(const int64_t *line, int64_t x, int64_t step, int64_t width, int count, int64_t *to) {
    if (x >= 0 && x + (count - 1) * step < width) {
        if (step == 1 && count >= POSITIONS) memcpy(to, line + x, (size_t)count * sizeof *to);
        else for (int i = 0; i < count; i++) to[i] = line[x + i * step];
    } else
        for (int i = 0; i < count; i++, x += step) to[i] = x >= 0 && x < width ? line[x] : 0;
}

/* Elements [from, to) of windows: a row of the panel for each, from `first` on. Returns where it ended: before a plane of taps that is
 * outside for all runs, and *skip elements of that. */
static int64_t lay(const job_t *t, const int64_t *src, const run_t *runs, int count, int64_t from, int64_t to, int64_t *panel, int64_t *skip) {
    const tgx_conv_sizes *g = t->g;
    const int64_t plane = g->kernel[1] * g->kernel[2], *size = g->size;
    int64_t k = from;
    *skip = 0;
    while (k < to) {
        const int64_t c = k / t->kernel, f = k / plane % g->kernel[0], end = at_most(to, k / plane * plane + plane);
        int inside = plane < FEW_TAPS;
        for (int i = 0; i < count && !inside; i++) inside = runs[i].z + f * g->dilation[0] >= 0 && runs[i].z + f * g->dilation[0] < size[0];
        if (!inside) {
            *skip = end - k;
            return k;
        }
        int64_t v = k % plane / g->kernel[2], u = k % g->kernel[2];
        for (; k < end; k++, panel += t->width) {
            for (int i = 0; i < count; i++) {
                const run_t *r = runs + i;
                const int64_t z = r->z + f * g->dilation[0], y = r->y + v * g->dilation[1];
                if (z < 0 || z >= size[0] || y < 0 || y >= size[1]) memset(panel + r->at, 0, (size_t)r->count * sizeof *panel);
                else lay_run(src + ((c * size[0] + z) * size[1] + y) * size[2], r->x + u * g->dilation[2], g->stride[2], size[2], r->count, panel + r->at);
            }
            if (++u == g->kernel[2]) u = 0, v++;
        }
    }
    return k;
}

/* Some outputs of some positions; positions, outputs, groups and images one after the other. */
static int some_items(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *t = given;
    const tgx_conv_sizes *g = t->g;
    int64_t panel[DEPTH * POSITIONS];
    run_t runs[SOME_POSITIONS];
    for (ptrdiff_t item = lo; item < hi; item++) {
        const int64_t place = item % t->position_parts * SOME_POSITIONS, end = at_most(place + SOME_POSITIONS, t->places);
        const int64_t output = item / t->position_parts % t->output_parts * SOME_OUTPUTS, image = item / t->position_parts / t->output_parts;
        const int64_t rows = at_most(t->outputs - output, SOME_OUTPUTS), own = image % g->groups * t->outputs + output;
        const int64_t *src = t->src + image * t->own * tgx_conv_count(g->size), *weight = t->weight + own * t->depth;
        int64_t *out = t->out + (image * t->outputs + output) * t->places;
        for (int64_t o = 0; o < rows; o++)
            for (int64_t k = place; k < end; k++) out[o * t->places + k] = t->bias ? t->bias[own + o] : 0;
        for (int64_t from = 0; from < t->depth; from += DEPTH)
            for (int64_t at = place; at < end; at += t->width) {
                const int some = (int)at_most(end - at, t->width), count = find_runs(g, at, some, runs);
                for (int64_t k = from, next, skip, last = at_most(from + DEPTH, t->depth); k < last; k = next + skip) {
                    next = lay(t, src, runs, count, k, last, panel, &skip);
                    const tgx_shape s = {rows, some, next - k, t->depth, 1, t->width, 1, t->places, 1};
                    if (next > k) tgx_integer_product(&s, 8, 1, weight + k, panel, 1, out + at);
                }
            }
    }
    return 0;
}

int tgx_conv_integers(tgx_call *c, const tgx_conv_sizes *g, const tgx_tensor *x, const tgx_tensor *w, const tgx_tensor *bias) {
    job_t t = {.g = g, .src = (const int64_t *)x->data, .weight = (const int64_t *)w->data, .out = (int64_t *)tgx_out(c, 0)->data};
    if (bias) t.bias = (const int64_t *)bias->data;
    t.own = g->channels / g->groups, t.outputs = g->outputs / g->groups, t.kernel = tgx_conv_count(g->kernel);
    t.depth = t.own * t.kernel, t.places = tgx_conv_count(g->out);
    t.position_parts = parts(t.places, SOME_POSITIONS), t.output_parts = parts(t.outputs, SOME_OUTPUTS);
    t.width = t.depth && t.depth < DEPTH ? at_most(DEPTH / t.depth * POSITIONS, SOME_POSITIONS) : POSITIONS;
    const int64_t work = at_most(t.places, SOME_POSITIONS) * at_most(t.outputs, SOME_OUTPUTS) * t.depth;
    return tgx_range(c, some_items, &t, g->n * g->groups * t.position_parts * t.output_parts, 1 + TGX_SMALL / (work + 1));
}
