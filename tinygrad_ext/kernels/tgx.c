/* Messages of kernels, and what reads their arguments. See tgx.h. */
#include <float.h>
#include "tgx.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int tgx_fail(tgx_call *c, int kind, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    vsnprintf(c->text, TGX_TEXT, format, rest);
    va_end(rest);
    c->error_kind = (uint8_t)kind;
    return TGX_FAILED;
}

void tgx_warn(tgx_call *c, const char *format, ...) {
    va_list rest;
    if (c->warned) return;
    va_start(rest, format);
    vsnprintf(c->text, TGX_TEXT, format, rest);
    va_end(rest);
    c->warning = 1;
}

int tgx_is_expanded(const tgx_tensor *t) {
    for (int i = 0; i < t->rank; i++)
        if (t->sizes[i] > 1 && t->strides[i] == 0) return 1;
    return 0;
}

void tgx_warn_repeated(tgx_call *c, const char *title, const char *example) {
    const tgx_tensor *self = tgx_in(c, 0);
    if (!c->target || c->target->data != self->data || !tgx_is_expanded(c->target)) return;
    tgx_warn(c, "Use of %s on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also applies "
             "to advanced indexing e.g. %s", title, example);
}

enum { ROOMS = 8, ROOM = TGX_TEXT / 2 };

/* A buffer of the thread's. */
static char *next_room(void) {
    static __thread char rooms[ROOMS][ROOM];
    static __thread unsigned next;
    return rooms[next++ % ROOMS];
}

const char *tgx_number_text(const tgx_value *v) {
    const tgx_scalar *s = v->number;
    char *room = next_room();
    if (v->kind == TGX_IS_BOOL) return s->i ? "True" : "False";
    if (s->given == TGX_ABOVE) return snprintf(room, ROOM, "%llu", (unsigned long long)s->i), room;
    if (v->kind == TGX_IS_INT) return snprintf(room, ROOM, "%lld", (long long)s->i), room;
    if (v->kind == TGX_IS_COMPLEX) return snprintf(room, ROOM, "(%g%+gj)", s->f, s->im), room;
    for (int digits = 15; digits <= 17; digits++) { /* as few as give the number back */
        snprintf(room, ROOM - 2, "%.*g", digits, s->f);
        if (strtod(room, NULL) == s->f) break;
    }
    if (!strpbrk(room, ".ein")) strcat(room, ".0");
    return room;
}

const char *tgx_sizes_text(const int64_t *sizes, int rank) {
    char *room = next_room(), *at = room, *end = room + ROOM - 32; /* the longest number and ", ...]" fit behind it */
    *at++ = '[';
    for (int i = 0; i < rank && at < end; i++) at += sprintf(at, i ? ", %lld" : "%lld", (long long)sizes[i]);
    if (at >= end) at += sprintf(at, ", ...");
    *at++ = ']';
    *at = 0;
    return room;
}

int tgx_check_sizes(tgx_call *c, const int64_t *sizes, int rank, const char *what) {
    int64_t n = 1, least = 0;
    int wrapped = 0, none = 0;
    for (int i = 0; i < rank; i++) {
        if (sizes[i] < least) least = sizes[i];
        none |= sizes[i] == 0;
        wrapped |= __builtin_mul_overflow(n, sizes[i], &n);
    }
    if (least < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: trying to create tensor with negative dimension %lld: %s", what, (long long)least,
                        tgx_sizes_text(sizes, rank));
    if (wrapped && !none)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: Storage size calculation overflowed with sizes=%s: no memory is that large", what,
                        tgx_sizes_text(sizes, rank));
    return 0;
}

tgx_output *tgx_like_order(tgx_call *c, int k, const tgx_tensor *t, int dtype) {
    tgx_output *o = tgx_like(c, k, t, dtype);
    int order[TGX_MAX_DIMS];
    int64_t n = 1, *strides = o->dims + TGX_MAX_DIMS;
    if (t->flags & TGX_CONTIGUOUS) return o;
    /* insertion sort of dimensions by stride, innermost first, ties keep the later dimension inside */
    for (int i = 0; i < t->rank; i++) {
        int d = t->rank - 1 - i, j = i;
        for (; j > 0 && t->strides[order[j - 1]] > t->strides[d]; j--) order[j] = order[j - 1];
        order[j] = d;
    }
    for (int i = 0; i < t->rank; i++) {
        int d = order[i];
        if (t->sizes[d] != 1 && t->strides[d] < n) return o; /* expanded or overlapping: plain row-major */
        strides[d] = n, n *= t->sizes[d];
    }
    o->strides = strides;
    return o;
}

int tgx_dim_outside(tgx_call *c, int64_t dim, int rank) {
    int n = rank ? rank : 1;
    return tgx_fail(c, TGX_INDEX_ERROR, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -n, n - 1,
                    (long long)dim);
}

