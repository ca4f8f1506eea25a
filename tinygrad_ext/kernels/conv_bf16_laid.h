/* What the maps of conv_bf16.c and conv_bf16_sums.c share: planes with their padding, and runs of positions in lanes. */
#ifndef TGX_CONV_BF16_LAID_H
#define TGX_CONV_BF16_LAID_H
#include "conv_bf16.h"
#include "conv_taps.h"
#include "product_bf16_parts.h"

static inline int64_t lines_of_cache(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Windows over planes, and the part of the planes that they meet. */
typedef struct {
    int64_t images, planes, height, width;     /* the source: images of `planes` planes each */
    int64_t rows, cols, step_y, step_x;        /* windows, and how far they move */
    int64_t low_y, high_y, low_x, high_x;      /* rows and columns of a plane from the first to the last tap */
    int64_t tall, line, phases, plane;         /* as it is laid: rows of so many lines, one for each residue of a column by step_x */
    int direct;                                /* the planes are read where they lie */
    const uint16_t *from;
    uint16_t *to;
} laid_t;

static inline void reach(int64_t *low, int64_t *high, const taps_t *t, int64_t last) {
    const int64_t end = t->at + (t->count - 1) * t->at_step;
    *low = at_most(*low, at_most(t->at, end)), *high = most(*high, most(t->at, end) + last);
}

/* Whether the windows need no padding; how the planes are laid, if not. */
static inline void plan_laid(laid_t *l) {
    l->direct = l->step_x == 1 && l->low_y >= 0 && l->low_x >= 0 && l->high_y < l->height && l->high_x < l->width;
    if (l->direct) l->low_y = l->low_x = 0, l->tall = l->height, l->line = l->width, l->phases = 1;
    else {
        const int64_t wide = l->high_x - l->low_x - (l->cols - 1) * l->step_x + 1;      /* of a window */
        l->tall = l->high_y - l->low_y + 1, l->line = (l->high_x - l->low_x) / l->step_x + 1, l->phases = at_most(l->step_x, wide);
    }
    l->plane = l->tall * l->phases * l->line;
}

static inline int64_t laid_bytes(const laid_t *l) { return l->direct ? 0 : lines_of_cache(2 * l->images * l->planes * l->plane); }

/* Where a tap's element for the first window lies in a laid plane. */
static inline int64_t place_of(const laid_t *l, int64_t y, int64_t x) {
    return ((y - l->low_y) * l->phases + (x - l->low_x) % l->step_x) * l->line + (x - l->low_x) / l->step_x;
}

/* Where tap `d` of all channels' taps begins, for each. */
static inline void fill_places(const laid_t *l, int64_t channels, const taps_t *y, const taps_t *x, int64_t *to) {
    for (int64_t c = 0; c < channels; c++)
        for (int64_t v = 0; v < y->count; v++)
            for (int64_t u = 0; u < x->count; u++) *to++ = c * l->plane + place_of(l, y->at + v * y->at_step, x->at + u * x->at_step);
}

/* Copies the planes, unless they are read where they lie. */
int tgx_conv_bf16_lay_planes(tgx_call *c, const laid_t *l);

/* n elements, none beyond read or written. */
INLINE void copy_lanes(uint16_t *to, const uint16_t *from, int64_t n) {
    for (; n > 0; n -= 2 * LANES, to += 2 * LANES, from += 2 * LANES) {
        const __mmask32 mask = n < 2 * LANES ? (1u << n) - 1 : ~0u;
        _mm512_mask_storeu_epi16(to, mask, _mm512_maskz_loadu_epi16(mask, from));
    }
}

/* Lanes of a vector whose positions follow each other; where lane 0 would lie. */
typedef struct { int64_t at; uint32_t vector, mask; } piece_t;

/* The pieces of positions [first, first + count), rows of `cols` with the given steps between images, rows and columns. */
static inline int64_t cut(piece_t *to, int64_t first, int64_t count, int64_t rows, int64_t cols, int64_t image, int64_t row,
                          int64_t col) {
    int64_t n = 0;
    for (int64_t lane = 0; lane < count; n++) {
        const int64_t q = first + lane, y = q / cols, x = q % cols, in = lane % LANES;
        const int64_t run = at_most(at_most(cols - x, count - lane), LANES - in);
        to[n] = (piece_t){y / rows * image + y % rows * row + (x - in) * col, (uint32_t)(lane / LANES), ((1u << run) - 1) << in};
        lane += run;
    }
    return n;
}

#endif
