/* Fourier transforms: how a length is cut, its tables, and the loops over them.
 *
 * Sixteen transforms are done at a time, one in each lane: every step is then a loop over vectors without a shuffle. Lanes are
 * the columns of a matrix, rows of a batch, or the parts of one long transform, n = first * second, which is read as a matrix
 * of `first` rows, transformed down its columns, turned by its twiddles, and transformed along what were its rows (Bailey 1990).
 * The transform of a lane is Stockham's, in steps of 4, 2, 3, 5 and other primes up to 127. A length with a larger prime in it
 * becomes a convolution with a chirp (Bluestein 1970), of a long one what is left of it without the smaller primes, each part by
 * itself.
 *
 * Rejected: a library of transforms (NumPy's copies and checks cost 6 µs a call, and none runs without Python); vectors along
 * one transform (each of the first steps then shuffles). */
#ifndef TGX_FFT_H
#define TGX_FFT_H
#include "types.h"

enum {
    TGX_FFT_LANES = 16,
    TGX_FFT_STEPS = 64,
    TGX_FFT_PRIME = 127,       /* the largest of a step */
    TGX_FFT_MANY = 32,         /* points of a step whose blocks of numbers are loaded and stored whole */
    TGX_FFT_SHORT = 128,       /* a shorter transform is not cut */
    TGX_FFT_NEAR = 1024,       /* so many numbers and fewer stay in the nearest cache from step to step */
    TGX_FFT_PARTS = 4096,      /* from so many points on the smaller primes are taken out of what becomes a convolution */
    TGX_FFT_WHOLE = 8192,      /* of a longer transform that is cut the factors are products */
    TGX_FFT_COLUMN = 4096,     /* a longer one is not done in the lanes of a matrix where it lies */
    TGX_FFT_ROW = 1024,        /* nor such a one in the lanes of rows */
};

enum tgx_fft_kind { TGX_FFT_STEPWISE, TGX_FFT_CUT, TGX_FFT_CHIRP, TGX_FFT_CHIRPS, TGX_FFT_REAL, TGX_FFT_REALS };

/* Factors and tables are of pairs (real, imaginary) of the plan's type. */
typedef struct {
    int64_t radix, m;          /* m transforms of `radix` points of each of the step's interleaved sequences */
    int64_t s;                 /* sequences before it */
    void *factors;             /* m * (radix - 1): exp(-2 pi i p k / (radix m)) at p, k - 1 */
    void *roots;               /* exp(-2 pi i k / radix), for primes above 5 */
} tgx_fft_step;

typedef struct tgx_fft_plan {
    int64_t n;
    int dtype;                 /* float32 or float64 */
    int kind, asked;           /* asked: the kind that was asked for, or -1 */
    int steps, users;
    uint64_t used;             /* when */
    tgx_fft_step step[TGX_FFT_STEPS];
    struct tgx_fft_plan *first, *second;  /* CUT, CHIRPS: of the columns, of the rows; CHIRP: of the convolution; REAL: of n / 2, REALS: whole in a lane */
    void *by_lane, *by_group;  /* both: exp(-2 pi i k (16 g + lane) / n) at g, k, lane; or at g = 0, and exp(-2 pi i k 16 g / n) at g, k */
    void *chirp, *spectrum;    /* CHIRP: exp(-pi i k^2 / n); the transform of its conjugate */
    void *halves;              /* REAL: exp(-2 pi i k / n) for k <= n / 4 */
} tgx_fft_plan;

/* Where the numbers of lanes lie; steps count pairs. */
typedef struct {
    const void *from;
    void *to;
    ptrdiff_t from_lane, from_step, to_lane, to_step;
    int count;                 /* lanes, at most sixteen */
    int swap_from, swap_to;    /* real and imaginary parts change places, before and after: the transform with +i */
    const void *by_lane, *turn; /* factors of a cut transform's columns: of the lanes, or NULL; of this group, or NULL */
    double scale;
    const tgx_fft_plan *reals; /* or NULL: of n reals in a lane, which the n / 2 pairs become or were; then scale is theirs */
} tgx_fft_lanes;

typedef struct {
    void (*lanes)(const tgx_fft_plan *plan, const tgx_fft_lanes *lanes, void *scratch);
    /* to = a * b, or a * conj(b); real and imaginary parts of a, of the result change places if so said */
    void (*times)(int64_t n, const void *a, const void *b, void *to, int swap_a, int swap_to, double scale);
    /* n / 2 + 1 numbers from the transform of n / 2 pairs of reals, and back */
    void (*untangle)(const tgx_fft_plan *plan, const void *z, void *to, double scale);
    void (*tangle)(const tgx_fft_plan *plan, const void *from, void *z, double scale);
} tgx_fft_loops;

typedef struct { tgx_fft_loops f32, f64; } tgx_fft_table;
#endif
