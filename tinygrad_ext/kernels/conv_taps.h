/* Which taps of a convolution's kernel meet, and where. */
#ifndef TGX_CONV_TAPS_H
#define TGX_CONV_TAPS_H
#include <stdint.h>

/* Places of the taps along one dimension and their numbers in the kernel, both evenly spaced. */
typedef struct { int64_t count, at, at_step, which, which_step; } taps_t;

static inline taps_t all_taps(int64_t n, int64_t first, int64_t dilation) { return (taps_t){n, first, dilation, 0, 1}; }

/* Taps v for which an output position (first - v * dilation) / stride exists, and that position. */
static inline taps_t taps_reaching(int64_t n, int64_t first, int64_t dilation, int64_t stride) {
    int64_t a = dilation, b = stride, v = 0;
    while (b) { /* the greatest common divisor */
        int64_t rest = a % b;
        a = b, b = rest;
    }
    int64_t step = stride / a;
    while (v < n && v < step && (first - v * dilation) % stride) v++;
    if (v >= n || v >= step) return (taps_t){0, 0, 0, 0, 0};
    return (taps_t){(n - 1 - v) / step + 1, (first - v * dilation) / stride, -(dilation / a), v, step};
}
#endif
