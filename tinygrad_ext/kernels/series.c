/* Kernels whose elements follow from their position along one dimension: arange, linspace.
 *
 * A step is multiplied, not added up, in double (in int64 for ranges of integers), and rounded once to the dtype. */
#include <math.h>
#include "make.h"
#include "ranges.h"

/* Whether a dtype has numbers in an order; TGX_FAILED if not. */
static int need_order(tgx_call *c, int dtype, const char *op) {
    if (dtype != TGX_BOOL && !tgx_is_complex(dtype)) return 0;
    return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': use a number dtype and convert", op,
                    tgx_dtype_title(dtype));
}

/* Result 0: n elements, which run writes in `via`. */
static void row(tgx_call *c, int64_t n, int dtype, int via) {
    tgx_output *o = tgx_fresh(c, 0, 1, dtype);
    o->dims[0] = n, o->via = (int8_t)via;
}

/* ---- arange ------------------------------------------------------------------------------------------------------ */

typedef struct { tgx_value start, end, step; } bounds_t;

/* The first `given` arguments are the end; start and end; or start, end and step. */
static bounds_t bounds_of(const tgx_call *c, int given) {
    static tgx_scalar none = {.given = 1}, one = {.f = 1, .i = 1, .given = 1};
    bounds_t b = {{.tag = TGX_NUMBER, .kind = TGX_IS_INT, .number = &none}, c->args[given > 1],
                  {.tag = TGX_NUMBER, .kind = TGX_IS_INT, .number = &one}};
    if (given > 1) b.start = c->args[0];
    if (given > 2) b.step = c->args[2];
    return b;
}

static int is_whole(const tgx_value *v) { return v->kind == TGX_IS_INT || v->kind == TGX_IS_BOOL; }

static int too_many(tgx_call *c, const bounds_t *b, double count) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "invalid size, possible overflow? arange(%s, %s, %s) has %g elements", tgx_number_text(&b->start),
                    tgx_number_text(&b->end), tgx_number_text(&b->step), count);
}

static int contradicting(tgx_call *c, const bounds_t *b) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "upper bound and lower bound inconsistent with step sign: arange got start %s, end %s, step %s; "
                    "exchange the bounds, or negate the step", tgx_number_text(&b->start), tgx_number_text(&b->end),
                    tgx_number_text(&b->step));
}

static const char no_step[] = "step must be nonzero: arange would never reach its end";

static int count_integers(tgx_call *c, const bounds_t *b, int64_t *n) {
    __extension__ typedef __int128 wide;
    const tgx_value *each[] = {&b->start, &b->end, &b->step};
    for (int i = 0; i < 3; i++)
        if (each[i]->kind == TGX_IS_FLOAT && !(fabs(each[i]->number->f) < 9.2e18)) return too_many(c, b, INFINITY);
    wide start = b->start.number->i, end = b->end.number->i, step = b->step.number->i;
    if (step == 0) return tgx_fail(c, b->step.number->f != 0 ? TGX_VALUE_ERROR : TGX_RUNTIME_ERROR, no_step);     /* 0.5, cut */
    if (step > 0 ? end < start : end > start) return contradicting(c, b);
    wide count = (end - start + step + (step > 0 ? -1 : 1)) / step;
    if (count > INT64_MAX) return too_many(c, b, (double)count);
    *n = (int64_t)count;
    return 0;
}

static int count_floats(tgx_call *c, const bounds_t *b, int64_t *n) {
    double start = b->start.number->f, end = b->end.number->f, step = b->step.number->f, size = ceil((end - start) / step);
    if (step == 0) return tgx_fail(c, TGX_RUNTIME_ERROR, no_step);
    if (isnan(step) || (step > 0 ? end < start : end > start)) return contradicting(c, b);
    if (!(size >= 0 && size <= 9.2e18)) return too_many(c, b, size);
    *n = (int64_t)size;
    return 0;
}

