/* Kernels that draw random numbers: distributions in place, and factories. See sample.h, make.h. */
#include <math.h>
#include <stdio.h>
#include "complex_part.h"
#include "make.h"
#include "random_parts.h"
#include "random_sample.h"
#include "sample.h"

/* What a call draws: parameters by distribution, and the fill. */
typedef struct draw {
    int dtype, serial;         /* serial: normal numbers one by one, as PyTorch draws for what is not contiguous */
    int words;                 /* of the stream that an element takes: 0 if that varies, or AS_PART */
    double a, b;
    int64_t low;
    uint64_t range;
    tgx_random_fill *fill;
} draw_t;
enum { AS_PART = -1 };         /* two for a double, one for another float, for each part of a complex number */

static int words_of(const draw_t *d) {
    if (d->words != AS_PART) return d->words;
    return (tgx_part(d->dtype) == TGX_F64 ? 2 : 1) * (tgx_is_complex(d->dtype) ? 2 : 1);
}

static int drawn(tgx_call *c, draw_t *d, int generator) {
    const tgx_tensor *out = tgx_out(c, 0);
    tgx_stream *stream = c->args[generator].pointer;
    int64_t strides[TGX_MAX_DIMS];
    tgx_tensor dense = *out;
    d->dtype = out->dtype;
    if (!(out->flags & TGX_CONTIGUOUS)) {
        if (d->serial) d->words = 0;
        tgx_order_strides(out, strides);
        if (!tgx_same_strides(out, strides)) dense.data = c->scratch, dense.strides = strides;
    } else d->serial = 0;
    const tgx_random_whole whole = {dense.data, out->count, tgx_itemsize[d->dtype], words_of(d), 0};
    tgx_random_shared(c, stream, &whole, d->fill, d);
    return dense.data == out->data ? 0 : c->services->copy(out, &dense);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int need_float(tgx_call *c, int dtype, const char *op) {
    if (tgx_is_float(dtype)) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': self must have a real floating point dtype; draw in "
                    "float32 and convert the result", op, tgx_dtype_title(dtype));
}


static double greatest(int dtype) {
    if (dtype == TGX_F16) return 65504.0;
    if (dtype == TGX_BF16) return 3.3895313892515355e38;
    return dtype == TGX_F32 ? 3.4028234663852886e38 : 1.7976931348623157e308;
}

/* Greatest value of an integer dtype; for floats the end of the run of integers without gaps. */
static int64_t last_integer(int dtype) {
    static const int64_t last[TGX_NTYPES] = {
        [TGX_BOOL] = 1, [TGX_U8] = 255, [TGX_U16] = 65535, [TGX_U32] = 4294967295, [TGX_U64] = INT64_MAX, [TGX_I8] = 127, [TGX_I16] = 32767, [TGX_I32] = 2147483647, [TGX_I64] = INT64_MAX,
        [TGX_F16] = 2048, [TGX_BF16] = 256, [TGX_F32] = 16777216, [TGX_F64] = 9007199254740992};
    return last[dtype];
}

static int check_integer(tgx_call *c, int dtype, const char *argument, int64_t value) {
    int64_t last = last_integer(dtype);
    int64_t first = !tgx_is_signed(dtype) ? 0 : -last - !tgx_is_float(dtype);
    if (first <= value && value <= last) return 0;
    if (!tgx_is_float(dtype) || (dtype == TGX_F16 && !(-65504 <= value && value <= 65504)))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "random_: %s is out of bounds for %s, got %lld; narrow the range or use a wider dtype",
                        argument, tgx_dtype_title(dtype), (long long)value);
    tgx_warn(c, "random_: %s%s is out of bounds [-%lld, %lld], got %lld: beyond them %s does not hold every integer, and some values of the range "
             "cannot come up", c->warning ? "from is out of bounds, and " : "", argument, (long long)last, (long long)last, (long long)value,
             tgx_dtype_title(dtype));
    return 0;
}

/* ---- uniform and normal ------------------------------------------------------------------------------------------ */

static int bad_bound(tgx_call *c, const char *name, double got, int part) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "uniform_: %s is out of bounds for %s, which holds none of %.17g; narrow the interval", name,
                    tgx_dtype_title(part), got);
}

