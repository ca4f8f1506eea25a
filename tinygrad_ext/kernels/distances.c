/* Distances of rows, Euclidean ones and those of any norm: (x1, x2[, p]) with equal leading sizes -> [..., rows of x1, rows of
 * x2], and their slopes. The loops are in distances_isa.h.
 *
 * Rejected: a composite of differences and norms, which makes a tensor of all differences first, 3 to 6 times as long; the
 * square of the norms less twice a product, which loses the distances of near rows. */
#include "distances.h"
#include <math.h>
#include "isa.h"
#include "rooms.h"

static const tgx_distance_table *loops(void) {
    static const tgx_distance_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_distance);
    return chosen;
}

/* Rows of x2, filled up to vectors of 64 bytes. */
static int64_t whole(const tgx_tensor *x2) {
    const int64_t lanes = 64 / tgx_itemsize[x2->dtype];
    return (x2->sizes[x2->rank - 2] + lanes - 1) / lanes * lanes;
}

/* Two batches of rows of equal lengths, which are argument `first` and the next. */
static int check(tgx_call *c, int first) {
    const tgx_tensor *x1 = tgx_in(c, first), *x2 = tgx_in(c, first + 1);
    if (x1->dtype != TGX_F32 && x1->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"cdist\" not implemented for '%s': convert the input with .float()",
                        tgx_dtype_title(x1->dtype));
    int same = x1->rank == x2->rank && x1->rank >= 2 && x1->dtype == x2->dtype;
    for (int i = 0; same && i < x1->rank; i++) same = i == x1->rank - 2 || x1->sizes[i] == x2->sizes[i];
    if (!same)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "cdist: x1 and x2 must be batches of matrices with equally long rows, got %s and %s",
                        tgx_shape_text(x1), tgx_shape_text(x2));
    tgx_need_dense(c, first);
    tgx_need_dense(c, first + 1);
    const int64_t n = x2->sizes[x2->rank - 2];
    c->scratch_bytes = n ? x2->count / n * whole(x2) * tgx_itemsize[x2->dtype] : 0;
    return 0;
}

static int euclid_shape(tgx_call *c) {
    const tgx_tensor *x1 = tgx_in(c, 0), *x2 = tgx_in(c, 1);
    if (check(c, 0)) return -1;
    tgx_output *o = tgx_fresh(c, 0, x1->rank, x1->dtype);
    memcpy(o->dims, x1->sizes, (size_t)x1->rank * sizeof *o->dims);
    o->dims[x1->rank - 1] = x2->sizes[x2->rank - 2];
    return 0;
}

/* Rows of x2 along the vectors, a matrix of n rows. */
static __attribute__((noinline)) void turn(char *to, const char *from, int64_t n, const tgx_distance_job *job, int wide) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t k = 0; k < job->depth; k++) {
            if (wide) ((int64_t *)to)[(j / 8 * job->depth + k) * 8 + j % 8] = ((const int64_t *)from)[j * job->depth + k];
            else ((int32_t *)to)[(j / 16 * job->depth + k) * 16 + j % 16] = ((const int32_t *)from)[j * job->depth + k];
        }
}

/* All rows of a batch of matrices, of which t is the second argument. */
static void turn_all(char *to, const tgx_tensor *t, const tgx_distance_job *job) {
    const int64_t size = tgx_itemsize[t->dtype], each = job->columns * job->depth;
    for (int64_t b = 0; each && b < t->count / each; b++)
        turn(to + b * job->depth * job->whole * size, t->data + b * each * size, job->columns, job, size == 8);
}

