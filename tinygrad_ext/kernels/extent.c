/* What is wrong with a geometry, in words. The arithmetic is inline, in extent.h; words are asked for when it has failed. */
#include "extent.h"
#include <stdio.h>
#include "tgx.h"

static int64_t smallest(const int64_t *sizes, int rank) {
    int64_t least = 0;
    for (int i = 0; i < rank; i++)
        if (sizes[i] < least) least = sizes[i];
    return least;
}

void tgx_geometry_text(char *text, size_t room, tgx_verdict verdict, const int64_t *sizes, const int64_t *strides, int rank,
                       int64_t offset, int64_t nbytes, const char *what) {
    const char *shape = tgx_sizes_text(sizes, rank), *steps = strides ? tgx_sizes_text(strides, rank) : "";
    char at[32] = "";
    switch (verdict) {
    case TGX_NEGATIVE_SIZE:
        snprintf(text, room, "%s: trying to create tensor with negative dimension %lld: %s", what, (long long)smallest(sizes, rank), shape);
        return;
    case TGX_NEGATIVE_STRIDE:
        snprintf(text, room, "%s: Negative strides are not supported at the moment, got strides: %s. flip() a tensor, or copy an "
                 "array with negative strides.", what, steps);
        return;
    case TGX_NEGATIVE_OFFSET:
        snprintf(text, room, "%s: invalid storage offset %lld: it counts elements from the start of the memory", what, (long long)offset);
        return;
    case TGX_TOO_MANY:
        if (offset) snprintf(at, sizeof at, " and offset=%lld", (long long)offset);
        snprintf(text, room, "%s: Storage size calculation overflowed with sizes=%s%s%s%s: no memory is that large", what, shape,
                 strides ? " and strides=" : "", steps, at);
        return;
    default:
        snprintf(text, room, "%s: sizes %s%s%s, storage offset %lld are out of bounds for storage of size %lld bytes: a window lies "
                 "inside its memory", what, shape, strides ? ", strides " : "", steps, (long long)offset, (long long)nbytes);
    }
}

int tgx_counted(tgx_call *c, const int64_t *sizes, int rank, int64_t *count, const char *what) {
    tgx_verdict verdict = tgx_count(sizes, rank, count);
    if (verdict == TGX_FITS) return 0;
    tgx_geometry_text(c->text, TGX_TEXT, verdict, sizes, NULL, rank, 0, 0, what);
    c->error_kind = TGX_RUNTIME_ERROR;
    return TGX_FAILED;
}

int tgx_inside(tgx_call *c, const int64_t *sizes, const int64_t *strides, int rank, int64_t offset, int dtype, int64_t room,
               const char *what) {
    int64_t nbytes;
    tgx_verdict verdict = tgx_reach(sizes, strides, rank, offset, tgx_itemsize[dtype], room, &nbytes);
    if (verdict == TGX_FITS) return 0;
    tgx_geometry_text(c->text, TGX_TEXT, verdict, sizes, strides, rank, offset, room, what);
    c->error_kind = TGX_RUNTIME_ERROR;
    return TGX_FAILED;
}
