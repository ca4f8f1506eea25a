/* Runs kernels and loops without Python: reads cases that eager mode wrote, and compares the results bit for bit.
 *
 * table CASES: prints each difference and the number of cases; status 1 when there was one. */
#include <stdio.h>
#include <stdlib.h>
#include "alone.h"
#include "casts.h"
#include "isa.h"
#include "random.h"

extern const tgx_loop_row *const tgx_loops_base[], *const tgx_loops_avx2[], *const tgx_loops_avx512[];

enum { MANY = 64 };

static FILE *cases;

static void take(void *to, size_t n) {
    if (n && fread(to, n, 1, cases) != 1) {
        fputs("the file of cases ends too early\n", stderr);
        exit(2);
    }
}
static int64_t number(void) { int64_t v; take(&v, sizeof v); return v; }
static char *text(void) {
    int64_t n = number();
    char *s = calloc((size_t)n + 1, 1);
    take(s, (size_t)n);
    return s;
}
static void *block(size_t n) {
    void *p = calloc(n + 1, 1);
    take(p, n);
    return p;
}
static tgx_tensor *tensor(void) {
    tgx_owned *t = malloc(sizeof *t);
    int64_t dtype = number(), rank = number(), sizes[TGX_MAX_DIMS];
    if (dtype < 0) {
        free(t);
        return NULL;
    }
    take(sizes, (size_t)rank * sizeof *sizes);
    tgx_make(t, sizes, (int)rank, (int)dtype);
    take(t->tensor.data, (size_t)t->tensor.count * (size_t)tgx_itemsize[dtype]);
    return &t->tensor;
}

static void value(tgx_value *v) {
    v->tag = (uint8_t)number(), v->kind = (uint8_t)number(), v->n = (int32_t)number();
    switch (v->tag) {
    case TGX_TENSOR: v->tensor = tensor(); break;
    case TGX_TENSORS:
        v->tensors = calloc((size_t)v->n + 1, sizeof *v->tensors);
        for (int i = 0; i < v->n; i++) v->tensors[i] = tensor();
        break;
    case TGX_INT: case TGX_DTYPE: v->i = number(); break;
    case TGX_INTS: v->ints = block((size_t)v->n * 8); break;
    case TGX_FLOAT: take(&v->f, 8); break;
    case TGX_FLOATS: v->floats = block((size_t)v->n * 8); break;
    case TGX_NUMBER: v->number = block(sizeof *v->number); break;
    case TGX_STRING: v->text = text(); break;
    case TGX_POINTER: {
        char *state = block(TGX_RANDOM_STATE_BYTES);
        v->pointer = malloc(sizeof(tgx_stream));
        tgx_random_load(v->pointer, state);
        break;
    }
    default: break;
    }
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static int same(const tgx_tensor *got, const tgx_tensor *wanted) {
    tgx_owned dense;
    int equal;
    if (!wanted) return got->data == NULL;
    if (got->dtype != wanted->dtype || !tgx_same_sizes(got, wanted)) return 0;
    tgx_make(&dense, got->sizes, got->rank, got->dtype);
    tgx_tensor *from = (tgx_tensor *)got;
    tgx_loop_alone(tgx_cast_loop(got->dtype, got->dtype), &dense.tensor, &from, 1, NULL);
    equal = !memcmp(dense.tensor.data, wanted->data, (size_t)wanted->count * (size_t)tgx_itemsize[wanted->dtype]);
    tgx_release(&dense);
    return equal;
}

enum { KERNEL, LOOP, UNSET };

/* elements: whether those of results count, which a kernel like empty does not set */
static int kernel_case(const char *name, int elements) {
    static tgx_owned results[MANY];
    tgx_value args[TGX_MAX_ARGUMENTS];
    char *title = text();
    tgx_call call = {.title = title, .args = args, .nargs = (int32_t)number(), .noutputs = (int32_t)number()};
    const tgx_kernel *kernel = tgx_kernel_named(name);
    int bad = 0, code;
    for (int i = 0; i < call.nargs; i++) value(&args[i]);
    int wanted = (int)number();
    code = kernel ? tgx_call_alone(kernel, &call, results, MANY) : 99;
    if (code) printf("%s: %s (%d)\n", name, kernel ? call.text : "no such kernel", code), bad = 1;
    else if (call.noutputs != wanted) printf("%s: %d results, expected %d\n", name, call.noutputs, wanted), bad = 1;
    for (int k = 0; k < wanted; k++) {
        const tgx_tensor *t = tensor();
        const tgx_tensor *got = &results[k].tensor;
        if (!bad && !(elements ? same(got, t) : got->dtype == t->dtype && tgx_same_sizes(got, t)))
            printf("%s: result %d differs\n", name, k), bad = 1;
    }
    for (int i = 0, n = (int)number(); i < n; i++) { /* what the kernel changed */
        const tgx_value *v = &args[number()];
        int64_t at = number();
        const tgx_tensor *t = tensor();
        if (!bad && !same(v->tag == TGX_TENSORS ? v->tensors[at] : v->tensor, t)) printf("%s: argument differs\n", name), bad = 1;
    }
    return bad;
}

static tgx_loop loop_named(const char *name, int dtype) {
    const tgx_loop_row *const *family = tgx_cpu_level() == 2 ? tgx_loops_avx512 : tgx_cpu_level() ? tgx_loops_avx2 : tgx_loops_base;
    for (; *family; family++)
        for (const tgx_loop_row *row = *family; row->name; row++)
            if (!strcmp(row->name, name)) return row->loops[dtype];
    return NULL;
}

static int loop_case(const char *name) {
    tgx_tensor *operands[TGX_MAX_OPERANDS];
    tgx_scalar aux[8];
    tgx_owned out;
    int dtype = (int)number(), n = (int)number(), scalars = (int)number(), bad;
    for (int i = 0; i < n; i++) operands[i] = tensor();
    take(aux, (size_t)scalars * sizeof *aux);
    const tgx_tensor *wanted = tensor();
    tgx_loop loop = loop_named(name, dtype);
    tgx_make(&out, wanted->sizes, wanted->rank, wanted->dtype);
    bad = !loop || tgx_loop_alone(loop, &out.tensor, operands, n, aux) || !same(&out.tensor, wanted);
    if (bad) printf("%s: %s\n", name, loop ? "differs" : "no such loop");
    tgx_release(&out);
    return bad;
}

int main(int argc, char **argv) {
    int64_t count, bad = 0;
    cases = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!cases) return fputs("usage: table CASES\n", stderr), 2;
    count = number();
    for (int64_t i = 0; i < count; i++) {
        char *name = text();
        int64_t kind = number();
        bad += kind == LOOP ? loop_case(name) : kernel_case(name, kind == KERNEL);
        free(name);
    }
    printf("%lld cases, %lld differ\n", (long long)count, (long long)bad);
    return bad != 0;
}