/* Of x1 and x2, which are argument `first` and the next, in groups of so many rows. */
static int distances(tgx_call *c, int first, const tgx_distance_fn *fn, int group, double p) {
    const tgx_tensor *x1 = tgx_in(c, first), *x2 = tgx_in(c, first + 1), *out = tgx_out(c, 0);
    const int64_t n = x2->sizes[x2->rank - 2];
    tgx_distance_job job = {.out = out->data, .x1 = x1->data, .turned = c->scratch, .rows = x1->sizes[x1->rank - 2], .columns = n,
                            .whole = whole(x2), .depth = x1->sizes[x1->rank - 1], .p = p};
    if (!out->count) return 0;
    memset(c->scratch, 0, (size_t)c->scratch_bytes);
    turn_all(c->scratch, x2, &job);
    for (int a = 0; first == 1 && a < c->nargs; a += 3) {
        const tgx_tensor *t = tgx_in(c, a);
        *(a ? &job.distances : &job.weight) = t->data, job.step[a / 3] = t->flags & TGX_CONTIGUOUS ? 1 : job.rows;
    }
    if (first == 2) {
        job.other = tgx_in(c, 0)->data, job.apart = c->scratch_bytes / 2 / tgx_itemsize[x2->dtype];
        turn_all((char *)c->scratch + c->scratch_bytes / 2, tgx_in(c, 1), &job);
    }
    const int64_t batch = out->count / out->sizes[out->rank - 1] / job.rows, groups = (job.rows + group - 1) / group;
    return tgx_range(c, fn[x1->dtype == TGX_F64], &job, batch * groups, 1 + TGX_SMALL / (group * (n + 1) * (job.depth + 4)));
}
static int euclid_run(tgx_call *c) { return distances(c, 0, loops()->euclid, TGX_DISTANCE_ROWS, 2); }
TGX_KERNEL(_euclid, euclid_shape, euclid_run, 0)

/* Of any norm. */
static int row_distances_shape(tgx_call *c) {
    if (tgx_float(c, 2) > 0) return euclid_shape(c);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "_row_distances: p must be greater than 0, got %g", tgx_float(c, 2));
}
static int row_distances_run(tgx_call *c) {
    double p = tgx_float(c, 2);
    return distances(c, 0, p == 1 ? loops()->city : isinf(p) ? loops()->most : loops()->powers, TGX_DISTANCE_ROWS, p);
}
TGX_KERNEL(row_distances, row_distances_shape, row_distances_run, 0)

static int64_t groups_of(int64_t rows) { return (rows + TGX_DISTANCE_ROWS - 1) / TGX_DISTANCE_ROWS; }
static int64_t pairs_grain(const tgx_tensor *x) {
    return 1 + TGX_SMALL / (TGX_DISTANCE_ROWS * (x->sizes[x->rank - 2] / 2 + 1) * (x->sizes[x->rank - 1] + 4));
}
static int64_t turned_bytes(const tgx_tensor *x) { return x->sizes[x->rank - 1] * whole(x) * tgx_itemsize[x->dtype]; }

/* Of each two rows of one matrix, in the order (0, 1), (0, 2), ..., (1, 2), ...: (x, p). A group meets the rows from its own
 * vector on. */
static int row_pairs_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    const double p = tgx_float(c, 1);
    if ((x->dtype != TGX_F32 && x->dtype != TGX_F64) || x->rank < 2 || !(p > 0))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_row_pairs: x must be matrices of float32 or float64 and p greater than 0, got %s %s "
                        "and %g", tgx_dtype_title(x->dtype), tgx_shape_text(x), p);
    const int64_t n = x->sizes[x->rank - 2];
    tgx_output *o = tgx_fresh(c, 0, x->rank - 1, x->dtype);
    memcpy(o->dims, x->sizes, (size_t)(x->rank - 2) * sizeof *o->dims);
    if (n > INT32_MAX)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_row_pairs: each two of %lld rows are too many: give fewer rows", (long long)n);
    o->dims[x->rank - 2] = n * (n - 1) / 2;
    tgx_need_dense(c, 0);
    c->notes[0] = tgx_rooms_wanted(c, groups_of(n), pairs_grain(x));
    c->scratch_bytes = turned_bytes(x) + c->notes[0] * tgx_rooms_pitch(TGX_DISTANCE_ROWS * whole(x) * tgx_itemsize[x->dtype]);
    return 0;
}

typedef struct {
    const tgx_distance_job *job;
    tgx_distance_fn run;
    char *out;
    int64_t n, size;
    tgx_rooms rooms;
} pairs_t;

