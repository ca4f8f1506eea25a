/* Plan of a convolution; the loops are in conv_loops.h. */
#include "conv.h"
#include "isa.h"

extern const tgx_conv_table tgx_conv_table_base, tgx_conv_table_avx2, tgx_conv_table_avx512;

const tgx_conv_table *tgx_conv_pick(void) {
    static const tgx_conv_table *found;
    if (!found) found = TGX_PICK(tgx_conv_table);
    return found;
}

enum {
    BUFFER_BYTES = 256 << 10, /* a part of the second cache level */
    MOST_LANES = 16           /* elements of the widest vector: loads may run that far beyond the last element */
};

static void place_rows(tgx_conv *p, ptrdiff_t block) {
    ptrdiff_t most = 0;
    for (ptrdiff_t v = 0; v < p->taps_y; v++)
        if (p->at_y[v] - p->base_y > most) most = p->at_y[v] - p->base_y;
    p->block = block;
    p->phases = most + 1 < p->step_y ? most + 1 : p->step_y;
    p->phase_rows = block + most / p->step_y;
    p->plane = p->taps_x * p->phases * p->phase_rows * p->cols;
    p->buffer = p->channels * p->plane + 4 * MOST_LANES;
}

void tgx_conv_plan(tgx_conv *p, ptrdiff_t size) {
    p->base_y = p->at_y[0];
    for (ptrdiff_t v = 1; v < p->taps_y; v++)
        if (p->at_y[v] < p->base_y) p->base_y = p->at_y[v];
    place_rows(p, 1);
    ptrdiff_t row = p->channels * p->taps_x * p->phases * p->cols * size, first = p->buffer * size;
    ptrdiff_t block = row > 0 ? 1 + (BUFFER_BYTES - first) / row : p->rows;
    if (block < 4) block = 4;
    if (block > p->rows) block = p->rows;
    ptrdiff_t blocks = (p->rows + block - 1) / block;
    place_rows(p, (p->rows + blocks - 1) / blocks); /* blocks of even size */
    p->pad_outputs = (p->outputs + MOST_LANES - 1) / MOST_LANES * MOST_LANES;
    for (ptrdiff_t u = 0; u < p->taps_x; u++)
        for (ptrdiff_t v = 0; v < p->taps_y; v++) {
            ptrdiff_t down = p->at_y[v] - p->base_y, row_in = down % p->step_y * p->phase_rows + down / p->step_y;
            p->offset[u * p->taps_y + v] = (u * p->phases * p->phase_rows + row_in) * p->cols;
        }
}

static int64_t window(const tgx_conv *p, const int64_t *src, const int64_t *weight, const ptrdiff_t *tap, ptrdiff_t row, ptrdiff_t col) {
    uint64_t sum = 0; /* wraps instead of overflowing */
    for (ptrdiff_t c = 0; c < p->channels; c++)
        for (ptrdiff_t u = 0; u < p->taps_x; u++)
            for (ptrdiff_t v = 0; v < p->taps_y; v++) {
                ptrdiff_t y = row * p->step_y + p->at_y[v], x = col * p->step_x + p->at_x[u];
                if (y < 0 || y >= p->height || x < 0 || x >= p->width) continue;
                sum += (uint64_t)src[(c * p->height + y) * p->width + x]
                       * (uint64_t)weight[c * p->taps_x * p->taps_y + tap[u * p->taps_y + v]];
            }
    return (int64_t)sum;
}

void tgx_conv_integers(const tgx_conv *p, const int64_t *src, const int64_t *weight, const ptrdiff_t *tap, const int64_t *bias,
                       int64_t *out) {
    for (ptrdiff_t o = 0; o < p->outputs; o++, weight += p->channels * p->taps_x * p->taps_y)
        for (ptrdiff_t row = 0; row < p->rows; row++)
            for (ptrdiff_t col = 0; col < p->cols; col++)
                *out++ = (int64_t)((uint64_t)window(p, src, weight, tap, row, col) + (bias ? (uint64_t)bias[o] : 0));
}
