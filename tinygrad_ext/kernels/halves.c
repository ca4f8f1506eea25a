/* Asks the shape of kernels that refuse halves once more, as if the halves were float32; see halves.h. */
#include "halves.h"
#include "view.h"
#include <stdlib.h>

/* A tensor as its wide copy would lie. */
typedef struct {
    tgx_tensor tensor;
    int64_t strides[TGX_MAX_DIMS];
} wide;

/* The one half that all floating tensors have, or that a dtype asks for; 0: none, or there are other floating dtypes too. */
static int half_among(const tgx_kernel *kernel, const tgx_call *c, int *tensors, int *mixes) {
    int half = 0, mixed = 0, asked = 0;
    *tensors = *mixes = 0;
    for (int i = 0; i < c->nargs; i++) {
        const tgx_value *v = &c->args[i];
        int n = v->tag == TGX_TENSOR ? 1 : v->tag == TGX_TENSORS ? v->n : 0;
        if (v->tag == TGX_POINTER) return 0;
        if (v->tag == TGX_DTYPE && tgx_is_half((int)v->i)) asked = (int)v->i;
        for (int k = 0; k < n; k++) {
            const tgx_tensor *t = v->tag == TGX_TENSOR ? v->tensor : v->tensors[k];
            if (!t || !tgx_is_inexact(t->dtype)) continue;
            ++*tensors;
            if (kernel->flags & TGX_MIXES && tgx_is_half(half) && t->dtype == TGX_F32) {
                *mixes = 1;
                continue;
            }
            mixed |= !tgx_is_half(t->dtype) || (half && half != t->dtype);
            half = t->dtype;
        }
    }
    return asked ? asked : mixed ? 0 : half;
}

static tgx_tensor *widened(wide *room, const tgx_tensor *t) {
    tgx_call c;
    tgx_output o;
    int64_t dims[2 * TGX_MAX_DIMS];
    c.outputs = &o, o.dims = dims;
    tgx_like_order(&c, 0, t, TGX_F32);
    room->tensor = *t, room->tensor.dtype = TGX_F32, room->tensor.strides = room->strides;
    if (o.strides) memcpy(room->strides, o.strides, (size_t)t->rank * sizeof *dims);
    else {
        int64_t n = 1;
        for (int i = t->rank - 1; i >= 0; i--) room->strides[i] = n, n *= t->sizes[i];
        room->tensor.flags |= TGX_CONTIGUOUS;
    }
    return &room->tensor;
}

/* Results in float32 become halves, unless float32 was asked for. */
static int narrow(tgx_call *c, int half, int mixes, const wide *from, const wide *to) {
    int rounds = 1;
    for (int i = 0; i < c->nargs; i++)
        if (c->args[i].tag == TGX_DTYPE && c->args[i].i != half) rounds = 0;
    for (int k = 0; k < c->noutputs; k++) {
        tgx_output *o = &c->outputs[k];
        if (o->origin == TGX_VIEW || tgx_is_complex(o->dtype)) return TGX_FAILED;
        if ((char *)o->strides >= (char *)from && (char *)o->strides < (char *)to) {
            memcpy(o->dims + o->rank, o->strides, (size_t)o->rank * sizeof *o->dims);
            o->strides = o->dims + o->rank;
        }
        if (o->origin == TGX_SAME) o->dtype = c->args[o->of].tensor->dtype;
        if (!rounds || (mixes && k) || o->dtype != TGX_F32 || (o->origin != TGX_FRESH && o->origin != TGX_OVER && o->origin != TGX_WRITES)) continue;
        if (o->origin == TGX_OVER) o->origin = TGX_FRESH;
        o->dtype = (int8_t)half;
        if (o->via < 0) o->via = TGX_F32;
    }
    return 0;
}

