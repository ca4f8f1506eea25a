/* The thread pool. One region runs at a time; who finds the pool busy works alone.
 *
 * All coordination goes through `ticket`, one word holding the region's generation, its number of chunks and
 * the next free chunk. Whoever advances it by compare-and-swap owns a chunk, and a region cannot end while a
 * chunk is owned, so a successful claim makes the region's fields safe to read. Workers that wake late find
 * nothing to claim and never touch a finished region: the caller waits only for chunks somebody has begun. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "parallel.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_CHUNKS 1024
#define SPINS 1000 /* 15 to 45 us: longer than the gap between two ops, shorter than a scheduler's slice */
#define WORKER_STACK ((size_t)4 << 20) /* musl and macOS give threads too little for a BLAS */
#define CACHE_LINE 64
#define NO_FAILURE UINT64_MAX

static struct {
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket; /* generation : 32, chunks : 16, next chunk : 16 */
    _Alignas(CACHE_LINE) _Atomic int done;        /* chunks finished */
    _Atomic uint64_t failure;                     /* chunk : 32, code : 32; the lowest chunk wins */
    _Alignas(CACHE_LINE) _Atomic int busy;        /* a region runs; its caller owns the fields below */
    _Atomic int sleeping, caller_sleeps;
    int workers;
    tgx_range_fn fn;
    void *ctx;
    ptrdiff_t n;
    pthread_mutex_t lock;
    pthread_cond_t wake, finished;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER,
          .finished = PTHREAD_COND_INITIALIZER};

