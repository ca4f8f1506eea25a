/* The thread pool. One region runs at a time; who finds the pool busy works alone.
 *
 * All coordination goes through `ticket`, one word holding the region's generation and the chunks that are free,
 * from `next` to `end`. The caller takes from the front and workers from the back, so that neighbouring ops find their
 * data in the cache of the same core. Whoever changes the word by compare-and-swap owns a chunk, and a region cannot end
 * while a chunk is owned, so a successful claim makes the region's fields safe to read. Workers that wake late find
 * nothing to claim and never touch a finished region: the caller waits only for chunks somebody has begun.
 *
 * On a busy machine a worker may come too late, take the caller's own core, or lose its core in the middle of a chunk
 * (parallel_cores.c). What that costs is booked against what splitting has saved, and regions run in the caller alone for a while
 * once it has cost too much (`settle`). Who runs a chunk changes no result. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RUSAGE_THREAD */
#endif
#include "parallel_blas.h"
#include "parallel_cores.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#define MAX_CHUNKS 1024
#define CHUNKS_OF_A_THREAD 4 /* who is done early takes what others have not begun */
#define WHOLE 16 /* chunks of several times as many begin at multiples: a line of float32, a square of a matrix that is turned */
#define SPINS 1000 /* 15 to 45 us: longer than the gap between two ops, shorter than a scheduler's slice */
#define FEWEST_SPINS 16
#define SHORT_GAP 50000 /* ns between two regions for which a worker stays awake */
#define LONGEST_WAIT 500000 /* ns that a caller stays awake for chunks of others */
#define VAIN_WAKE 2000 /* ns that are booked for a region in which no worker helped, besides what waking them took */
#define MOST_LOSS 100000 /* ns that splitting may cost more than it saves before the caller goes alone */
#define MOST_CREDIT 5000000
#define FIRST_CREDIT 300000 /* threads begin slowly */
#define PATIENCE 20 /* times the loss it goes alone: splitting in vain costs a twentieth at most; twice as long the next time */
#define MOST_PATIENCE 160
#define LONGEST_ALONE 100000000
#define WORKER_STACK ((size_t)4 << 20) /* musl and macOS give threads too little for a BLAS */
#define CACHE_LINE 64
#define NO_FAILURE UINT64_MAX

static struct {
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket; /* generation : 32, end : 16, next : 16 */
    _Alignas(CACHE_LINE) _Atomic int done;        /* chunks finished */
    _Atomic uint64_t failure;                     /* chunk : 32, code : 32; the lowest chunk wins */
    _Alignas(CACHE_LINE) _Atomic int busy;        /* a region runs; its caller owns the fields below */
    _Atomic int sleeping, caller_sleeps, caller_cpu, late;
    _Atomic int64_t published, finished_at;       /* when, in ns */
    _Atomic int64_t balance, alone;               /* ns: what splitting saved; how long the caller goes alone */
    _Atomic int64_t patience;
    int workers;
    tgx_range_fn fn;
    void *ctx;
    ptrdiff_t n, whole;
    uint32_t chunks;
    pthread_mutex_t lock;
    pthread_cond_t wake, finished_all;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER,
          .finished_all = PTHREAD_COND_INITIALIZER, .balance = FIRST_CREDIT, .patience = PATIENCE};

