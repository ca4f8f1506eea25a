/* What the pool and the BLAS's threads ask of each other. Around a fork the BLAS is held, so that its lock is free in the child. */
#ifndef TGX_PARALLEL_BLAS_H
#define TGX_PARALLEL_BLAS_H
#include "parallel.h"

void tgx_hold_blas(void);
void tgx_let_go_of_blas(void);
void tgx_reset_blas(void);     /* in the child */
void tgx_watch_forks(void);
int tgx_threads_chosen(void);  /* tgx_set_num_threads was called */
#endif
