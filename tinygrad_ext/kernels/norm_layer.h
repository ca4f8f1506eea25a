/* Included by norm_isa.h with T float and double.
 *
 * The derivative computes mean and deviation anew. Rejected: keeping them from the forward. The row has to be read anyway, so they
 * save no pass over memory. */

ROW_INLINE T NAME(one_over_root)(double variance) {
    return (T)1 / (sizeof(T) == 4 ? (T)__builtin_sqrtf((float)variance) : (T)__builtin_sqrt(variance));
}

ROW_INLINE void NAME(mean_rstd)(const T *x, ptrdiff_t n, double eps, T *mean, T *rstd) {
    double count = 0, m = 0, m2 = 0;
    NAME(moments_add)(x, n, &count, &m, &m2);
    *mean = (T)m;
    *rstd = NAME(one_over_root)(m2 / (double)n + eps);
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

/* A row holds some channels of an example, `inner` elements each. */
static int NAME(group)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_layer_norm_job *job = ctx;
    const ptrdiff_t n = job->n, inner = job->inner, channels = n / inner;
    for (ptrdiff_t r = lo; r < hi; r++) {
        const T *x = (const T *)job->x + r * n;
        T *out = (T *)job->out + r * n, mean, rstd;
        NAME(mean_rstd)(x, n, job->eps, &mean, &rstd);
        for (ptrdiff_t c = r % job->groups * channels, end = c + channels; c < end; c++, x += inner, out += inner) {
            const T w = job->weight ? ((const T *)job->weight)[c] : 1, b = job->bias ? ((const T *)job->bias)[c] : 0;
            SIMD for (ptrdiff_t i = 0; i < inner; i++) out[i] = (x[i] - mean) * rstd * w + b;
        }
    }
    return 0;
}

/* The sum of g, and of g times the distance of x from `middle`. */
ROW_INLINE T NAME(block_products)(const T *g, const T *x, ptrdiff_t n, T middle, T *sum) {
    enum { LANES = 64 / sizeof(T) };
    T lanes[LANES] = {0}, products[LANES] = {0}, s = 0, p = 0;
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES)
        SIMD for (int k = 0; k < LANES; k++) {
            lanes[k] += g[i + k];
            products[k] += g[i + k] * (x[i + k] - middle);
        }
    if (i) {
        for (int half = LANES / 2; half; half /= 2)
            SIMD for (int k = 0; k < half; k++) lanes[k] += lanes[k + half], products[k] += products[k + half];
        s = lanes[0], p = products[0];
    }
    for (; i < n; i++) s += g[i], p += g[i] * (x[i] - middle);
    *sum = s;
    return p;
}

/* A row stays in the second cache while it is gone over: for its moments, for the sums of its channels, for the result. */
static int NAME(group_backward)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_layer_norm_job *job = ctx;
    const ptrdiff_t n = job->n, inner = job->inner, channels = n / inner;
    for (ptrdiff_t r = lo; r < hi; r++) {
        const T *x = (const T *)job->x + r * n, *g = (const T *)job->grad + r * n;
        const T *w = job->weight ? (const T *)job->weight + r % job->groups * channels : NULL;
        T *out = (T *)job->out + r * n, *gain = (T *)job->sums + r * channels, *shift = (T *)job->shifts + r * channels, mean, rstd;
        double total = 0, product = 0;
        NAME(mean_rstd)(x, n, job->eps, &mean, &rstd);
        for (ptrdiff_t c = 0; c < channels; c++) {
            double s = 0, p = 0;
            for (ptrdiff_t at = c * inner, end = at + inner; at < end; at += ROW_BLOCK) {
                T sum;
                p += NAME(block_products)(g + at, x + at, end - at < ROW_BLOCK ? end - at : ROW_BLOCK, mean, &sum);
                s += sum;
            }
            gain[c] = (T)p * rstd, shift[c] = (T)s;
            total += w ? w[c] * s : s, product += w ? w[c] * p : p;
        }
        const T s = (T)(total / (double)n), d = (T)(product / (double)n) * rstd;
        for (ptrdiff_t c = 0; c < channels; c++, x += inner, g += inner, out += inner) {
            const T by = w ? w[c] : 1;
            SIMD for (ptrdiff_t i = 0; i < inner; i++) out[i] = (g[i] * by - s - (x[i] - mean) * rstd * d) * rstd;
        }
    }
    return 0;
}

