/* Results whose channels lie side by side, as the argument's do: what PyTorch calls the suggested memory format. See channels.c. */
#ifndef TGX_CHANNELS_H
#define TGX_CHANNELS_H
#include "tgx.h"

/* Whether images (4 dimensions) or volumes (5) have their channels innermost. One channel in one place says nothing, and counts as
 * row-major. */
int tgx_channels_inside(const tgx_tensor *t);
/* The same, and without gaps. */
int tgx_channels_dense(const tgx_tensor *t);
/* Strides of dense images or volumes whose channels are innermost. */
void tgx_channels_strides(const int64_t *sizes, int rank, int64_t *strides);

/* For shape, at its end: fresh results with as many dimensions as `like` has are laid out as it is. */
int tgx_keep_channels(tgx_call *c, const tgx_tensor *like);
/* The same for kernels whose run writes row-major results only, which tgx_run_rows then brings there. */
int tgx_keep_channels_by_copy(tgx_call *c, const tgx_tensor *like);
int tgx_run_rows(tgx_call *c, tgx_run_fn run);
/* Bytes of scratch that it takes for a result, in whole lines of the cache. */
int64_t tgx_rows_room(int64_t count, int dtype);

/* name_shape and name_run of such a kernel, made of plain ones; argument `arg` says the layout. */
#define TGX_KEEPING(name, arg, shape, run) \
    static int name##_kept_shape(tgx_call *c) { \
        int code = shape(c); \
        return code ? code : tgx_keep_channels_by_copy(c, tgx_in(c, arg)); \
    } \
    static int name##_kept_run(tgx_call *c) { return tgx_run_rows(c, run); }
#endif