static _Atomic int num_threads; /* 0: not asked for yet */
static _Atomic int threads_chosen;
static _Thread_local int in_region;

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` returns at once on most cores */
#else
    sched_yield();
#endif
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* How often this thread had to give its core to another. */
static long interruptions(void) {
#if defined(__linux__)
    struct rusage use;
    return getrusage(RUSAGE_THREAD, &use) ? 0 : use.ru_nivcsw;
#else
    return 0;
#endif
}

static uint32_t generation(uint64_t ticket) { return (uint32_t)(ticket >> 32); }
static uint32_t end_of(uint64_t ticket) { return (ticket >> 16) & 0xffff; }
static uint32_t next_of(uint64_t ticket) { return ticket & 0xffff; }

/* ---- fork ---- */

/* Only the forking thread exists in the child: forget the workers and whatever other threads held. */
static void reset_in_child(void) {
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.wake = pool.finished_all = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.workers = 0;
    atomic_store(&pool.sleeping, 0);
    atomic_store(&pool.caller_sleeps, 0);
    atomic_store(&pool.balance, FIRST_CREDIT);
    atomic_store(&pool.alone, 0);
    atomic_store(&pool.patience, PATIENCE);
    atomic_store(&pool.ticket, (uint64_t)generation(atomic_load(&pool.ticket)) << 32);
    atomic_store(&pool.busy, 0);
    tgx_forget_workers();
    tgx_reset_blas();
}

static void install_fork_handler(void) { pthread_atfork(tgx_hold_blas, tgx_let_go_of_blas, reset_in_child); }

void tgx_watch_forks(void) {
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    pthread_once(&watched, install_fork_handler);
}

/* ---- chunks ---- */

static void record_failure(uint32_t chunk, int code) {
    uint64_t mine = (uint64_t)chunk << 32 | (uint32_t)code, seen = atomic_load(&pool.failure);
    while (mine < seen && !atomic_compare_exchange_weak(&pool.failure, &seen, mine)) {}
}

static ptrdiff_t begin_of(uint32_t chunk) {
    const ptrdiff_t size = pool.n / pool.chunks, rest = pool.n % pool.chunks, lo = chunk * size + (chunk < rest ? chunk : rest);
    return chunk == pool.chunks ? lo : lo - lo % pool.whole;
}

static void run_chunk(uint32_t chunk) {
    if (atomic_load(&pool.failure) >> 32 < chunk) return; /* a lower chunk failed: its code is the answer */
    int code = pool.fn(pool.ctx, begin_of(chunk), begin_of(chunk + 1));
    if (code) record_failure(chunk, code);
}

/* The number of the chunk that is taken, or -1 when none is free. */
static int claim(int from_back) {
    uint64_t ticket = atomic_load(&pool.ticket);
    while (next_of(ticket) < end_of(ticket)) {
        const uint64_t rest = from_back ? ticket - (1 << 16) : ticket + 1;
        if (atomic_compare_exchange_weak(&pool.ticket, &ticket, rest)) return (int)(from_back ? end_of(rest) : next_of(ticket));
    }
    return -1;
}

/* ---- workers ---- */

/* The region may be over once its last chunk is counted: nothing of it is read after that. A caller that sleeps has waited
 * for longer than a chunk should differ from another: it is told whether this thread had lost its core. */
static void finish_chunk(uint32_t chunks, long *seen) {
    if (atomic_load(&pool.caller_sleeps)) {
        const long all = interruptions();
        if (all > *seen) atomic_store(&pool.late, 1);
        *seen = all;
        atomic_store(&pool.finished_at, now());
    }
    if (atomic_fetch_add(&pool.done, 1) + 1 != (int)chunks || !atomic_load(&pool.caller_sleeps)) return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_signal(&pool.finished_all);
    pthread_mutex_unlock(&pool.lock);
}

/* Beside the caller on its own core a worker only takes time from it. */
static int help(int number, long *seen) {
    const int here = tgx_core();
    if (here >= 0 && here == atomic_load(&pool.caller_cpu)) {
        tgx_note_beside_caller(number);
        return 0;
    }
    tgx_begin_chunks(number);
    for (int chunk; (chunk = claim(1)) >= 0;) {
        const uint32_t chunks = pool.chunks;
        run_chunk((uint32_t)chunk);
        finish_chunk(chunks, seen);
    }
    return tgx_end_chunks(number);
}

static void sleep_until(uint32_t seen) {
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.sleeping, 1); /* before the last look; the caller publishes, then looks here */
    while (generation(atomic_load(&pool.ticket)) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
    atomic_fetch_sub(&pool.sleeping, 1);
    pthread_mutex_unlock(&pool.lock);
}

/* Awake for a while, as long as regions follow each other closely. */
static void wait_for_region(uint32_t seen, int *spins) {
    const int64_t begun = now();
    for (int i = 0; i < *spins && generation(atomic_load(&pool.ticket)) == seen; i++) relax();
    if (generation(atomic_load(&pool.ticket)) == seen) sleep_until(seen);
    const int fewer = *spins / 4 > FEWEST_SPINS ? *spins / 4 : FEWEST_SPINS;
    *spins = atomic_load(&pool.published) - begun < SHORT_GAP ? SPINS : fewer;
}

/* Never returns: workers sleep in a condition variable of static storage while the process exits. */
static void *worker(void *born) {
    uint32_t seen = (uint32_t)(uintptr_t)born;
    const int number = tgx_add_worker();
    int spins = SPINS, helped = 1;
    long lost = interruptions();
    in_region = 1;
    for (;;) {
        if (helped) wait_for_region(seen, &spins);
        else sleep_until(seen);
        seen = generation(atomic_load(&pool.ticket));
        helped = help(number, &lost);
    }
    return NULL;
}

/* With all signals blocked, so that Ctrl-C reaches a thread of the program. Starting fewer workers than
 * wanted is no error: the caller takes what nobody claims. */
static void start_workers(int wanted) {
    if (pool.workers >= wanted) return;
    tgx_watch_forks();
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

/* With chunk 0 already taken: the caller's. */
static void publish(void) {
    uint64_t next = (uint64_t)(generation(atomic_load(&pool.ticket)) + 1) << 32 | pool.chunks << 16 | 1;
    atomic_store(&pool.done, 0);
    atomic_store(&pool.late, 0);
    atomic_store(&pool.failure, NO_FAILURE);
    atomic_store(&pool.caller_cpu, tgx_core());
    atomic_store(&pool.ticket, next);
    if (!atomic_load(&pool.sleeping)) return;
    pthread_mutex_lock(&pool.lock); /* who saw the old ticket waits by now; signalling unlocked wakes it sooner */
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < pool.workers && i + 1 < (int)pool.chunks; i++) pthread_cond_signal(&pool.wake);
}

static uint32_t work_along(void) {
    uint32_t own = 0;
    for (int chunk = 0; chunk >= 0; own++, chunk = claim(0)) {
        run_chunk((uint32_t)chunk);
        atomic_fetch_add(&pool.done, 1);
    }
    return own;
}

/* With the lock held, until a worker is done with the last chunk or it is time to look again. */
static void wait_a_while(void) {
    struct timespec until;
    if (atomic_load(&pool.done) == (int)pool.chunks) return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LONGEST_WAIT;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&pool.finished_all, &pool.lock, &until);
}

/* Awake for as long as a chunk takes, for one may have begun just now. Returns how long the thread that finished last had to
 * wait for this one to wake up. */
static int64_t wait_for_chunks(int64_t worked, int64_t longest) {
    const int chunks = (int)pool.chunks;
    do {
        for (int i = 0; i < SPINS / 16; i++) {
            if (atomic_load(&pool.done) == chunks) return 0;
            relax();
        }
    } while (now() - worked < longest);
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.caller_sleeps, 1);
    atomic_store(&pool.finished_at, INT64_MAX);
    while (atomic_load(&pool.done) != chunks) {
        tgx_give_core_away();
        wait_a_while();
    }
    atomic_store(&pool.caller_sleeps, 0);
    pthread_mutex_unlock(&pool.lock);
    const int64_t late = now() - atomic_load(&pool.finished_at);
    return late > 0 ? late : 0;
}

/* Book what a region saved: `woke` is what waking others took, `work` the caller's `own` chunks, `wait` how long it waited for
 * others', of which `waking`. Chunks may differ: that one waits for a longer one is no loss. */
static void settle(uint32_t own, int64_t woke, int64_t work, int64_t wait, int64_t waking) {
    const int64_t saved = work * (pool.chunks - own) / own - wait;
    int64_t balance = atomic_load(&pool.balance);
    if (own == pool.chunks) balance -= VAIN_WAKE + woke;
    else if (atomic_load(&pool.late)) balance += saved;
    else balance += saved > 0 ? saved : -waking;
    if (balance > MOST_CREDIT) balance = MOST_CREDIT;
    if (balance < -MOST_LOSS) {
        const int64_t patience = atomic_load(&pool.patience), loss = -balance;
        atomic_store(&pool.alone, loss * patience < LONGEST_ALONE ? loss * patience : LONGEST_ALONE);
        atomic_store(&pool.patience, patience < MOST_PATIENCE ? patience * 2 : patience);
        balance = 0;
    } else if (balance > MOST_LOSS) atomic_store(&pool.patience, PATIENCE);
    atomic_store(&pool.balance, balance);
}

static int run_together(tgx_range_fn fn, void *ctx, ptrdiff_t n, ptrdiff_t grain, int chunks) {
    start_workers(tgx_get_num_threads() - 1);
    pool.fn = fn, pool.ctx = ctx, pool.n = n, pool.chunks = (uint32_t)chunks;
    pool.whole = n / chunks >= grain + WHOLE && n / chunks >= 6 * WHOLE ? WHOLE : 1;
    const int64_t begun = now();
    tgx_keep_workers_away();
    atomic_store(&pool.published, begun);
    publish();
    const int64_t woken = now();
    in_region = 1;
    const uint32_t own = work_along();
    in_region = 0;
    const int64_t worked = now(), work = worked - woken, chunk = work / own;
    const int64_t waking = wait_for_chunks(worked, chunk < SHORT_GAP ? SHORT_GAP : chunk < LONGEST_WAIT ? chunk : LONGEST_WAIT);
    settle(own, woken - begun, work, now() - worked, waking);
    const uint64_t failure = atomic_load(&pool.failure);
    atomic_store(&pool.busy, 0);
    return failure == NO_FAILURE ? 0 : (int)(uint32_t)failure;
}

static int run_alone(tgx_range_fn fn, void *ctx, ptrdiff_t n) {
    const int64_t begun = now();
    in_region = 1;
    const int code = fn(ctx, 0, n);
    in_region = 0;
    atomic_fetch_sub(&pool.alone, now() - begun);
    return code;
}

/* A multiple of the number of threads where there are more. */
static int chunk_count(ptrdiff_t n, ptrdiff_t grain) {
    ptrdiff_t fit = n / (grain > 1 ? grain : 1), threads = tgx_get_num_threads();
    if (threads == 1 || fit < 2) return 1;
    if (fit > threads) fit = fit < threads * CHUNKS_OF_A_THREAD ? fit - fit % threads : threads * CHUNKS_OF_A_THREAD;
    return fit > MAX_CHUNKS ? MAX_CHUNKS : (int)fit;
}

int tgx_parallel_for(tgx_range_fn fn, void *ctx, ptrdiff_t n, ptrdiff_t grain) {
    if (n <= 0) return 0;
    const int chunks = in_region ? 1 : chunk_count(n, grain);
    if (chunks == 1) return fn(ctx, 0, n);
    if (atomic_load(&pool.alone) > 0) return run_alone(fn, ctx, n);
    return atomic_exchange(&pool.busy, 1) ? fn(ctx, 0, n) : run_together(fn, ctx, n, grain, chunks);
}

int tgx_in_parallel(void) { return in_region; }

int tgx_mark_region(int inside) {
    int before = in_region;
    in_region = inside;
    return before;
}

/* ---- number of threads ---- */

int tgx_get_num_threads(void) {
    int n = atomic_load_explicit(&num_threads, memory_order_relaxed), unset = 0;
    if (n) return n;
    n = tgx_default_threads();
    return atomic_compare_exchange_strong(&num_threads, &unset, n) ? n : unset;
}

int tgx_threads_chosen(void) { return atomic_load(&threads_chosen); }

void tgx_set_num_threads(int n) {
    atomic_store(&num_threads, n);
    atomic_store(&threads_chosen, 1);
    atomic_store(&pool.balance, FIRST_CREDIT);
    atomic_store(&pool.alone, 0);
    atomic_store(&pool.patience, PATIENCE);
    tgx_set_blas_threads(n);
}
