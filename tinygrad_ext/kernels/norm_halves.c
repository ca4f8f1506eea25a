/* Batch norm's last step over halves, which are widened some rows or a part of one at a time, in the first cache. */
#include "norm_halves.h"
#include "norm_call.h"
#include "wide.h"

int tgx_apply_halves(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_batch_norm_job *job = ctx;
    const int beside = job->inner == 1, size = sizeof(float);
    const ptrdiff_t n = beside ? job->channels : job->inner;
    float x[TGX_WIDE_ROW];
    while (lo < hi) {
        const ptrdiff_t first = beside ? 0 : lo % job->channels;
        ptrdiff_t some = tgx_wide_rows(n);
        if (some > hi - lo) some = hi - lo;
        if (!beside && some > job->channels - first) some = job->channels - first;
        for (ptrdiff_t at = 0; at < n; at += TGX_WIDE_ROW) {
            const ptrdiff_t length = n - at < TGX_WIDE_ROW ? n - at : TGX_WIDE_ROW, before = (beside ? at : first) * size;
            const ptrdiff_t place = (lo * n + at) * 2;
            tgx_batch_norm_job part = {.out = (char *)x, .x = (char *)x, .mean = job->mean + before, .scale = job->scale + before,
                                       .shift = job->shift + before, .outer = some, .channels = beside ? length : some,
                                       .inner = beside ? 1 : length};
            tgx_widen(job->half, job->x + place, x, some * length);
            loops()->apply[0](&part, 0, some);
            tgx_narrow(job->half, x, job->out + place, some * length);
        }
        lo += some;
    }
    return 0;
}