static int arange_shape(tgx_call *c, int given) {
    bounds_t b = bounds_of(c, given);
    const tgx_value *each[] = {&b.start, &b.end, &b.step};
    int64_t n = 0;
    for (int i = 0; i < 3; i++)
        if (each[i]->kind == TGX_IS_COMPLEX)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "arange: complex bounds have no order, got %s; use real numbers", tgx_number_text(each[i]));
    int whole = is_whole(&b.start) && is_whole(&b.end) && is_whole(&b.step);
    int dtype = tgx_made_dtype(c, given, whole ? TGX_I64 : c->services->default_dtype());
    if (dtype < 0 || need_order(c, dtype, "arange")) return TGX_FAILED;
    if (!isfinite(b.start.number->f) || !isfinite(b.end.number->f))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "unsupported range: %s -> %s; arange needs finite bounds", tgx_number_text(&b.start),
                        tgx_number_text(&b.end));
    if (dtype == TGX_I64 ? count_integers(c, &b, &n) : count_floats(c, &b, &n)) return TGX_FAILED;
    row(c, n, dtype, !tgx_is_float(dtype) ? TGX_I64 : dtype == TGX_F32 ? TGX_F32 : TGX_F64);
    c->notes[0] = given;
    return 0;
}

static int arange_run(tgx_call *c) {
    const bounds_t b = bounds_of(c, (int)c->notes[0]);
    const tgx_tensor *out = tgx_out(c, 0);
    uint64_t start = (uint64_t)b.start.number->i, step = (uint64_t)b.step.number->i;
    if (out->dtype == TGX_F32) tgx_range_f32((float *)out->data, out->count, b.start.number->f, b.step.number->f);
    else if (out->dtype == TGX_F64) tgx_range_f64((double *)out->data, out->count, b.start.number->f, b.step.number->f);
    else for (int64_t i = 0; i < out->count; i++) ((int64_t *)out->data)[i] = (int64_t)(start + (uint64_t)i * step);
    return 0;
}

/* (end, options), (start, end, options), (start, end, step, options) */
static int arange_end_shape(tgx_call *c) { return arange_shape(c, 1); }
static int arange_start_shape(tgx_call *c) { return arange_shape(c, 2); }
static int arange_step_shape(tgx_call *c) { return arange_shape(c, 3); }
TGX_KERNEL(arange, arange_end_shape, arange_run, 0)
TGX_KERNEL(arange_start, arange_start_shape, arange_run, 0)
TGX_KERNEL(arange_step, arange_step_shape, arange_run, 0)

/* ---- linspace: (start, end, steps, options) ---------------------------------------------------------------------- */

/* A negative bound wraps into what is unsigned. */
static int check_bound(tgx_call *c, const tgx_value *v, int dtype) {
    return v->number->f < 0 && !tgx_is_signed(dtype) ? 0 : tgx_check_number(c, v, dtype);
}

static int linspace_shape(tgx_call *c) {
    int64_t n = tgx_int(c, 2);
    if (n < 0) return tgx_fail(c, TGX_RUNTIME_ERROR, "number of steps must be non-negative: linspace got steps=%lld", (long long)n);
    int pairs = c->args[0].kind == TGX_IS_COMPLEX || c->args[1].kind == TGX_IS_COMPLEX, real = c->services->default_dtype();
    int dtype = tgx_made_dtype(c, 3, !pairs ? real : real == TGX_F64 ? TGX_C128 : TGX_C64);
    if (dtype < 0) return TGX_FAILED;
    if (pairs && !tgx_is_complex(dtype))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "torch.linspace(): inferred dtype %s can't be safely cast to passed dtype %s: the bounds are complex, "
                        "so leave dtype out or give a complex one", real == TGX_F64 ? "ComplexDouble" : "ComplexFloat", tgx_dtype_title(dtype));
    if (!tgx_is_complex(dtype) && need_order(c, dtype, "linspace")) return TGX_FAILED;
    if (tgx_is_integer(dtype) && (check_bound(c, &c->args[0], dtype) || check_bound(c, &c->args[1], dtype))) return TGX_FAILED;
    row(c, n, dtype, tgx_is_complex(dtype) ? dtype : dtype == TGX_F32 ? TGX_F32 : TGX_F64);
    return 0;
}

