/* See conv_complex.h. Rejected: three maps in place of four, by sums of the parts, which cancel where one part is small. */
#include "conv_complex.h"

enum { ALIGNED = 64 };

static int64_t padded(int64_t bytes) { return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED; }

int tgx_conv_complex_room(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b) {
    const tgx_output *o = &c->outputs[0];
    int64_t count = 1, size;
    if (!tgx_is_complex(a->dtype)) return 0;
    for (int i = 0; i < o->rank; i++) count *= o->sizes[i];
    size = tgx_itemsize[tgx_part(a->dtype)];
    c->notes[3] = padded(c->scratch_bytes);
    c->scratch_bytes = c->notes[3] + 2 * (padded(a->count * size) + padded(b->count * size) + padded(count * size));
    return 0;
}

#define PARTS(NAME, T) \
    static void split_##NAME(const T *x, int64_t n, T *re, T *im) { \
        for (int64_t i = 0; i < n; i++) re[i] = x[2 * i], im[i] = x[2 * i + 1]; \
    } \
    static void join_##NAME(T *out, int64_t n, const T *a, const T *b, int part, T sign) { \
        for (int64_t i = 0; i < n; i++) out[2 * i + part] = a[i] + sign * b[i]; \
    }
PARTS(f32, float)
PARTS(f64, double)

/* Room for both parts of a tensor behind `at`, and the parts themselves unless it is what the map writes. */
static void part_of(const tgx_tensor *t, int filled, char **at, tgx_tensor parts[2]) {
    for (int k = 0; k < 2; k++) {
        parts[k] = *t, parts[k].dtype = (int8_t)tgx_part(t->dtype), parts[k].data = *at;
        *at += padded(t->count * tgx_itemsize[parts[k].dtype]);
    }
    if (!filled) return;
    if (t->dtype == TGX_C64) split_f32((const float *)t->data, t->count, (float *)parts[0].data, (float *)parts[1].data);
    else split_f64((const double *)t->data, t->count, (double *)parts[0].data, (double *)parts[1].data);
}

static void add_bias(tgx_tensor *out, const tgx_conv_sizes *g, const tgx_tensor *bias) {
    int64_t plane = tgx_conv_count(g->out), each = bias->count * plane;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t channel = i % each / plane;
        if (out->dtype == TGX_C64) ((tgx_c64 *)out->data)[i] += ((const tgx_c64 *)bias->data)[channel];
        else ((tgx_c128 *)out->data)[i] += ((const tgx_c128 *)bias->data)[channel];
    }
}

int tgx_conv_complex(tgx_call *c, const tgx_conv_sizes *g, tgx_conv_map map, const tgx_tensor *bias) {
    tgx_tensor *out = tgx_out(c, 0), a[2], b[2], made[2];
    char *at = (char *)c->scratch + c->notes[3];
    int error = 0;
    if (out->count == 0) return 0;
    part_of(tgx_in(c, 0), 1, &at, a), part_of(tgx_in(c, 1), 1, &at, b), part_of(out, 0, &at, made);
    for (int part = 0; part < 2 && !error; part++) {      /* the real part, then the imaginary one */
        for (int k = 0; k < 2 && !error; k++) {
            c->outputs[0].tensor = &made[k];
            error = map(c, g, &a[k], &b[k ^ part]);
        }
        if (error) break;
        if (out->dtype == TGX_C64)
            join_f32((float *)out->data, out->count, (const float *)made[0].data, (const float *)made[1].data, part, part ? 1 : -1);
        else join_f64((double *)out->data, out->count, (const double *)made[0].data, (const double *)made[1].data, part, part ? 1 : -1);
    }
    c->outputs[0].tensor = out;
    if (!error && bias && bias->count) add_bias(out, g, bias);
    return error;
}
