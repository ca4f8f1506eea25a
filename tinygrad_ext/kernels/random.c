/* mt19937 and PyTorch's draws from it; the vector bodies are in random_simd.h, the use of each in random.h.
 *
 * A fill makes blocks of raw values in a small buffer (words, uniforms or int64) and stores them in the type asked
 * for: one loop for each distribution, one switch for all types. Which draws take 32 bits and which 64, and in
 * which order, is PyTorch's; so are the odd rules for the tail of a normal fill. PyTorch with MKL on an Intel
 * processor takes bernoulli_(p) and exponential_ from MKL instead; this is the stream it has everywhere else.
 *
 * Threads share a long fill (sample.c): each skips the words of those before it, which is cheap beside what is made of them.
 * Rejected: a generator that counts, of which threads could each compute a part. Its numbers would not be PyTorch's. */
#include "random.h"
#include <math.h>
#include "random_simd.h"

enum { BLOCK = 1024, CHUNK = 16 };
#define WIDE_RANGE (1u << 28) /* integers from this range on take 64 bits */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- stream ---- */

void tgx_random_seed(tgx_stream *s, uint64_t seed)
{
    s->seed = seed;
    s->has_spare = 0;
    s->spare_normal = 0.0;
    s->position = 0;
    s->words[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < TGX_RANDOM_WORDS; i++)
        s->words[i] = 1812433253u * (s->words[i - 1] ^ (s->words[i - 1] >> 30)) + i;
}

static void refill_if_empty(tgx_stream *s)
{
    if (s->position != 0 && s->position != TGX_RANDOM_WORDS) return;
    twist(s->words);
    s->position = 0;
}

void tgx_random_words(tgx_stream *s, uint32_t *out, int64_t n)
{
    while (n > 0) {
        refill_if_empty(s);
        int64_t take = smaller(n, TGX_RANDOM_WORDS - s->position);
        temper(s->words + s->position, out, take);
        s->position += (uint32_t)take;
        out += take;
        n -= take;
    }
}

void tgx_random_skip(tgx_stream *s, int64_t n)
{
    for (int64_t take; n > 0; n -= take) {
        refill_if_empty(s);
        take = smaller(n, TGX_RANDOM_WORDS - s->position);
        s->position += (uint32_t)take;
    }
}

int64_t tgx_random_draws(tgx_stream *s, int64_t n, const uint32_t **words, uint32_t *cut)
{
    refill_if_empty(s);
    if (s->position + 1 < TGX_RANDOM_WORDS) {
        const int64_t take = smaller(n, (TGX_RANDOM_WORDS - s->position) / 2);
        *words = s->words + s->position;
        s->position += (uint32_t)(2 * take);
        return take;
    }
    cut[0] = s->words[s->position++];
    refill_if_empty(s);
    cut[1] = s->words[s->position++];
    *words = cut;
    return 1;
}

uint32_t tgx_random_next32(tgx_stream *s)
{
    refill_if_empty(s);
    uint32_t word;
    temper_body(s->words + s->position++, &word, 1, 0);
    return word;
}

uint64_t tgx_random_next64(tgx_stream *s)
{
    uint64_t high = tgx_random_next32(s);
    return high << 32 | tgx_random_next32(s);
}

double tgx_random_next_uniform(tgx_stream *s)
{
    return (double)(tgx_random_next64(s) & 0x1fffffffffffffu) * 0x1p-53;
}

double tgx_random_next_normal(tgx_stream *s)
{
    if (s->has_spare) {
        double spare = s->spare_normal;
        s->has_spare = 0;
        s->spare_normal = 0.0;
        return spare;
    }
    double angle = 6.283185307179586 * tgx_random_next_uniform(s);
    double radius = sqrt(-2.0 * log1p(-tgx_random_next_uniform(s)));
    s->spare_normal = radius * sin(angle);
    s->has_spare = 1;
    return radius * cos(angle);
}

/* ---- storing blocks ---- */

