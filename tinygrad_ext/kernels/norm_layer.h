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

/* A row with a weight and a bias for each element, or without. */
ROW_INLINE void NAME(normed)(const T *x, ptrdiff_t n, T mean, T rstd, const T *w, const T *b, T *out) {
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

static int NAME(layer)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_layer_norm_job *job = ctx;
    const ptrdiff_t n = job->n;
    for (ptrdiff_t r = lo; r < hi; r++) {
        const T *x = (const T *)job->x + r * n;
        T mean, rstd;
        NAME(mean_rstd)(x, n, job->eps, &mean, &rstd);
        NAME(normed)(x, n, mean, rstd, (const T *)job->weight, (const T *)job->bias, (T *)job->out + r * n);
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
        const ptrdiff_t first = r % job->groups * channels;
        const T *w = job->weight ? (const T *)job->weight + first : NULL, *b = job->bias ? (const T *)job->bias + first : NULL;
        NAME(mean_rstd)(x, n, job->eps, &mean, &rstd);
        if (inner == 1 || (!w && !b)) {
            NAME(normed)(x, n, mean, rstd, w, b, out);
            continue;
        }
        for (ptrdiff_t c = 0; c < channels; c++, x += inner, out += inner) {
            const T by = w ? w[c] : 1, more = b ? b[c] : 0;
            SIMD for (ptrdiff_t i = 0; i < inner; i++) out[i] = (x[i] - mean) * rstd * by + more;
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

/* Of channels of few elements each: sums by weight (times `rstd`) and by bias, and the totals of the latter and of the former before
 * that, each times its weight. */
ROW_INLINE void NAME(sums_of_few)(const T *g, const T *x, ptrdiff_t channels, ptrdiff_t inner, T mean, T rstd, const T *w, T *gain,
                                  T *shift, double *total, double *product) {
    enum { SIDE = 8 };      /* channels at a time */
    double sums = 0, products = 0;
    ptrdiff_t c = inner == 1 ? channels : 0;
    SIMD for (ptrdiff_t k = 0; k < c; k++) shift[k] = g[k], gain[k] = g[k] * (x[k] - mean);
    for (; c + SIDE <= channels; c += SIDE) {
        const T *a = g + c * inner, *b = x + c * inner;
        T s[SIDE] = {0}, p[SIDE] = {0};
        for (ptrdiff_t i = 0; i < inner; i++)
            SIMD for (int k = 0; k < SIDE; k++) s[k] += a[k * inner + i], p[k] += a[k * inner + i] * (b[k * inner + i] - mean);
        SIMD for (int k = 0; k < SIDE; k++) shift[c + k] = s[k], gain[c + k] = p[k];
    }
    for (; c < channels; c++) {
        T s = 0, p = 0;
        for (ptrdiff_t i = c * inner; i < (c + 1) * inner; i++) s += g[i], p += g[i] * (x[i] - mean);
        shift[c] = s, gain[c] = p;
    }
    if (w) {
        _Pragma("omp simd reduction(+:sums, products)")
        for (c = 0; c < channels; c++) sums += (double)w[c] * shift[c], products += (double)w[c] * gain[c];
    } else {
        _Pragma("omp simd reduction(+:sums, products)")
        for (c = 0; c < channels; c++) sums += shift[c], products += gain[c];
    }
    SIMD for (c = 0; c < channels; c++) gain[c] *= rstd;
    *total = sums, *product = products;
}

/* A row stays in the second cache while it is gone over: for its moments, for the sums of its channels, for the result. */
static int NAME(group_backward)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    enum { FEW = 32 };
    const tgx_layer_norm_job *job = ctx;
    const ptrdiff_t n = job->n, inner = job->inner, channels = n / inner;
    for (ptrdiff_t r = lo; r < hi; r++) {
        const T *x = (const T *)job->x + r * n, *g = (const T *)job->grad + r * n;
        const T *w = job->weight ? (const T *)job->weight + r % job->groups * channels : NULL;
        T *out = (T *)job->out + r * n, *gain = (T *)job->sums + r * channels, *shift = (T *)job->shifts + r * channels, mean, rstd;
        double total = 0, product = 0;
        NAME(mean_rstd)(x, n, job->eps, &mean, &rstd);
        if (inner <= FEW) NAME(sums_of_few)(g, x, channels, inner, mean, rstd, w, gain, shift, &total, &product);
        else for (ptrdiff_t c = 0; c < channels; c++) {
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
        if (!w) {
            SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (g[i] - s - (x[i] - mean) * rstd * d) * rstd;
        } else if (inner == 1) {
            SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (g[i] * w[i] - s - (x[i] - mean) * rstd * d) * rstd;
        } else for (ptrdiff_t c = 0; c < channels; c++, x += inner, g += inner, out += inner) {
            const T by = w[c];
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
