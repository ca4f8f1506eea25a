/* The BLAS library's own threads, kept in step with the pool. See parallel.h. */
#include "parallel_blas.h"
#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    void (*set)(int);
    int (*get)(void);
    int inside; /* BLAS calls now running in chunks */
    int saved;  /* the count to restore after the last of them */
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The BLAS holds a lock of its own while its number of threads changes; a child that was forked then would wait for ever. */
void tgx_hold_blas(void) { pthread_mutex_lock(&blas.lock); }
void tgx_let_go_of_blas(void) { pthread_mutex_unlock(&blas.lock); }

void tgx_reset_blas(void) {
    blas.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (blas.inside && blas.set) blas.set(blas.saved);
    blas.inside = 0;
}

void tgx_attach_blas_threads(void (*set)(int), int (*get)(void)) {
    int wanted = tgx_get_num_threads();
    tgx_watch_forks();
    pthread_mutex_lock(&blas.lock);
    blas.set = get ? set : NULL;
    blas.get = set ? get : NULL;
    if (blas.set && (tgx_threads_chosen() || blas.get() > wanted)) blas.set(wanted);
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
    if (!tgx_in_parallel()) return 0;
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