/* From both ends to the middle, so that the last element is `end` itself. */
#define LINE(NAME, T) \
    static void NAME(T *p, int64_t n, T start, T end) { \
        T step = n > 1 ? (end - start) / (n - 1) : 0; \
        for (int64_t i = 0; i < n; i++) p[i] = i < n / 2 || n == 1 ? start + step * i : end - step * (n - 1 - i); \
    }
LINE(line_f32, float)
LINE(line_f64, double)
LINE(line_c64, tgx_c64)
LINE(line_c128, tgx_c128)

static int linspace_run(tgx_call *c) {
    const tgx_tensor *out = tgx_out(c, 0);
    const tgx_scalar *start = c->args[0].number, *end = c->args[1].number;
    int whole = tgx_is_integer(c->outputs[0].dtype);
    double a = whole ? (double)start->i : start->f, b = whole ? (double)end->i : end->f;
    if (out->dtype == TGX_C64) {
        line_c64((tgx_c64 *)out->data, out->count, __builtin_complex((float)a, (float)start->im), __builtin_complex((float)b, (float)end->im));
    } else if (out->dtype == TGX_C128) {
        line_c128((tgx_c128 *)out->data, out->count, __builtin_complex(a, start->im), __builtin_complex(b, end->im));
    } else if (out->dtype == TGX_F32) line_f32((float *)out->data, out->count, (float)a, (float)b);
    else line_f64((double *)out->data, out->count, a, b);
    return 0;
}
TGX_KERNEL(linspace, linspace_shape, linspace_run, 0)

/* ---- between bounds that tensors hold: (start, end, steps, pairs), a row in the widest dtype for each two of them --- */

static int line_shape(tgx_call *c) {
    const tgx_tensor *start = tgx_in(c, 0), *end = tgx_in(c, 1);
    const int dtype = tgx_int(c, 3) ? TGX_C128 : TGX_F64;
    if (!tgx_same_sizes(start, end) || (dtype == TGX_F64 && (tgx_is_complex(start->dtype) || tgx_is_complex(end->dtype))))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_line: expected as many starts as ends, real ones for real numbers, got %s of %s and %s of %s",
                        tgx_shape_text(start), tgx_dtype_title(start->dtype), tgx_shape_text(end), tgx_dtype_title(end->dtype));
    if (tgx_int(c, 2) < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_line: number of steps must be non-negative, got %lld", (long long)tgx_int(c, 2));
    if (start->rank == TGX_MAX_DIMS) return tgx_fail(c, TGX_RUNTIME_ERROR, "_line: the result would have more than %d dimensions", TGX_MAX_DIMS);
    tgx_need(c, 0, dtype), tgx_need(c, 1, dtype);
    tgx_output *o = tgx_fresh(c, 0, start->rank + 1, dtype);
    memcpy(o->dims, start->sizes, (size_t)start->rank * sizeof *o->dims);
    o->dims[start->rank] = tgx_int(c, 2);
    return tgx_check_sizes(c, o->dims, o->rank, "_line");
}

static int line_run(tgx_call *c) {
    const tgx_tensor *start = tgx_in(c, 0), *end = tgx_in(c, 1), *out = tgx_out(c, 0);
    const int64_t n = tgx_int(c, 2);
#define LINES(T, fill) for (int64_t i = 0; i < start->count; i++) fill((T *)out->data + i * n, n, ((T *)start->data)[i], ((T *)end->data)[i])
    if (out->dtype == TGX_F64) LINES(double, line_f64);
    else LINES(tgx_c128, line_c128);
    return 0;
}
TGX_KERNEL(_line, line_shape, line_run, 0)
