/* Runs kernels for programs without Python: arguments, shape, conversions, memory, run. See alone.h.
 *
 * The steps of core/call/kernel_call.pyx once more. Rejected: one caller for both, since between the steps stands what only one of
 * them has: Python's objects and warnings, the interpreter's lock, aliases against foreign code. */
#include "alone.h"
#include <stdlib.h>
#include <unistd.h>
#include "blas_library.h"
#include "halves.h"
#include "kernel_table.h"
#include "parallel.h"
#include "walk.h"

static int copy_alone(const tgx_tensor *to, const tgx_tensor *from);
static int64_t offset_alone(const tgx_tensor *t, int64_t *bytes);
static int processors(void) { return (int)sysconf(_SC_NPROCESSORS_CONF); }
static const tgx_blas *own_blas(void);
static int single(void) { return TGX_F32; }
static const tgx_services services = {tgx_parallel_for, tgx_get_num_threads, processors, tgx_mark_region, copy_alone, offset_alone, own_blas,
                                       single};

static const tgx_blas *own_blas(void) {
    if (!tgx_blas_in_use()) tgx_blas_use(NULL);
    return tgx_blas_in_use();
}

static int copy_alone(const tgx_tensor *to, const tgx_tensor *from) { return tgx_copy(&services, to, from); }