static struct {
    pthread_mutex_t lock;
    void (*set)(int);
    int (*get)(void);
    int inside; /* BLAS calls now running in chunks */
    int saved;  /* the count to restore after the last of them */
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic int num_threads; /* 0: not asked for yet */
static _Atomic int threads_chosen;
static _Thread_local int in_region;
static pthread_once_t fork_handler = PTHREAD_ONCE_INIT;

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` returns at once on most cores */
#else
    sched_yield();
#endif
}

static uint32_t generation(uint64_t ticket) { return (uint32_t)(ticket >> 32); }
static uint32_t chunks_of(uint64_t ticket) { return (ticket >> 16) & 0xffff; }
static uint32_t next_of(uint64_t ticket) { return ticket & 0xffff; }

/* ---- fork ---- */

/* Only the forking thread exists in the child: forget the workers and whatever other threads held. */
static void reset_in_child(void) {
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.wake = pool.finished = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.workers = 0;
    atomic_store(&pool.sleeping, 0);
    atomic_store(&pool.caller_sleeps, 0);
    atomic_store(&pool.ticket, (uint64_t)generation(atomic_load(&pool.ticket)) << 32);
    atomic_store(&pool.busy, 0);
    blas.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (blas.inside && blas.set) blas.set(blas.saved);
    blas.inside = 0;
}

/* The BLAS holds a lock of its own while its number of threads changes; a child that was forked then would wait for ever. */
static void hold_blas(void) { pthread_mutex_lock(&blas.lock); }
static void let_go_of_blas(void) { pthread_mutex_unlock(&blas.lock); }

static void install_fork_handler(void) { pthread_atfork(hold_blas, let_go_of_blas, reset_in_child); }

/* ---- chunks ---- */

static void record_failure(uint32_t chunk, int code) {
    uint64_t mine = (uint64_t)chunk << 32 | (uint32_t)code, seen = atomic_load(&pool.failure);
    while (mine < seen && !atomic_compare_exchange_weak(&pool.failure, &seen, mine)) {}
}

static void run_chunk(uint32_t chunk, uint32_t chunks) {
    ptrdiff_t size = pool.n / chunks, rest = pool.n % chunks;
    ptrdiff_t lo = chunk * size + (chunk < rest ? chunk : rest);
    if (atomic_load(&pool.failure) >> 32 < chunk) return; /* a lower chunk failed: its code is the answer */
    int code = pool.fn(pool.ctx, lo, lo + size + (chunk < rest));
    if (code) record_failure(chunk, code);
}

/* The region may be over once its last chunk is counted: nothing of it is read after that. */
static void finish_chunk(uint32_t chunks) {
    if (atomic_fetch_add(&pool.done, 1) + 1 != (int)chunks || !atomic_load(&pool.caller_sleeps)) return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_signal(&pool.finished);
    pthread_mutex_unlock(&pool.lock);
}

static void run_free_chunks(void) {
    uint64_t ticket = atomic_load(&pool.ticket);
    while (next_of(ticket) < chunks_of(ticket)) {
        if (!atomic_compare_exchange_weak(&pool.ticket, &ticket, ticket + 1)) continue;
        run_chunk(next_of(ticket), chunks_of(ticket));
        finish_chunk(chunks_of(ticket));
        ticket = atomic_load(&pool.ticket);
    }
}

/* ---- workers ---- */

static void wait_for_region(uint32_t seen) {
    for (int i = 0; i < SPINS; i++) {
        if (generation(atomic_load(&pool.ticket)) != seen) return;
        relax();
    }
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.sleeping, 1); /* before the last look; the caller publishes, then looks here */
    while (generation(atomic_load(&pool.ticket)) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
    atomic_fetch_sub(&pool.sleeping, 1);
    pthread_mutex_unlock(&pool.lock);
}

/* Never returns: workers sleep in a condition variable of static storage while the process exits. */
static void *worker(void *born) {
    uint32_t seen = (uint32_t)(uintptr_t)born;
    in_region = 1;
    for (;;) {
        wait_for_region(seen);
        seen = generation(atomic_load(&pool.ticket));
        run_free_chunks();
    }
    return NULL;
}

/* With all signals blocked, so that Ctrl-C reaches a thread of the program. Starting fewer workers than
 * wanted is no error: the caller takes what nobody claims. */
static void start_workers(int wanted) {
    if (pool.workers >= wanted) return;
    pthread_once(&fork_handler, install_fork_handler);
    uintptr_t born = generation(atomic_load(&pool.ticket));
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr)) return;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, WORKER_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.workers < wanted && !pthread_create(&thread, &attr, worker, (void *)born)) pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

/* ---- regions ---- */

/* With chunk 0 already taken: the caller's, so that its part of the data stays in its core's cache. */
static void publish(uint32_t chunks) {
    uint64_t next = (uint64_t)(generation(atomic_load(&pool.ticket)) + 1) << 32 | chunks << 16 | 1;
    atomic_store(&pool.done, 0);
    atomic_store(&pool.failure, NO_FAILURE);
    atomic_store(&pool.ticket, next);
    if (!atomic_load(&pool.sleeping)) return;
    pthread_mutex_lock(&pool.lock); /* who saw the old ticket waits by now; signalling unlocked wakes it sooner */
    pthread_mutex_unlock(&pool.lock);
    for (uint32_t i = 1; i < chunks; i++) pthread_cond_signal(&pool.wake);
}

static void work_along(uint32_t chunks) {
    in_region = 1;
    run_chunk(0, chunks);
    finish_chunk(chunks);
    run_free_chunks();
    in_region = 0;
}

static void wait_for_chunks(int chunks) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool.done) == chunks) return;
        relax();
    }
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.caller_sleeps, 1);
    while (atomic_load(&pool.done) != chunks) pthread_cond_wait(&pool.finished, &pool.lock);
    atomic_store(&pool.caller_sleeps, 0);
    pthread_mutex_unlock(&pool.lock);
}

static int chunk_count(ptrdiff_t n, ptrdiff_t grain) {
    ptrdiff_t fit = n / (grain > 1 ? grain : 1), threads = tgx_get_num_threads();
    if (fit > threads) fit = threads;
    return fit > MAX_CHUNKS ? MAX_CHUNKS : fit < 1 ? 1 : (int)fit;
}

int tgx_parallel_for(tgx_range_fn fn, void *ctx, ptrdiff_t n, ptrdiff_t grain) {
    if (n <= 0) return 0;
    int chunks = in_region ? 1 : chunk_count(n, grain);
    if (chunks == 1 || atomic_exchange(&pool.busy, 1)) return fn(ctx, 0, n);
    start_workers(chunks - 1);
    pool.fn = fn;
    pool.ctx = ctx;
    pool.n = n;
    publish((uint32_t)chunks);
    work_along((uint32_t)chunks);
    wait_for_chunks(chunks);
    uint64_t failure = atomic_load(&pool.failure);
    atomic_store(&pool.busy, 0);
    return failure == NO_FAILURE ? 0 : (int)(uint32_t)failure;
}

int tgx_in_parallel(void) { return in_region; }

int tgx_mark_region(int inside) {
    int before = in_region;
    in_region = inside;
    return before;
}

/* ---- number of threads ---- */

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

static int default_threads(void) {
    int n = threads_from("TINYGRAD_EXT_NUM_THREADS");
    if (!n) n = threads_from("OMP_NUM_THREADS");
    return n ? n : available_cores();
}

int tgx_get_num_threads(void) {
    int n = atomic_load_explicit(&num_threads, memory_order_relaxed), unset = 0;
    if (n) return n;
    n = default_threads();
    return atomic_compare_exchange_strong(&num_threads, &unset, n) ? n : unset;
}

void tgx_set_num_threads(int n) {
    atomic_store(&num_threads, n);
    atomic_store(&threads_chosen, 1);
    tgx_set_blas_threads(n);
}

/* ---- threads of the BLAS ---- */

void tgx_attach_blas_threads(void (*set)(int), int (*get)(void)) {
    int wanted = tgx_get_num_threads();
    pthread_once(&fork_handler, install_fork_handler);
    pthread_mutex_lock(&blas.lock);
    blas.set = get ? set : NULL;
    blas.get = set ? get : NULL;
    if (blas.set && (atomic_load(&threads_chosen) || blas.get() > wanted)) blas.set(wanted);
    pthread_mutex_unlock(&blas.lock);
}

int tgx_get_blas_threads(void) {
    pthread_mutex_lock(&blas.lock);
    int n = !blas.get ? 1 : blas.inside ? blas.saved : blas.get();
    pthread_mutex_unlock(&blas.lock);
    return n;
}

void tgx_set_blas_threads(int n) {
    pthread_mutex_lock(&blas.lock);
    if (blas.inside) blas.saved = n;
    else if (blas.set) blas.set(n);
    pthread_mutex_unlock(&blas.lock);
}

int tgx_enter_blas(void) {
    if (!in_region) return 0;
    pthread_mutex_lock(&blas.lock);
    int entered = blas.set != NULL;
    if (entered && !blas.inside++) {
        blas.saved = blas.get();
        blas.set(1);
    }
    pthread_mutex_unlock(&blas.lock);
    return entered;
}

void tgx_leave_blas(int entered) {
    if (!entered) return;
    pthread_mutex_lock(&blas.lock);
    if (!--blas.inside) blas.set(blas.saved);
    pthread_mutex_unlock(&blas.lock);
}
