/* Calls of kernels without an interpreter: what core/call/kernel_call.pyx does for Python, for a program in C.
 *
 * Memory comes from malloc; one thread or the pool of parallel.h. The same shape, conversions and run as under Python, so the
 * same bits. */
#ifndef TGX_ALONE_H
#define TGX_ALONE_H
#include "tgx.h"

/* A tensor with room for its geometry, and the memory that is its own; NULL for a view. */
typedef struct {
    tgx_tensor tensor;
    void *memory;
    int64_t dims[2 * TGX_MAX_DIMS];
} tgx_owned;

/* A contiguous tensor of zeros; memory is NULL where malloc refused. */
void tgx_make(tgx_owned *t, const int64_t *sizes, int rank, int dtype);
void tgx_release(tgx_owned *t);

/* Call a kernel. `call` holds title, args, nargs and noutputs, `results` has room for `capacity` results. Returns 0 or
 * what shape or run returned; the message is in call->text. */
int tgx_call_alone(const tgx_kernel *kernel, tgx_call *call, tgx_owned *results, int capacity);

/* Run a pointwise loop over operands of one dtype, which broadcast; out has the sizes of all together. */
int tgx_loop_alone(tgx_loop loop, const tgx_tensor *out, tgx_tensor *const *operands, int n, const tgx_scalar *aux);

const tgx_kernel *tgx_kernel_named(const char *name);
#endif
