/* Included by loss_isa.h with T float and double. */

static int NAME(square)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_loss_job *job = ctx;
    const T *x = (const T *)job->x, *y = (const T *)job->y;
    T *out = (T *)job->out;
    _Pragma("omp simd")
    for (ptrdiff_t i = lo; i < hi; i++) out[i] = (x[i] - y[i]) * (x[i] - y[i]);
    return 0;
}

static int NAME(sum)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_loss_job *job = ctx;
    enum { BLOCK = 1024 };
    for (ptrdiff_t chunk = lo; chunk < hi; chunk++) {
        ptrdiff_t end = (chunk + 1) * TGX_LOSS_CHUNK < job->n ? (chunk + 1) * TGX_LOSS_CHUNK : job->n;
        double total = 0;
        for (ptrdiff_t at = chunk * TGX_LOSS_CHUNK; at < end; at += BLOCK) {
            const T *x = (const T *)job->x + at, *y = (const T *)job->y + at;
            ptrdiff_t n = end - at < BLOCK ? end - at : BLOCK;
            T s = 0;
            _Pragma("omp simd reduction(+:s)")
            for (ptrdiff_t i = 0; i < n; i++) s += (x[i] - y[i]) * (x[i] - y[i]);
            total += s;
        }
        job->partial[chunk] = total;
    }
    return 0;
}

static int NAME(slope)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_loss_job *job = ctx;
    const T *x = (const T *)job->x, *y = (const T *)job->y, *g = (const T *)job->grad;
    T *out = (T *)job->out, k = (T)job->scale;
    if (g) {
        _Pragma("omp simd")
        for (ptrdiff_t i = lo; i < hi; i++) out[i] = (x[i] - y[i]) * (k * g[i]);
    } else {
        _Pragma("omp simd")
        for (ptrdiff_t i = lo; i < hi; i++) out[i] = (x[i] - y[i]) * k;
    }
    return 0;
}
