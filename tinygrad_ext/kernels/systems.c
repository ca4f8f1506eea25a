/* LU factors and systems of linear equations. The names of the ops that they serve are an argument, for messages. */
#include "factor.h"
#include "lanes.h"
#include "triangles.h"
#include <math.h>

enum { MANY_SIDES = 32 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int32_t *ints(const tgx_tensor *t) { return (int32_t *)t->data; }
static int64_t rows(const tgx_tensor *t) { return t->sizes[t->rank - 2]; }
static int64_t columns(const tgx_tensor *t) { return t->sizes[t->rank - 1]; }
static double cube(int64_t n) { return (double)n * (double)n * (double)n / 3; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
/* Scratch of a piece: what one matrix needs, or so many elements of a group side by side. */
static int64_t piece_bytes(const tgx_tensor *a, int64_t count, int64_t one, int64_t elements) {
    return tgx_lanes_for(count, rows(a), columns(a), a->dtype) ? larger(one, tgx_lanes_bytes(elements)) : one;
}

/* Look for the library before anything is read: Python may run. */
static int look(tgx_call *c) { return c->meta || c->services->blas() ? 0 : TGX_FAILED; }

/* ---- LU: (A, pivot, check_errors, title) -> LU, pivots, info ----------------------------------------------------- */

typedef struct { char *lu; int32_t *pivots, *info; } factors_t;

/* Matrix i as columns in scratch, then its factors; behind it room for LAPACK's integers. */
static char *factored(tgx_matrices *job, const tgx_tensor *a, int64_t i, char *scratch, int32_t *pivots, int32_t *info, int pivot) {
    int64_t m = rows(a), n = columns(a);
    int size = tgx_itemsize[job->dtype];
    char *room = scratch + tgx_round64(m * n * size);
    tgx_turn(scratch, m, a->data + i * m * n * size, n, m, n, size);
    *info = (int32_t)tgx_lu(job->blas, job->dtype, scratch, m, n, pivots, room, pivot);
    return room;
}
static int64_t factor_bytes(const tgx_tensor *a) {
    return tgx_round64(rows(a) * columns(a) * tgx_itemsize[a->dtype]) + tgx_round64(least(rows(a), columns(a)) * 8);
}

static void lu_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0);
    int64_t m = rows(a), n = columns(a), k = least(m, n);
    factored(job, a, i, scratch, ints(tgx_out(c, 1)) + i * k, ints(tgx_out(c, 2)) + i, (int)tgx_int(c, 1));
    tgx_turn(tgx_out(c, 0)->data + i * m * n * tgx_itemsize[job->dtype], n, scratch, m, n, m, tgx_itemsize[job->dtype]);
}

/* The factors of a group in scratch, pivots behind them. Returns what comes behind these. */
static char *factored_some(tgx_matrices *job, const tgx_tensor *a, int64_t i, int64_t count, char *scratch, int32_t *pivots, int32_t *info) {
    int64_t m = rows(a), n = columns(a), k = least(m, n);
    char *room = scratch + tgx_lanes_bytes(m * n);
    tgx_lanes_take(job->lanes, scratch, a->data, i, count, m * n, job->dtype);
    job->lanes->lu(scratch, m, n, room, pivots, info, count);
    return room + tgx_lanes_bytes(k);
}

static void lu_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0);
    int64_t m = rows(a), n = columns(a);
    factored_some(job, a, i, count, scratch, ints(tgx_out(c, 1)) + i * least(m, n), ints(tgx_out(c, 2)) + i);
    tgx_lanes_give(job->lanes, tgx_out(c, 0)->data, scratch, i, count, m * n, job->dtype);
}

static int lu_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if (look(c) || tgx_matrix_check(c, a, c->args[3].text, "A", 0)) return TGX_FAILED;
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, rows(a), columns(a), a->dtype);
    tgx_batch_result(c, 1, a, least(rows(a), columns(a)), TGX_I32);
    tgx_batch_result(c, 2, a, -1, TGX_I32);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), cube(least(rows(a), columns(a)))),
                       piece_bytes(a, tgx_matrix_count(a), factor_bytes(a), (rows(a) + 1) * columns(a)));
    return 0;
}

