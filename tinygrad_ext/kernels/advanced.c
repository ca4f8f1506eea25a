/* Offsets of index numbers, checked against the bounds once, and the plan that moves blocks. See advanced.h.
 *
 * All indices become offsets before anything is written, so a bad one leaves the table as it was, and several index tensors add up
 * to one offset a point. Rejected: looking at each index as its block is written; it saves a pass over the indices, and an error
 * in the last one would come when all others were written. What is read goes to the result alone. */
#include "advanced.h"
#include "gather.h"
#include "isa.h"
#include "once.h"
#include <stdatomic.h>
#include <stdio.h>

extern const tgx_picks_table tgx_picks_loops_base, tgx_picks_loops_avx2, tgx_picks_loops_avx512;

enum { SMALL_BLOCK = 64 }; /* elements of a point, above which its offset is a small part of the work */

static const tgx_picks_table *best(void) {
    static const tgx_picks_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_picks_loops);
    return chosen;
}

/* ---- where the points lie ---------------------------------------------------------------------------------------- */

static int refuse(tgx_call *c, int outside, int64_t index, int dim, int64_t size, const char *title) {
    char text[128];
    snprintf(text, sizeof text, "index %lld is out of bounds for dimension %d with size %lld", (long long)index, dim, (long long)size);
    switch (outside) {
        case TGX_OUT_RUNTIME: return tgx_fail(c, TGX_RUNTIME_ERROR, "%s (%s)", text, title);
        case TGX_OUT_SELECT:
            return tgx_fail(c, TGX_INDEX_ERROR, "index out of range in self: %s(): %s; the index must lie between 0 and %lld", title,
                            text, (long long)size - 1);
        case TGX_OUT_COPY: return tgx_fail(c, TGX_INDEX_ERROR, "%s(): %s", title, text);
        case TGX_OUT_TAKE:
            return tgx_fail(c, TGX_INDEX_ERROR, "out of range: tried to access index %lld on a tensor of %lld elements.",
                            (long long)index, (long long)size);
        default: return tgx_fail(c, TGX_INDEX_ERROR, "%s", text);
    }
}

/* Offsets in several threads; bad: the first point outside the bounds, whose index then stands in its offset's place. */
typedef struct {
    tgx_picks *p;
    const int64_t *index;
    int64_t *offset, size;
    ptrdiff_t stride;
    int flags;
    _Atomic int64_t bad;
} aim_t;

static int note_bad(aim_t *a, int64_t at) {
    int64_t first = a->bad;
    while (at < first && !atomic_compare_exchange_weak(&a->bad, &first, at)) {}
    return 1;
}

static int aim_part(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    aim_t *a = context;
    const int64_t bad = best()->offsets(a->offset + lo, a->index + lo, hi - lo, a->size, a->stride, a->flags);
    return bad < 0 ? 0 : note_bad(a, lo + bad);
}

static aim_t aim_of(tgx_picks *p, int64_t *offset, const tgx_tensor *table, int dim, const int64_t *index, int flags) {
    return (aim_t){.p = p, .index = index, .offset = offset, .size = table->sizes[dim], .flags = flags,
                   .stride = table->strides[dim] * tgx_itemsize[table->dtype], .bad = INT64_MAX};
}

int tgx_picks_aim(tgx_call *c, tgx_picks *p, int64_t *offset, const tgx_tensor *table, int dim, const int64_t *index, int flags,
                  int outside, const char *title) {
    aim_t a = aim_of(p, offset, table, dim, index, flags);
    p->offset = offset;
    return tgx_range(c, aim_part, &a, p->points, TGX_SMALL) ? refuse(c, outside, offset[a.bad], dim, a.size, title) : 0;
}

void tgx_picks_lay(tgx_picks *p, const tgx_tensor *table, const int *dims, int n) {
    int adjacent = dims[n - 1] - dims[0] == n - 1, k = 0;
    p->table = table->data, p->width = tgx_itemsize[table->dtype], p->dtype = table->dtype;
    p->nouter = p->ninner = 0;
    p->plain = (table->flags & TGX_CONTIGUOUS) != 0;
    for (int i = 0; i < table->rank; i++) {
        if (k < n && dims[k] == i) {
            k++;
        } else if (adjacent && i < dims[0]) {
            p->outer[p->nouter] = table->sizes[i], p->outer_table[p->nouter++] = table->strides[i] * p->width;
        } else {
            p->inner[p->ninner] = table->sizes[i], p->inner_table[p->ninner++] = table->strides[i] * p->width;
        }
    }
}

