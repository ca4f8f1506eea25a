/* Bounds of a strided window. */
#ifndef TGX_WINDOW_H
#define TGX_WINDOW_H
#include <stdint.h>

/* 1 when an element of the window (strides >= 0) lies at `room` elements or beyond; never overflows. */
static inline int tgx_window_outside(const int64_t *sizes, const int64_t *strides, int n, int64_t offset,
                                     int64_t room) {
    __int128 last = offset;
    for (int i = 0; i < n; i++)
        if (sizes[i] == 0) return 0;
    for (int i = 0; i < n && last < room; i++) last += (__int128)(sizes[i] - 1) * strides[i];
    return last >= room;
}
#endif
