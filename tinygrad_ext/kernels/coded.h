/* Elements of a dtype that a plugin brought: codes of one or two bytes, each of which stands for a float32.
 *
 * Widening looks a code up; narrowing finds, by bisection, the first step between neighbouring values that a number does not
 * exceed. Ties are in the steps: the lower value keeps those below it and, where its code is even, the number half way. A plugin
 * may bring both as functions over rows instead, which a format of sixteen bits does better by arithmetic than by its table. */
#ifndef TGX_CODED_H
#define TGX_CODED_H
#include "types.h"

typedef void (*tgx_widen_fn)(const void *codes, float *to, int64_t n);
typedef void (*tgx_narrow_fn)(const float *from, void *codes, int64_t n);

typedef struct {
    int itemsize;
    tgx_widen_fn widen;        /* both or none */
    tgx_narrow_fn narrow;
    const float *values;       /* by code */
    const float *steps[2];     /* of magnitudes, ascending: of numbers from 0 up, and from -0 down */
    const uint16_t *codes[2];  /* one more than steps */
    int64_t nsteps[2];
    uint16_t nan[2];
} tgx_coded;

/* Loops of one operand; aux->i is the address of the tgx_coded. */
int tgx_coded_widen(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux);
int tgx_coded_narrow(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux);
#endif
