/* Included by norm_isa.h with T float and double. */

ROW_INLINE void NAME(mean_rstd)(const T *x, ptrdiff_t n, double eps, T *mean, T *rstd) {
    double count = 0, m = 0, m2 = 0;
    NAME(moments_add)(x, n, &count, &m, &m2);
    *mean = (T)m;
    *rstd = (T)(1.0 / sqrt(m2 / (double)n + eps));
}

static int NAME(layer)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_layer_norm_job *job = ctx;
    const T *w = (const T *)job->weight, *b = (const T *)job->bias;
    const ptrdiff_t n = job->n;
    for (ptrdiff_t r = lo; r < hi; r++) {
        const T *x = (const T *)job->x + r * n;
        T *out = (T *)job->out + r * n, mean, rstd;
        NAME(mean_rstd)(x, n, job->eps, &mean, &rstd);
        if (w && b) {
            SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i] + b[i];
        } else if (w) {
            SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i];
        } else if (b) {
            SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd + b[i];
        } else {
            SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd;
        }
    }
    return 0;
}

/* The input's gradient of one row; w may be NULL. The row's mean and deviation are computed anew, which is cheaper
 * than keeping them: the row has to be read anyway. */
ROW_INLINE void NAME(layer_row_backward)(const T *x, const T *g, const T *w, T *out, ptrdiff_t n, T mean, T rstd) {
    double sum = 0, dot = 0;
    for (ptrdiff_t at = 0; at < n; at += ROW_BLOCK) {
        ptrdiff_t end = n - at < ROW_BLOCK ? n : at + ROW_BLOCK;
        T s = 0, d = 0;
        if (w) {
            _Pragma("omp simd reduction(+:s, d)")
            for (ptrdiff_t i = at; i < end; i++) { T v = g[i] * w[i]; s += v; d += v * ((x[i] - mean) * rstd); }
        } else {
            _Pragma("omp simd reduction(+:s, d)")
            for (ptrdiff_t i = at; i < end; i++) { s += g[i]; d += g[i] * ((x[i] - mean) * rstd); }
        }
        sum += s;
        dot += d;
    }
    T s = (T)(sum / n), d = (T)(dot / n);
    if (w) {
        SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (g[i] * w[i] - s - (x[i] - mean) * rstd * d) * rstd;
    } else {
        SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (g[i] - s - (x[i] - mean) * rstd * d) * rstd;
    }
}

/* Parts lo to hi of the rows. Columns are added in T over some rows, then in double. */
static int NAME(layer_backward)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    enum { FOLD = 64 };
    const tgx_layer_norm_job *job = ctx;
    const T *w = (const T *)job->weight;
    const ptrdiff_t n = job->n, each = (job->rows + TGX_NORM_PARTS - 1) / TGX_NORM_PARTS;
    T *near = job->sums ? calloc(2 * n, sizeof(T)) : NULL;
    if (job->sums && !near) return 5;
    for (ptrdiff_t part = lo; part < hi; part++) {
        ptrdiff_t end = (part + 1) * each < job->rows ? (part + 1) * each : job->rows;
        double *gain = job->sums ? job->sums + part * 2 * n : NULL, *shift = gain ? gain + n : NULL;
        for (ptrdiff_t r = part * each; r < end; r++) {
            const T *x = (const T *)job->x + r * n, *g = (const T *)job->grad + r * n;
            T mean, rstd;
            NAME(mean_rstd)(x, n, job->eps, &mean, &rstd);
            if (job->out) NAME(layer_row_backward)(x, g, w, (T *)job->out + r * n, n, mean, rstd);
            if (!near) continue;
            SIMD for (ptrdiff_t i = 0; i < n; i++) {
                near[i] += g[i] * ((x[i] - mean) * rstd);
                near[n + i] += g[i];
            }
            if ((r - part * each) % FOLD == FOLD - 1 || r == end - 1) {
                SIMD for (ptrdiff_t i = 0; i < 2 * n; i++) { gain[i] += near[i]; near[i] = 0; }
            }
        }
    }
    free(near);
    return 0;
}
