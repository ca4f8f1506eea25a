/* Dropout: factors, 0 or 1 / (1 - p) for each element, or for each channel; and what they make of an input, in one pass, with a
 * byte for each element that says whether it was kept: all that the derivative needs, and a quarter of the factors. A bit for each
 * would take a loop of its own to be multiplied by. */
#include <string.h>
#include "random_drop.h"
#include "random_parts.h"

/* (self, p, channels, generator): zero with probability p, else 1 / (1 - p); one for each element, or each channel of each
 * example. Drawn in the order of memory. */
static int dropout_noise_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    double keep = 1 - tgx_float(c, 1);
    int half = tgx_is_half(t->dtype);
    if (!half && t->dtype != TGX_F32 && t->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"dropout\" not implemented for '%s': convert the input to a floating dtype first",
                        tgx_dtype_title(t->dtype));
    if (!(keep >= 0 && keep <= 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "bernoulli_ expects p to be in [0, 1], but got p=%g: pass a probability", keep);
    if (!tgx_int(c, 2)) {
        tgx_like_order(c, 0, t, t->dtype)->via = half ? TGX_F32 : -1;
        return 0;
    }
    tgx_output *o = tgx_fresh(c, 0, t->rank, t->dtype);
    for (int i = 0; i < t->rank; i++) o->dims[i] = i < 2 ? t->sizes[i] : 1;
    if (half) o->via = TGX_F32; /* the draws are those of float32, the factor is rounded */
    return 0;
}

typedef struct { int dtype; double keep, factor; } choice_t;

static void fill_choice(const void *what, tgx_stream *s, void *out, int64_t n) {
    const choice_t *d = what;
    tgx_random_choice(s, d->dtype, out, n, d->keep, d->factor);
}

static int dropout_noise_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0);
    double keep = 1 - tgx_float(c, 1);
    const double factor = keep == 0 ? 0 : out->dtype == TGX_F32 ? 1 / (float)keep : 1 / keep;
    const choice_t choice = {out->dtype, keep, factor};
    const tgx_random_whole whole = {out->data, out->count, tgx_itemsize[out->dtype], 2, 0};
    tgx_random_shared(c, c->args[3].pointer, &whole, fill_choice, &choice);
    return 0;
}
TGX_KERNEL(dropout_noise, dropout_noise_shape, dropout_noise_run, TGX_SERIAL)

static double factor_of(int dtype, double keep) { return dtype == TGX_F32 ? 1 / (float)keep : 1 / keep; }

/* (self, keep, generator) -> self times such factors for p = 1 - keep, and which elements were kept. Drawn in the order of memory,
 * as dropout_noise draws. */
static int dropout_step_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const double keep = tgx_float(c, 1);
    if (t->dtype != TGX_F32 && t->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"dropout\" in one step not implemented for '%s': give float32 or float64",
                        tgx_dtype_title(t->dtype));
    if (!(keep > 0 && keep <= 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "dropout in one step expects keep to be in (0, 1], but got keep=%g: pass a probability",
                        keep);
    tgx_like_order(c, 0, t, t->dtype);
    tgx_like_order(c, 1, t, TGX_BOOL);
    return 0;
}

typedef struct {
    int dtype;
    double keep, factor;
    const char *from;
    char *out;
    uint8_t *kept;
} drop_t;

static void fill_drop(const void *what, tgx_stream *s, void *out, int64_t n) {
    const drop_t *d = what;
    const ptrdiff_t at = (char *)out - d->out;
    tgx_random_drop(s, d->dtype, d->from + at, out, d->kept + at / tgx_itemsize[d->dtype], n, d->keep, d->factor);
}

/* Whether the elements of a tensor lie as those of one of the same sizes with these strides do. */
static int lies_so(const tgx_tensor *t, const int64_t *strides) {
    for (int i = 0; i < t->rank; i++)
        if (t->sizes[i] != 1 && t->strides[i] != strides[i]) return 0;
    return 1;
}

static int dropout_step_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    const double keep = tgx_float(c, 1);
    const int alike = lies_so(t, out->strides);
    int error;
    if (!alike && (error = c->services->copy(out, t))) return error;
    const drop_t drop = {out->dtype, keep, factor_of(out->dtype, keep), alike ? t->data : out->data, out->data,
                         (uint8_t *)tgx_out(c, 1)->data};
    const tgx_random_whole whole = {out->data, out->count, tgx_itemsize[out->dtype], 2, 0};
    tgx_random_shared(c, c->args[2].pointer, &whole, fill_drop, &drop);
    return 0;
}
TGX_KERNEL(dropout_step, dropout_step_shape, dropout_step_run, TGX_SERIAL)

