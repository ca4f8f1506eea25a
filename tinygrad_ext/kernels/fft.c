/* Kernels of Fourier transforms: of pairs along a dimension, of reals along the last one, and back to reals. fft.h says how.
 *
 * Work is cut into as many parts as the machine has processors, each with scratch memory of its own; what a transform gives
 * does not depend on it. */
#include "fft_row.h"
#include "tgx.h"

enum mode { LANES_OF_COLUMNS, LANES_OF_ROWS, ONE_BY_ONE, FIRST_HALF, SECOND_HALF };

typedef struct {
    tgx_call *c;
    const tgx_fft_plan *plan;
    const char *from;
    char *to, *middle;
    int64_t outer, n, inner, items, parts, bytes;
    int mode, swap, size;      /* size: bytes of a real number */
    double scale;
    void (*row)(const void *job, int64_t row, char *scratch); /* of kernels of reals */
} job;

static int real_of(int dtype) { return dtype == TGX_C64 ? TGX_F32 : dtype == TGX_C128 ? TGX_F64 : dtype; }
static int complex_of(int dtype) { return dtype == TGX_F32 ? TGX_C64 : TGX_C128; }

static int64_t round_up(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

static int64_t parts_of(const tgx_call *c, int64_t items, int64_t numbers) {
    int64_t most = numbers > TGX_SMALL ? c->services->processors() : 1;
    return items < most ? items : most;
}

/* Ask for `numbers` of scratch memory for each part, and `shared` for all. */
static void need_scratch(tgx_call *c, int64_t parts, int64_t numbers, int64_t shared, int size) {
    c->scratch_bytes = round_up(shared * size) + parts * round_up(numbers * size);
    c->notes[0] = parts, c->notes[1] = round_up(numbers * size), c->notes[2] = round_up(shared * size);
}

static int out_of_memory(tgx_call *c, int64_t n) {
    return tgx_fail(c, TGX_MEMORY_ERROR, "%s(): the tables for %lld points do not fit in memory", c->title, (long long)n);
}

/* ---- pairs: (self, dim, forward, scale) -------------------------------------------------------------------------- */

/* Whether columns of a matrix, or rows of a batch, fill the lanes better than parts of one transform would. */
static int by_lanes(const job *j) {
    return j->inner > 1 ? j->inner >= TGX_FFT_LANES / 2 && j->n <= TGX_FFT_COLUMN : tgx_fft_by_rows(j->n, j->outer);
}

static void extents(const tgx_tensor *t, int64_t dim, job *j) {
    j->outer = j->inner = 1, j->n = t->sizes[dim];
    for (int d = 0; d < t->rank; d++) {
        if (d < dim) j->outer *= t->sizes[d];
        if (d > dim) j->inner *= t->sizes[d];
    }
}

static void lanes_of_columns(const job *j, int64_t item, char *scratch) {
    int64_t groups = tgx_fft_groups(j->inner), o = item / groups, g = item % groups, at = (o * j->n * j->inner + g * TGX_FFT_LANES) * 2 * j->size;
    int64_t left = j->inner - g * TGX_FFT_LANES;
    tgx_fft_lanes lanes = {j->from + at, j->to + at, 1, j->inner, 1, j->inner, left < TGX_FFT_LANES ? (int)left : TGX_FFT_LANES,
                           j->swap, j->swap, NULL, NULL, j->scale};
    tgx_fft_loops_of(j->plan->dtype)->lanes(j->plan, &lanes, scratch);
}

static void lanes_of_rows(const job *j, int64_t item, char *scratch) {
    int64_t at = item * TGX_FFT_LANES * j->n * 2 * j->size, left = j->outer - item * TGX_FFT_LANES;
    tgx_fft_lanes lanes = {j->from + at, j->to + at, j->n, 1, j->n, 1, left < TGX_FFT_LANES ? (int)left : TGX_FFT_LANES,
                           j->swap, j->swap, NULL, NULL, j->scale};
    tgx_fft_loops_of(j->plan->dtype)->lanes(j->plan, &lanes, scratch);
}

static void copy_pairs(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int size) {
    for (int64_t k = 0; k < n; k++) memcpy(to + k * to_step * size, from + k * from_step * size, (size_t)size);
}

static void one(const job *j, int64_t item, char *scratch) {
    int64_t pair = 2 * j->size, at = (item / j->inner * j->n * j->inner + item % j->inner) * pair;
    if (j->inner == 1) {
        tgx_fft_row(j->plan, j->from + at, j->to + at, j->swap, j->scale, scratch);
        return;
    }
    char *rest = scratch + round_up(j->n * pair);
    copy_pairs(scratch, 1, j->from + at, j->inner, j->n, (int)pair);
    tgx_fft_row(j->plan, scratch, scratch, j->swap, j->scale, rest);
    copy_pairs(j->to + at, j->inner, scratch, 1, j->n, (int)pair);
}

static int pieces(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job *j = context;
    for (ptrdiff_t p = lo; p < hi; p++) {
        int64_t from = j->items * p / j->parts, to = j->items * (p + 1) / j->parts;
        char *scratch = (char *)j->c->scratch + j->c->notes[2] + p * j->c->notes[1];
        if (j->mode == FIRST_HALF) {
            tgx_fft_columns(j->plan, j->from, j->middle, j->swap, from, to, scratch);
            continue;
        }
        if (j->mode == SECOND_HALF) {
            tgx_fft_rows(j->plan, j->middle, j->to, j->swap, j->scale, from, to, scratch);
            continue;
        }
        for (int64_t i = from; i < to; i++) {
            if (j->row) j->row(j, i, scratch);
            else if (j->mode == LANES_OF_COLUMNS) lanes_of_columns(j, i, scratch);
            else if (j->mode == LANES_OF_ROWS) lanes_of_rows(j, i, scratch);
            else one(j, i, scratch);
        }
    }
    return 0;
}

static int spread(job *j, int mode, int64_t items) {
    j->mode = mode, j->items = items, j->parts = j->c->notes[0] < items ? j->c->notes[0] : items;
    return tgx_range(j->c, pieces, j, j->parts, 1);
}

/* Which way, and what it needs. */
static int how(tgx_call *c, job *j, tgx_fft_cut *cut, int64_t *items) {
    int64_t rows = j->outer * j->inner;
    *cut = tgx_fft_how(j->n, by_lanes(j));
    int stepwise = cut->kind == TGX_FFT_STEPWISE;
    int mode = !stepwise ? ONE_BY_ONE : j->inner > 1 ? LANES_OF_COLUMNS : LANES_OF_ROWS;
    *items = mode == LANES_OF_COLUMNS ? j->outer * tgx_fft_groups(j->inner) : mode == LANES_OF_ROWS ? tgx_fft_groups(j->outer) : rows;
    if (cut->kind == TGX_FFT_CUT && rows == 1) mode = FIRST_HALF, *items = tgx_fft_groups(cut->second);
    (void)c;
    return mode;
}

static int pairs_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    job j = {.c = c, .size = tgx_itemsize[t->dtype] / 2};
    tgx_fft_cut cut;
    int64_t items;
    if (t->dtype != TGX_C64 && t->dtype != TGX_C128)
        return tgx_fail(c, TGX_TYPE_ERROR, "%s(): expected a complex tensor, got %s", c->title, tgx_dtype_title(t->dtype));
    if (t->rank == 0) return tgx_fail(c, TGX_INDEX_ERROR, "%s(): dimension specified as %lld but tensor has no dimensions", c->title, (long long)tgx_int(c, 1));
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    tgx_need_dense(c, 0);
    tgx_like(c, 0, t, t->dtype);
    if (!t->count) return 0;
    extents(t, tgx_int(c, 1), &j);
    int mode = how(c, &j, &cut, &items), alone = mode == FIRST_HALF;
    int64_t room = alone ? tgx_fft_room(cut.second) : cut.scratch + (mode == ONE_BY_ONE && j.inner > 1 ? 2 * j.n + 16 : 0);
    need_scratch(c, parts_of(c, items, t->count), room, alone ? 2 * j.n : 0, j.size);
    c->work = t->count > TGX_SMALL ? t->count : 0;
    return 0;
}