int tgx_broadcast(int64_t *shape, int *rank, const tgx_tensor *t) {
    int shift = t->rank - *rank;
    if (shift > 0) {
        memmove(shape + shift, shape, (size_t)*rank * sizeof *shape);
        for (int i = 0; i < shift; i++) shape[i] = 1;
        *rank = t->rank;
    }
    shift = *rank - t->rank;
    for (int i = 0; i < t->rank; i++) {
        int64_t size = t->sizes[i];
        if (shape[i + shift] == size || size == 1) continue;
        if (shape[i + shift] != 1) return i + shift + 1;
        shape[i + shift] = size;
    }
    return 0;
}

void tgx_put_number(void *to, int dtype, const tgx_scalar *s) {
    switch (dtype) {
        case TGX_BOOL: *(uint8_t *)to = s->i != 0 || s->f != 0 || s->im != 0; break;
        case TGX_U8: *(uint8_t *)to = (uint8_t)s->i; break;
        case TGX_U16: *(uint16_t *)to = (uint16_t)s->i; break;
        case TGX_U32: *(uint32_t *)to = (uint32_t)s->i; break;
        case TGX_U64: *(uint64_t *)to = (uint64_t)s->i; break;
        case TGX_I8: *(int8_t *)to = (int8_t)s->i; break;
        case TGX_I16: *(int16_t *)to = (int16_t)s->i; break;
        case TGX_I32: *(int32_t *)to = (int32_t)s->i; break;
        case TGX_I64: *(int64_t *)to = s->i; break;
        case TGX_F16: *(uint16_t *)to = tgx_f32_to_f16((float)s->f); break;
        case TGX_BF16: *(uint16_t *)to = tgx_f32_to_bf16((float)s->f); break;
        case TGX_F32: *(float *)to = (float)s->f; break;
        case TGX_F64: *(double *)to = s->f; break;
        case TGX_C64: ((float *)to)[0] = (float)s->f, ((float *)to)[1] = (float)s->im; break;
        default: ((double *)to)[0] = s->f, ((double *)to)[1] = s->im;
    }
}

int tgx_refuse_complex(tgx_call *c, const tgx_scalar *s, int dtype) {
    if (s->im == 0 || tgx_is_complex(dtype)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "value cannot be converted to type %s without overflow: the Scalar (%g%+gj) is complex",
                    tgx_dtype_title(dtype), s->f, s->im);
}

int tgx_sized(tgx_call *c, int k, int arg, int dtype) {
    const tgx_value *v = &c->args[arg];
    if (v->n > TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "expected at most %d numbers, got %d", TGX_MAX_DIMS, (int)v->n);
    memcpy(tgx_fresh(c, k, v->n, dtype)->dims, v->ints, (size_t)v->n * sizeof(int64_t));
    return 0;
}

const char *tgx_dtype_name(int dtype) {
    static const char *const names[TGX_MOST] = {
        [TGX_BOOL] = "bool", [TGX_U8] = "uint8", [TGX_U16] = "uint16", [TGX_U32] = "uint32",
        [TGX_U64] = "uint64", [TGX_I8] = "int8", [TGX_I16] = "int16", [TGX_I32] = "int32", [TGX_I64] = "int64",
        [TGX_F16] = "float16", [TGX_BF16] = "bfloat16", [TGX_F32] = "float32", [TGX_F64] = "float64", [TGX_C64] = "complex64",
        [TGX_C128] = "complex128", [TGX_C32] = "complex32"};
    return names[dtype] ? names[dtype] : "a plugin's dtype";
}

/* Whether a floating or complex dtype holds a number; infinities it does. */
static int near_enough(const tgx_scalar *s, int dtype) {
    double most = dtype == TGX_F16 || dtype == TGX_C32 ? 65504.0 : dtype == TGX_BF16 ? 0x1.fep127 : dtype == TGX_F32 || dtype == TGX_C64 ? FLT_MAX : DBL_MAX;
    double re = __builtin_fabs(s->f), im = __builtin_fabs(s->im);
    return !(re > most && re <= DBL_MAX) && !(im > most && im <= DBL_MAX);
}

int tgx_check_number(tgx_call *c, const tgx_value *v, int dtype) {
    static const char text[] = "value cannot be converted to type %s without overflow: ";
    const tgx_scalar *s = v->number;
    char head[128];
    if (dtype == TGX_BOOL) return 0;
    int reals = tgx_is_complex(dtype) || (s->im == 0 && !tgx_is_integer(dtype));
    if (reals && near_enough(s, dtype)) return 0;
    if (!reals && dtype == TGX_U64 && s->im == 0 && (s->given == TGX_ABOVE || (s->f > -9.3e18 && s->f < 9.3e18))) return 0;
    int64_t most = INT64_MAX >> (64 - 8 * tgx_itemsize[dtype]);
    if (!tgx_is_signed(dtype)) most = 2 * most + 1;
    if (!reals && s->im == 0 && s->i >= -most - tgx_is_signed(dtype) && s->i <= most && s->given != TGX_ABOVE && s->f > -9.3e18 && s->f < 9.3e18) return 0;
    snprintf(head, sizeof head, text, tgx_dtype_name(dtype));
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s%s%s", head, tgx_number_text(v), s->im && !tgx_is_complex(dtype) ? " has an imaginary part; use a complex dtype" : "");
}
