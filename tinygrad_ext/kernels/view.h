/* What kernels of views share. */
#ifndef TGX_VIEW_H
#define TGX_VIEW_H
#include "tgx.h"

/* Flag of a kernel over one tensor whose results are windows on it, or most often so: the caller has a shorter way. */
enum { TGX_WINDOW = 32 };

/* In the place of a window's dtype: it has the tensor's own, and is read with the signs of all parts, or of the imaginary ones,
 * turned: a view with the conjugate or the negative bit, or without it where the tensor has it. */
enum { TGX_CONJUGATED = -2, TGX_NEGATED = -3 };

/* How many numbers argument i holds, and these: a list, one int, or the sizes of a tensor. TGX_FAILED beyond TGX_MAX_DIMS. */
int tgx_numbers(tgx_call *c, int i, const int64_t **values);

/* Dimension k of the result is dimension i of the tensor. */
static inline void tgx_take(tgx_output *o, int k, const tgx_tensor *t, int i) {
    o->sizes[k] = t->sizes[i], o->strides[k] = t->strides[i];
}
#endif