int tgx_picks_along(tgx_call *c, tgx_picks *p, int64_t *few, const tgx_tensor *table, int dim, const tgx_tensor *index, int flags,
                    int outside, const char *title) {
    p->points = index->count;
    tgx_picks_lay(p, table, &dim, 1);
    return tgx_picks_aim(c, p, index->count <= TGX_FEW ? few : c->scratch, table, dim, (const int64_t *)index->data,
                         TGX_FIRST | flags, outside, title);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* Merge inner dimensions that lie behind each other on both sides. */
static void merge(tgx_picks *p) {
    int n = 0;
    for (int d = 0; d < p->ninner; d++) {
        if (p->inner[d] == 1) continue;
        if (n > 0 && p->inner_table[n - 1] == p->inner_table[d] * p->inner[d]
            && p->inner_dense[n - 1] == p->inner_dense[d] * p->inner[d]) {
            p->inner[n - 1] *= p->inner[d];
            p->inner_table[n - 1] = p->inner_table[d];
            p->inner_dense[n - 1] = p->inner_dense[d];
            continue;
        }
        p->inner[n] = p->inner[d];
        p->inner_table[n] = p->inner_table[d];
        p->inner_dense[n] = p->inner_dense[d];
        n++;
    }
    p->ninner = n;
}

/* Strides of the dense side: those of contiguous memory, or none for one repeated element. Returns outer x points. */
static int64_t lay_dense(tgx_picks *p, char *dense, int64_t count) {
    ptrdiff_t at = count == 1 ? 0 : p->width;
    int64_t units = p->points;
    p->dense = dense;
    for (int i = p->ninner - 1; i >= 0; i--) p->inner_dense[i] = at, at *= p->inner[i];
    p->point_dense = at;
    at *= p->points;
    for (int i = p->nouter - 1; i >= 0; i--) p->outer_dense[i] = at, at *= p->outer[i], units *= p->outer[i];
    if (p->ninner) merge(p);
    return units;
}

static int read_part(void *p, ptrdiff_t lo, ptrdiff_t hi) {
    best()->run(p, TGX_READ, lo, hi);
    return 0;
}

int tgx_picks_read(tgx_call *c, tgx_picks *p, tgx_tensor *out) {
    int64_t units;
    if (out->count == 0) return 0;
    units = lay_dense(p, out->data, out->count);
    if (out->count <= TGX_SMALL) return read_part(p, 0, units);
    return tgx_range(c, read_part, p, units, 1 + TGX_SMALL * units / out->count);
}

/* Points lo to hi of a plan without outer dimensions, a run at a time: their offsets, then what lies there. */
static int read_runs(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    aim_t *a = context;
    int64_t offset[TGX_RUN];
    tgx_picks run = *a->p;
    for (run.offset = offset; lo < hi; lo += run.points) {
        run.points = hi - lo < TGX_RUN ? hi - lo : TGX_RUN;
        run.dense = a->p->dense + lo * run.point_dense;
        const int64_t bad = best()->offsets(offset, a->index + lo, run.points, a->size, a->stride, a->flags);
        if (bad >= 0) {
            a->offset[lo + bad] = offset[bad];
            return note_bad(a, lo + bad);
        }
        best()->run(&run, TGX_READ, 0, run.points);
    }
    return 0;
}

/* Single elements that lie behind each other. */
static int read_plain(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const aim_t *a = context;
    const int width = a->p->width;
    char *data[] = {a->p->dense + lo * width, a->p->table, (char *)(a->index + lo)};
    const ptrdiff_t steps[] = {width, 0, sizeof *a->index};
    const tgx_scalar aux[] = {{.i = a->size}, {.i = width}};
    return tgx_gather_loops_here()->gather[__builtin_ctz((unsigned)width)](data, steps, hi - lo, aux);
}

int tgx_picks_read_along(tgx_call *c, const tgx_tensor *table, int dim, const tgx_tensor *index, int flags, int outside,
                         const char *title, tgx_tensor *out) {
    int64_t few[TGX_FEW];
    tgx_picks p;
    p.points = index->count;
    tgx_picks_lay(&p, table, &dim, 1);
    aim_t a = aim_of(&p, p.points <= TGX_FEW ? few : c->scratch, table, dim, (const int64_t *)index->data, TGX_FIRST | flags);
    if (p.nouter || p.points <= TGX_RUN || out->count > SMALL_BLOCK * p.points) {
        int code = tgx_picks_aim(c, &p, a.offset, table, dim, a.index, a.flags, outside, title);
        return code ? code : tgx_picks_read(c, &p, out);
    }
    lay_dense(&p, out->data, out->count);
    /* without offsets, unless indices are negative */
    if (!p.ninner && a.stride == p.width && !tgx_range(c, read_plain, &a, p.points, TGX_SMALL)) return 0;
    const int64_t grain = 1 + TGX_SMALL * p.points / (out->count + 1);
    return tgx_range(c, read_runs, &a, p.points, grain) ? refuse(c, outside, a.offset[a.bad], dim, a.size, title) : 0;
}

/* What the threads that write share: outer positions, or steps of one inner dimension. */
typedef struct { const tgx_picks *p; int move, dim; } write_t;
enum { INNER_STEP = 16 };        /* elements: no two threads write to one cache line of a block */

static int write_outer(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const write_t *w = context;
    best()->run(w->p, w->move, lo * w->p->points, hi * w->p->points);
    return 0;
}

static int write_inner(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const write_t *w = context;
    tgx_picks part = *w->p;
    const int64_t from = lo * INNER_STEP, to = hi * INNER_STEP < part.inner[w->dim] ? hi * INNER_STEP : part.inner[w->dim];
    part.table += from * part.inner_table[w->dim], part.dense += from * part.inner_dense[w->dim];
    part.inner[w->dim] = to - from;
    best()->run(&part, w->move, 0, part.points);
    return 0;
}

void tgx_picks_write(tgx_call *c, tgx_picks *p, const void *values, int64_t count, int move) {
    if (!count) return;
    const int64_t units = lay_dense(p, (char *)values, count);
    int64_t all = units;
    write_t w = {p, move, 0};
    for (int d = 0; d < p->ninner; d++) {
        all *= p->inner[d];
        if (p->inner[d] > p->inner[w.dim]) w.dim = d;
    }
    if (!p->plain || all <= TGX_SMALL) best()->run(p, move, 0, units);
    else if (units > p->points) tgx_range(c, write_outer, &w, units / p->points, 1 + TGX_SMALL / (all * p->points / units));
    else if (!p->ninner) best()->run(p, move, 0, units);
    else tgx_range_once(c, write_inner, &w, (p->inner[w.dim] + INNER_STEP - 1) / INNER_STEP,
                   1 + TGX_SMALL / (all / p->inner[w.dim] * INNER_STEP));
}