/* All that the derivative of a row needs, in one pass over each block: mean and 1 / deviation of x, and the means of
 * v = g * w (w may be NULL) and of v * y, where y is x brought to mean 0 and variance 1. */
ROW_INLINE void NAME(layer_row_sums)(const tgx_layer_norm_job *job, const T *x, const T *g, T *mean, T *rstd, T *sum, T *dot) {
    const T *w = (const T *)job->weight;
    const ptrdiff_t n = job->n;
    double count = 0, m = 0, m2 = 0, total = 0, product = 0;
    for (ptrdiff_t at = 0; at < n; at += ROW_BLOCK) {
        ptrdiff_t end = n - at < ROW_BLOCK ? n : at + ROW_BLOCK;
        double len = (double)(end - at), inverse = 1.0 / len;
        T c = NAME(block_sum)(x + at, end - at) * (T)inverse, rest, s = 0, p = 0;
        T squares = NAME(block_squares)(x + at, end - at, c, &rest);
        if (w) {
            _Pragma("omp simd reduction(+:s, p)")
            for (ptrdiff_t i = at; i < end; i++) {
                T v = g[i] * w[i];
                s += v;
                p += v * (x[i] - c);
            }
        } else {
            _Pragma("omp simd reduction(+:s, p)")
            for (ptrdiff_t i = at; i < end; i++) {
                s += g[i];
                p += g[i] * (x[i] - c);
            }
        }
        double shift = (double)rest * inverse;
        row_join(&count, &m, &m2, len, (double)c + shift, (double)squares - (double)rest * shift);
        total += s;
        product += (double)p + (double)c * (double)s;     /* the sum of v * x */
    }
    *mean = (T)m;
    *rstd = NAME(one_over_root)(m2 / (double)n + job->eps);
    *sum = (T)(total / (double)n);
    *dot = (T)((product - m * total) / (double)n) * *rstd;
}

/* One row: its input's gradient into out, its share of the parameters' gradients onto gain and shift; either may be
 * NULL. The row's mean and deviation are computed anew: the row has to be read anyway. */
ROW_INLINE void NAME(layer_row_backward)(const tgx_layer_norm_job *job, ptrdiff_t r, T *gain, T *shift) {
    const ptrdiff_t n = job->n;
    const T *x = (const T *)job->x + r * n, *g = (const T *)job->grad + r * n, *w = (const T *)job->weight;
    T *out = job->out ? (T *)job->out + r * n : NULL, mean, rstd, s, d;
    if (out) NAME(layer_row_sums)(job, x, g, &mean, &rstd, &s, &d);
    else NAME(mean_rstd)(x, n, job->eps, &mean, &rstd);
    if (out && w && gain) {
        SIMD for (ptrdiff_t i = 0; i < n; i++) {
            T y = (x[i] - mean) * rstd;
            out[i] = (g[i] * w[i] - s - y * d) * rstd;
            gain[i] += g[i] * y;
            shift[i] += g[i];
        }
        return;
    }
    if (out && w) {
        SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (g[i] * w[i] - s - (x[i] - mean) * rstd * d) * rstd;
    } else if (out) {
        SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (g[i] - s - (x[i] - mean) * rstd * d) * rstd;
    }
    if (gain)
        SIMD for (ptrdiff_t i = 0; i < n; i++) {
            gain[i] += g[i] * ((x[i] - mean) * rstd);
            shift[i] += g[i];
        }
}

/* Parts lo to hi of the rows. The parameters' gradients are added over FOLD rows, and then to those before. */
static int NAME(layer_backward)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    enum { FOLD = 64 };
    const tgx_layer_norm_job *job = ctx;
    const ptrdiff_t n = job->n, each = (job->rows + job->parts - 1) / job->parts;
    T *near = job->sums && each > FOLD ? calloc(2 * n, sizeof(T)) : NULL;
    if (job->sums && each > FOLD && !near) return 5;
    for (ptrdiff_t part = lo; part < hi; part++) {
        ptrdiff_t first = part * each, end = first + each < job->rows ? first + each : job->rows;
        T *far = job->sums ? (T *)job->sums + part * 2 * n : NULL, *to = near ? near : far;
        for (ptrdiff_t r = first; r < end; r++) {
            NAME(layer_row_backward)(job, r, to, to ? to + n : NULL);
            if (near && ((r - first) % FOLD == FOLD - 1 || r == end - 1))
                SIMD for (ptrdiff_t i = 0; i < 2 * n; i++) { far[i] += near[i]; near[i] = 0; }
        }
    }
    free(near);
    return 0;
}
