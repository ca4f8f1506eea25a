/* Scratch memory for loops that run in several threads: as many rooms as threads may work, each used by one at a time. */
#ifndef TGX_ROOMS_H
#define TGX_ROOMS_H
#include "tgx.h"

typedef struct { char *at; int64_t pitch; int n; } tgx_rooms;

/* How many rooms, where tgx_range gets `units` and `grain`. For shape, which notes it: the number of threads may change. */
static inline int64_t tgx_rooms_wanted(const tgx_call *c, int64_t units, int64_t grain) {
    int64_t parts = units / grain + 1, threads = c->services->num_threads();
    return units <= grain ? 1 : parts < threads ? parts : threads;
}
static inline int64_t tgx_rooms_pitch(int64_t size) { return (size + 127) & ~(int64_t)63; }
/* n rooms of `size` bytes, which take n * tgx_rooms_pitch(size). */
static inline void tgx_rooms_open(tgx_rooms *rooms, void *memory, int64_t n, int64_t size) {
    rooms->at = memory, rooms->n = (int)n, rooms->pitch = tgx_rooms_pitch(size);
    for (int i = 0; i < rooms->n; i++) rooms->at[i * rooms->pitch] = 0;
}
/* A room that is free; there may be more threads than were counted, so one may have to wait. */
static inline void *tgx_rooms_enter(tgx_rooms *rooms) {
    for (int i = 0;; i = (i + 1) % rooms->n)
        if (!__atomic_exchange_n(&rooms->at[i * rooms->pitch], 1, __ATOMIC_ACQUIRE)) return rooms->at + i * rooms->pitch + 64;
}
static inline void tgx_rooms_leave(void *room) { __atomic_store_n((char *)room - 64, 0, __ATOMIC_RELEASE); }
#endif