const tgx_kernel *tgx_kernel_named(const char *name) {
    for (int i = 0; tgx_kernels[i]; i++)
        if (!strcmp(tgx_kernels[i]->name, name)) return tgx_kernels[i];
    return NULL;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static void set_geometry(tgx_owned *t, const int64_t *sizes, const int64_t *strides, int rank, int dtype) {
    tgx_tensor *v = &t->tensor;
    int64_t n = 1;
    v->sizes = t->dims, v->strides = t->dims + TGX_MAX_DIMS, v->rank = rank, v->dtype = (int8_t)dtype, v->device = 0;
    v->flags = TGX_CONTIGUOUS, v->data = NULL, t->memory = NULL;
    for (int i = rank - 1; i >= 0; i--) {
        v->sizes[i] = sizes[i], v->strides[i] = strides ? strides[i] : n;
        if (sizes[i] != 1 && v->strides[i] != n) v->flags = 0;
        n *= sizes[i];
    }
    v->count = n;
    if (n == 0) v->flags = TGX_CONTIGUOUS;
}

/* Bytes up to the end of the last element. */
static size_t reach(const tgx_tensor *t) {
    int64_t last = 0;
    if (t->count == 0) return 0;
    for (int i = 0; i < t->rank; i++) last += (t->sizes[i] - 1) * t->strides[i];
    return (size_t)(last + 1) * (size_t)tgx_itemsize[t->dtype];
}

/* Every tensor stands at the start of its memory. */
static int64_t offset_alone(const tgx_tensor *t, int64_t *bytes) {
    *bytes = (int64_t)reach(t);
    return 0;
}

static int find_memory(tgx_owned *t) {
    size_t bytes = (reach(&t->tensor) + 127) & ~(size_t)63;
    t->memory = aligned_alloc(64, bytes);
    t->tensor.data = t->memory;
    return t->memory ? 0 : TGX_NO_MEMORY;
}

void tgx_make(tgx_owned *t, const int64_t *sizes, int rank, int dtype) {
    set_geometry(t, sizes, NULL, rank, dtype);
    if (!find_memory(t)) memset(t->memory, 0, reach(&t->tensor));
}

void tgx_release(tgx_owned *t) {
    free(t->memory);
    t->memory = NULL;
}

/* A contiguous copy of a tensor in a dtype. */
static int converted(tgx_owned *to, const tgx_tensor *from, int dtype) {
    set_geometry(to, from->sizes, NULL, from->rank, dtype);
    return find_memory(to) ? TGX_NO_MEMORY : copy_alone(&to->tensor, from);
}

/* ---- one call ---------------------------------------------------------------------------------------------------- */

/* Room for results, and behind them for their sizes and strides. */
static int outputs(tgx_call *c, int n, int rank) {
    size_t each = sizeof *c->outputs + 2 * (size_t)rank * sizeof(int64_t);
    c->outputs = malloc((size_t)n * each + 1);
    c->capacity = c->outputs ? n : 0;
    for (int i = 0; i < c->capacity; i++) c->outputs[i].dims = (int64_t *)(c->outputs + n) + 2 * (size_t)i * (size_t)rank;
    return c->outputs ? 0 : TGX_NO_MEMORY;
}

static int ask_shape(const tgx_kernel *kernel, tgx_call *c, int noutputs) {
    int code;
    c->needs = c->changes = 0, c->work = 0, c->scratch_bytes = 0, c->warned = 1, c->warning = 0, c->meta = 0, c->noutputs = noutputs;
    while ((code = tgx_ask(kernel, c)) == TGX_MORE) {
        free(c->outputs);
        if (outputs(c, c->noutputs, c->room)) return TGX_NO_MEMORY;
    }
    return code;
}

/* Memory for one result, or the window that it is. */
static int place(tgx_call *c, tgx_output *o, tgx_owned *result) {
    const tgx_tensor *of = o->origin == TGX_FRESH || o->origin == TGX_OVER || o->origin == TGX_ABSENT ? NULL : c->args[o->of].tensor;
    int code = 0;
    if (o->origin == TGX_WRITES) code = converted(result, of, o->via < 0 ? of->dtype : o->via);
    else if (of) {
        set_geometry(result, o->sizes, o->origin == TGX_SAME ? of->strides : o->strides, o->rank, o->dtype);
        result->tensor.data = of->data + (o->origin == TGX_VIEW ? o->offset * tgx_itemsize[of->dtype] : 0);
    } else {
        set_geometry(result, o->sizes, o->strides, o->rank, o->via < 0 ? o->dtype : o->via);
        if (o->origin == TGX_FRESH || o->origin == TGX_OVER) code = find_memory(result);
    }
    o->tensor = &result->tensor;
    return code;
}

/* How many tensors lists among the arguments have. */
static size_t listed(const tgx_call *c) {
    size_t n = 0;
    for (int i = 0; i < c->nargs; i++) n += c->args[i].tag == TGX_TENSORS ? (size_t)c->args[i].n : 0;
    return n;
}

/* Operands as the kernel wants them; their memory is kept in `kept`, behind that of single tensors that of lists. */
static int convert(tgx_call *c, tgx_owned *kept) {
    tgx_owned *next = kept + c->nargs;
    for (int i = 0; i < c->nargs; i++) {
        tgx_value *v = &c->args[i];
        if (!(c->needs >> i & 1)) continue;
        for (int k = 0; v->tag == TGX_TENSORS && k < v->n; k++) {
            if (!v->tensors[k] || !tgx_is_half(v->tensors[k]->dtype)) continue;
            if (converted(next, v->tensors[k], v->want)) return TGX_NO_MEMORY;
            v->tensors[k] = &next++->tensor;
        }
        if (v->tag == TGX_TENSORS) continue;
        if (converted(&kept[i], c->args[i].tensor, c->args[i].want)) return TGX_NO_MEMORY;
        c->args[i].tensor = &kept[i].tensor;
    }
    return 0;
}

/* A result in the dtype that was said, where run wrote another. */
static int finish(tgx_output *o, tgx_owned *result) {
    tgx_owned other;
    if ((o->origin != TGX_FRESH && o->origin != TGX_WRITES) || o->via < 0 || o->via == o->dtype) return 0;
    if (converted(&other, &result->tensor, o->dtype)) return TGX_NO_MEMORY;
    tgx_release(result);
    set_geometry(result, o->sizes, NULL, o->rank, o->dtype);
    result->memory = other.memory, result->tensor.data = other.memory;
    return 0;
}

static int run(const tgx_kernel *kernel, tgx_call *c, tgx_owned *results, tgx_owned *kept, tgx_tensor *const *given) {
    int code = 0, idle = kernel->run == NULL || c->outputs[0].origin == TGX_SAME || c->outputs[0].origin == TGX_VIEW;
    for (int k = 0; k < c->noutputs && !code; k++) code = place(c, &c->outputs[k], &results[k]);
    if (!code) code = convert(c, kept);
    if (!code && c->scratch_bytes) {
        c->scratch = aligned_alloc(64, ((size_t)c->scratch_bytes + 63) & ~(size_t)63);
        if (!c->scratch) code = TGX_NO_MEMORY;
    }
    if (!code && !idle) code = kernel->run(c);
    for (int i = 0; i < c->nargs && !code; i++) /* what run changed in a wide copy */
        if (c->changes & c->needs & (uint64_t)1 << i) code = copy_alone(given[i], c->args[i].tensor);
    for (int k = 0; k < c->noutputs && !code; k++) code = finish(&c->outputs[k], &results[k]);
    return code;
}

int tgx_call_alone(const tgx_kernel *kernel, tgx_call *c, tgx_owned *results, int capacity) {
    size_t at = (size_t)c->nargs, n = at + listed(c) + 1;
    tgx_owned *kept = calloc(n, sizeof *kept);
    tgx_tensor **given = malloc(n * sizeof *given); /* the tensors of the arguments, then those of their lists */
    int code = kept && given ? 0 : TGX_NO_MEMORY, noutputs = c->noutputs;
    for (int i = 0; given && i < c->nargs; i++) {
        given[i] = c->args[i].tag == TGX_TENSOR ? c->args[i].tensor : NULL;
        for (int k = 0; c->args[i].tag == TGX_TENSORS && k < c->args[i].n; k++) given[at++] = c->args[i].tensors[k];
    }
    c->services = &services, c->scratch = NULL, c->target = NULL;
    c->outputs = NULL;
    if (!code) code = outputs(c, noutputs > 4 ? noutputs : 4, TGX_MAX_DIMS);
    if (!code) code = ask_shape(kernel, c, noutputs);
    if (!code && c->noutputs > capacity) code = TGX_MORE;
    if (!code) code = run(kernel, c, results, kept, given);
    at = (size_t)c->nargs;
    for (int i = 0; given && i < c->nargs; i++) {
        if (given[i]) c->args[i].tensor = given[i];
        for (int k = 0; c->args[i].tag == TGX_TENSORS && k < c->args[i].n; k++) c->args[i].tensors[k] = given[at++];
    }
    for (size_t i = 0; kept && i < n; i++) free(kept[i].memory);
    free(kept);
    free(given);
    free(c->scratch);
    free(c->outputs);
    c->outputs = NULL, c->scratch = NULL;
    return code;
}

int tgx_loop_alone(tgx_loop loop, const tgx_tensor *out, tgx_tensor *const *operands, int n, const tgx_scalar *aux) {
    tgx_iter it;
    tgx_iter_begin(&it, out->sizes, out->rank);
    it.pure = 1;
    tgx_iter_add(&it, out->data, out->sizes, out->strides, out->rank, tgx_itemsize[out->dtype]);
    for (int i = 0; i < n; i++) {
        const tgx_tensor *t = operands[i];
        tgx_iter_add(&it, t->data, t->sizes, t->strides, t->rank, tgx_itemsize[t->dtype]);
    }
    return tgx_walk(&services, &it, loop, aux);
}