static int check_uniform(tgx_call *c, int dtype, double low, double high) {
    int part = tgx_part(dtype);
    if (c->meta) return 0;
    if (need_float(c, part, "uniform_")) return TGX_FAILED;
    double most = greatest(part);
    if (!(-most <= low && low <= most)) return bad_bound(c, "from", low, part);
    if (!(-most <= high && high <= most)) return bad_bound(c, "to", high, part);
    if (!(low <= high))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g: exchange the two",
                        low, high);
    if (high - low <= most) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "uniform_ expects to-from <= %g, the greatest %s, but found to=%g and from=%g: narrow the interval", most,
                    tgx_dtype_title(part), high, low);
}

static void fill_uniform(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    tgx_random_uniform(s, tgx_part(d->dtype), out, tgx_is_complex(d->dtype) ? 2 * n : n, d->a, d->b);
}

/* (self, from, to, generator) */
static int uniform_shape(tgx_call *c) {
    tgx_like_self(c);
    return check_uniform(c, tgx_in(c, 0)->dtype, tgx_float(c, 1), tgx_float(c, 2));
}
static int uniform_run(tgx_call *c) {
    draw_t d = {.a = tgx_float(c, 1), .b = tgx_float(c, 2), .fill = fill_uniform, .words = AS_PART};
    return drawn(c, &d, 3);
}
TGX_KERNEL(uniform, uniform_shape, uniform_run, TGX_SERIAL)

static int check_normal(tgx_call *c, int dtype, double std) {
    if (c->meta) return 0;
    if (need_float(c, tgx_part(dtype), "normal_")) return TGX_FAILED;
    return std >= 0 ? 0 : tgx_fail(c, TGX_RUNTIME_ERROR, "normal expects std >= 0.0, but found std %g: pass a standard deviation", std);
}

static void fill_normal(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    double std = d->b;
    if (tgx_is_complex(d->dtype)) n *= 2, std /= sqrt(2.0);
    (d->serial ? tgx_random_normal_serial : tgx_random_normal)(s, tgx_part(d->dtype), out, n, d->a, std);
}

/* (self, mean, std, generator) */
static int normal_shape(tgx_call *c) {
    tgx_like_self(c);
    return check_normal(c, tgx_in(c, 0)->dtype, tgx_float(c, 2));
}
static int normal_run(tgx_call *c) {
    draw_t d = {.a = tgx_float(c, 1), .b = tgx_float(c, 2), .fill = fill_normal, .words = AS_PART, .serial = 1};
    return drawn(c, &d, 3);
}
TGX_KERNEL(normal, normal_shape, normal_run, TGX_SERIAL)

/* ---- other continuous distributions ------------------------------------------------------------------------------ */

/* RuntimeError here and for cauchy_, NotImplementedError elsewhere: as PyTorch has it. */
static int need_continuous(tgx_call *c, const char *name, const char *op) {
    int dtype = tgx_in(c, 0)->dtype;
    if (tgx_is_float(dtype)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s distribution is a continuous probability distribution. dtype must be a floating point but "
                    "you specified %s: %s draws in float32; convert the result", name, tgx_dtype_title(dtype), op);
}

static void fill_exponential(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    tgx_random_exponential(s, d->dtype, out, n, d->a);
}
static void fill_geometric(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    tgx_random_geometric(s, d->dtype, out, n, d->a);
}
static void fill_cauchy(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    tgx_random_cauchy(s, d->dtype, out, n, d->a, d->b);
}
static void fill_log_normal(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    tgx_random_log_normal(s, d->dtype, out, n, d->a, d->b);
}

/* (self, lambd, generator) */
static int exponential_shape(tgx_call *c) {
    double rate = tgx_float(c, 1);
    tgx_like_self(c);
    if (c->meta) return 0;
    if (need_continuous(c, "Exponential", "exponential_")) return TGX_FAILED;
    return rate > 0 ? 0 : tgx_fail(c, TGX_RUNTIME_ERROR, "exponential_ expects lambda > 0.0, but found lambda=%g: pass the rate, one over the "
                                   "mean", rate);
}
static int exponential_run(tgx_call *c) {
    draw_t d = {.a = tgx_float(c, 1), .fill = fill_exponential, .words = 2};
    return drawn(c, &d, 2);
}
TGX_KERNEL(exponential, exponential_shape, exponential_run, TGX_SERIAL)

