/* Distances of rows, Euclidean ones and those of any norm: (x1, x2[, p]) with equal leading sizes -> [..., rows of x1, rows of
 * x2], and their slopes. The loops are in distances_isa.h.
 *
 * Rejected: a composite of differences and norms, which makes a tensor of all differences first, 3 to 6 times as long; the
 * square of the norms less twice a product, which loses the distances of near rows. */
#include "distances.h"
#include <math.h>
#include "isa.h"

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

#define TURN(T) \
    for (int64_t b = 0; b < batch; b++) \
        for (int64_t j = 0; j < n; j++) \
            for (int64_t k = 0; k < job.depth; k++) \
                ((T *)c->scratch)[(b * job.depth + k) * job.whole + j] = ((const T *)x2->data)[(b * n + j) * job.depth + k];

/* Of x1 and x2, which are argument `first` and the next, in groups of so many rows. */
static int distances(tgx_call *c, int first, const tgx_distance_fn *fn, int group, double p) {
    const tgx_tensor *x1 = tgx_in(c, first), *x2 = tgx_in(c, first + 1), *out = tgx_out(c, 0);
    const int64_t n = x2->sizes[x2->rank - 2];
    tgx_distance_job job = {.out = out->data, .x1 = x1->data, .turned = c->scratch, .rows = x1->sizes[x1->rank - 2], .columns = n,
                            .whole = whole(x2), .depth = x1->sizes[x1->rank - 1], .p = p};
    if (first) job.weight = tgx_in(c, 0)->data, job.distances = tgx_in(c, 3)->data;
    if (!out->count) return 0;
    const int64_t batch = out->count / out->sizes[out->rank - 1] / job.rows, groups = (job.rows + group - 1) / group;
    memset(c->scratch, 0, (size_t)c->scratch_bytes);
    if (x1->dtype == TGX_F32) TURN(float) else TURN(double)
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

/* Slopes of those by the coordinates of x1: (weight, x1, x2, distances, p). */
static int row_slopes_shape(tgx_call *c) {
    const tgx_tensor *x1 = tgx_in(c, 1), *x2 = tgx_in(c, 2);
    if (check(c, 1)) return -1;
    for (int a = 0; a < 4; a += 3) {
        const tgx_tensor *t = tgx_in(c, a);
        int same = t->rank == x1->rank && t->dtype == x1->dtype && t->sizes[t->rank - 1] == x2->sizes[x2->rank - 2];
        for (int i = 0; same && i < t->rank - 1; i++) same = t->sizes[i] == x1->sizes[i];
        if (!same)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "_row_slopes: %s must have a %s for each distance of x1 %s and x2 %s, got %s %s",
                            a ? "distances" : "weight", tgx_dtype_title(x1->dtype), tgx_shape_text(x1), tgx_shape_text(x2),
                            tgx_dtype_title(t->dtype), tgx_shape_text(t));
        tgx_need_dense(c, a);
    }
    tgx_like(c, 0, x1, x1->dtype);
    return 0;
}
static int row_slopes_run(tgx_call *c) {
    double p = tgx_float(c, 4);
    return distances(c, 1, p == 1 ? loops()->back_city : isinf(p) ? loops()->back_most : loops()->back_powers, 1, p);
}
TGX_KERNEL(row_slopes, row_slopes_shape, row_slopes_run, 0)
