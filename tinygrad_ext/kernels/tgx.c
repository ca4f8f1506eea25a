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

int tgx_dim_outside(tgx_call *c, int64_t dim, int rank) {
    int n = rank ? rank : 1;
    return tgx_fail(c, TGX_INDEX_ERROR, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -n, n - 1,
                    (long long)dim);
}
