/* What recorders write: slices, as structs in rings. Who runs a plan writes them without Python, see graph/routine.pyx. */
#ifndef TGX_EVENTS_H
#define TGX_EVENTS_H
#include <stdint.h>
#include <time.h>

typedef struct {
    int64_t begin, end;             /* ns */
    int64_t used_before, used_after; /* bytes in use */
    uint64_t seq;                   /* of the history node: made by an operation, run by a backward slice; 0: none */
    uint32_t name, line, shapes, owner; /* numbers of texts */
    uint32_t depth, kind;
} tgx_event;

typedef struct {
    tgx_event *events;
    int64_t capacity, written;      /* a full ring goes on at its start */
} tgx_ring;

static inline int64_t tgx_event_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline tgx_event *tgx_next_event(tgx_ring *ring) {
    return &ring->events[ring->written++ % ring->capacity];
}

/* ---- a run of a plan ---- */

enum { TGX_WATCHERS = 4 };          /* recorders of a thread that see the inside of plans */

/* What is the same each time that an instruction runs. */
typedef struct { uint32_t name, line, shapes, owner, kind; } tgx_about;

typedef struct {
    int n;
    struct { tgx_ring *ring; const tgx_about *about; int64_t used; uint32_t depth; } rows[TGX_WATCHERS];
} tgx_watched_run;

static inline void tgx_instruction_seen(void *run, int32_t which, int64_t begin, int64_t end) {
    const tgx_watched_run *w = run;
    for (int k = 0; k < w->n; k++) {
        const tgx_about *a = &w->rows[k].about[which];
        int64_t used = w->rows[k].used;
        *tgx_next_event(w->rows[k].ring) = (tgx_event){begin, end, used, used, 0, a->name, a->line, a->shapes, a->owner,
                                                       w->rows[k].depth, a->kind};
    }
}
#endif