/* Groups lo to hi of the rows of one matrix. Before row i lie i (2n - i - 1) / 2 pairs. */
static int pair_groups(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    pairs_t *all = context;
    tgx_distance_job job = *all->job;
    const int64_t n = all->n, size = all->size, lanes = 64 / size;
    void *room = tgx_rooms_enter(&all->rooms);
    job.out = room;
    for (int64_t i = lo * TGX_DISTANCE_ROWS; i < n && i < hi * TGX_DISTANCE_ROWS; i += TGX_DISTANCE_ROWS) {
        const int64_t from = (i + 1) / lanes * lanes;
        char *out = all->out + i * (2 * n - i - 1) / 2 * size;
        job.rows = n - i < TGX_DISTANCE_ROWS ? n - i : TGX_DISTANCE_ROWS, job.columns = n - from;
        job.x1 = (char *)all->job->x1 + i * job.depth * size, job.turned = (char *)all->job->turned + from * job.depth * size;
        all->run(&job, 0, 1);
        for (int64_t r = i; r < i + job.rows; out += (n - ++r) * size)
            memcpy(out, (char *)job.out + ((r - i) * job.columns + r + 1 - from) * size, (size_t)((n - 1 - r) * size));
    }
    tgx_rooms_leave(room);
    return 0;
}

static int row_pairs_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    const int64_t n = x->sizes[x->rank - 2], size = tgx_itemsize[x->dtype], all = tgx_out(c, 0)->count;
    const double p = tgx_float(c, 1);
    const tgx_distance_fn run = (p == 2 ? loops()->euclid : p == 1 ? loops()->city : isinf(p) ? loops()->most : loops()->powers)
        [x->dtype == TGX_F64];
    tgx_distance_job job = {.x1 = x->data, .turned = c->scratch, .whole = whole(x), .depth = x->sizes[x->rank - 1], .p = p};
    pairs_t pairs = {.job = &job, .run = run, .out = tgx_out(c, 0)->data, .n = n, .size = size};
    tgx_rooms_open(&pairs.rooms, (char *)c->scratch + turned_bytes(x), c->notes[0], TGX_DISTANCE_ROWS * job.whole * size);
    memset(c->scratch, 0, (size_t)turned_bytes(x));
    for (char *const end = pairs.out + all * size; pairs.out < end; pairs.out += n * (n - 1) / 2 * size, job.x1 = (char *)job.x1 + n * job.depth * size) {
        turn(c->scratch, job.x1, n, &job, size == 8);
        tgx_range(c, pair_groups, &pairs, groups_of(n), pairs_grain(x));
    }
    return 0;
}
TGX_KERNEL(row_pairs, row_pairs_shape, row_pairs_run, 0)

/* Numbers of such pairs as symmetric matrices with zeros on their diagonals: (pairs, n). */
static int pair_matrix_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const int64_t n = tgx_int(c, 1);
    if ((t->dtype != TGX_F32 && t->dtype != TGX_F64) || !t->rank || n < 0 || n > INT32_MAX
        || t->sizes[t->rank - 1] != n * (n - 1) / 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_pair_matrix: expected a number of float32 or float64 for each two of %lld rows, "
                        "got %s %s", (long long)n, tgx_dtype_title(t->dtype), tgx_shape_text(t));
    tgx_output *o = tgx_fresh(c, 0, t->rank + 1, t->dtype);
    memcpy(o->dims, t->sizes, (size_t)(t->rank - 1) * sizeof *o->dims);
    o->dims[t->rank - 1] = o->dims[t->rank] = n;
    tgx_need_dense(c, 0);
    return tgx_check_sizes(c, o->dims, o->rank, "_pair_matrix");
}

/* Tile by tile, for columns are written too. */
#define MIRROR(NAME, T) \
    static __attribute__((noinline)) void NAME(T *out, const T *x, int64_t n) { \
        enum { TILE = 16 }; \
        for (int64_t first = 0; first < n; first += TILE) \
            for (int64_t at = first; at < n; at += TILE) \
                for (int64_t i = first; i < n && i < first + TILE; i++) { \
                    const T *row = x + i * n - i * (i + 1) / 2 - i - 1; \
                    out[i * n + i] = 0; \
                    for (int64_t j = at > i ? at : i + 1; j < n && j < at + TILE; j++) out[i * n + j] = out[j * n + i] = row[j]; \
                } \
    }
MIRROR(mirror_4, int32_t) MIRROR(mirror_8, int64_t)

