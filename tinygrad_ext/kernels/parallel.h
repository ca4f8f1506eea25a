/* A small thread pool: split a range over cores, and keep the BLAS library's own threads in step.
 *
 * Written here instead of taken from OpenMP because libgomp hangs in a child made by fork after a parallel
 * region. The pool is one per process: this file's .c belongs in exactly one extension module, the others
 * reach it through core/loops/parallel.pxd. */
#ifndef TGX_PARALLEL_H
#define TGX_PARALLEL_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work on [lo, hi). A result other than 0 is an error code. Must not fork, and must not wait for the GIL
 * unless the caller of tgx_parallel_for released it. */
typedef int (*tgx_range_fn)(void *ctx, ptrdiff_t lo, ptrdiff_t hi);

/* Split [0, n) into contiguous chunks of at least `grain`, as many as there are threads or some times as many, and run fn
 * on each; the caller works too. Returns the code of the lowest failing chunk, or 0. Chunks above a failed one may be
 * skipped. One chunk, a nested call, and a call while another thread's region runs stay in the caller, as does all of it
 * for a while when splitting took longer: on a machine that others keep busy. */
int tgx_parallel_for(tgx_range_fn fn, void *ctx, ptrdiff_t n, ptrdiff_t grain);

/* 1 inside a chunk of a region that was split, else 0. */
int tgx_in_parallel(void);

/* Let this thread count as inside a region: nothing is split, and a BLAS called runs on one thread. Returns what was
 * before, to be restored. */
int tgx_mark_region(int inside);

/* At first the cores this process may use, or TINYGRAD_EXT_NUM_THREADS, or OMP_NUM_THREADS. */
int tgx_get_num_threads(void);
void tgx_set_num_threads(int n); /* n >= 1; the BLAS follows, and splitting is tried anew */

/* How the BLAS library sets and reads its thread count; both NULL when it has no such functions.
 * A limit the user gave the BLAS by environment stays, unless tgx_set_num_threads was called. */
void tgx_attach_blas_threads(void (*set)(int), int (*get)(void));
int tgx_get_blas_threads(void);
void tgx_set_blas_threads(int n);

/* Around each BLAS call: inside a region the BLAS runs on one thread, and its setting returns with the last
 * leave. `enter` returns what `leave` takes. */
int tgx_enter_blas(void);
void tgx_leave_blas(int entered);

#ifdef __cplusplus
}
#endif
#endif
