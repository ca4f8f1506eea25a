/* On a busy machine the scheduler may wake a worker on the caller's own core, or take a worker's core in the middle of a chunk.
 * Both are answered by affinity: a worker found beside its caller is bound to the other cores, and a late one is bound to the
 * caller's until its chunk is done. The masks are those of the calling thread, so that limits set on it hold for workers too. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include "parallel_cores.h"
#include <stdatomic.h>

#define MOST_WORKERS 64 /* of those beyond nothing is known */

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IDLE, HOLDS_CHUNKS, BESIDE_CALLER };

/* `cores` are those that a worker had before it came to the caller's. */
static struct {
    _Atomic int state;
    int thread;
    cpu_set_t cores;
} workers[MOST_WORKERS];
static _Atomic int born, beside_caller;

int tgx_core(void) { return sched_getcpu(); }

int tgx_add_worker(void) {
    const int number = atomic_fetch_add(&born, 1);
    if (number < MOST_WORKERS) workers[number].thread = (int)syscall(SYS_gettid);
    return number;
}

void tgx_forget_workers(void) {
    atomic_store(&born, 0);
    atomic_store(&beside_caller, 0);
    for (int i = 0; i < MOST_WORKERS; i++) atomic_store(&workers[i].state, IDLE);
}

static int bind(int thread, const cpu_set_t *cores) { return sched_setaffinity(thread, sizeof(cpu_set_t), cores); }

void tgx_note_beside_caller(int worker) {
    if (worker >= MOST_WORKERS || atomic_load(&workers[worker].state) == BESIDE_CALLER) return;
    if (sched_getaffinity(0, sizeof(cpu_set_t), &workers[worker].cores)) return;
    atomic_store(&workers[worker].state, BESIDE_CALLER);
    atomic_fetch_add(&beside_caller, 1);
}

void tgx_begin_chunks(int worker) {
    if (worker < MOST_WORKERS && atomic_exchange(&workers[worker].state, HOLDS_CHUNKS) == BESIDE_CALLER) atomic_fetch_sub(&beside_caller, 1);
}

int tgx_end_chunks(int worker) {
    int state = HOLDS_CHUNKS;
    return worker >= MOST_WORKERS || atomic_compare_exchange_strong(&workers[worker].state, &state, IDLE);
}

static void keep_away(int worker) {
    const int here = tgx_core();
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cpu_set_t), &cores)) cores = workers[worker].cores;
    if (here >= 0 && here < CPU_SETSIZE) CPU_CLR(here, &cores);
    bind(workers[worker].thread, CPU_COUNT(&cores) ? &cores : &workers[worker].cores);
}

void tgx_keep_workers_away(void) {
    for (int i = 0; i < MOST_WORKERS && atomic_load(&beside_caller); i++) {
        if (atomic_load(&workers[i].state) != BESIDE_CALLER) continue;
        keep_away(i);
        atomic_store(&workers[i].state, IDLE);
        atomic_fetch_sub(&beside_caller, 1);
    }
}

void tgx_give_core_away(void) {
    const int here = tgx_core();
    cpu_set_t mine;
    if (here < 0 || here >= CPU_SETSIZE) return;
    CPU_ZERO(&mine);
    CPU_SET(here, &mine);
    for (int i = 0; i < MOST_WORKERS && i < atomic_load(&born); i++) {
        const int thread = workers[i].thread;
        int state = HOLDS_CHUNKS;
        if (atomic_load(&workers[i].state) != HOLDS_CHUNKS) continue;
        if (sched_getaffinity(thread, sizeof(cpu_set_t), &workers[i].cores) || bind(thread, &mine)) continue;
        if (atomic_compare_exchange_strong(&workers[i].state, &state, BESIDE_CALLER)) {
            atomic_fetch_add(&beside_caller, 1);
            return;
        }
        keep_away(i); /* it had just finished */
    }
}
#else
int tgx_core(void) { return -1; }
int tgx_add_worker(void) { return 0; }
void tgx_note_beside_caller(int worker) { (void)worker; }
void tgx_begin_chunks(int worker) { (void)worker; }
int tgx_end_chunks(int worker) { return worker >= 0; }
void tgx_keep_workers_away(void) {}
void tgx_give_core_away(void) {}
void tgx_forget_workers(void) {}
#endif
