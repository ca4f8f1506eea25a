/* Every type of a schema: `tell` writes down what arrived, `echo` gives it back. */
#include <tgx.h>
#include <stdio.h>
#include <string.h>

typedef struct { char *at; size_t left; } text;

static void put(text *t, const char *word) {
    size_t n = strlen(word);
    if (n >= t->left) n = t->left - 1;
    memcpy(t->at, word, n);
    t->at += n, t->left -= n, *t->at = 0;
}

static void tell_value(tgx_ctx *c, text *t, const tgx_value *v) {
    char word[128];
    tgx_view w;
    uint32_t i;
    word[0] = 0;
    switch (v->tag) {
    case TGX_NONE: put(t, "none"); break;
    case TGX_TENSOR:
        tgx->geometry(c, v->u.t, &w);
        snprintf(word, sizeof word, "tensor%d", (int)w.ndim);
        break;
    case TGX_INT: snprintf(word, sizeof word, "int %lld", (long long)v->u.i); break;
    case TGX_FLOAT: snprintf(word, sizeof word, "float %g", v->u.f); break;
    case TGX_BOOL: snprintf(word, sizeof word, "bool %lld", (long long)v->u.i); break;
    case TGX_COMPLEX: snprintf(word, sizeof word, "complex %g %g", v->u.c[0], v->u.c[1]); break;
    case TGX_STRING: snprintf(word, sizeof word, "string %u %s", v->count, v->u.s); break;
    case TGX_SCALAR_TYPE: snprintf(word, sizeof word, "dtype %s", v->u.d == TGX_FLOAT64 ? "float64" : "other"); break;
    case TGX_DEVICE: snprintf(word, sizeof word, "device %s", v->u.s); break;
    case TGX_LAYOUT: snprintf(word, sizeof word, "layout %s", v->u.s); break;
    case TGX_MEMORY_FORMAT: snprintf(word, sizeof word, "format %s", v->u.s); break;
    case TGX_GENERATOR: put(t, v->u.g ? "generator" : "no generator"); break;
    case TGX_OBJECT: put(t, "object"); break;
    default:
        snprintf(word, sizeof word, "%s%u(", v->tag == TGX_DICT ? "dict" : "list", v->count);
        put(t, word);
        word[0] = 0;
        for (i = 0; i < (v->tag == TGX_DICT ? 2 * v->count : v->count); i++) {
            tgx_value one = {TGX_NONE, 0, {0}};
            switch (v->tag) {
            case TGX_TENSORS: if (v->u.ts[i]) one = tgx_of_tensor(v->u.ts[i]); break;
            case TGX_INTS: one = tgx_of_int(v->u.is[i]); break;
            case TGX_BOOLS: one = tgx_of_int(v->u.is[i]), one.tag = TGX_BOOL; break;
            case TGX_FLOATS: one = tgx_of_float(v->u.fs[i]); break;
            case TGX_COMPLEXES: one.tag = TGX_COMPLEX, one.u.c[0] = v->u.fs[2 * i], one.u.c[1] = v->u.fs[2 * i + 1]; break;
            case TGX_STRINGS: one.tag = TGX_STRING, one.u.s = v->u.ss[i], one.count = (uint32_t)strlen(one.u.s); break;
            default: one = v->u.vs[i];
            }
            if (i) put(t, ", ");
            tell_value(c, t, &one);
        }
        put(t, ")");
    }
    put(t, word);
}

static int tell(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    text t;
    (void)self, (void)n, (void)m;
    out[0].tag = TGX_STRING;
    if ((out[0].u.s = t.at = (char *)tgx->memory(c, t.left = 1000)) == NULL) return -1;
    tell_value(c, &t, in);
    return 0;
}

static int echo(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    (void)c, (void)self, (void)n, (void)m;
    out[0] = in[0];
    return 0;
}

#if TGX_TARGET_MINOR >= 1
/* Numbers of a generator. */
static int draw(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    double *x = (double *)tgx->memory(c, 3 * sizeof(double));
    tgx_generator *g = in[0].tag == TGX_GENERATOR ? in[0].u.g : NULL;
    (void)self, (void)n, (void)m;
    if (x == NULL || tgx->random_uniform(c, g, x, 2) || tgx->random_normal(c, g, x + 2, 1)) return -1;
    out[0].tag = TGX_FLOATS, out[0].count = 3, out[0].u.fs = x;
    return 0;
}
#endif

static const char *const types[] = {
    "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "int", "int?", "int[]", "int[2]", "int[]?", "float", "float?", "float[]", "bool",
    "bool[]", "bool?", "Scalar", "Scalar?", "Scalar[]", "complex", "complex[]", "str", "str?", "str[]", "ScalarType", "ScalarType?",
    "Device", "Layout", "MemoryFormat", "Generator?", "Dict(str, int)", "Dict(str, Tensor)", "Any",
    "ScalarType[]", "Device[]", "Layout[]", "MemoryFormat[]", "Generator[]", "Dict(str, int)[]", "Any[]", "complex?", "complex[]?",
    "float[]?", "bool[]?", "str[]?", "Scalar[]?", "Tensor[]?", "Device?", "Layout?", "MemoryFormat?", "Dict(int, float)",
    "Dict(str, str)", "Dict(str, int[])", "Dict(str, Any)", "Dict(str, int)?", "SymInt", "SymInt[]", "float[2]", "bool[3]", "Tensor[2]"};

static int init(tgx_ctx *c) {
    char schema[128];
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        snprintf(schema, sizeof schema, "values::tell%d(%s x) -> str", (int)i, types[i]);
        if (tgx->register_op(c, &TGX_OP(.schema = schema, .kernel = tell))) return -1;
        snprintf(schema, sizeof schema, "values::echo%d(%s x) -> %s", (int)i, types[i], types[i]);
        if (strncmp(types[i], "Tensor", 6) && strcmp(types[i], "Dict(str, Tensor)")
            && tgx->register_op(c, &TGX_OP(.schema = schema, .kernel = echo))) return -1;
    }
#if TGX_TARGET_MINOR >= 1
    if (tgx->register_op(c, &TGX_OP(.schema = "values::draw(Generator? g=None) -> float[]", .kernel = draw))) return -1;
#endif
    return 0;
}

TGX_EXTENSION("values", "1", init)
