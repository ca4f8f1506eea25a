/* Messages of kernels. See tgx.h. */
#include "tgx.h"
#include <stdarg.h>
#include <stdio.h>

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

const char *tgx_sizes_text(const int64_t *sizes, int rank) {
    static __thread char rooms[8][TGX_TEXT / 2];
    static __thread unsigned next;
    char *room = rooms[next++ % 8], *at = room, *end = room + sizeof rooms[0] - 24;
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
