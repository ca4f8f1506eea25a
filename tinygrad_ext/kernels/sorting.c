/* Kernels of sort and topk along one dimension. See sort.h.
 *
 * The dimension is brought to the end of a row-major copy, so that rows lie behind each other; each row is sorted on its
 * own, rows in several threads, and the results go back to the order of dimensions of the input. Rejected: rows read and written
 * where they lie, a cache line for each element on both sides, where the copies go by blocks (planes_isa.h). */
#include "part.h"
#include "rooms.h"
#include "sort.h"

enum { SMALL_ROOM = 4096, GRAIN = TGX_SMALL / 8 };

typedef struct {
    tgx_call *c;
    const char *x;
    char *values;
    int64_t *indices;
    int64_t n, k;
    int dtype, width, descending;
    tgx_rooms rooms;
} job_t;

static int sort_rows(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    job_t *job = context;
    _Alignas(16) char small[SMALL_ROOM];
    void *room = job->rooms.n ? tgx_rooms_enter(&job->rooms) : small;
    for (ptrdiff_t i = lo; i < hi; i++)
        tgx_sort_row(job->c, job->dtype, job->x + i * job->n * job->width, job->n, job->k, job->descending,
                     job->values + i * job->k * job->width, job->indices + i * job->k, room);
    if (job->rooms.n) tgx_rooms_leave(room);
    return 0;
}

/* A window whose last dimension is `dim`. */
static tgx_tensor *rows_of(tgx_part *p, const tgx_tensor *t, int dim) {
    tgx_part_of(p, t);
    if (t->rank) tgx_part_swap(p, dim, t->rank - 1);
    return &p->t;
}

static int64_t align(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* Whether rows along a dimension do not lie behind each other, in the operand and so in the results. */
static int lies_otherwise(const tgx_tensor *x, int dim) {
    return x->rank && (dim != x->rank - 1 || !(x->flags & TGX_CONTIGUOUS));
}

/* Whether each row is one element over and over: its order is the one it has. */
static int is_repeated(const tgx_tensor *x, int dim) { return x->rank && x->strides[dim] == 0; }

/* Rows to a unit of work. */
static int64_t grain_of(const tgx_tensor *x, int64_t n) { return x->count <= GRAIN ? x->count / n : 1 + GRAIN / n; }

/* Whether threads share each row, which are long and fewer than those. Of what is decided anew nothing but the time depends. */
static int shares_rows(const tgx_call *c, const tgx_tensor *x, int64_t n) {
    return n >= TGX_SORT_LONG && x->count / n < c->services->num_threads();
}

static int sort_all(tgx_call *c, job_t *job, const tgx_tensor *x) {
    if (!shares_rows(c, x, job->n)) return tgx_range(c, sort_rows, job, x->count / job->n, grain_of(x, job->n));
    job->c = c;
    return sort_rows(job, 0, x->count / job->n);
}

/* What both do once results are said; k elements of each row along argument `dim_arg`. Notes: k, whether it descends, dim,
 * how many rooms. */
static int rows_shape(tgx_call *c, int dim, int64_t k, int descending) {
    const tgx_tensor *x = tgx_in(c, 0);
    int64_t n = x->rank ? x->sizes[dim] : 1, width = tgx_itemsize[x->dtype], size = (int64_t)tgx_sort_room(x->dtype, n);
    c->notes[0] = k, c->notes[1] = descending, c->notes[2] = dim, c->notes[3] = 0;
    if (x->count == 0 || c->meta) return 0;
    if (n >= (int64_t)1 << 32 && width < 8)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "sort: rows of more than 2^32 elements are possible for 64-bit dtypes only, got %lld",
                        (long long)n);
    if (is_repeated(x, dim)) {
        c->scratch_bytes = k * (int64_t)sizeof(int64_t);
        return 0;
    }
    int64_t count = x->count < (int64_t)1 << 55 ? x->count : (int64_t)1 << 55; /* there is no memory for more */
    if (size > SMALL_ROOM) c->notes[3] = tgx_rooms_wanted(c, x->count / n, grain_of(x, n));
    c->scratch_bytes = c->notes[3] * tgx_rooms_pitch(size);
    if (lies_otherwise(x, dim))
        c->scratch_bytes += 2 * align(count * width) + align(count * (int64_t)sizeof(int64_t));
    return 0;
}