/* (self, p, generator) */
static int geometric_shape(tgx_call *c) {
    int dtype = tgx_in(c, 0)->dtype;
    double p = tgx_float(c, 1);
    tgx_like_self(c);
    if (c->meta) return 0;
    if (tgx_need_real(c, dtype, "geometric_")) return TGX_FAILED;
    if (dtype == TGX_BOOL) return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"geometric_\" not implemented for 'Bool': use an integer dtype");
    return p > 0 && p < 1 ? 0 : tgx_fail(c, TGX_RUNTIME_ERROR, "geometric_ expects p to be in (0, 1), but got p=%g: pass the chance of success "
                                         "of one trial", p);
}
static int geometric_run(tgx_call *c) {
    draw_t d = {.a = tgx_float(c, 1), .fill = fill_geometric, .words = 2};
    return drawn(c, &d, 2);
}
TGX_KERNEL(geometric, geometric_shape, geometric_run, TGX_SERIAL)

/* (self, median, sigma, generator) */
static int cauchy_shape(tgx_call *c) {
    double sigma = tgx_float(c, 2);
    tgx_like_self(c);
    if (c->meta) return 0;
    if (need_continuous(c, "Cauchy", "cauchy_")) return TGX_FAILED;
    return sigma > 0 ? 0 : tgx_fail(c, TGX_RUNTIME_ERROR, "cauchy_ expects sigma > 0.0, but found sigma=%g: pass the half width at half height",
                                    sigma);
}
static int cauchy_run(tgx_call *c) {
    draw_t d = {.a = tgx_float(c, 1), .b = tgx_float(c, 2), .fill = fill_cauchy, .words = 2};
    return drawn(c, &d, 3);
}
TGX_KERNEL(cauchy, cauchy_shape, cauchy_run, TGX_SERIAL)

/* (self, mean, std, generator) */
static int log_normal_shape(tgx_call *c) {
    double std = tgx_float(c, 2);
    tgx_like_self(c);
    if (c->meta) return 0;
    if (need_float(c, tgx_in(c, 0)->dtype, "log_normal_")) return TGX_FAILED;
    return std > 0 ? 0 : tgx_fail(c, TGX_RUNTIME_ERROR, "log_normal_ expects std > 0.0, but found std=%g: pass the standard deviation of the "
                                  "logarithm", std);
}
static int log_normal_run(tgx_call *c) {
    draw_t d = {.a = tgx_float(c, 1), .b = tgx_float(c, 2), .fill = fill_log_normal};
    return drawn(c, &d, 3);
}
TGX_KERNEL(log_normal, log_normal_shape, log_normal_run, TGX_SERIAL)

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static void fill_integers(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    tgx_random_integers(s, d->dtype, out, n, d->low, d->range);
}
static void fill_full(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    tgx_random_full(s, d->dtype, out, n);
}

static int check_range(tgx_call *c, int64_t low, int64_t high) {
    if (low < high) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld: the upper bound is left "
                    "out of the range", (long long)low, (long long)high);
}

/* Integers from low to last, both included. */
static int check_integers(tgx_call *c, int dtype, int64_t low, int64_t last) {
    if (c->meta) return 0;
    if (tgx_need_real(c, dtype, "random_")) return TGX_FAILED;
    if (low > last)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%llu: exchange the two",
                        (long long)low, (unsigned long long)last + 1);
    return check_integer(c, dtype, "from", low) || check_integer(c, dtype, "to - 1", last) ? TGX_FAILED : 0;
}

static int integers_run(tgx_call *c, int64_t low, int64_t last, int generator) {
    const uint64_t range = (uint64_t)last - (uint64_t)low + 1;
    draw_t d = {.low = low, .range = range, .fill = fill_integers, .words = tgx_random_is_wide(range) ? 2 : 1};
    return drawn(c, &d, generator);
}

/* (self, generator): the whole range of the dtype */
static int random_shape(tgx_call *c) {
    tgx_like_self(c);
    return c->meta ? 0 : tgx_need_real(c, tgx_in(c, 0)->dtype, "random_");
}
static int random_run(tgx_call *c) {
    const int dtype = tgx_out(c, 0)->dtype;
    draw_t d = {.fill = fill_full, .words = dtype == TGX_I64 || dtype == TGX_F64 ? 2 : 1};
    return drawn(c, &d, 1);
}
TGX_KERNEL(random, random_shape, random_run, TGX_SERIAL)