/* (grad, kept, keep) -> grad times the factors of what was kept, in the order of the latter. */
static int dropout_back_shape(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *kept = tgx_in(c, 1);
    if (g->dtype != TGX_F32 && g->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"dropout\" in one step not implemented for '%s': give float32 or float64",
                        tgx_dtype_title(g->dtype));
    if (kept->dtype != TGX_BOOL || !tgx_same_sizes(g, kept))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "dropout in one step: kept must be of dtype Bool and shape %s, as grad, got %s %s",
                        tgx_shape_text(g), tgx_dtype_title(kept->dtype), tgx_shape_text(kept));
    const int64_t *strides = tgx_like_order(c, 0, kept, g->dtype)->strides;
    if (strides && lies_so(kept, strides)) return 0;
    tgx_like(c, 0, kept, g->dtype);             /* it has gaps, or is row-major */
    tgx_need_dense(c, 1);
    return 0;
}

typedef struct {
    int dtype;
    double factor;
    const char *from;
    char *out;
    const uint8_t *kept;
} back_t;

static int run_back(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const back_t *b = given;
    const int64_t size = tgx_itemsize[b->dtype];
    tgx_random_kept(b->dtype, b->from + lo * size, b->out + lo * size, b->kept + lo, hi - lo, b->factor);
    return 0;
}

static int dropout_back_run(tgx_call *c) {
    const tgx_tensor *g = tgx_in(c, 0), *kept = tgx_in(c, 1), *out = tgx_out(c, 0);
    const int alike = lies_so(g, out->strides);
    int error;
    if (!alike && (error = c->services->copy(out, g))) return error;
    back_t back = {out->dtype, factor_of(out->dtype, tgx_float(c, 2)), alike ? g->data : out->data, out->data,
                   (const uint8_t *)kept->data};
    return tgx_range(c, run_back, &back, out->count, TGX_SMALL);
}
TGX_KERNEL(dropout_back, dropout_back_shape, dropout_back_run, 0)

/* (query, key, p, generator): what dropout of p keeps of the scores of (*, L, E) and (*, S, E), a bit for each, eight keys to a byte,
 * the first of them its lowest bit. Drawn in the order of the scores, as dropout_noise draws for them. */
static int dropout_kept_shape(tgx_call *c) {
    const tgx_tensor *q = tgx_in(c, 0), *k = tgx_in(c, 1);
    const double keep = 1 - tgx_float(c, 2);
    int64_t dims[TGX_MAX_DIMS + 2];
    int rank = 0;
    if (q->rank < 2 || k->rank < 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "dropout of scores: query and key need two dimensions at least, got %s and %s",
                        tgx_shape_text(q), tgx_shape_text(k));
    if (!(keep >= 0 && keep <= 1))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "bernoulli_ expects p to be in [0, 1], but got p=%g: pass a probability", keep);
    for (int i = 0; i < 2; i++) {
        tgx_tensor batch = *tgx_in(c, i);
        batch.rank -= 2;
        if (tgx_broadcast(dims, &rank, &batch))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "dropout of scores: the leading dimensions must be equal, or 1: got %s and %s",
                            tgx_shape_text(q), tgx_shape_text(k));
    }
    tgx_output *o = tgx_fresh(c, 0, rank + 2, TGX_U8);
    dims[rank] = q->sizes[q->rank - 2], dims[rank + 1] = (k->sizes[k->rank - 2] + 7) / 8;
    memcpy(o->dims, dims, (size_t)(rank + 2) * sizeof *dims);
    return tgx_check_sizes(c, o->dims, o->rank, "scaled_dot_product_attention");
}

enum { DRAWN = 512 };   /* numbers at a time, a multiple of 8 */

typedef struct { int64_t keys; double keep; } kept_t;

static void fill_kept(const void *what, tgx_stream *s, void *out, int64_t rows) {
    const kept_t *d = what;
    uint8_t *to = out;
    float drawn[DRAWN];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t at = 0; at < d->keys; at += DRAWN) {
            const int64_t n = d->keys - at < DRAWN ? d->keys - at : DRAWN;
            tgx_random_choice(s, TGX_F32, drawn, n, d->keep, 1);
            memset(drawn + n, 0, (size_t)(-n & 7) * sizeof *drawn);
            for (int64_t i = 0; i < n; i += 8) {
                int bits = 0;
                for (int b = 0; b < 8; b++) bits |= (drawn[i + b] != 0) << b;
                *to++ = (uint8_t)bits;
            }
        }
}

static int dropout_kept_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0), *k = tgx_in(c, 1);
    const kept_t kept = {k->sizes[k->rank - 2], 1 - tgx_float(c, 2)};
    const int64_t width = (kept.keys + 7) / 8;
    const tgx_random_whole whole = {out->data, width ? out->count / width : 0, width, 2 * kept.keys, 1};
    tgx_random_shared(c, c->args[3].pointer, &whole, fill_kept, &kept);
    return 0;
}
TGX_KERNEL(dropout_kept, dropout_kept_shape, dropout_kept_run, TGX_SERIAL)
