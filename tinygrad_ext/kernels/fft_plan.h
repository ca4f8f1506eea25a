/* How a length is cut, and the tables of lengths. */
#ifndef TGX_FFT_PLAN_H
#define TGX_FFT_PLAN_H
#include "fft.h"

/* How a length is done: no tables, no memory. */
typedef struct {
    int kind;
    int64_t first, second;     /* CUT: the two factors; CHIRP: first is the length of the convolution */
    int64_t scratch;           /* numbers that a row needs besides itself */
} tgx_fft_cut;

tgx_fft_cut tgx_fft_how(int64_t n, int lanes);
/* Numbers that sixteen lanes of n points need. */
static inline int64_t tgx_fft_room(int64_t n) { return 4 * n * TGX_FFT_LANES; }

/* Numbers up to a whole number of cache lines. */
static inline int64_t tgx_fft_aligned(int64_t numbers) { return (numbers + 15) & ~(int64_t)15; }

/* The plan with its tables, kept for the next time; NULL: out of memory. To be given back. */
const tgx_fft_plan *tgx_fft_take(int64_t n, int dtype, int asked);
void tgx_fft_give_back(const tgx_fft_plan *plan);
#endif