#define STORE(T, convert) for (int64_t i = 0; i < n; i++) ((T *)out)[i] = convert(values[i])
#define TO_F16(x) tgx_f32_to_f16((float)(x))
#define TO_BF16(x) tgx_f32_to_bf16((float)(x))
#define DEFINE_STORE(name, V)                                          \
    static char *name(int type, char *out, const V *values, int64_t n) \
    {                                                                  \
        switch (type) {                                                \
        case TGX_BOOL: STORE(uint8_t, 0 != ); break;                   \
        case TGX_U8: STORE(uint8_t, (uint8_t)(int64_t)); break;        \
        case TGX_U16: STORE(uint16_t, (uint16_t)(int64_t)); break;     \
        case TGX_U32: STORE(uint32_t, (uint32_t)(int64_t)); break;     \
        case TGX_U64: STORE(uint64_t, (uint64_t)(int64_t)); break;     \
        case TGX_I8: STORE(int8_t, (int8_t)(int64_t)); break;          \
        case TGX_I16: STORE(int16_t, (int16_t)(int64_t)); break;       \
        case TGX_I32: STORE(int32_t, (int32_t)(int64_t)); break;       \
        case TGX_I64: STORE(int64_t, (int64_t)); break;                \
        case TGX_F16: STORE(uint16_t, TO_F16); break;                  \
        case TGX_BF16: STORE(uint16_t, TO_BF16); break;                \
        case TGX_F32: STORE(float, (float)); break;                    \
        case TGX_F64: STORE(double, (double)); break;                  \
        }                                                              \
        return out + n * tgx_itemsize[type];                              \
    }
DEFINE_STORE(store_integers, int64_t)
DEFINE_STORE(store_doubles, double)
DEFINE_STORE(store_floats, float)

/* ---- uniform ---- */

static void uniform_floats(tgx_stream *s, void *out, int64_t n)
{
    uint32_t words[BLOCK];
    for (int64_t done = 0, take; done < n; done += take) {
        take = smaller(n - done, BLOCK);
        tgx_random_words(s, words, take);
        to_float(words, (float *)out + done, take);
    }
}

static void uniform_doubles(tgx_stream *s, void *out, int64_t n)
{
    uint32_t words[2 * BLOCK];
    for (int64_t done = 0, take; done < n; done += take) {
        take = smaller(n - done, BLOCK);
        tgx_random_words(s, words, 2 * take);
        to_double(words, (double *)out + done, take);
    }
}

static uint16_t half_of(int type, float x) { return type == TGX_F16 ? tgx_f32_to_f16(x) : tgx_f32_to_bf16(x); }

/* Float32 values rounded; one that rounds up to the excluded end starts again at the lower one. */
static void store_uniform_halves(int type, uint16_t *out, const float *values, int64_t n, float from, float to)
{
    uint16_t first = half_of(type, from), end = half_of(type, to);
    store_floats(type, (char *)out, values, n);
    for (int64_t i = 0; i < n; i++) out[i] = out[i] == end ? first : out[i];
}

void tgx_random_uniform(tgx_stream *s, int type, void *out, int64_t n, double from, double to)
{
    double buffer[BLOCK];
    for (int64_t take; n > 0; n -= take, out = (char *)out + take * tgx_itemsize[type]) {
        take = smaller(n, BLOCK);
        if (type == TGX_F64) {
            uniform_doubles(s, out, take);
            if (from != 0.0 || to != 1.0) rescale_double(out, take, from, to);
            continue;
        }
        float *values = type == TGX_F32 ? out : (void *)buffer;
        uniform_floats(s, values, take);
        if (from != 0.0 || to != 1.0) rescale_float(values, take, (float)from, (float)to);
        if (type != TGX_F32) store_uniform_halves(type, out, values, take, (float)from, (float)to);
    }
}

/* ---- normal ---- */

void tgx_random_normal_serial(tgx_stream *s, int type, void *out, int64_t n, double mean, double std)
{
    double values[CHUNK];
    for (int64_t take; n > 0; n -= take) {
        take = smaller(n, CHUNK);
        for (int64_t i = 0; i < take; i++) values[i] = fma(tgx_random_next_normal(s), std, mean);
        out = store_doubles(type, out, values, take);
    }
}

static void normal_floats(tgx_stream *s, float *out, int64_t n, double mean, double std)
{
    for (int64_t take; n > 0; n -= take, out += take) {
        take = smaller(n, BLOCK);
        uniform_floats(s, out, take);
        box_muller_float(out, take / CHUNK, (float)mean, (float)std);
    }
}