static int lu_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *info = tgx_out(c, 2);
    tgx_matrices job = {.c = c, .one = lu_one, .some = lu_some, .count = tgx_matrix_count(a), .dtype = a->dtype};
    job.lanes = tgx_int(c, 1) ? tgx_lanes_for(job.count, rows(a), columns(a), a->dtype) : NULL;
    char room[48];
    int64_t i;
    if (tgx_matrix_run(&job)) return TGX_FAILED;
    if (tgx_int(c, 2) && (i = tgx_first_failed(info)) >= 0)
        return tgx_fail(c, TGX_LINALG_ERROR, "%s: %sU[%d,%d] is zero and using it on lu_solve would result in a division by zero. If you still "
                        "want the factors, call linalg.lu_factor_ex or linalg.lu", c->args[3].text, tgx_batch_words(info, i, room), ints(info)[i],
                        ints(info)[i]);
    return 0;
}
TGX_KERNEL(_lu_factor, lu_shape, lu_run, 0)

/* ---- two batches that broadcast ---------------------------------------------------------------------------------- */

/* The number of the matrix of t that stands at place i of a batch with these sizes. */
static int64_t place(const tgx_tensor *t, const int64_t *sizes, int rank, int64_t i) {
    int64_t at = 0, step = 1;
    for (int d = 1; d <= rank; d++) {
        int64_t size = sizes[rank - d], mine = d <= t->rank - 2 ? t->sizes[t->rank - 2 - d] : 1;
        if (mine > 1) at += i % size * step, step *= mine;
        i /= size;
    }
    return at;
}

/* A square, and B of as many rows; result k has B's matrices in the common batch. */
static int system_shape(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, int k, const char *title) {
    int64_t sizes[TGX_MAX_DIMS];
    if (look(c) || tgx_matrix_check(c, a, title, "A", 1) || tgx_matrix_check(c, b, title, "B", 0)) return TGX_FAILED;
    if (tgx_matrix_same_dtype(c, a, b, title)) return TGX_FAILED;
    int rank = tgx_matrix_batch(c, a, b, sizes, title);
    if (rank < 0) return TGX_FAILED;
    if (rows(a) != rows(b))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: Incompatible shapes of A and B for the equation AX = B (%lldx%lld and %lldx%lld)", title,
                        (long long)rows(a), (long long)rows(a), (long long)rows(b), (long long)columns(b));
    tgx_output *o = tgx_fresh(c, k, rank + 2, a->dtype);
    memcpy(o->dims, sizes, (size_t)rank * sizeof *sizes);
    o->dims[rank] = rows(b), o->dims[rank + 1] = columns(b);
    return 0;
}
/* Room for B by columns, or for a panel of its sides. */
static int64_t side_bytes(const tgx_tensor *b) {
    return tgx_round64(rows(b) * larger(columns(b) * tgx_itemsize[b->dtype], TGX_PANEL_BYTES));
}
static int64_t result_count(const tgx_output *o) {
    int64_t n = 1;
    for (int i = 0; i < o->rank - 2; i++) n *= o->sizes[i];
    return n;
}

/* ---- systems: (A, B, check_errors, title) -> X, LU, pivots, info ------------------------------------------------- */

/* Factors are read by rows, where they lie: as columns they are a lower triangle with a diagonal, and an upper one without, of what
 * is turned. `room` is for side_bytes. */
static void solve_rows(tgx_matrices *job, const char *lu, const int32_t *pivots, char *b, int64_t n, int64_t k, int turned, char *room) {
    const int size = tgx_itemsize[job->dtype], how = turned ? TGX_AS_IT_IS : TGX_TURNED;
    if (!turned) tgx_exchange_rows(b, n, k * size, pivots, 0);
    if (tgx_sides_are_few(job->dtype, n, k))
        for (int half = 0; half < 2; half++)
            tgx_triangle_sides(job->dtype, lu, turned ? 1 : n, turned ? n : 1, b, n, k, !half, turned == half, room);
    else {
        tgx_turn(room, n, b, k, n, k, size);
        for (int half = 0; half < 2; half++) tgx_triangle_solve(job->blas, job->dtype, lu, room, n, k, turned != half, how, turned == half);
        tgx_turn(b, k, room, n, k, n, size);
    }
    if (turned) tgx_exchange_rows(b, n, k * size, pivots, 1);
}

