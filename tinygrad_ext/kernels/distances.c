/* Distances of rows, Euclidean ones and those of any norm: (x1, x2[, p]) with equal leading sizes -> [..., rows of x1, rows of
 * x2]. The loops are in distances_isa.h.
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

static int euclid_shape(tgx_call *c) {
    const tgx_tensor *x1 = tgx_in(c, 0), *x2 = tgx_in(c, 1);
    if (x1->dtype != TGX_F32 && x1->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"cdist\" not implemented for '%s': convert the input with .float()", tgx_dtype_title(x1->dtype));
    int same = x1->rank == x2->rank && x1->rank >= 2 && x1->dtype == x2->dtype;
    for (int i = 0; same && i < x1->rank; i++) same = i == x1->rank - 2 || x1->sizes[i] == x2->sizes[i];
    if (!same)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "cdist: x1 and x2 must be batches of matrices with equally long rows, got %s and %s",
                        tgx_shape_text(x1), tgx_shape_text(x2));
    tgx_need_dense(c, 0);
    tgx_need_dense(c, 1);
    tgx_output *o = tgx_fresh(c, 0, x1->rank, x1->dtype);
    memcpy(o->dims, x1->sizes, (size_t)x1->rank * sizeof *o->dims);
    o->dims[x1->rank - 1] = x2->sizes[x2->rank - 2];
    c->scratch_bytes = x2->count * tgx_itemsize[x2->dtype];
    return 0;
}

#define TURN(T) \
    for (int64_t b = 0; b < batch; b++) \
        for (int64_t j = 0; j < n; j++) \
            for (int64_t k = 0; k < depth; k++) \
                ((T *)c->scratch)[(b * depth + k) * n + j] = ((const T *)x2->data)[(b * n + j) * depth + k];

static int distances(tgx_call *c, const tgx_distance_fn *fn, double p) {
    const tgx_tensor *x1 = tgx_in(c, 0), *x2 = tgx_in(c, 1), *out = tgx_out(c, 0);
    const int64_t rows = x1->sizes[x1->rank - 2], n = x2->sizes[x2->rank - 2], depth = x1->sizes[x1->rank - 1];
    if (!out->count) return 0;
    const int64_t batch = out->count / (rows * n), groups = (rows + TGX_DISTANCE_ROWS - 1) / TGX_DISTANCE_ROWS;
    if (x1->dtype == TGX_F32) TURN(float) else TURN(double)
    tgx_distance_job job = {.out = out->data, .x1 = x1->data, .turned = c->scratch, .rows = rows, .columns = n, .depth = depth, .p = p};
    return tgx_range(c, fn[x1->dtype == TGX_F64], &job, batch * groups, 1 + TGX_SMALL / (4 * n * (depth + 4)));
}
static int euclid_run(tgx_call *c) { return distances(c, loops()->euclid, 2); }
TGX_KERNEL(_euclid, euclid_shape, euclid_run, 0)

/* Of any norm. */
static int row_distances_shape(tgx_call *c) {
    if (tgx_float(c, 2) > 0) return euclid_shape(c);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "_row_distances: p must be greater than 0, got %g", tgx_float(c, 2));
}
static int row_distances_run(tgx_call *c) {
    double p = tgx_float(c, 2);
    return distances(c, p == 1 ? loops()->city : isinf(p) ? loops()->most : loops()->powers, p);
}
TGX_KERNEL(row_distances, row_distances_shape, row_distances_run, 0)
