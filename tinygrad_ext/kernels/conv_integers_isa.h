/* Convolution of int64, see conv_integers.h. Four outputs share what is read of the input; their sums stand in registers while all taps are
 * gone over. Windows that reach beyond the image, and columns that fill no vector, are summed alone. Sums wrap, so their order
 * does not matter. Rejected: each window by itself, 8 to 16 times as long for 16 channels. */
#include "conv_integers.h"
#include "vector_bytes.h"

#define INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors of a width that a machine lacks: what is inlined passes none */
enum { LANES = VECTOR_BYTES / 8, VECTORS = VECTOR_BYTES / 16 };
typedef uint64_t words __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t loose __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* Positions (row, col) on to `vectors` vectors of `outs` outputs. */
INLINE void tile(const int outs, const int vectors, const tgx_conv *p, const tgx_conv_integer_planes *at, const int64_t *src,
                 const int64_t *weight, const ptrdiff_t *tap, const int64_t *bias, ptrdiff_t row, ptrdiff_t col, int64_t *out) {
    const ptrdiff_t taps = p->taps_x * p->taps_y, weights = p->channels * taps, plane = at->out_plane, step = p->step_x;
    const ptrdiff_t planes = at->end - at->first;
    words sum[TGX_CONV_INTEGERS][VECTORS];
    _Pragma("GCC unroll 4") for (int o = 0; o < outs; o++)
        _Pragma("GCC unroll 4") for (int k = 0; k < vectors; k++) sum[o][k] = (words){0} + (bias ? (uint64_t)bias[o] : 0);
    for (ptrdiff_t c = 0; c < p->own * planes; c++) {
        const ptrdiff_t channel = c / planes, z = at->first + c % planes;
        for (ptrdiff_t v = 0; v < p->taps_y; v++) {
            const ptrdiff_t y = row * p->step_y + p->at_y[v];
            if (y < 0 || y >= p->height) continue;
            for (ptrdiff_t u = 0; u < p->taps_x; u++) {
                const int64_t *from = src + channel * p->src_channel + z * at->src_step + y * p->width + col * step + p->at_x[u];
                const int64_t *w = weight + channel * at->weight_channel + z * taps + tap[v * p->taps_x + u];
                words x[VECTORS];
                _Pragma("GCC unroll 4") for (int k = 0; k < vectors; k++) {
                    if (step == 1) x[k] = (words)*(const loose *)(from + k * LANES);
                    else for (int i = 0; i < LANES; i++) x[k][i] = (uint64_t)from[(k * LANES + i) * step];
                }
                _Pragma("GCC unroll 4") for (int o = 0; o < outs; o++) {
                    const words own = (words){0} + (uint64_t)w[o * weights];
                    _Pragma("GCC unroll 4") for (int k = 0; k < vectors; k++) sum[o][k] += own * x[k];
                }
            }
        }
    }
    _Pragma("GCC unroll 4") for (int o = 0; o < outs; o++)
        _Pragma("GCC unroll 4") for (int k = 0; k < vectors; k++) *(loose *)(out + o * plane + row * p->cols + col + k * LANES) = (loose)sum[o][k];
}

static int64_t window(const tgx_conv *p, const tgx_conv_integer_planes *at, const int64_t *src, const int64_t *weight,
                      const ptrdiff_t *tap, ptrdiff_t row, ptrdiff_t col) {
    const ptrdiff_t planes = at->end - at->first;
    uint64_t sum = 0; /* wraps instead of overflowing */
    for (ptrdiff_t c = 0; c < p->own * planes; c++) {
        const ptrdiff_t channel = c / planes, z = at->first + c % planes;
        for (ptrdiff_t v = 0; v < p->taps_y; v++)
            for (ptrdiff_t u = 0; u < p->taps_x; u++) {
                ptrdiff_t y = row * p->step_y + p->at_y[v], x = col * p->step_x + p->at_x[u];
                if (y < 0 || y >= p->height || x < 0 || x >= p->width) continue;
                sum += (uint64_t)src[channel * p->src_channel + z * at->src_step + y * p->width + x]
                       * (uint64_t)weight[channel * at->weight_channel + z * p->taps_x * p->taps_y + tap[v * p->taps_x + u]];
            }
    }
    return (int64_t)sum;
}

/* The columns whose windows lie inside the image. */
static void inside(const tgx_conv *p, ptrdiff_t *first, ptrdiff_t *end) {
    ptrdiff_t left = 0, right = 0;
    for (ptrdiff_t u = 0; u < p->taps_x; u++) {
        if (p->at_x[u] < left) left = p->at_x[u];
        if (p->at_x[u] > right) right = p->at_x[u];
    }
    *first = (p->step_x - 1 - left) / p->step_x;
    *end = p->width > right ? (p->width - right - 1) / p->step_x + 1 : 0;
    if (*end > p->cols) *end = p->cols;
    if (*first > *end) *first = *end;
}

#define ROW(outs) \
    for (; col + VECTORS * LANES <= end; col += VECTORS * LANES) tile(outs, VECTORS, p, planes, src, weight, tap, bias, row, col, out); \
    for (; col + LANES <= end; col += LANES) tile(outs, 1, p, planes, src, weight, tap, bias, row, col, out);

static void some_outputs(const tgx_conv *p, const tgx_conv_integer_planes *planes, ptrdiff_t outs, const int64_t *src,
                         const int64_t *weight, const ptrdiff_t *tap, const int64_t *bias, int64_t *out) {
    const ptrdiff_t weights = p->channels * p->taps_x * p->taps_y;
    ptrdiff_t first, end;
    inside(p, &first, &end);
    for (ptrdiff_t row = 0; row < p->rows; row++) {
        ptrdiff_t col = first;
        if (outs == 4) { ROW(4) }
        else if (outs == 3) { ROW(3) }
        else if (outs == 2) { ROW(2) }
        else { ROW(1) }
        for (ptrdiff_t o = 0; o < outs; o++)
            for (ptrdiff_t at = 0; at < p->cols; at++) {
                if (at == first) at = col; /* those are there */
                if (at >= p->cols) break;
                out[o * planes->out_plane + row * p->cols + at] =
                    (int64_t)((uint64_t)window(p, planes, src, weight + o * weights, tap, row, at) + (bias ? (uint64_t)bias[o] : 0));
            }
    }
}

const tgx_conv_integer_table ISA(tgx_conv_integers) = {some_outputs};
