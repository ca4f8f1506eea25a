/* The random stream: mt19937 and the draws PyTorch's CPU generator makes from it.
 *
 * Every fill writes n values to a contiguous buffer and takes its words from the stream in element order,
 * so a result depends on the seed and the order of calls, never on threads.
 * A stream has no lock of its own: the caller keeps two threads from sharing one (holding the GIL is enough).
 * Arguments are checked by the caller; functions that read probabilities report a bad one.
 * `type` is a tgx_dtype, not complex. */
#ifndef TGX_RANDOM_H
#define TGX_RANDOM_H

#include <stdint.h>
#include "types.h"

enum { TGX_RANDOM_WORDS = 624, TGX_RANDOM_STATE_BYTES = 5056 };

typedef struct {
    uint64_t seed;
    double spare_normal;           /* the second of a pair of serial normals, valid if has_spare */
    int32_t has_spare;
    uint32_t position;             /* words given out of this block; 0 only before the first block is made */
    uint32_t words[TGX_RANDOM_WORDS];
} tgx_stream;

/* Only the low 32 bits of a seed reach the generator, as in PyTorch. */
void tgx_random_seed(tgx_stream *s, uint64_t seed);
uint32_t tgx_random_next32(tgx_stream *s);
uint64_t tgx_random_next64(tgx_stream *s);
double tgx_random_next_uniform(tgx_stream *s); /* [0, 1), 53 bits */
double tgx_random_next_normal(tgx_stream *s);  /* mean 0, deviation 1; keeps the second of a pair */
void tgx_random_words(tgx_stream *s, uint32_t *out, int64_t n);
void tgx_random_skip(tgx_stream *s, int64_t n);                /* n words, without making them */

/* Words of at least one and at most n draws of 64 bits, two each, as they lie in the block, not yet tempered; those of a draw that
 * the end of the block cuts are put into `cut`. Returns the number of draws. */
int64_t tgx_random_draws(tgx_stream *s, int64_t n, const uint32_t **words, uint32_t *cut);

/* The state in the layout of PyTorch's get_state (native byte order); load gives 0 if the bytes are no state. */
void tgx_random_save(const tgx_stream *s, void *bytes);
int tgx_random_load(tgx_stream *s, const void *bytes);

/* Floating point types. Uniform is over [from, to). */
void tgx_random_uniform(tgx_stream *s, int type, void *out, int64_t n, double from, double to);
void tgx_random_normal(tgx_stream *s, int type, void *out, int64_t n, double mean, double std);
/* What PyTorch draws for a strided tensor of any size, in memory order, and for any tensor of less than 16. */
void tgx_random_normal_serial(tgx_stream *s, int type, void *out, int64_t n, double mean, double std);
void tgx_random_log_normal(tgx_stream *s, int type, void *out, int64_t n, double mean, double std);
void tgx_random_exponential(tgx_stream *s, int type, void *out, int64_t n, double lambda);
void tgx_random_cauchy(tgx_stream *s, int type, void *out, int64_t n, double median, double sigma);

/* Any type. Integers are low + [0, range), range 0 meaning all 2^64 whatever low; full is random_() without bounds. */
void tgx_random_integers(tgx_stream *s, int type, void *out, int64_t n, int64_t low, uint64_t range);
void tgx_random_full(tgx_stream *s, int type, void *out, int64_t n);
int tgx_random_is_wide(uint64_t range);                        /* whether integers take two words each */
void tgx_random_geometric(tgx_stream *s, int type, void *out, int64_t n, double p);
void tgx_random_bernoulli(tgx_stream *s, int type, void *out, int64_t n, double p);
/* Of float32 or float64: the same with `value` in the place of 1. */
void tgx_random_choice(tgx_stream *s, int type, void *out, int64_t n, double p, double value);
/* One float32 or float64 probability for each element, all of which are in [0, 1]. */
void tgx_random_bernoulli_each(tgx_stream *s, int type, void *out, int64_t n, int p_type, const void *p);
int tgx_random_are_chances(int p_type, const void *p, int64_t n);
#endif