static int ask_wide(const tgx_kernel *kernel, tgx_call *c, int half, int mixes, wide *room, tgx_tensor **lists) {
    tgx_value given[TGX_MAX_ARGUMENTS];
    uint64_t halves = 0, listed = 0;
    wide *next = room;
    int code;
    memcpy(given, c->args, (size_t)c->nargs * sizeof *given);
    for (int i = 0; i < c->nargs; i++) {
        tgx_value *v = &c->args[i];
        if (v->tag == TGX_TENSOR && tgx_is_half(v->tensor->dtype))
            v->tensor = widened(next++, v->tensor), halves |= (uint64_t)1 << i;
        else if (v->tag == TGX_TENSORS) {
            for (int k = 0; k < v->n; k++) {
                lists[k] = v->tensors[k];
                if (lists[k] && tgx_is_half(lists[k]->dtype)) lists[k] = widened(next++, lists[k]), halves |= (uint64_t)1 << i;
            }
            v->tensors = lists, lists += v->n, listed |= (uint64_t)1 << i;
        } else if (v->tag == TGX_DTYPE && v->i == half) v->i = TGX_F32;
    }
    code = kernel->shape(c);
    for (int i = 0; i < c->nargs; i++) {
        tgx_value *v = &c->args[i];
        v->tensor = v->tag == TGX_TENSOR || v->tag == TGX_TENSORS ? given[i].tensor : v->tensor;
        if (v->tag == TGX_DTYPE) v->i = given[i].i;
        if (code || !(halves >> i & 1) || c->needs >> i & 1) continue;
        c->needs |= (uint64_t)1 << i, v->want = TGX_F32, v->dense = 0;
    }
    if (!code && c->changes & halves & listed) code = TGX_FAILED;
    return code ? code : narrow(c, half, mixes, room, next);
}

/* The unsigned dtype above one byte among the arguments, or -1. */
static int natural_among(const tgx_call *c) {
    for (int i = 0; i < c->nargs; i++) {
        const tgx_value *v = &c->args[i];
        if (v->tag == TGX_TENSOR && tgx_is_natural(v->tensor->dtype)) return v->tensor->dtype;
        if (v->tag == TGX_DTYPE && tgx_is_natural((int)v->i)) return (int)v->i;
        for (int k = 0; v->tag == TGX_TENSORS && k < v->n; k++)
            if (v->tensors[k] && tgx_is_natural(v->tensors[k]->dtype)) return v->tensors[k]->dtype;
    }
    return -1;
}

int tgx_ask(const tgx_kernel *kernel, tgx_call *c) {
    int noutputs = c->noutputs, code, half, mixes, tensors, listed = 0;
    wide *room;
    tgx_tensor **lists;
    c->error_kind = TGX_RUNTIME_ERROR;
    if (!(kernel->flags & (TGX_NATURAL | TGX_WINDOW)) && (half = natural_among(c)) >= 0)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the argument first, for example with "
                        ".long()", c->title, tgx_dtype_title(half));
    code = kernel->shape(c);
    if (code != TGX_FAILED || c->error_kind != TGX_NOT_IMPLEMENTED_ERROR || kernel->flags & TGX_READS || !kernel->run) return code;
    half = half_among(kernel, c, &tensors, &mixes);
    if (!half) return code;
    for (int i = 0; i < c->nargs; i++) listed += c->args[i].tag == TGX_TENSORS ? c->args[i].n : 0;
    room = malloc((size_t)(tensors + 1) * sizeof *room), lists = malloc((size_t)(listed + 1) * sizeof *lists);
    if (!room || !lists) code = TGX_NO_MEMORY;
    else {
        c->noutputs = noutputs, c->needs = c->changes = 0, c->work = c->scratch_bytes = 0;
        code = ask_wide(kernel, c, half, mixes, room, lists);
        if (code == TGX_FAILED) { /* the first message is about the dtype that was given */
            c->noutputs = noutputs, c->needs = c->changes = 0, c->work = c->scratch_bytes = 0;
            code = kernel->shape(c);
        }
    }
    free(room);
    free(lists);
    return code;
}