static void normal_doubles(tgx_stream *s, double *out, int64_t n, double mean, double std)
{
    for (int64_t take; n > 0; n -= take, out += take) {
        take = smaller(n, BLOCK);
        uniform_doubles(s, out, take);
        box_muller_double(out, take / CHUNK, mean, std);
    }
}

static void normal_chunks(tgx_stream *s, int type, char *out, int64_t n, double mean, double std)
{
    float values[BLOCK];
    if (type == TGX_F32) normal_floats(s, (float *)out, n, mean, std);
    else if (type == TGX_F64) normal_doubles(s, (double *)out, n, mean, std);
    else for (int64_t take; n > 0; n -= take) {
        take = smaller(n, BLOCK);
        normal_floats(s, values, take, mean, std);
        out = store_floats(type, out, values, take);
    }
}

/* Whole chunks of 16, then the last 16 values once more from new draws. Before those, float32 and float64 also draw
 * uniforms for the elements behind the last whole chunk, which nothing uses; the half types do not. */
void tgx_random_normal(tgx_stream *s, int type, void *out, int64_t n, double mean, double std)
{
    double unused[CHUNK];
    int64_t rest = n % CHUNK;
    if (n < CHUNK) { tgx_random_normal_serial(s, type, out, n, mean, std); return; }
    normal_chunks(s, type, out, n - rest, mean, std);
    if (rest == 0) return;
    if (type == TGX_F32) uniform_floats(s, unused, rest);
    if (type == TGX_F64) uniform_doubles(s, unused, rest);
    normal_chunks(s, type, (char *)out + (n - CHUNK) * tgx_itemsize[type], CHUNK, mean, std);
}

/* ---- other continuous distributions, all in float64, with one rounding for scale and shift as in PyTorch ---- */

void tgx_random_log_normal(tgx_stream *s, int type, void *out, int64_t n, double mean, double std)
{
    for (int64_t i = 0; i < n; i++) {
        double value = exp(fma(tgx_random_next_normal(s), std, mean));
        out = store_doubles(type, out, &value, 1);
    }
}

void tgx_random_exponential(tgx_stream *s, int type, void *out, int64_t n, double lambda)
{
    double values[BLOCK];
    for (int64_t take; n > 0; n -= take) {
        take = smaller(n, BLOCK);
        uniform_doubles(s, values, take);
        exponential(values, take, lambda);
        out = store_doubles(type, out, values, take);
    }
}

void tgx_random_cauchy(tgx_stream *s, int type, void *out, int64_t n, double median, double sigma)
{
    double values[BLOCK];
    for (int64_t take; n > 0; n -= take) {
        take = smaller(n, BLOCK);
        uniform_doubles(s, values, take);
        for (int64_t i = 0; i < take; i++) values[i] = fma(sigma, tan(3.141592653589793 * (values[i] - 0.5)), median);
        out = store_doubles(type, out, values, take);
    }
}

/* ---- integers ---- */

static int64_t remainder64(uint64_t draw, int64_t low, uint64_t range)
{
    return (int64_t)(range ? draw % range + (uint64_t)low : draw);
}