/* (self, to, generator) */
static int random_to_shape(tgx_call *c) {
    tgx_like_self(c);
    return check_range(c, 0, tgx_int(c, 1)) || check_integers(c, tgx_in(c, 0)->dtype, 0, tgx_int(c, 1) - 1) ? TGX_FAILED : 0;
}
static int random_to_run(tgx_call *c) { return integers_run(c, 0, tgx_int(c, 1) - 1, 2); }
TGX_KERNEL(random_to, random_to_shape, random_to_run, TGX_SERIAL | TGX_NATURAL)

/* (self, from, to, generator): without `to` up to the greatest of the dtype */
static int64_t last_of(const tgx_call *c) { return tgx_given(c, 2) ? tgx_int(c, 2) - 1 : last_integer(tgx_in(c, 0)->dtype); }
static int random_from_shape(tgx_call *c) {
    tgx_like_self(c);
    if (tgx_given(c, 2) ? check_range(c, tgx_int(c, 1), tgx_int(c, 2)) : tgx_need_real(c, tgx_in(c, 0)->dtype, "random_")) return TGX_FAILED;
    return check_integers(c, tgx_in(c, 0)->dtype, tgx_int(c, 1), last_of(c));
}
static int random_from_run(tgx_call *c) { return integers_run(c, tgx_int(c, 1), last_of(c), 3); }
TGX_KERNEL(random_from, random_from_shape, random_from_run, TGX_SERIAL | TGX_NATURAL)

/* ---- 0 or 1 ------------------------------------------------------------------------------------------------------ */

static void fill_bernoulli(const void *what, tgx_stream *s, void *out, int64_t n) {
    const draw_t *d = what;
    tgx_random_bernoulli(s, d->dtype, out, n, d->a);
}

/* (self, p, generator) */
static int bernoulli_p_shape(tgx_call *c) {
    double p = tgx_float(c, 1);
    tgx_like_self(c);
    if (c->meta) return 0;
    if (tgx_need_real(c, tgx_in(c, 0)->dtype, "bernoulli_")) return TGX_FAILED;
    return p >= 0 && p <= 1 ? 0 : tgx_fail(c, TGX_RUNTIME_ERROR, "bernoulli_ expects p to be in [0, 1], but got p=%g: pass a probability", p);
}
static int bernoulli_p_run(tgx_call *c) {
    draw_t d = {.a = tgx_float(c, 1), .fill = fill_bernoulli, .words = 2};
    return drawn(c, &d, 2);
}
TGX_KERNEL(bernoulli_p, bernoulli_p_shape, bernoulli_p_run, TGX_SERIAL)

/* ---- factories: (size, generator, options) ----------------------------------------------------------------------- */

/* What a factory draws into: memory of the sizes in argument `size`, or like argument 0 where that is -1. */
static int made(tgx_call *c, int size, int options, int own) {
    int dtype = tgx_made_dtype(c, options, size < 0 ? tgx_in(c, 0)->dtype : own);
    if (dtype < 0) return TGX_FAILED;
    return size < 0 ? tgx_made_like(c, tgx_in(c, 0), dtype, options + 5) : tgx_made(c, size, dtype);
}
static int made_dtype(const tgx_call *c) { return c->outputs[0].dtype; }

static int unit_shape(tgx_call *c, int size, int options) {
    return made(c, size, options, c->services->default_dtype()) ? TGX_FAILED : check_uniform(c, made_dtype(c), 0, 1);
}
static int unit_run(tgx_call *c, int generator) {
    draw_t d = {.a = 0, .b = 1, .fill = fill_uniform, .words = AS_PART};
    return drawn(c, &d, generator);
}
static int rand_shape(tgx_call *c) { return unit_shape(c, 0, 2); }
static int rand_run(tgx_call *c) { return unit_run(c, 1); }
static int rand_like_shape(tgx_call *c) { return unit_shape(c, -1, 1); }
static int rand_like_run(tgx_call *c) { return unit_run(c, 7); }
TGX_KERNEL(rand, rand_shape, rand_run, TGX_SERIAL)
TGX_KERNEL(rand_like, rand_like_shape, rand_like_run, TGX_SERIAL)