static int pairs_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    job j = {.c = c, .from = t->data, .to = tgx_out(c, 0)->data, .size = tgx_itemsize[t->dtype] / 2, .swap = !tgx_int(c, 2), .scale = tgx_float(c, 3)};
    tgx_fft_cut cut;
    int64_t items;
    if (!t->count) return 0;
    extents(t, tgx_int(c, 1), &j);
    int mode = how(c, &j, &cut, &items), code;
    j.plan = tgx_fft_take(j.n, real_of(t->dtype), by_lanes(&j) && cut.kind == TGX_FFT_STEPWISE ? TGX_FFT_STEPWISE : -1);
    if (!j.plan) return out_of_memory(c, j.n);
    j.middle = c->scratch;
    code = spread(&j, mode, items);
    if (!code && mode == FIRST_HALF) code = spread(&j, SECOND_HALF, tgx_fft_groups(cut.first));
    tgx_fft_give_back(j.plan);
    return code;
}
TGX_KERNEL(_fft_pairs, pairs_shape, pairs_run, 0)

/* ---- reals: (self, scale) -> n / 2 + 1 pairs of the last dimension; (self, n, scale) and back --------------------- */

#define OF_TYPE(T, t)                                                                                                          \
    static void widen_##t(int64_t n, const T *from, T *to) {                                                                   \
        for (int64_t k = 0; k < n; k++) to[2 * k] = from[k], to[2 * k + 1] = 0;                                                \
    }                                                                                                                          \
    static void mirror_##t(int64_t n, const T *from, T *to) {                                                                  \
        to[0] = from[0], to[1] = 0;                                                                                            \
        for (int64_t k = 1; 2 * k < n; k++) {                                                                                  \
            to[2 * k] = to[2 * (n - k)] = from[2 * k];                                                                         \
            to[2 * k + 1] = from[2 * k + 1], to[2 * (n - k) + 1] = -from[2 * k + 1];                                           \
        }                                                                                                                      \
    }                                                                                                                          \
    static void narrow_##t(int64_t n, const T *from, T *to) {                                                                  \
        for (int64_t k = 0; k < n; k++) to[k] = from[2 * k];                                                                   \
    }