/* Rows that lie otherwise: copies of them, and room for results that go to their place afterwards. */
static int rows_elsewhere(tgx_call *c, job_t *job, char *free_room) {
    const tgx_tensor *x = tgx_in(c, 0), *values = tgx_out(c, 0), *indices = tgx_out(c, 1);
    int dim = (int)c->notes[2], code = 0;
    tgx_part rx, rv, ri, dx, dv, di;
    rows_of(&rx, x, dim), rows_of(&rv, values, dim), rows_of(&ri, indices, dim);
    int apart = !tgx_is_dense(&rv.t);
    if (!tgx_is_dense(&rx.t)) {
        tgx_part_dense(&dx, &rx.t, free_room), free_room += align(x->count * job->width);
        if ((code = c->services->copy(&dx.t, &rx.t))) return code;
        job->x = dx.t.data;
    }
    if (apart) { /* room in rows, where the results are laid out otherwise */
        job->values = tgx_part_dense(&dv, &rv.t, free_room)->data, free_room += align(values->count * job->width);
        job->indices = (int64_t *)tgx_part_dense(&di, &ri.t, free_room)->data;
    }
    code = sort_all(c, job, x);
    if (!code && apart) code = c->services->copy(&rv.t, &dv.t);
    if (!code && apart) code = c->services->copy(&ri.t, &di.t);
    return code;
}

/* The first k elements of such rows, and their places. */
static int repeated_run(tgx_call *c) {
    const tgx_tensor *indices = tgx_out(c, 1);
    const int64_t k = c->notes[0];
    int64_t *places = c->scratch;
    tgx_part part, from;
    for (int64_t i = 0; i < k; i++) places[i] = i;
    tgx_part_of(&part, tgx_in(c, 0)), tgx_part_of(&from, indices);
    from.t.data = (char *)places, from.t.flags = 0;
    for (int i = 0; i < from.t.rank; i++) from.t.strides[i] = i == c->notes[2];
    int code = c->services->copy(tgx_out(c, 0), tgx_part_cut(&part, (int)c->notes[2], 0, k));
    return code ? code : c->services->copy(indices, &from.t);
}

static int rows_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *values = tgx_out(c, 0);
    job_t job = {.x = x->data, .values = values->data, .indices = (int64_t *)tgx_out(c, 1)->data,
                 .n = x->rank ? x->sizes[c->notes[2]] : 1, .k = c->notes[0], .descending = (int)c->notes[1], .dtype = x->dtype,
                 .width = tgx_itemsize[x->dtype]};
    if (values->count == 0) return 0;
    if (is_repeated(x, (int)c->notes[2])) return repeated_run(c);
    tgx_rooms_open(&job.rooms, c->scratch, c->notes[3], (int64_t)tgx_sort_room(x->dtype, job.n));
    if (lies_otherwise(x, (int)c->notes[2])) return rows_elsewhere(c, &job, (char *)c->scratch + job.rooms.n * job.rooms.pitch);
    return sort_all(c, &job, x);
}

static int check_dtype(tgx_call *c, const char *title) {
    int dtype = tgx_in(c, 0)->dtype;
    if (!tgx_is_complex(dtype)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s() does not support complex dtypes, which have no order: got %s. Sort by abs() or another "
                    "real number.", title, tgx_dtype_title(dtype));
}

static int any_sort_shape(tgx_call *c, int dim, int descending) {
    const tgx_tensor *x = tgx_in(c, 0);
    if (tgx_wrap_arg(c, dim, x->rank) || check_dtype(c, "sort")) return TGX_FAILED;
    tgx_like_order(c, 0, x, x->dtype);
    tgx_like_order(c, 1, x, TGX_I64);
    return rows_shape(c, (int)tgx_int(c, dim), x->rank ? x->sizes[tgx_int(c, dim)] : 1, (int)tgx_int(c, descending));
}

/* (self, dim, descending) and (self, stable, dim, descending): every sort here is stable. */
static int sort_shape(tgx_call *c) { return any_sort_shape(c, 1, 2); }
static int sort_stable_shape(tgx_call *c) { return any_sort_shape(c, 2, 3); }
TGX_KERNEL(sort, sort_shape, rows_run, TGX_NATURAL)
TGX_KERNEL(sort_stable, sort_stable_shape, rows_run, TGX_NATURAL)

/* (self, k, dim, largest, sorted): always sorted; of equal elements the first ones. */
static int topk_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    int64_t k = tgx_int(c, 1);
    if (tgx_wrap_arg(c, 2, x->rank) || check_dtype(c, "topk")) return TGX_FAILED;
    int dim = (int)tgx_int(c, 2);
    int64_t n = x->rank ? x->sizes[dim] : 1;
    if (k < 0 || k > n)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "selected index k out of range: topk() got k=%lld for dimension %d with size %lld",
                        (long long)k, dim, (long long)n);
    for (int i = 0; i < 2; i++) {
        tgx_output *o = tgx_fresh(c, i, x->rank, i ? TGX_I64 : x->dtype);
        for (int d = 0; d < x->rank; d++) o->dims[d] = d == dim ? k : x->sizes[d];
    }
    return rows_shape(c, dim, x->rank ? k : 1, (int)tgx_int(c, 3)); /* without dimensions the one element, for k=0 too */
}
TGX_KERNEL(topk, topk_shape, rows_run, 0)
