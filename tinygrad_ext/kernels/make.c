/* Dtypes, sizes and numbers of what factories make, and the fills that write them. See make.h. */
#include "make.h"
#include "walk.h"

int tgx_made_dtype(tgx_call *c, int arg, int own) {
    if (!tgx_given(c, arg)) return c->target ? c->target->dtype : own;
    int dtype = (int)tgx_int(c, arg);
    if (!c->target || c->target->dtype == dtype) return dtype;
    tgx_fail(c, TGX_RUNTIME_ERROR, "dtype torch.%s does not match dtype of out parameter (torch.%s): leave dtype out, or pass an out of "
             "that dtype", tgx_dtype_name(dtype), tgx_dtype_name(c->target->dtype));
    return -1;
}

int tgx_dtype_of_number(const tgx_call *c, const tgx_value *v) {
    int dtype = c->services->default_dtype();
    if (v->kind == TGX_IS_BOOL) return TGX_BOOL;
    if (v->kind == TGX_IS_INT) return TGX_I64;
    if (v->kind == TGX_IS_FLOAT) return dtype;
    return dtype == TGX_F64 ? TGX_C128 : TGX_C64;
}

int tgx_made(tgx_call *c, int arg, int dtype) {
    const tgx_value *v = &c->args[arg];
    tgx_output *o = tgx_fresh(c, 0, v->n, dtype);
    if (v->n > TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "tensor has too many (>%d) dims: %d", TGX_MAX_DIMS, (int)v->n);
    for (int i = 0; i < v->n; i++) {
        if (v->ints[i] < 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "Trying to create tensor with negative dimension %lld: %s", (long long)v->ints[i],
                            tgx_sizes_text(v->ints, v->n));
        o->dims[i] = v->ints[i];
    }
    return 0;
}

/* Channels of a batch of images N C H W or volumes N C D H W side by side. */
static int channels_last(tgx_call *c, const tgx_tensor *t, int dtype, int rank) {
    const int64_t *n = t->sizes;
    if (t->rank != rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "required rank %d tensor to use channels_last%s format, got %d dimensions", rank,
                        rank == 5 ? "_3d" : "", (int)t->rank);
    int64_t *strides = tgx_like(c, 0, t, dtype)->strides = c->outputs[0].dims;
    strides[1] = 1;
    strides[rank - 1] = n[1] > 1 ? n[1] : 1;
    for (int i = rank - 2; i > 1; i--) strides[i] = strides[i + 1] * (n[i + 1] > 1 ? n[i + 1] : 1);
    strides[0] = strides[2] * (n[2] > 1 ? n[2] : 1);
    return 0;
}

int tgx_made_like(tgx_call *c, const tgx_tensor *t, int dtype, int format) {
    int wanted = tgx_given(c, format) ? (int)tgx_int(c, format) : TGX_PRESERVE_FORMAT;
    if (wanted >= TGX_CHANNELS_LAST) return channels_last(c, t, dtype, wanted + 2); /* the 3d one is the next number */
    if (wanted == TGX_CONTIGUOUS_FORMAT) tgx_like(c, 0, t, dtype);
    else tgx_like_order(c, 0, t, dtype);
    return 0;
}

/* Few elements that lie together: cheaper than a walk. */
static void fill_few(char *to, int64_t n, const char *element, int size) {
    switch (size) {
        case 1: memset(to, *element, (size_t)n); break;
        case 2: for (int64_t i = 0; i < n; i++) memcpy(to + 2 * i, element, 2); break;
        case 4: for (int64_t i = 0; i < n; i++) memcpy(to + 4 * i, element, 4); break;
        case 8: for (int64_t i = 0; i < n; i++) memcpy(to + 8 * i, element, 8); break;
        default: for (int64_t i = 0; i < n; i++) memcpy(to + 16 * i, element, 16);
    }
}

int tgx_fill_number(tgx_call *c, const tgx_scalar *number) {
    const tgx_tensor *out = tgx_out(c, 0);
    char element[16];
    tgx_put_number(element, out->dtype, number);
    if (!(out->flags & TGX_CONTIGUOUS) || out->count > TGX_SMALL) return tgx_fill(c->services, out, element);
    fill_few(out->data, out->count, element, tgx_itemsize[out->dtype]);
    return 0;
}

enum { CLEAR_STEP = 4096, CLEAR_STEPS = 128 };         /* bytes of a step, and steps that pay for a thread: 512 KB, 5 us */

static int clear_range(void *memory, ptrdiff_t lo, ptrdiff_t hi) {
    memset((char *)memory + lo * CLEAR_STEP, 0, (size_t)(hi - lo) * CLEAR_STEP);
    return 0;
}

void tgx_clear(const tgx_call *c, void *memory, int64_t bytes) {
    const int64_t steps = bytes / CLEAR_STEP;
    if (steps >= 2 * CLEAR_STEPS) {
        c->services->parallel_for(clear_range, memory, steps, CLEAR_STEPS);
        memory = (char *)memory + steps * CLEAR_STEP, bytes -= steps * CLEAR_STEP;
    }
    if (bytes) memset(memory, 0, (size_t)bytes);
}

int tgx_fill_zero(tgx_call *c) {
    static const tgx_scalar zero = {.given = 1};
    const tgx_tensor *out = tgx_out(c, 0);
    if (!(out->flags & TGX_CONTIGUOUS)) return tgx_fill_number(c, &zero);
    tgx_clear(c, out->data, out->count * tgx_itemsize[out->dtype]);
    return 0;
}
