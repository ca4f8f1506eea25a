/* How many cores there are, and which of them a worker of the pool runs on, where that decides whether splitting gains anything.
 * Without Linux's calls the scheduler decides alone. Used by parallel.c only. */
#ifndef TGX_PARALLEL_CORES_H
#define TGX_PARALLEL_CORES_H

/* What the environment asks for, or else the cores that the process may use. */
int tgx_default_threads(void);

/* The core this thread is on, or -1. */
int tgx_core(void);

/* The number under which a new worker, the calling thread, is known here. */
int tgx_add_worker(void);

/* A worker has been woken on the caller's core, where it only takes time from it. */
void tgx_note_beside_caller(int worker);

/* A worker runs chunks from here to there. Returns 0 when it was put on the caller's core meanwhile. */
void tgx_begin_chunks(int worker);
int tgx_end_chunks(int worker);

/* Called by the caller: workers beside it shall run on other cores from now on; and the core of this thread, which has nothing to
 * do but to wait, is given to a worker that has lost its own in the middle of a chunk, if there is one. */
void tgx_keep_workers_away(void);
void tgx_give_core_away(void);

/* In the child of a fork there are no workers. */
void tgx_forget_workers(void);

#endif