static void solve_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1), *x = tgx_out(c, 0);
    int64_t n = rows(a), k = columns(b), at = place(b, x->sizes, x->rank - 2, i);
    int size = tgx_itemsize[job->dtype];
    int32_t *pivots = ints(tgx_out(c, 2)) + i * n;
    char *room = factored(job, a, i, scratch, pivots, ints(tgx_out(c, 3)) + i, 1), *side = room + tgx_round64(n * 8);
    char *lu = tgx_out(c, 1)->data + i * n * n * size;
    tgx_turn(lu, n, scratch, n, n, n, size);
    if (tgx_sides_are_few(job->dtype, n, k)) {
        memcpy(x->data + i * n * k * size, b->data + at * n * k * size, (size_t)(n * k * size));
        solve_rows(job, lu, pivots, x->data + i * n * k * size, n, k, 0, side);
        return;
    }
    tgx_turn(side, n, b->data + at * n * k * size, k, n, k, size);
    tgx_lu_solve(job->blas, job->dtype, scratch, pivots, room, side, n, k, TGX_AS_IT_IS);
    tgx_turn(x->data + i * n * k * size, k, side, n, k, n, size);
}

/* Those matrices of b that stand at places i to i + count of the result: some may be shared. */
static void take_placed(tgx_matrices *job, const tgx_tensor *b, const tgx_tensor *x, int64_t i, int64_t count, char *to) {
    const char *places[TGX_LANES_BYTES];
    int64_t each = rows(b) * columns(b);
    for (int64_t l = 0; l < count; l++) places[l] = b->data + place(b, x->sizes, x->rank - 2, i + l) * each * tgx_itemsize[job->dtype];
    job->lanes->take(to, places, each, count);
}

static void solve_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1), *x = tgx_out(c, 0);
    int64_t n = rows(a), k = columns(b);
    char *side = factored_some(job, a, i, count, scratch, ints(tgx_out(c, 2)) + i * n, ints(tgx_out(c, 3)) + i);
    tgx_lanes_give(job->lanes, tgx_out(c, 1)->data, scratch, i, count, n * n, job->dtype);
    take_placed(job, b, x, i, count, side);
    job->lanes->solve(scratch, scratch + tgx_lanes_bytes(n * n), side, n, k);
    tgx_lanes_give(job->lanes, x->data, side, i, count, n * k, job->dtype);
}

static int solve_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1);
    const char *title = c->args[3].text;
    if (system_shape(c, a, b, 0, title)) return TGX_FAILED;
    if (tgx_matrix_count(a) != result_count(&c->outputs[0]))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: A %s must have all dimensions of the batch of B %s", title, tgx_shape_text(a), tgx_shape_text(b));
    tgx_need_dense(c, 0), tgx_need_dense(c, 1);
    tgx_matrix_result(c, 1, a, rows(a), rows(a), a->dtype);
    tgx_batch_result(c, 2, a, rows(a), TGX_I32);
    tgx_batch_result(c, 3, a, -1, TGX_I32);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), cube(rows(a))),
                       piece_bytes(a, tgx_matrix_count(a), factor_bytes(a) + side_bytes(b), rows(a) * (rows(a) + 1 + columns(b))));
    return 0;
}

static int refuse_singular(tgx_call *c, const tgx_tensor *info, const char *title) {
    int64_t i = tgx_first_failed(info);
    char room[48];
    if (i < 0) return 0;
    return tgx_fail(c, TGX_LINALG_ERROR, "%s: %sThe solver failed because the input matrix is singular: no single X solves it", title,
                    tgx_batch_words(info, i, room));
}

static int solve_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.c = c, .one = solve_one, .some = solve_some, .count = tgx_matrix_count(a), .dtype = a->dtype};
    job.lanes = tgx_lanes_for(job.count, rows(a), rows(a), a->dtype);
    if (tgx_matrix_run(&job)) return TGX_FAILED;
    return tgx_int(c, 2) ? refuse_singular(c, tgx_out(c, 3), c->args[3].text) : 0;
}
TGX_KERNEL(_solve, solve_shape, solve_run, 0)

/* ---- systems of factors: (A, LU, pivots, B, adjoint) -> X ------------------------------------------------------- */

/* A itself is not read: what is computed depends on it by its factors. */
static void lu_solve_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *lu = tgx_in(c, 1), *b = tgx_in(c, 3), *x = tgx_out(c, 0);
    int64_t n = rows(lu), k = columns(b), of = place(lu, x->sizes, x->rank - 2, i), at = place(b, x->sizes, x->rank - 2, i);
    int size = tgx_itemsize[job->dtype];
    char *room = scratch + tgx_round64(n * n * size), *side = room + tgx_round64(n * 8);
    char *to = x->data + i * n * k * size;
    const char *factors = lu->data + of * n * n * size;
    const int32_t *pivots = ints(tgx_in(c, 2)) + of * n;
    const int adjoint = tgx_int(c, 4) != 0, few = tgx_sides_are_few(job->dtype, n, k);
    if (!few && (tgx_triangle_is_small(n) || (adjoint && tgx_is_complex(job->dtype)))) {
        tgx_turn(scratch, n, factors, n, n, n, size);
        tgx_turn(side, n, b->data + at * n * k * size, k, n, k, size);
        tgx_lu_solve(job->blas, job->dtype, scratch, pivots, room, side, n, k, adjoint ? TGX_ADJOINT : TGX_AS_IT_IS);
        tgx_turn(to, k, side, n, k, n, size);
        return;
    }
    memcpy(to, b->data + at * n * k * size, (size_t)(n * k * size));
    solve_rows(job, factors, pivots, to, n, k, adjoint, side);
}