OF_TYPE(float, f32)
OF_TYPE(double, f64)
#define BY_TYPE(j, name, n, from, to)                                                                                          \
    ((j)->size == 4 ? name##_f32(n, (const float *)(from), (float *)(to)) : name##_f64(n, (const double *)(from), (double *)(to)))

static int64_t rows_left(const job *j, int64_t group) {
    int64_t left = j->outer - group * TGX_FFT_LANES;
    return left < TGX_FFT_LANES ? left : TGX_FFT_LANES;
}

static void real_row(const void *context, int64_t row, char *scratch) {
    const job *j = context;
    const tgx_fft_loops *loops = tgx_fft_loops_of(j->plan->dtype);
    int64_t n = j->n, h = n / 2, pair = 2 * j->size;
    const char *from = j->from + row * n * j->size;
    char *to = j->to + row * (h + 1) * pair, *rest = scratch + round_up(n * pair);
    if (n % 2) {
        BY_TYPE(j, widen, n, from, scratch);
        tgx_fft_row(j->plan, scratch, scratch, 0, j->scale, rest);
        memcpy(to, scratch, (size_t)((h + 1) * pair));
    } else {
        tgx_fft_row(j->plan->first, from, scratch, 0, 1, rest);
        loops->untangle(j->plan, scratch, to, j->scale);
    }
}

static void real_lanes(const void *context, int64_t group, char *scratch) {
    const job *j = context;
    const tgx_fft_loops *loops = tgx_fft_loops_of(j->plan->dtype);
    int64_t n = j->n, h = n / 2, pair = 2 * j->size, row = group * TGX_FFT_LANES, count = rows_left(j, group);
    char *rest = scratch + round_up(TGX_FFT_LANES * h * pair);
    tgx_fft_lanes lanes = {j->from + row * n * j->size, scratch, h, 1, h, 1, (int)count, 0, 0, NULL, NULL, 1, NULL};
    if (TGX_FFT_LANES * h <= TGX_FFT_NEAR) {
        lanes.to = j->to + row * (h + 1) * pair, lanes.to_lane = h + 1, lanes.scale = j->scale, lanes.reals = j->plan;
        loops->lanes(j->plan->first, &lanes, rest);
        return;
    }
    loops->lanes(j->plan->first, &lanes, rest);
    for (int64_t k = 0; k < count; k++) loops->untangle(j->plan, scratch + k * h * pair, j->to + (row + k) * (h + 1) * pair, j->scale);
}

static void back_row(const void *context, int64_t row, char *scratch) {
    const job *j = context;
    int64_t n = j->n, h = n / 2, pair = 2 * j->size;
    const char *from = j->from + row * (h + 1) * pair;
    char *to = j->to + row * n * j->size, *rest = scratch + round_up(n * pair);
    if (n % 2) {
        BY_TYPE(j, mirror, n, from, scratch);
        tgx_fft_row(j->plan, scratch, scratch, 1, j->scale, rest);
        BY_TYPE(j, narrow, n, scratch, to);
    } else {
        tgx_fft_loops_of(j->plan->dtype)->tangle(j->plan, from, scratch, j->scale);
        tgx_fft_row(j->plan->first, scratch, to, 1, 1, rest);
    }
}

static void back_lanes(const void *context, int64_t group, char *scratch) {
    const job *j = context;
    const tgx_fft_loops *loops = tgx_fft_loops_of(j->plan->dtype);
    int64_t n = j->n, h = n / 2, pair = 2 * j->size, row = group * TGX_FFT_LANES, count = rows_left(j, group);
    char *rest = scratch + round_up(TGX_FFT_LANES * h * pair);
    tgx_fft_lanes lanes = {scratch, j->to + row * n * j->size, h, 1, h, 1, (int)count, 1, 1, NULL, NULL, 1, NULL};
    if (TGX_FFT_LANES * h <= TGX_FFT_NEAR)
        lanes.from = j->from + row * (h + 1) * pair, lanes.from_lane = h + 1, lanes.scale = j->scale, lanes.reals = j->plan;
    else
        for (int64_t k = 0; k < count; k++) loops->tangle(j->plan, j->from + (row + k) * (h + 1) * pair, scratch + k * h * pair, j->scale);
    loops->lanes(j->plan->first, &lanes, rest);
}

/* Sixteen rows at a time, where a row of pairs would leave the lanes empty. */
static int grouped(int64_t n, int64_t rows) { return n % 2 == 0 && tgx_fft_how(n / 2, tgx_fft_by_rows(n / 2, rows)).kind == TGX_FFT_STEPWISE; }

static void need_rows(tgx_call *c, int64_t rows, int64_t n, int size) {
    int lanes = grouped(n, rows);
    int64_t room = (lanes ? TGX_FFT_LANES * n : 2 * n) + 16 + tgx_fft_how(n % 2 ? n : n / 2, lanes).scratch;
    need_scratch(c, parts_of(c, lanes ? tgx_fft_groups(rows) : rows, rows * n), room, 0, size);
    c->work = rows * n > TGX_SMALL ? rows * n : 0;
}

static int run_rows(tgx_call *c, job *j, void (*row)(const void *, int64_t, char *), void (*lanes)(const void *, int64_t, char *)) {
    int several = grouped(j->n, j->outer), code;
    if (!tgx_in(c, 0)->count) return 0;
    j->plan = tgx_fft_take(j->n, j->size == 4 ? TGX_F32 : TGX_F64, j->n % 2 ? -1 : several ? TGX_FFT_REALS : TGX_FFT_REAL);
    if (!j->plan) return out_of_memory(c, j->n);
    j->row = several ? lanes : row;
    code = spread(j, ONE_BY_ONE, several ? tgx_fft_groups(j->outer) : j->outer);
    tgx_fft_give_back(j->plan);
    return code;
}

static int64_t rows_of(const tgx_tensor *t) {
    int64_t rows = 1;
    for (int d = 0; d + 1 < t->rank; d++) rows *= t->sizes[d];
    return rows;
}

static int wrong_points(tgx_call *c, int64_t n) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Invalid number of data points (%lld) specified", (long long)n);
}