/* `words` are draws of 32 bits each if `wide` is 0, of 64 bits each if it is 1. */
static void reduce_words(const uint32_t *words, int64_t *values, int64_t n, int64_t low, uint64_t range, int wide)
{
    if (!wide) {
        remainder32(words, values, n, (uint32_t)range);
        if (low) for (int64_t i = 0; i < n; i++) values[i] += low;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        values[i] = remainder64((uint64_t)words[2 * i] << 32 | words[2 * i + 1], low, range);
}

static void fill_integers(tgx_stream *s, int type, void *out, int64_t n, int64_t low, uint64_t range, int wide)
{
    uint32_t words[2 * BLOCK];
    int64_t values[BLOCK];
    for (int64_t take; n > 0; n -= take) {
        take = smaller(n, BLOCK);
        tgx_random_words(s, words, take << wide);
        reduce_words(words, values, take, low, range, wide);
        out = store_integers(type, out, values, take);
    }
}

int tgx_random_is_wide(uint64_t range) { return range == 0 || range >= WIDE_RANGE; }

void tgx_random_integers(tgx_stream *s, int type, void *out, int64_t n, int64_t low, uint64_t range)
{
    fill_integers(s, type, out, n, low, range, tgx_random_is_wide(range));
}

/* Integers up to the greatest value, floats up to the greatest below which every integer exists. */
void tgx_random_full(tgx_stream *s, int type, void *out, int64_t n)
{
    static const uint64_t RANGE[TGX_NTYPES] = {
        [TGX_BOOL] = 2, [TGX_U8] = 1 << 8, [TGX_I8] = 1 << 7, [TGX_I16] = 1 << 15, [TGX_I32] = 1u << 31,
        [TGX_I64] = 1ull << 63, [TGX_F16] = (1 << 11) + 1, [TGX_BF16] = (1 << 8) + 1, [TGX_F32] = (1 << 24) + 1,
        [TGX_F64] = (1ull << 53) + 1};
    fill_integers(s, type, out, n, 0, RANGE[type], type == TGX_I64 || type == TGX_F64);
}

void tgx_random_geometric(tgx_stream *s, int type, void *out, int64_t n, double p)
{
    double values[BLOCK], scale = log1p(-p);
    for (int64_t take; n > 0; n -= take) {
        take = smaller(n, BLOCK);
        uniform_doubles(s, values, take);
        for (int64_t i = 0; i < take; i++) values[i] = ceil(log(values[i]) / scale);
        out = store_doubles(type, out, values, take);
    }
}

/* ---- bernoulli ---- */

/* A uniform number, a multiple of 2^-53, is below p if that multiple is below the next one from p on. */
void tgx_random_choice(tgx_stream *s, int type, void *out, int64_t n, double p, double value)
{
    const int64_t below = (int64_t)ceil(p * 0x1p53);
    uint32_t words[2 * BLOCK];
    for (int64_t done = 0, take; done < n; done += take) {
        take = smaller(n - done, BLOCK);
        tgx_random_words(s, words, 2 * take);
        if (type == TGX_F32) choose_float(words, (float *)out + done, take, below, (float)value);
        else choose_double(words, (double *)out + done, take, below, value);
    }
}

void tgx_random_bernoulli(tgx_stream *s, int type, void *out, int64_t n, double p)
{
    double uniforms[BLOCK];
    int64_t values[BLOCK];
    if (type == TGX_F32 || type == TGX_F64) {
        tgx_random_choice(s, type, out, n, p, 1);
        return;
    }
    for (int64_t take; n > 0; n -= take) {
        take = smaller(n, BLOCK);
        uniform_doubles(s, uniforms, take);
        for (int64_t i = 0; i < take; i++) values[i] = uniforms[i] < p;
        out = store_integers(type, out, values, take);
    }
}

#define DEFINE_BERNOULLI(T, name, uniforms_of)                                                   \
    static void name(tgx_stream *s, int type, void *out, int64_t n, const T *p)                  \
    {                                                                                            \
        T uniforms[BLOCK];                                                                       \
        int64_t values[BLOCK];                                                                   \
        for (int64_t take; n > 0; n -= take, p += take) {                                        \
            take = smaller(n, BLOCK);                                                            \
            uniforms_of(s, uniforms, take);                                                      \
            for (int64_t i = 0; i < take; i++) values[i] = uniforms[i] < p[i];                   \
            out = store_integers(type, out, values, take);                                       \
        }                                                                                        \
    }
DEFINE_BERNOULLI(float, bernoulli_floats, uniform_floats)
DEFINE_BERNOULLI(double, bernoulli_doubles, uniform_doubles)

void tgx_random_bernoulli_each(tgx_stream *s, int type, void *out, int64_t n, int p_type, const void *p)
{
    if (p_type == TGX_F64) bernoulli_doubles(s, type, out, n, p);
    else bernoulli_floats(s, type, out, n, p);
}

int tgx_random_are_chances(int p_type, const void *p, int64_t n)
{
    int bad = 0;
    if (p_type == TGX_F64) for (int64_t i = 0; i < n; i++) bad |= !(((const double *)p)[i] >= 0 && ((const double *)p)[i] <= 1);
    else for (int64_t i = 0; i < n; i++) bad |= !(((const float *)p)[i] >= 0 && ((const float *)p)[i] <= 1);
    return !bad;
}