static int lu_solve_shape(tgx_call *c) {
    const tgx_tensor *lu = tgx_in(c, 1), *pivots = tgx_in(c, 2), *b = tgx_in(c, 3);
    if (system_shape(c, lu, b, 0, "linalg.solve")) return TGX_FAILED;
    if (pivots->dtype != TGX_I32)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_solve_again: pivots should be a Tensor of scalar type torch.int32, got %s; lu_factor gives them",
                        tgx_dtype_title(pivots->dtype));
    int fits = pivots->rank == lu->rank - 1 && pivots->sizes[pivots->rank - 1] == rows(lu);
    for (int i = 0; fits && i < pivots->rank - 1; i++) fits = pivots->sizes[i] == lu->sizes[i];
    if (!fits)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "_solve_again: Number of pivots per batch should be same as the dimension of the matrix: LU is %s, pivots "
                        "%s", tgx_shape_text(lu), tgx_shape_text(pivots));
    tgx_need_dense(c, 1), tgx_need_dense(c, 2), tgx_need_dense(c, 3);
    int64_t count = result_count(&c->outputs[0]);
    tgx_matrix_scratch(c, tgx_matrix_parts(count, (double)rows(lu) * (double)rows(lu) * (double)columns(b)), factor_bytes(lu) + side_bytes(b));
    return 0;
}

static int lu_solve_run(tgx_call *c) {
    const tgx_tensor *x = tgx_out(c, 0);
    tgx_matrices job = {.c = c, .one = lu_solve_one, .count = tgx_matrix_count(x), .dtype = x->dtype};
    return tgx_matrix_run(&job);
}
TGX_KERNEL(_solve_again, lu_solve_shape, lu_solve_run, 0)

/* ---- triangular systems: (A, B, upper, unitriangular, whole, title) -> X -------------------------------------------- */

/* Whether one matrix lies by columns, as LAPACK has it. */
static int by_columns(const tgx_tensor *a) { return a->rank == 2 && a->strides[0] == 1 && a->strides[1] == a->sizes[0] && a->sizes[0] > 1; }

/* A's rows are the columns of A turned, so that op changes its turn. */
static void triangle_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1), *x = tgx_out(c, 0);
    int64_t n = rows(a), k = columns(b), of = place(a, x->sizes, x->rank - 2, i), at = place(b, x->sizes, x->rank - 2, i);
    int size = tgx_itemsize[job->dtype], upper = (int)tgx_int(c, 2), as_is = by_columns(a);
    char *to = x->data + i * n * k * size;
    if (tgx_triangle_is_small(n)) {
        memcpy(to, b->data + at * n * k * size, (size_t)(n * k * size));
        tgx_triangle_solve_rows(job->dtype, a->data + of * n * n * size, to, n, k, as_is != upper, as_is ? TGX_AS_IT_IS : TGX_TURNED,
                                (int)tgx_int(c, 3));
        return;
    }
    if (tgx_sides_are_few(job->dtype, n, k)) {
        memcpy(to, b->data + at * n * k * size, (size_t)(n * k * size));
        tgx_triangle_sides(job->dtype, a->data + of * n * n * size, as_is ? 1 : n, as_is ? n : 1, to, n, k, !upper, (int)tgx_int(c, 3), scratch);
        return;
    }
    tgx_turn(scratch, n, b->data + at * n * k * size, k, n, k, size);
    tgx_triangle_solve(job->blas, job->dtype, a->data + of * n * n * size, scratch, n, k, as_is != upper,
                       as_is ? TGX_AS_IT_IS : TGX_TURNED, (int)tgx_int(c, 3));
    tgx_turn(to, k, scratch, n, k, n, size);
}

static void triangle_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1), *x = tgx_out(c, 0);
    int64_t n = rows(a), k = columns(b);
    char *side = scratch + tgx_lanes_bytes(n * n);
    take_placed(job, a, x, i, count, scratch);
    take_placed(job, b, x, i, count, side);
    job->lanes->triangle(scratch, side, n, k, (int)tgx_int(c, 2), (int)tgx_int(c, 3));
    tgx_lanes_give(job->lanes, x->data, side, i, count, n * k, job->dtype);
}