static int bell_shape(tgx_call *c, int size, int options, double std) {
    return made(c, size, options, c->services->default_dtype()) ? TGX_FAILED : check_normal(c, made_dtype(c), std);
}
static int bell_run(tgx_call *c, int generator, double mean, double std) {
    draw_t d = {.a = mean, .b = std, .fill = fill_normal, .words = AS_PART, .serial = 1};
    return drawn(c, &d, generator);
}
static int randn_shape(tgx_call *c) { return bell_shape(c, 0, 2, 1); }
static int randn_run(tgx_call *c) { return bell_run(c, 1, 0, 1); }
static int randn_like_shape(tgx_call *c) { return bell_shape(c, -1, 1, 1); }
static int randn_like_run(tgx_call *c) { return bell_run(c, 7, 0, 1); }
TGX_KERNEL(randn, randn_shape, randn_run, TGX_SERIAL)
TGX_KERNEL(randn_like, randn_like_shape, randn_like_run, TGX_SERIAL)

/* (mean, std, size, generator, options) */
static int normal_size_shape(tgx_call *c) { return bell_shape(c, 2, 4, tgx_float(c, 1)); }
static int normal_size_run(tgx_call *c) { return bell_run(c, 3, tgx_float(c, 0), tgx_float(c, 1)); }
TGX_KERNEL(normal_size, normal_size_shape, normal_size_run, TGX_SERIAL)

static int made_integers(tgx_call *c, int64_t low, int64_t high, int size, int options) {
    if (check_range(c, low, high) || made(c, size, options, TGX_I64)) return TGX_FAILED;
    return check_integers(c, made_dtype(c), low, high - 1);
}

/* ([low,] high, size, generator, options) */
static int randint_shape(tgx_call *c) { return made_integers(c, 0, tgx_int(c, 0), 1, 3); }
static int randint_run(tgx_call *c) { return integers_run(c, 0, tgx_int(c, 0) - 1, 2); }
static int randint_low_shape(tgx_call *c) { return made_integers(c, tgx_int(c, 0), tgx_int(c, 1), 2, 4); }
static int randint_low_run(tgx_call *c) { return integers_run(c, tgx_int(c, 0), tgx_int(c, 1) - 1, 3); }
TGX_KERNEL(randint, randint_shape, randint_run, TGX_SERIAL | TGX_NATURAL)
TGX_KERNEL(randint_low, randint_low_shape, randint_low_run, TGX_SERIAL | TGX_NATURAL)

/* (self, [low,] high, options, memory_format, generator) */
static int randint_like_shape(tgx_call *c) { return made_integers(c, 0, tgx_int(c, 1), -1, 2); }
static int randint_like_run(tgx_call *c) { return integers_run(c, 0, tgx_int(c, 1) - 1, 8); }
static int randint_like_low_shape(tgx_call *c) { return made_integers(c, tgx_int(c, 1), tgx_int(c, 2), -1, 3); }
static int randint_like_low_run(tgx_call *c) { return integers_run(c, tgx_int(c, 1), tgx_int(c, 2) - 1, 9); }
TGX_KERNEL(randint_like, randint_like_shape, randint_like_run, TGX_SERIAL | TGX_NATURAL)
TGX_KERNEL(randint_like_low, randint_like_low_shape, randint_like_low_run, TGX_SERIAL | TGX_NATURAL)

/* (n, generator, options) */
static int randperm_shape(tgx_call *c) {
    int64_t n = tgx_int(c, 0);
    int dtype = tgx_made_dtype(c, 2, TGX_I64);
    if (n < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "n must be non-negative, got %lld: randperm takes the number of elements to shuffle", (long long)n);
    if (dtype < 0) return TGX_FAILED;
    tgx_output *o = tgx_fresh(c, 0, 1, dtype);
    o->dims[0] = n, o->via = TGX_I64;
    if (c->meta || (!tgx_is_complex(dtype) && n - 1 <= last_integer(dtype))) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "n is too large for result tensor type: '%s' cannot hold %lld; use int64", tgx_dtype_title(dtype),
                    (long long)n - 1);
}
static int randperm_run(tgx_call *c) {
    tgx_random_permutation(c->args[1].pointer, (int64_t *)tgx_out(c, 0)->data, tgx_out(c, 0)->count);
    return 0;
}
TGX_KERNEL(randperm, randperm_shape, randperm_run, TGX_SERIAL)
