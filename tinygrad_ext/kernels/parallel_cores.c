/* How many cores there are, and who of the pool runs on which.
 *
 * On a busy machine the scheduler may wake a worker on the caller's own core, or take a worker's core in the middle of a chunk.
 * Both are answered by affinity: a worker found beside its caller is bound to the other cores, and a late one is bound to the
 * caller's until its chunk is done. The masks are those of the calling thread, so that limits set on it hold for workers too. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include "parallel_cores.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_WORKERS 64 /* of those beyond nothing is known */

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#define LOOK 10000   /* ns for which a worker is watched, */
#define RUNNING 3000 /* and of which it runs at least as much unless it has lost its core */

enum { IDLE, HOLDS_CHUNKS, BESIDE_CALLER };

/* `cores` are those that a worker had before it came to the caller's. */
static struct {
    _Atomic int state;
    int thread;
    clockid_t clock; /* of the time for which it ran */
    cpu_set_t cores;
} workers[MOST_WORKERS];
static _Atomic int born, beside_caller;

int tgx_core(void) { return sched_getcpu(); }

int tgx_add_worker(void) {
    const int number = atomic_fetch_add(&born, 1);
    if (number < MOST_WORKERS) {
        workers[number].thread = (int)syscall(SYS_gettid);
        if (pthread_getcpuclockid(pthread_self(), &workers[number].clock)) workers[number].clock = CLOCK_MONOTONIC; /* is never late */
    }
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
    if (worker >= MOST_WORKERS) return;
    if (atomic_exchange(&workers[worker].state, HOLDS_CHUNKS) == BESIDE_CALLER) atomic_fetch_sub(&beside_caller, 1);
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

static int64_t read_clock(clockid_t clock) {
    struct timespec t;
    return clock_gettime(clock, &t) ? 0 : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A worker that holds chunks and does not run, or -1. */
static int find_late(void) {
    const int count = atomic_load(&born) < MOST_WORKERS ? atomic_load(&born) : MOST_WORKERS;
    const int64_t begun = read_clock(CLOCK_MONOTONIC);
    int64_t ran[MOST_WORKERS];
    for (int i = 0; i < count; i++) ran[i] = atomic_load(&workers[i].state) == HOLDS_CHUNKS ? read_clock(workers[i].clock) : -1;
    while (read_clock(CLOCK_MONOTONIC) - begun < LOOK) {}
    for (int i = 0; i < count; i++)
        if (ran[i] >= 0 && atomic_load(&workers[i].state) == HOLDS_CHUNKS && read_clock(workers[i].clock) - ran[i] < RUNNING) return i;
    return -1;
}

void tgx_give_core_away(void) {
    const int here = tgx_core();
    int state = HOLDS_CHUNKS;
    cpu_set_t mine;
    if (here < 0 || here >= CPU_SETSIZE || atomic_load(&beside_caller)) return;
    const int late = find_late();
    if (late < 0) return;
    CPU_ZERO(&mine);
    CPU_SET(here, &mine);
    const int thread = workers[late].thread;
    if (sched_getaffinity(thread, sizeof(cpu_set_t), &workers[late].cores) || bind(thread, &mine)) return;
    if (atomic_compare_exchange_strong(&workers[late].state, &state, BESIDE_CALLER)) atomic_fetch_add(&beside_caller, 1);
    else keep_away(late); /* it had just finished */
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

/* ---- how many ---- */

/* A positive number at the start of the variable (OMP_NUM_THREADS may be a list), else 0. */
static int threads_from(const char *name) {
    const char *text = getenv(name);
    char *end;
    long n = text ? strtol(text, &end, 10) : 0;
    return n > 0 && n <= INT_MAX && (*end == '\0' || *end == ',') ? (int)n : 0;
}

static int available_cores(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* also on Linux with more cores than the set can hold */
    return n > 0 ? (int)n : 1;
}

int tgx_default_threads(void) {
    int n = threads_from("TINYGRAD_EXT_NUM_THREADS");
    if (!n) n = threads_from("OMP_NUM_THREADS");
    return n ? n : available_cores();
}