/* Lanes hold an element of several matrices; of many sides those of one matrix fill them. */
static const tgx_lane_ops *triangle_lanes(int64_t count, const tgx_tensor *a, const tgx_tensor *b) {
    return columns(b) > MANY_SIDES ? NULL : tgx_lanes_for(count, rows(a), rows(a), a->dtype);
}

static int triangle_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1);
    if (system_shape(c, a, b, 0, "linalg.solve_triangular")) return TGX_FAILED;
    double work = (double)rows(a) * (double)rows(a) * (double)columns(b);
    int64_t count = result_count(&c->outputs[0]);
    if (count != 1 || !by_columns(a) || triangle_lanes(count, a, b)) tgx_need_dense(c, 0);
    tgx_need_dense(c, 1);
    tgx_matrix_scratch(c, tgx_matrix_parts(count, work), piece_bytes(a, count, side_bytes(b), rows(a) * (rows(a) + columns(b))));
    return 0;
}

static int triangle_run(tgx_call *c) {
    const tgx_tensor *x = tgx_out(c, 0);
    tgx_matrices job = {.c = c, .one = triangle_one, .some = triangle_some, .count = tgx_matrix_count(x), .dtype = x->dtype};
    job.lanes = triangle_lanes(job.count, tgx_in(c, 0), x);
    return c->args[5].tag != TGX_NONE && tgx_refuse_zeros(c, tgx_in(c, 0), c->args[5].text) ? TGX_FAILED : tgx_matrix_run(&job);
}
TGX_KERNEL(_solve_triangular, triangle_shape, triangle_run, 0)

/* ---- inverses: (A, check_errors, title) -> inverse, info --------------------------------------------------------- */

static void inverse_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0);
    int64_t n = rows(a);
    int size = tgx_itemsize[job->dtype];
    int32_t *pivots = (int32_t *)(scratch + factor_bytes(a)), *info = ints(tgx_out(c, 1)) + i;
    char *room = factored(job, a, i, scratch, pivots, info, 1), *to = tgx_out(c, 0)->data + i * n * n * size;
    if (!*info) tgx_lu_inverse(job->blas, job->dtype, scratch, pivots, room, (char *)pivots + tgx_round64(n * 4), n);
    tgx_turn(to, n, scratch, n, n, n, size);
}

static void inverse_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    const tgx_tensor *a = tgx_in(c, 0);
    int64_t n = rows(a);
    int32_t pivots[TGX_LANES_BYTES * TGX_LANES_ORDER];
    char *side = factored_some(job, a, i, count, scratch, pivots, ints(tgx_out(c, 1)) + i);
    job->lanes->identity(side, n, n);
    job->lanes->solve(scratch, scratch + tgx_lanes_bytes(n * n), side, n, n);
    tgx_lanes_give(job->lanes, tgx_out(c, 0)->data, side, i, count, n * n, job->dtype);
}

static int inverse_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if (look(c) || tgx_matrix_check(c, a, c->args[2].text, "A", 1)) return TGX_FAILED;
    int64_t n = rows(a);
    tgx_need_dense(c, 0);
    tgx_matrix_result(c, 0, a, n, n, a->dtype);
    tgx_batch_result(c, 1, a, -1, TGX_I32);
    int64_t work = n * (c->meta || c->services->blas()->routine(TGX_GETRI, a->dtype) ? 64 : n > 64 ? n : 64) * tgx_itemsize[a->dtype];
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 3 * cube(n)),
                       piece_bytes(a, tgx_matrix_count(a), factor_bytes(a) + tgx_round64(n * 4) + work, n * (2 * n + 1)));
    return 0;
}

static int inverse_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *info = tgx_out(c, 1);
    tgx_matrices job = {.c = c, .one = inverse_one, .some = inverse_some, .count = tgx_matrix_count(a), .dtype = a->dtype};
    job.lanes = tgx_lanes_for(job.count, rows(a), rows(a), a->dtype);
    char room[48];
    int64_t i;
    if (tgx_matrix_run(&job)) return TGX_FAILED;
    if (tgx_int(c, 1) && (i = tgx_first_failed(info)) >= 0)
        return tgx_fail_zero(c, c->args[2].text, tgx_batch_words(info, i, room), ints(info)[i]);
    return 0;
}
TGX_KERNEL(_inverse, inverse_shape, inverse_run, 0)
