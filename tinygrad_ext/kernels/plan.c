/* See plan.h. Instructions one after the other; a group of pointwise loops tile by tile, over threads where it is large. */
#include "plan.h"
#include <time.h>

/* ---- groups of pointwise loops ------------------------------------------------------------------------------------ */

/* One row of a strided operand; the common strides apart, because the compiler makes good code of them only then. */
static void bring_row(char *to, const char *from, ptrdiff_t stride, int size, int64_t n) {
#define ROW(T) \
    for (int64_t i = 0; i < n; i++, from += stride) ((T *)to)[i] = *(const T *)from; \
    break
    if (stride == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    switch (size) {
        case 1: ROW(uint8_t);
        case 2: ROW(uint16_t);
        case 4: ROW(uint32_t);
        case 8: ROW(uint64_t);
        default: ROW(tgx_c128);
    }
#undef ROW
}

/* Elements [lo, lo + n) of an operand, in the order of the group, next to each other. */
static void bring_rows(char *to, const tgx_operand *o, int64_t lo, int64_t n) {
    int64_t index[TGX_MAX_DIMS];
    int last = o->rank - 1;
    const char *from = o->from;
    for (int d = last; d >= 0; d--) {
        index[d] = lo ? lo % o->sizes[d] : 0;
        if (!lo) continue;
        lo /= o->sizes[d];
        from += index[d] * o->strides[d];
    }
    while (n) {
        int64_t row = o->sizes[last] - index[last];
        if (row > n) row = n;
        bring_row(to, from, o->strides[last], o->size, row);
        to += row * o->size, n -= row;
        from -= index[last] * o->strides[last], index[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            from += o->strides[d];
            if (++index[d] < o->sizes[d]) break;
            from -= o->strides[d] * o->sizes[d];
            index[d] = 0;
        }
    }
}

typedef struct { const tgx_tile *tile; } job_t;

/* Tiles that begin in [lo, hi), counted in elements. */
static int run_tiles(const job_t *job, int64_t lo, int64_t hi) {
    _Alignas(64) char scratch[TGX_TILE_SCRATCH];
    char *at[TGX_GROUP_OPERANDS];
    const tgx_tile *g = job->tile;
    for (; lo < hi; lo += g->tile) {
        int64_t n = g->count - lo < g->tile ? g->count - lo : g->tile;
        for (int i = 0; i < g->noperands; i++) {
            const tgx_operand *o = &g->operands[i];
            if (o->scratch < 0) {
                at[i] = g->at[i] + lo * o->step;
                continue;
            }
            at[i] = scratch + o->scratch;
            if (o->rank) bring_rows(at[i], o, lo, n);
        }
        for (const tgx_tile_op *op = g->ops, *end = op + g->nops; op < end; op++) {
            char *data[TGX_MAX_OPERANDS];
            if (op->code) {
                op->code(at, n);
                continue;
            }
            data[0] = at[op->operand[0]], data[1] = at[op->operand[1]], data[2] = at[op->operand[2]];
            for (int k = 3; k < op->n; k++) data[k] = at[op->operand[k]];
            int code = op->loop(data, op->strides, n, op->aux);
            if (code) return code;
        }
    }
    return 0;
}

/* Tried and left out: whole vectors in the place of a few elements, which wait for what was stored in parts just before. */
int tgx_small_run(const tgx_tile *g) {
    char *const *at = g->at;
    for (int i = 0; i < g->nbrought; i++) {
        const tgx_operand *o = &g->operands[g->brought[i]];
        if (o->spread) o->spread((uint32_t *)at[g->brought[i]], o);
        else bring_rows(at[g->brought[i]], o, 0, g->count);
    }
    for (const tgx_tile_op *op = g->ops, *end = op + g->nops; op < end; op++) {
        char *data[TGX_MAX_OPERANDS];
        if (op->code) {
            op->code(at, g->tile);
            continue;
        }
        data[0] = at[op->operand[0]], data[1] = at[op->operand[1]], data[2] = at[op->operand[2]];
        for (int k = 3; k < op->n; k++) data[k] = at[op->operand[k]];
        int code = op->loop(data, op->strides, g->tile, op->aux);
        if (code) return code;
    }
    return 0;
}

static int run_some(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *job = context;
    return run_tiles(job, lo * job->tile->tile, hi * job->tile->tile < job->tile->count ? hi * job->tile->tile : job->tile->count);
}

static int run_group(const tgx_plan *plan, const tgx_tile *g) {
    job_t job = {g};
    if (g->count <= TGX_SMALL) return run_tiles(&job, 0, g->count);
    return plan->services->parallel_for(run_some, &job, (g->count + g->tile - 1) / g->tile, 1 + TGX_SMALL / g->tile);
}

/* ---- plans -------------------------------------------------------------------------------------------------------- */

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int run_one(tgx_plan *plan, tgx_instruction *i) {
    switch (i->code) {
        case TGX_PLAN_TILE: return run_group(plan, i->tile);
        case TGX_PLAN_SMALL: return tgx_small_run(i->tile);
        case TGX_PLAN_RAW: return i->raw.kernel->run(i->raw.call);
        case TGX_PLAN_COPY: return plan->services->copy(i->copy.to, i->copy.from);
        case TGX_PLAN_ZERO: memset(i->copy.to->data, 0, (size_t)(i->copy.to->count * tgx_itemsize[i->copy.to->dtype])); return 0;
        default: memcpy(i->move.to, i->move.from, i->move.bytes); return 0;
    }
}

static int run_profiled(tgx_plan *plan, tgx_instruction *i) {
    int64_t begin = now(), end;
    int code = run_one(plan, i);
    end = now();
    i->nanoseconds += end - begin;
    if (plan->seen) plan->seen(plan->watcher, (int32_t)(i - plan->instructions), begin, end);
    return code;
}

int tgx_plan_look(tgx_plan *plan) {
    plan->since = 0;
    return plan->interrupted && plan->interrupted() ? TGX_INTERRUPTED : 0;
}

int tgx_instruction_run(tgx_plan *plan, int32_t which) {
    tgx_instruction *i = &plan->instructions[which];
    int code = plan->profiled ? run_profiled(plan, i) : run_one(plan, i);
    plan->since += i->work;
    if (__builtin_expect(!code && plan->since > TGX_LOOK, 0)) code = tgx_plan_look(plan);
    if (code) plan->at = which;
    return code;
}

int tgx_plan_run(tgx_plan *plan) {
    plan->since = 0, plan->at = -1;
    for (int32_t k = 0; k < plan->npatches; k++) {
        const tgx_patch *p = &plan->patches[k];
        *p->where = plan->bases[p->base] + p->offset;
    }
    if (plan->program) return tgx_program_run(plan);
    for (int32_t k = 0; k < plan->ninstructions; k++) {
        int code = tgx_instruction_run(plan, k);
        if (code) return code;
    }
    return 0;
}
