/* How a length is cut, and the tables of lengths. */
#ifndef TGX_FFT_PLAN_H
#define TGX_FFT_PLAN_H
#include "fft.h"

/* How a length is done: no tables, no memory. */
typedef struct {
    int kind;
    int64_t first, second;     /* CUT, CHIRPS: the two factors; CHIRP: first is the length of the convolution */
    int64_t scratch;           /* numbers that a row needs besides itself */
} tgx_fft_cut;

tgx_fft_cut tgx_fft_how(int64_t n, int lanes);
/* Whether rows of a batch are better done one in each lane: parts of one fill all lanes only where both factors are multiples of
 * sixteen. For 128 rows of 144 to 1000 pairs that takes 0.25 to 0.95 of the time. */
int tgx_fft_by_rows(int64_t n, int64_t rows);
/* Numbers that sixteen lanes of n points need. */
static inline int64_t tgx_fft_room(int64_t n) { return 4 * n * TGX_FFT_LANES; }

/* Numbers up to a whole number of cache lines. */
static inline int64_t tgx_fft_aligned(int64_t numbers) { return (numbers + 15) & ~(int64_t)15; }

/* The plan with its tables, kept for the next time; NULL: out of memory. To be given back. */
const tgx_fft_plan *tgx_fft_take(int64_t n, int dtype, int asked);
void tgx_fft_give_back(const tgx_fft_plan *plan);
#endif