static int pair_matrix_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    const int64_t n = tgx_int(c, 1), size = tgx_itemsize[t->dtype];
    for (int64_t b = 0; n && b < out->count / n / n; b++) {
        const char *from = t->data + b * (n * (n - 1) / 2) * size;
        char *to = out->data + b * n * n * size;
        if (size == 8) mirror_8((int64_t *)to, (const int64_t *)from, n);
        else mirror_4((int32_t *)to, (const int32_t *)from, n);
    }
    return 0;
}
TGX_KERNEL(pair_matrix, pair_matrix_shape, pair_matrix_run, 0)

/* Whether its matrices lie transposed, one behind the other. */
static int transposed(const tgx_tensor *t) {
    int64_t step = t->sizes[t->rank - 2] * t->sizes[t->rank - 1];
    for (int i = t->rank - 3; i >= 0; step *= t->sizes[i--])
        if (t->sizes[i] > 1 && t->strides[i] != step) return 0;
    return t->strides[t->rank - 2] == 1 && t->strides[t->rank - 1] == t->sizes[t->rank - 2];
}

/* Slopes of those by the coordinates of x1: (weight, x1, x2, distances, p); or the sum of differences times their weights alone:
 * (weight, x1, x2). The gradient of x2 is that of x1 with transposed weights, which are read as they lie. */
static int row_slopes_shape(tgx_call *c) {
    const tgx_tensor *x1 = tgx_in(c, 1), *x2 = tgx_in(c, 2);
    if (check(c, 1)) return -1;
    for (int a = 0; a < c->nargs; a += 3) {
        const tgx_tensor *t = tgx_in(c, a);
        int same = t->rank == x1->rank && t->dtype == x1->dtype && t->sizes[t->rank - 1] == x2->sizes[x2->rank - 2];
        for (int i = 0; same && i < t->rank - 1; i++) same = t->sizes[i] == x1->sizes[i];
        if (!same)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s must have a %s for each distance of x1 %s and x2 %s, got %s %s",
                            c->nargs > 3 ? "_row_slopes" : "_apart_sums", a ? "distances" : "weight", tgx_dtype_title(x1->dtype),
                            tgx_shape_text(x1), tgx_shape_text(x2), tgx_dtype_title(t->dtype), tgx_shape_text(t));
        if (!transposed(t)) tgx_need_dense(c, a);
    }
    tgx_like(c, 0, x1, x1->dtype);
    return 0;
}
static int row_slopes_run(tgx_call *c) {
    const double p = c->nargs > 3 ? tgx_float(c, 4) : 2;
    return distances(c, 1, c->nargs == 3 ? loops()->back_sums : p == 1 ? loops()->back_city : isinf(p) ? loops()->back_most
                           : loops()->back_powers, TGX_DISTANCE_ROWS, p);
}
TGX_KERNEL(row_slopes, row_slopes_shape, row_slopes_run, 0)

/* Dots of the differences of each two rows with those of others: (y1, y2, x1, x2). */
static int apart_dots_shape(tgx_call *c) {
    const tgx_tensor *x1 = tgx_in(c, 2), *x2 = tgx_in(c, 3);
    if (check(c, 2)) return -1;
    for (int a = 0; a < 2; a++) {
        if (!tgx_same_sizes(tgx_in(c, a), tgx_in(c, a + 2)) || tgx_in(c, a)->dtype != x1->dtype)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "_apart_dots: y%d must be %s of size %s as x%d, got %s of size %s", a + 1,
                            tgx_dtype_title(x1->dtype), tgx_shape_text(tgx_in(c, a + 2)), a + 1, tgx_dtype_title(tgx_in(c, a)->dtype),
                            tgx_shape_text(tgx_in(c, a)));
        tgx_need_dense(c, a);
    }
    tgx_output *o = tgx_fresh(c, 0, x1->rank, x1->dtype);
    memcpy(o->dims, x1->sizes, (size_t)x1->rank * sizeof *o->dims);
    o->dims[x1->rank - 1] = x2->sizes[x2->rank - 2];
    c->scratch_bytes *= 2;
    return 0;
}
static int apart_dots_run(tgx_call *c) { return distances(c, 2, loops()->dots, 1, 2); }
TGX_KERNEL(apart_dots, apart_dots_shape, apart_dots_run, 0)