static int reals_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if ((t->dtype != TGX_F32 && t->dtype != TGX_F64) || !t->rank)
        return tgx_fail(c, TGX_TYPE_ERROR, "%s(): expected a tensor of float32 or float64 with dimensions, got %s of shape %s", c->title,
                        tgx_dtype_title(t->dtype), tgx_shape_text(t));
    int64_t n = t->sizes[t->rank - 1];
    if (n < 1) return wrong_points(c, n);
    tgx_need_dense(c, 0);
    tgx_output *o = tgx_fresh(c, 0, t->rank, complex_of(t->dtype));
    for (int d = 0; d < t->rank; d++) o->sizes[d] = t->sizes[d];
    o->sizes[t->rank - 1] = n / 2 + 1;
    need_rows(c, rows_of(t), n, tgx_itemsize[t->dtype]);
    return 0;
}
static int reals_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    job j = {.c = c, .from = t->data, .to = tgx_out(c, 0)->data, .outer = rows_of(t), .n = t->sizes[t->rank - 1], .scale = tgx_float(c, 1),
             .size = tgx_itemsize[t->dtype]};
    return run_rows(c, &j, real_row, real_lanes);
}
TGX_KERNEL(_fft_reals, reals_shape, reals_run, 0)

static int back_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    int64_t n = tgx_int(c, 1);
    if ((t->dtype != TGX_C64 && t->dtype != TGX_C128) || !t->rank)
        return tgx_fail(c, TGX_TYPE_ERROR, "%s(): expected a complex tensor with dimensions, got %s of shape %s", c->title,
                        tgx_dtype_title(t->dtype), tgx_shape_text(t));
    if (n < 1) return wrong_points(c, n);
    if (t->sizes[t->rank - 1] != n / 2 + 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): %lld reals come of %lld numbers in the last dimension, got shape %s", c->title, (long long)n,
                        (long long)(n / 2 + 1), tgx_shape_text(t));
    tgx_need_dense(c, 0);
    tgx_output *o = tgx_fresh(c, 0, t->rank, real_of(t->dtype));
    for (int d = 0; d < t->rank; d++) o->sizes[d] = t->sizes[d];
    o->sizes[t->rank - 1] = n;
    need_rows(c, rows_of(t), n, tgx_itemsize[real_of(t->dtype)]);
    return 0;
}
static int back_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    job j = {.c = c, .from = t->data, .to = tgx_out(c, 0)->data, .outer = rows_of(t), .n = tgx_int(c, 1), .scale = tgx_float(c, 2),
             .size = tgx_itemsize[real_of(t->dtype)]};
    return run_rows(c, &j, back_row, back_lanes);
}
TGX_KERNEL(_fft_to_reals, back_shape, back_run, 0)
