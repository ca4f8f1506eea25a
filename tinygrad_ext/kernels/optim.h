/* One pass over a parameter: SGD and Adam, all arrays dense and of one floating type. */
#ifndef TGX_OPTIM_H
#define TGX_OPTIM_H
#include <stddef.h>

typedef struct {
    char *param, *grad, *buf;       /* buf may be NULL: no momentum */
    double lr, momentum, dampening, weight_decay;
    int nesterov, maximize;
} tgx_sgd_job;

typedef struct {
    char *param, *grad, *mean, *square, *largest;   /* largest may be NULL: no amsgrad */
    double beta1, beta2, eps, weight_decay;
    double step_size;               /* lr / (1 - beta1^t) */
    double root;                    /* sqrt(1 - beta2^t) */
    double keep;                    /* 1 - lr * weight_decay when decoupled, else 1 */
    int maximize;
} tgx_adam_job;

typedef int (*tgx_optim_fn)(void *job, ptrdiff_t lo, ptrdiff_t hi);
typedef struct { tgx_optim_fn sgd[2], adam[2]; } tgx_optim_table;   /* float, double */

extern const tgx_optim_table tgx_optim_base, tgx_optim_avx2, tgx_optim_avx512;
#endif
